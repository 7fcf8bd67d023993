/* gyre/cuda.h: collectives on the memory of NVIDIA GPUs.
 *
 * This header includes no CUDA header, and libgyre links no CUDA library: the driver, libcuda.so.1, is opened at run
 * time. A stream is passed as `void *`: a cudaStream_t or a CUstream, which are the same type. NULL is the legacy
 * default stream.
 *
 * First the communicator is attached to a device on each rank (gyre_cuda_attach). From then on there are two kinds of
 * calls:
 *
 *   gyre_all_reduce, ...       The calls of gyre.h accept device memory like any other memory. The host waits for them.
 *                              Work of streams on the operands must be complete before the call.
 *   gyre_all_reduce_on, ...    Calls on a stream. A call reads its input when the stream reaches it. Later work on the
 *                              stream sees its output. The host does not wait for the GPU.
 *
 * Results have the same bits as those of the same call on host memory, with one exception. A kernel combines
 * contributions in rank order, or in canonical order (GYRE_ORDER). Its bits may differ where a call on host memory uses
 * another order: a ring, for example. Each operand may lie in memory of the device, of another device of this process,
 * in managed memory or in host memory.
 *
 * How calls are executed. If all ranks are threads of one process and share a device, one kernel executes a call on a
 * stream for all ranks. Such a call returns when all ranks have made it, and a message when sender and receiver have.
 * All ranks must therefore make calls on several communicators in the same order, or in a group.
 *
 * Processes of one host map the operands of a collective call on a stream by CUDA IPC, if their devices can access each
 * other. The lowest rank of each device launches a kernel, which executes a part of the call for all ranks. A rank
 * frees an operand after the call has completed on all ranks.
 *
 * In all other cases, calls are staged: operands are copied to pinned host memory, and the ranks exchange them there,
 * over the transports of gyre.h. This holds for messages of processes, devices without access to each other, ranks on
 * several hosts, and ranks without a GPU. Calls without a stream are always staged.
 *
 * Failures. A failure that is found after a call on a stream has returned ends the world, like any other failure.
 * gyre_cuda_status and the next call return it. Streams that wait for a call of gyre continue, and the output of the
 * call is undefined. The same holds after gyre_comm_abort, and for calls in progress when their communicator is
 * destroyed.
 *
 * Names in brackets under "Errors" are those of gyre.h, and:
 *
 *   [attached]  GYRE_INVALID_ARGUMENT   the communicator is not attached (gyre_cuda_attach)
 *   [device]    GYRE_SYSTEM             the CUDA driver has returned an error, which the error message names
 *   [device]    GYRE_NO_MEMORY          there is no pinned memory for the operands */
#ifndef GYRE_CUDA_H
#define GYRE_CUDA_H

#include <gyre/gyre.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A cudaStream_t or CUstream. */
typedef void *gyre_stream;

/* Values for the device of a rank, besides the numbers of devices, which count from 0. */
#define GYRE_CUDA_CURRENT (-1) /* the device of the calling thread's current context */
#define GYRE_CUDA_NONE (-2)    /* no device: this rank takes part with host memory */
/* The device of the calling thread's current context. If there is none: device L modulo the number of devices that the
 * process sees, where L is the rank's number among the ranks of its host. */
#define GYRE_CUDA_DEFAULT (-3)

/* Writes the number of devices that this process sees to *devices_p. Local; calls cuInit, and creates no context.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  devices_p is NULL
 *   GYRE_UNSUPPORTED       there is no driver, it is too old, or it finds no device; gyre_last_error(NULL) returns the
 *                          error message */
GYRE_API gyre_status gyre_cuda_available(int *devices_p);

/* Attaches `comm` to a device on each rank. Collective; blocking; every rank returns the same status. device: a number,
 * GYRE_CUDA_DEFAULT, GYRE_CUDA_CURRENT or GYRE_CUDA_NONE. gyre_comm_get(comm, "device", ...) gives the number of the
 * device. The device's primary context is retained until the communicator is destroyed.
 *
 * The attachment creates a duplicate of the communicator and a thread for calls on streams. A communicator is attached
 * at most once. Communicators that are created from `comm` are not attached. comm may not be NULL.
 * Errors: [comm], [world], [shortage], [group].
 *   GYRE_INVALID_ARGUMENT  the communicator is already attached, or a rank's thread has no current context
 *   GYRE_UNSUPPORTED       a rank has no driver, or no such device; the error message names the rank
 *   GYRE_SYSTEM            the driver has returned an error on a rank */
GYRE_API gyre_status gyre_cuda_attach(gyre_comm *comm, int device);

/* Returns GYRE_SUCCESS, or the status of the first failure of a call on a stream or of the world. gyre_last_error(comm)
 * then returns its message. Does not block and makes no progress. comm may not be NULL.
 * Errors: [comm], [attached], [world], [collective], [device]. */
GYRE_API gyre_status gyre_cuda_status(gyre_comm *comm);

/* Calls on streams. The arguments are those of the call with the same name in gyre.h, and the stream. The call returns
 * at once, unless one kernel executes it for all ranks: see above. It reads its input when the stream reaches it, and
 * the stream continues when the output is complete. All ranks make the calls on one communicator in the same order, on
 * any streams. The calls are executed in that order, independently of the calls of gyre.h on the same communicator.
 * comm may not be NULL.
 *
 * In a group (gyre_group_begin, gyre_group_end) calls are executed concurrently. Their streams wait from the end of the
 * group on; until then the inputs must not be changed. Sends and receives that wait for each other must be in one
 * group.
 *
 * A rank that is attached to GYRE_CUDA_NONE passes host memory and NULL as the stream. Its calls block, those in a
 * group at the end of the group. Capture into a CUDA graph is refused.
 * Errors: [comm], [world], [collective], [shortage], [attached], [device].
 *   GYRE_INVALID_ARGUMENT  this rank has no device, and stream is not NULL
 *   GYRE_UNSUPPORTED       the stream is being captured */
/* Reduces the inputs of all ranks to every rank.
 * Errors: [buffer], [op]. */
GYRE_API gyre_status gyre_all_reduce_on(gyre_comm *comm, const void *input, void *output, size_t count,
                                        gyre_dtype dtype, gyre_op op, gyre_stream stream);
/* Reduces the inputs of all ranks to the root.
 * Errors: [buffer], [op], [root]. */
GYRE_API gyre_status gyre_reduce_on(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                    gyre_op op, int root, gyre_stream stream);
/* Reduces the inputs of all ranks, and gives each rank its block.
 * Errors: [buffer], [op]. */
GYRE_API gyre_status gyre_reduce_scatter_on(gyre_comm *comm, const void *input, void *output, size_t count,
                                            gyre_dtype dtype, gyre_op op, gyre_stream stream);
/* Copies the root's input to the output of every rank.
 * Errors: [buffer], [root]. */
GYRE_API gyre_status gyre_broadcast_on(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                       int root, gyre_stream stream);
/* Gathers the inputs of all ranks on every rank.
 * Errors: [buffer]. */
GYRE_API gyre_status gyre_all_gather_on(gyre_comm *comm, const void *input, void *output, size_t count,
                                        gyre_dtype dtype, gyre_stream stream);
/* Gathers the inputs of all ranks on the root.
 * Errors: [buffer], [root]. */
GYRE_API gyre_status gyre_gather_on(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                    int root, gyre_stream stream);
/* Gives each rank its block of the root's input.
 * Errors: [buffer], [root]. */
GYRE_API gyre_status gyre_scatter_on(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                     int root, gyre_stream stream);
/* Sends a block to every rank, and receives one from every rank.
 * Errors: [buffer]. */
GYRE_API gyre_status gyre_all_to_all_on(gyre_comm *comm, const void *input, void *output, size_t count,
                                        gyre_dtype dtype, gyre_stream stream);
/* Later work on the stream begins when every rank's stream has reached this call.
 * Errors: [comm]. */
GYRE_API gyre_status gyre_barrier_on(gyre_comm *comm, gyre_stream stream);
/* Gathers the inputs of all ranks, with a count for each rank, on every rank.
 * Errors: [buffer], [v]. */
GYRE_API gyre_status gyre_all_gatherv_on(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                         const size_t *displacements, gyre_dtype dtype, gyre_stream stream);
/* Gathers the inputs of all ranks, with a count for each rank, on the root.
 * Errors: [buffer], [root], [v]. */
GYRE_API gyre_status gyre_gatherv_on(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                     const size_t *displacements, gyre_dtype dtype, int root, gyre_stream stream);
/* Gives each rank its block of the root's input, with a count for each rank.
 * Errors: [buffer], [root], [v]. */
GYRE_API gyre_status gyre_scatterv_on(gyre_comm *comm, const void *input, const size_t *counts,
                                      const size_t *displacements, void *output, gyre_dtype dtype, int root,
                                      gyre_stream stream);
/* Reduces the inputs of all ranks, and gives each rank its block, with a count for each rank.
 * Errors: [buffer], [op], [v]. */
GYRE_API gyre_status gyre_reduce_scatterv_on(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                             gyre_dtype dtype, gyre_op op, gyre_stream stream);
/* Sends a block to every rank, and receives one from every rank, with a count for each block.
 * Errors: [buffer], [v]. */
GYRE_API gyre_status gyre_all_to_allv_on(gyre_comm *comm, const void *input, const size_t *input_counts,
                                         const size_t *input_displacements, void *output, const size_t *output_counts,
                                         const size_t *output_displacements, gyre_dtype dtype, gyre_stream stream);
/* Sends a message to a rank.
 * Errors: [buffer], [root]. */
GYRE_API gyre_status gyre_send_on(gyre_comm *comm, const void *input, size_t count, gyre_dtype dtype, int peer,
                                  gyre_stream stream);
/* Receives a message from a rank.
 * Errors: [buffer], [root]. */
GYRE_API gyre_status gyre_recv_on(gyre_comm *comm, void *output, size_t count, gyre_dtype dtype, int peer,
                                  gyre_stream stream);

#ifdef __cplusplus
}
#endif
#endif

/* gyre/cuda.h: collectives on the memory of NVIDIA GPUs.
 *
 * This header includes no header of CUDA, and libgyre links no library of CUDA: the driver, libcuda.so.1, is opened at
 * run time. A stream is passed as `void *`: a cudaStream_t or a CUstream, which are the same. NULL is the legacy
 * default stream.
 *
 * A communicator is attached to a device of each rank first (gyre_cuda_attach). From then on there are two ways:
 *
 *   gyre_all_reduce            the calls of gyre.h take memory of the device as they take any other. The host waits, so
 *                              work on the buffers that streams have under way must be complete before the call.
 *   gyre_all_reduce_on         ordered on a stream: the call reads its input when the stream has reached it, and work
 *                              after it sees its output. The host does not wait for the GPU.
 *
 * Results have the bits that the same call on host memory has. A kernel combines contributions in the order of ranks,
 * or in canonical order (GYRE_ORDER), so its bits may be others where host memory is reduced in another order than
 * these: by a ring, for example. Buffers may lie in memory of the device, of another device of this process, in managed
 * or in host memory, each on its own.
 *
 * How it works in this version: where all ranks are threads of one process and share a device, their calls on streams
 * meet on the host and become one kernel. A call then returns when all ranks have made it, a message when both ends
 * have: calls on several communicators are made in one order by all ranks, or in a group. In all other arrangements
 * operands pass through pinned host memory, and the ranks exchange them there, over the transports of gyre.h: ranks as
 * processes, on several devices, on several hosts, and ranks without a GPU among them. Calls without a stream always do
 * so.
 *
 * Failures. A failure that is found after a call on a stream has returned ends the world as any other: gyre_cuda_status
 * and the next call return it. Streams that wait for a call of gyre's go on, with undefined bytes in its output. The
 * same holds after gyre_comm_abort, and for calls under way when their communicator is destroyed.
 *
 * Names in brackets under "Errors" are those of gyre.h, and:
 *
 *   [attached]  GYRE_INVALID_ARGUMENT   the communicator is not attached (gyre_cuda_attach)
 *   [device]    GYRE_SYSTEM             the CUDA driver has returned an error, which the sentence names
 *   [device]    GYRE_NO_MEMORY          there is no pinned memory for the operands */
#ifndef GYRE_CUDA_H
#define GYRE_CUDA_H

#include <gyre/gyre.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A cudaStream_t or CUstream. */
typedef void *gyre_stream;

/* Which device a rank is attached to, besides the numbers of devices, from 0. */
#define GYRE_CUDA_CURRENT (-1) /* the device of the calling thread's current context */
#define GYRE_CUDA_NONE (-2)    /* no device: this rank takes part with host memory */
/* The device of the calling thread's current context; without one, device L modulo the number of devices that the
 * process sees, where L is the rank's number among the ranks of its host. */
#define GYRE_CUDA_DEFAULT (-3)

/* Gives the number of devices that this process sees, in *devices_p, which may not be NULL. Local; initialises the
 * CUDA driver, and makes no context.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  devices_p is NULL
 *   GYRE_UNSUPPORTED       there is no driver, it is too old, or it finds no device; the sentence is that of
 *                          gyre_last_error(NULL) */
GYRE_API gyre_status gyre_cuda_available(int *devices_p);

/* Attaches `comm` to a device on each rank. Collective; blocking; every rank returns the same status. device: a number,
 * GYRE_CUDA_DEFAULT, GYRE_CUDA_CURRENT or GYRE_CUDA_NONE. gyre_comm_get(comm, "device", ...) gives the number of the
 * device. The device's primary context is retained until the communicator is destroyed.
 * The attachment has a duplicate of the communicator for calls on streams, and a thread, which makes them.
 * Communicators that are made of `comm` are not attached. A communicator is attached once. comm may not be NULL.
 * Errors: [comm], [world], [shortage], [group].
 *   GYRE_INVALID_ARGUMENT  the communicator is attached already; a rank's thread has no current context
 *   GYRE_UNSUPPORTED       a rank has no driver, or no such device; the sentence names the rank
 *   GYRE_SYSTEM            the driver has returned an error on a rank */
GYRE_API gyre_status gyre_cuda_attach(gyre_comm *comm, int device);

/* Returns GYRE_SUCCESS, or the status of the first failure of a call on a stream or of the world, whose sentence
 * gyre_last_error(comm) then returns. Does not block and does not look for news. comm may not be NULL.
 * Errors: [comm], [attached], [world], [collective], [device]. */
GYRE_API gyre_status gyre_cuda_status(gyre_comm *comm);

/* Calls on streams. Arguments are those of the call of gyre.h of the same name, and the stream. The call returns at
 * once, but for ranks that meet in it: see above. It reads its input when the stream has reached it; the stream goes on
 * when the output is there. Calls on one communicator are made by all ranks in the same order, whatever their streams;
 * they run in that order, apart from the calls of gyre.h on the same communicator. comm may not be NULL.
 *
 * In a group (gyre_group_begin, gyre_group_end) calls run side by side, and their streams wait from the end of the
 * group on; until then the inputs are not changed. Sends and receives that wait for each other stand in a group.
 *
 * A rank that is attached to GYRE_CUDA_NONE passes host memory and a stream of NULL; its calls block, in a group until
 * its end. Capture into a graph is refused.
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
/* Work of the stream after this call begins when every rank's stream has reached its call.
 * Errors: [comm]. */
GYRE_API gyre_status gyre_barrier_on(gyre_comm *comm, gyre_stream stream);
/* Gathers the inputs of all ranks, of a count for each rank, on every rank.
 * Errors: [buffer], [v]. */
GYRE_API gyre_status gyre_all_gatherv_on(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                         const size_t *displacements, gyre_dtype dtype, gyre_stream stream);
/* Gathers the inputs of all ranks, of a count for each rank, on the root.
 * Errors: [buffer], [root], [v]. */
GYRE_API gyre_status gyre_gatherv_on(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                     const size_t *displacements, gyre_dtype dtype, int root, gyre_stream stream);
/* Gives each rank its block, of a count for each rank, of the root's input.
 * Errors: [buffer], [root], [v]. */
GYRE_API gyre_status gyre_scatterv_on(gyre_comm *comm, const void *input, const size_t *counts,
                                      const size_t *displacements, void *output, gyre_dtype dtype, int root,
                                      gyre_stream stream);
/* Reduces the inputs of all ranks, and gives each rank its block, of a count for each rank.
 * Errors: [buffer], [op], [v]. */
GYRE_API gyre_status gyre_reduce_scatterv_on(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                             gyre_dtype dtype, gyre_op op, gyre_stream stream);
/* Sends a block to every rank, and receives one from every rank, of counts of their own.
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

/* gyre: decentralised collective communication.
 *
 * The public interface of libgyre. Everything that a program needs is in this header; everything else is internal. In
 * this order:
 *
 *   statuses, types, operations         what goes wrong, what is added up, and to which bits
 *   a world                             gyre_comm_create, gyre_comm_rank, gyre_comm_size, gyre_comm_destroy
 *   collectives                         gyre_all_reduce and the others, blocking, _start, _init
 *   point to point                      gyre_send, gyre_recv, gyre_sendrecv
 *   requests and groups                 gyre_wait, gyre_test, gyre_start, gyre_progress, gyre_group_begin
 *   operations of one's own             gyre_op_create
 *   memory and one-sided access         gyre_mem_alloc, gyre_mem_register, gyre_window_create
 *   further communicators               gyre_comm_split, gyre_comm_set, gyre_comm_topology
 *   failure                             gyre_comm_abort, gyre_comm_revoke, gyre_comm_shrink, gyre_comm_grow
 *   what happens inside                 gyre_comm_dump, gyre_comm_counters, gyre_comm_trace, gyre_log_set, gyre_info
 *
 * A *communicator* is an ordered set of ranks. `gyre_comm_create` makes the world communicator; all state of the
 * library (links, segments, descriptors) hangs off it and ends with it. Collective calls are made by every rank of a
 * communicator, in the same order, with the same shape (kind, count, dtype, op, root).
 *
 * Blocking. A call without `_start` returns when the caller's part is done: its output is complete and its input may be
 * overwritten. A call with `_start` never blocks; it gives a request that `gyre_test`, `gyre_wait` or `gyre_wait_all`
 * completes. The caller's thread makes the progress, inside these calls. The library starts no thread unless it is asked
 * to: with GYRE_PROGRESS_THREAD=1 a thread of its own moves requests while no caller is inside.
 *
 * Threads. One thread at a time per communicator; several communicators of one world may be driven by as many threads.
 * `gyre_comm_abort` and `gyre_comm_revoke` may come from any thread.
 *
 * Forks. A forked child has no part in the worlds of its parent: its calls on them are GYRE_FORKED, but for what only looks
 * (rank, size, algorithm, counters, dump, and attributes other than "meeting"). It may make worlds of its own.
 *
 * Errors. Every function returns a status. When it is not GYRE_SUCCESS, `gyre_last_error` gives the sentence: which
 * rank, which operation, what the system said and what to try. Output arguments are written only on success.
 */
#ifndef GYRE_GYRE_H
#define GYRE_GYRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GYRE_VERSION_MAJOR 0
#define GYRE_VERSION_MINOR 1
#define GYRE_VERSION_PATCH 0

#if defined(GYRE_BUILDING)
#define GYRE_API __attribute__((visibility("default")))
#else
#define GYRE_API
#endif

/* ---- Statuses, types, operations --------------------------------------------------------------------------------- */

typedef struct gyre_comm gyre_comm;
typedef struct gyre_request gyre_request;

/* Every status: code, name, text. Grouped by the largest thing that is broken; the values are frozen.
 *   0        nothing
 *   1..      the call: the communicator is as before
 *   20..     the environment of this process: memory, descriptors, configuration
 *   40..     a peer, and with it the communicator, which stays failed */
#define GYRE_STATUS_MAP(X)                                                         \
    X(0, SUCCESS, "success")                                                       \
    X(1, IN_PROGRESS, "the request is not complete yet")                           \
    X(2, INVALID_ARGUMENT, "an argument is invalid")                               \
    X(3, UNSUPPORTED, "not supported here")                                        \
    X(4, FORKED, "this communicator belongs to the parent of this process")        \
    X(20, NO_MEMORY, "out of memory")                                              \
    X(21, NO_DESCRIPTORS, "out of file descriptors")                               \
    X(22, BAD_CONFIGURATION, "the configuration is invalid")                       \
    X(23, SYSTEM, "a system call failed")                                          \
    X(40, PEER_DEAD, "a rank died")                                                \
    X(41, PEER_UNREACHABLE, "a rank cannot be reached")                            \
    X(42, PEER_STALLED, "a rank entered the operation and moves nothing")          \
    X(43, PEER_LATE, "a rank did not arrive in time")                              \
    X(44, PEER_LEFT, "a rank destroyed its communicator")                          \
    X(45, MISMATCH, "ranks called with different shapes")                          \
    X(46, ABORTED, "the communicator was aborted")                                 \
    X(47, MEETING_FAILED, "the ranks could not meet")                              \
    X(48, REFUSED, "a peer was refused: wrong secret, job, version or rank")       \
    X(49, PROTOCOL, "a peer sent something that this version does not understand") \
    X(50, INTERNAL, "internal error, please report")                               \
    X(51, CORRUPTED, "what a rank sent was changed on its way")                    \
    X(52, WRONG_RESULT, "a rank got another result than the others")               \
    X(53, REVOKED, "the communicator was revoked")                                 \
    X(54, EXCLUDED, "the others have gone on without this rank")                   \
    X(55, PARTITIONED, "too few ranks are left to go on without the others")

typedef enum gyre_status {
#define GYRE_STATUS_ENUM(code, name, text) GYRE_##name = code,
    GYRE_STATUS_MAP(GYRE_STATUS_ENUM)
#undef GYRE_STATUS_ENUM
} gyre_status;

/* The name ("PEER_DEAD") and the text of a status; static, never NULL. */
GYRE_API const char *gyre_status_name(gyre_status status);
GYRE_API const char *gyre_status_text(gyre_status status);

/* The sentence of the last error on `comm`; once its world has failed, that of the failure, the first one, which stays:
 * what is refused afterwards has a status, and no sentence of its own. When comm is NULL, or was destroyed, that of this
 * thread's last call without a communicator to keep it: a gyre_comm_create that failed, or a call with a handle that is
 * NULL, destroyed or freed, which is GYRE_INVALID_ARGUMENT. Owned by gyre; valid until the next error there. Never NULL;
 * empty when there was none. */
GYRE_API const char *gyre_last_error(const gyre_comm *comm);

/* Every element type: code, name, name as text, bytes. The values are frozen and travel on the wire.
 *
 *   bool          one byte: 0 is false, any other byte is true
 *   float16       IEEE 754 binary16               1 + 5 + 10 bits
 *   bfloat16      the upper half of a float32     1 + 8 + 7 bits
 *   float8_e5m2   OCP's, a float16 cut short      1 + 5 + 2 bits
 *   float8_e4m3   OCP's, PyTorch's float8_e4m3fn  1 + 4 + 3 bits: no infinity, one NaN of either sign, at most 448
 *
 * A complex number is two floats, real part and imaginary part: n of them are a count of 2n elements of the float type,
 * which moves them, sums them, averages them and multiplies them by a real scalar. The other operations have no meaning for
 * complex numbers, and gyre cannot know. */
#define GYRE_DTYPE_MAP(X)                \
    X(0, INT8, "int8", 1)                \
    X(1, UINT8, "uint8", 1)              \
    X(2, INT32, "int32", 4)              \
    X(3, UINT32, "uint32", 4)            \
    X(4, INT64, "int64", 8)              \
    X(5, UINT64, "uint64", 8)            \
    X(6, FLOAT16, "float16", 2)          \
    X(7, BFLOAT16, "bfloat16", 2)        \
    X(8, FLOAT32, "float32", 4)          \
    X(9, FLOAT64, "float64", 8)          \
    X(10, FLOAT8_E4M3, "float8_e4m3", 1) \
    X(11, FLOAT8_E5M2, "float8_e5m2", 1) \
    X(12, BOOL, "bool", 1)

typedef enum gyre_dtype {
#define GYRE_DTYPE_ENUM(code, name, text, bytes) GYRE_##name = code,
    GYRE_DTYPE_MAP(GYRE_DTYPE_ENUM)
#undef GYRE_DTYPE_ENUM
} gyre_dtype;

/* Every operation: code, name, name as text. The values are frozen and travel on the wire. Bit operations are for
 * integers and booleans, the average is for numbers, the others are for every type.
 *
 *   average      the sum of all contributions, divided once, at the end, by the number of ranks
 *   premul_sum   the sum of the contributions, each multiplied by its rank's scalar, of the same type, when first used
 *
 * Operand order is a function of the call's shape alone, and so is every bit of the result: of collective, count, type, the
 * ranks, which of them share a host and whether those have fewer cores there than they are, and the settings. All ranks
 * know the same about that since they met, so that they get the same bits. In detail:
 *
 * Integers wrap: sum and product are modulo 2^bits. An average truncates toward zero, and is that of the wrapped sum.
 *
 * Booleans: sum, max and bit_or are or; product, min and bit_and are and; bit_xor is exclusive or. A premul_sum is the or of
 * the contributions, each combined by and with its rank's scalar. A result is 0 or 1, whatever non-zero bytes went in, of
 * one rank too. An average is refused. What is only copied (broadcast, all_gather, messages) keeps its bytes, and an
 * operation of the program's own is given the bytes as they are.
 *
 * Floats: sums, products and divisions are IEEE 754, each rounded once to the nearest, ties to even; no contraction;
 * denormals are kept, as operands and as results, and the caller's floating-point mode plays no part. −0 is kept as
 * IEEE 754 has it: (−0) + (−0) is −0, x + (−x) is +0. A result that is a NaN is the quiet NaN with sign and payload
 * zero (float8_e4m3: 0x7f), whatever NaNs went in. Min and max: a NaN in either operand makes that NaN the result; −0
 * is less than +0. What is only copied (one rank, broadcast, all_gather) keeps its bits, a NaN's too.
 *
 * Narrow floats (16 and 8 bits) are computed in float32 and rounded to their type once per hop: when a partial result
 * goes to another rank, and at the end; contributions which one rank reduces in one pass are added in float32 without
 * rounding between. Their overflow, in that rounding: beyond the largest number by half a step or more is infinity;
 * float8_e4m3 has none, there it is a NaN: 464 rounds to 448, everything above is a NaN, an infinity in float32 too.
 * Min, max and copies do not round. An average of narrow floats divides in float32 and rounds the quotient.
 *
 * Canonical order, with GYRE_ORDER=canonical: one tree over the ranks serves every element, so that the bits depend on the
 * contributions and their number alone, and not on algorithm, transport, topology, root or count. T(x_0 ... x_{n−1}) is
 * T(x_0 ... x_{h−1}) op T(x_h ... x_{n−1}), where h is the largest power of two below n: for six ranks
 * ((x_0 op x_1) op (x_2 op x_3)) op (x_4 op x_5). Narrow floats stay in float32 through the whole tree, also between
 * ranks, and are rounded once, at the end; an average then divides what was rounded, as ever. It holds for every type and
 * operation, the user's too, and for every reducing call, reduce_scatterv with any counts among them.
 *
 * Error of a sum of the contributions x where nothing overflows, after h hops, each of which adds one contribution or
 * partial result and rounds; h is at most the number of ranks less one:
 *
 *   |computed − exact| <= ((1 + e)^h − 1) · Σ|x|, about h·e·Σ|x|
 *   e = 2^−53 float64, 2^−24 float32, and 2^−24 plus 2^−11 float16, 2^−8 bfloat16, 2^−4 float8_e4m3, 2^−3 float8_e5m2
 *
 * A pass over many contributions is that many hops with e = 2^−24, and one that rounds to the narrow type. Dividing
 * (average) and multiplying (premul_sum) round once more each. */
#define GYRE_OP_MAP(X)       \
    X(0, SUM, "sum")         \
    X(1, PRODUCT, "product") \
    X(2, MIN, "min")         \
    X(3, MAX, "max")         \
    X(4, AVERAGE, "average") \
    X(5, BIT_AND, "bit_and") \
    X(6, BIT_OR, "bit_or")   \
    X(7, BIT_XOR, "bit_xor") \
    X(8, PREMUL_SUM, "premul_sum")

typedef enum gyre_op {
#define GYRE_OP_ENUM(code, name, text) GYRE_##name = code,
    GYRE_OP_MAP(GYRE_OP_ENUM)
#undef GYRE_OP_ENUM
} gyre_op;

/* Size in bytes of one element, 0 for an unknown type. Names as in the lists above: "float32", "sum"; NULL if unknown. */
GYRE_API size_t gyre_dtype_size(gyre_dtype dtype);
GYRE_API const char *gyre_dtype_name(gyre_dtype dtype);
GYRE_API const char *gyre_op_name(gyre_op op);

/* The type or operation of a name: one of the lists above, or a name that other libraries give it, in any case of
 * letters; GYRE_INVALID_ARGUMENT for any other text and for NULL, with a sentence in gyre_last_error(NULL).
 *
 *   half, fp16       float16       float, fp32, single  float32        fp8_e4m3, float8_e4m3fn  float8_e4m3
 *   bf16             bfloat16      double, fp64         float64        fp8_e5m2                 float8_e5m2
 *   char, byte       int8, uint8   int, uint            int32, uint32  boolean                  bool
 *   avg, mean        average       prod                 product        band, bor, bxor          bit_and, bit_or, bit_xor */
GYRE_API gyre_status gyre_dtype_from_name(const char *name, gyre_dtype *dtype_p);
GYRE_API gyre_status gyre_op_from_name(const char *name, gyre_op *op_p);

/* "0.1.0", static. */
GYRE_API const char *gyre_version(void);

/* ---- A world: made, ended ---------------------------------------------------------------------------------------- */

/* An all-gather of opaque bytes, supplied by a framework that already has some way to talk: every rank calls with
 * `bytes` bytes at `mine`; on return `all` holds world_size * bytes, in rank order. Returns 0 on success. May block. */
typedef int (*gyre_exchange_func)(void *user, const void *mine, void *all, size_t bytes);

/* How to meet. Zero the struct, set `size = sizeof(gyre_config)` and what you know; gyre finds the rest in this order:
 * this struct, the exchange callback, the environment: GYRE_ADDRESS, MASTER_ADDR and MASTER_PORT, then what the launcher
 * that started the process offers (torchrun, Open MPI's mpirun, PMIx, MPICH's mpiexec, Slurm's srun; see GYRE_LAUNCHER).
 * Strings are copied. With size 0 in `world_size` the environment decides rank and world size. */
typedef struct gyre_config {
    size_t size;         /* sizeof(gyre_config); as much of it is read, the rest is as if it were zero */
    int rank;            /* this process's rank, used when world_size > 0 */
    int world_size;      /* number of ranks, 0: from the environment */
    const char *address; /* meeting place: "tcp://HOST:PORT", "file:///PATH"; NULL: from the environment */
    const char *secret;  /* the job's secret: a random text of 22 bytes or more, 32 where all are hexadecimal digits;
                                  * NULL: GYRE_SECRET or GYRE_SECRET_FILE */
    gyre_exchange_func exchange; /* or NULL */
    void *exchange_user;         /* first argument of `exchange` */
    int join;                    /* 1: join a world that is there (gyre_comm_grow), at `address`, which is any member's;
                                  * rank and world_size mean nothing then, nor do the environment's:
                                  * whatever the world's size is. 0: GYRE_JOIN decides */
} gyre_config;

/* Makes the world communicator. Blocks until every rank has arrived, at most GYRE_MEET_TIMEOUT (default 5 min), and
 * then says which ranks are missing. `config` may be NULL: everything from the environment. */
GYRE_API gyre_status gyre_comm_create(const gyre_config *config, gyre_comm **comm_p);

/* This process's rank in the communicator, from 0, and the number of its ranks; −1 where comm is NULL or was destroyed. */
GYRE_API int gyre_comm_rank(const gyre_comm *comm);
GYRE_API int gyre_comm_size(const gyre_comm *comm);

/* Frees the communicator; says goodbye to the peers when it is the last one of its world. Local: waits for nobody,
 * takes under a second. Outstanding requests end with GYRE_ABORTED. NULL is allowed.
 *
 * A member that is through with the last operation may go at once: what it has sent arrives, and the others complete theirs. But what
 * needs it after that is GYRE_PEER_LEFT at once, and from then on so is every collective and every message on this communicator, on
 * each of its members, when it comes to gyre; the sentence names the rank that destroyed it and the operation. Only this communicator
 * has ended then: the world and its other communicators go on, and buffers are the caller's again. Three things take more. A short
 * message leaves without waiting for its receiver, who may be gone. Where others use a buffer of gyre_mem_alloc directly, the call
 * returns when each of them has been inside gyre. And with uniform ends (gyre_comm_set) or GYRE_VERIFY, or where the communicator was
 * the member's last of its world, or it cannot end its own requests within 200 ms, it is the world that ends. */
GYRE_API gyre_status gyre_comm_destroy(gyre_comm *comm);

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* Collectives. Buffers belong to the caller; counts are in elements. Alignment of the element type is not required. A
 * count of 0 is legal. Every rank of the communicator calls with the same count, dtype, op and root.
 *
 *   all_reduce      input[count]        -> output[count] on every rank
 *   reduce          input[count]        -> output[count] on root (ignored elsewhere)
 *   reduce_scatter  input[size*count]   -> output[count]: block `rank` of the reduction
 *   broadcast       input[count] on root (ignored elsewhere) -> output[count] on every rank
 *   all_gather      input[count]        -> output[size*count]: blocks in rank order
 *   gather          input[count]        -> output[size*count] on root (ignored elsewhere): blocks in rank order
 *   scatter         input[size*count] on root (ignored elsewhere) -> output[count]: block `rank`
 *   all_to_all      input[size*count]: block r for rank r -> output[size*count]: block r from rank r
 *   barrier         returns when every rank has called it
 *
 * In place: input == output for all_reduce, reduce, broadcast and all_to_all; for all_gather and gather input == output +
 * rank*count elements; for reduce_scatter and scatter output == input + rank*count. Any other overlap is an error.
 *
 * The v-forms have a count for every rank, in `counts[size]`, which is the same list on every rank (of the root too); the
 * blocks lie one after the other, or, where there are displacements and they are not NULL, block r begins
 * `displacements[r]` elements after the beginning of the buffer. Blocks must not overlap. all_to_allv has two lists of its
 * own on each rank, and compares them pair by pair: what one rank sends is what the other expects, or GYRE_MISMATCH. The
 * lists are copied. In place means the same, with displacements for rank*count; all_to_allv in place needs equal lists.
 *
 *   all_gatherv      input[counts[rank]]  -> output: block r of counts[r] elements at displacements[r]
 *   gatherv          likewise, on root
 *   scatterv         input on root: block r at displacements[r] -> output[counts[rank]]
 *   reduce_scatterv  input[sum of counts] -> output[counts[rank]]
 *   all_to_allv      input: block r for rank r -> output: block r from rank r
 *
 * Every call comes in three forms: blocking; `_start`, which never blocks and gives a request (the buffers belong to gyre
 * until it completes); `_init`, which gives a persistent request: set up once, begun by gyre_start as often as wanted,
 * with the same buffers and counts, allocating nothing. Starting order counts, like that of calls. */
GYRE_API gyre_status gyre_all_reduce(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                     gyre_op op);
GYRE_API gyre_status gyre_reduce(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                 gyre_op op, int root);
GYRE_API gyre_status gyre_reduce_scatter(gyre_comm *comm, const void *input, void *output, size_t count,
                                         gyre_dtype dtype, gyre_op op);
GYRE_API gyre_status gyre_broadcast(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                    int root);
GYRE_API gyre_status gyre_all_gather(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype);
GYRE_API gyre_status gyre_gather(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                 int root);
GYRE_API gyre_status gyre_scatter(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                  int root);
GYRE_API gyre_status gyre_all_to_all(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype);
GYRE_API gyre_status gyre_barrier(gyre_comm *comm);
GYRE_API gyre_status gyre_all_gatherv(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                      const size_t *displacements, gyre_dtype dtype);
GYRE_API gyre_status gyre_gatherv(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                  const size_t *displacements, gyre_dtype dtype, int root);
GYRE_API gyre_status gyre_scatterv(gyre_comm *comm, const void *input, const size_t *counts,
                                   const size_t *displacements, void *output, gyre_dtype dtype, int root);
GYRE_API gyre_status gyre_reduce_scatterv(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                          gyre_dtype dtype, gyre_op op);
GYRE_API gyre_status gyre_all_to_allv(gyre_comm *comm, const void *input, const size_t *input_counts,
                                      const size_t *input_displacements, void *output, const size_t *output_counts,
                                      const size_t *output_displacements, gyre_dtype dtype);

/* As requests. Never block; the buffers belong to gyre until the request completes. */
GYRE_API gyre_status gyre_all_reduce_start(gyre_comm *comm, const void *input, void *output, size_t count,
                                           gyre_dtype dtype, gyre_op op, gyre_request **request_p);
GYRE_API gyre_status gyre_reduce_start(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                       gyre_op op, int root, gyre_request **request_p);
GYRE_API gyre_status gyre_reduce_scatter_start(gyre_comm *comm, const void *input, void *output, size_t count,
                                               gyre_dtype dtype, gyre_op op, gyre_request **request_p);
GYRE_API gyre_status gyre_broadcast_start(gyre_comm *comm, const void *input, void *output, size_t count,
                                          gyre_dtype dtype, int root, gyre_request **request_p);
GYRE_API gyre_status gyre_all_gather_start(gyre_comm *comm, const void *input, void *output, size_t count,
                                           gyre_dtype dtype, gyre_request **request_p);
GYRE_API gyre_status gyre_gather_start(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                       int root, gyre_request **request_p);
GYRE_API gyre_status gyre_scatter_start(gyre_comm *comm, const void *input, void *output, size_t count,
                                        gyre_dtype dtype, int root, gyre_request **request_p);
GYRE_API gyre_status gyre_all_to_all_start(gyre_comm *comm, const void *input, void *output, size_t count,
                                           gyre_dtype dtype, gyre_request **request_p);
GYRE_API gyre_status gyre_barrier_start(gyre_comm *comm, gyre_request **request_p);
GYRE_API gyre_status gyre_all_gatherv_start(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                            const size_t *displacements, gyre_dtype dtype, gyre_request **request_p);
GYRE_API gyre_status gyre_gatherv_start(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                        const size_t *displacements, gyre_dtype dtype, int root,
                                        gyre_request **request_p);
GYRE_API gyre_status gyre_scatterv_start(gyre_comm *comm, const void *input, const size_t *counts,
                                         const size_t *displacements, void *output, gyre_dtype dtype, int root,
                                         gyre_request **request_p);
GYRE_API gyre_status gyre_reduce_scatterv_start(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                                gyre_dtype dtype, gyre_op op, gyre_request **request_p);
GYRE_API gyre_status gyre_all_to_allv_start(gyre_comm *comm, const void *input, const size_t *input_counts,
                                            const size_t *input_displacements, void *output,
                                            const size_t *output_counts, const size_t *output_displacements,
                                            gyre_dtype dtype, gyre_request **request_p);

/* As persistent requests: see gyre_start. */
GYRE_API gyre_status gyre_all_reduce_init(gyre_comm *comm, const void *input, void *output, size_t count,
                                          gyre_dtype dtype, gyre_op op, gyre_request **request_p);
GYRE_API gyre_status gyre_reduce_init(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                      gyre_op op, int root, gyre_request **request_p);
GYRE_API gyre_status gyre_reduce_scatter_init(gyre_comm *comm, const void *input, void *output, size_t count,
                                              gyre_dtype dtype, gyre_op op, gyre_request **request_p);
GYRE_API gyre_status gyre_broadcast_init(gyre_comm *comm, const void *input, void *output, size_t count,
                                         gyre_dtype dtype, int root, gyre_request **request_p);
GYRE_API gyre_status gyre_all_gather_init(gyre_comm *comm, const void *input, void *output, size_t count,
                                          gyre_dtype dtype, gyre_request **request_p);
GYRE_API gyre_status gyre_gather_init(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                      int root, gyre_request **request_p);
GYRE_API gyre_status gyre_scatter_init(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                       int root, gyre_request **request_p);
GYRE_API gyre_status gyre_all_to_all_init(gyre_comm *comm, const void *input, void *output, size_t count,
                                          gyre_dtype dtype, gyre_request **request_p);
GYRE_API gyre_status gyre_barrier_init(gyre_comm *comm, gyre_request **request_p);
GYRE_API gyre_status gyre_all_gatherv_init(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                           const size_t *displacements, gyre_dtype dtype, gyre_request **request_p);
GYRE_API gyre_status gyre_gatherv_init(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                       const size_t *displacements, gyre_dtype dtype, int root,
                                       gyre_request **request_p);
GYRE_API gyre_status gyre_scatterv_init(gyre_comm *comm, const void *input, const size_t *counts,
                                        const size_t *displacements, void *output, gyre_dtype dtype, int root,
                                        gyre_request **request_p);
GYRE_API gyre_status gyre_reduce_scatterv_init(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                               gyre_dtype dtype, gyre_op op, gyre_request **request_p);
GYRE_API gyre_status gyre_all_to_allv_init(gyre_comm *comm, const void *input, const size_t *input_counts,
                                           const size_t *input_displacements, void *output, const size_t *output_counts,
                                           const size_t *output_displacements, gyre_dtype dtype,
                                           gyre_request **request_p);

/* ---- Point to point ---------------------------------------------------------------------------------------------- */

/* Point to point. A message goes from one rank to another, or to itself; messages between the same two ranks arrive in the
 * order in which they were sent, and the k-th receive takes the k-th message. Both sides give the same count and dtype, or
 * GYRE_MISMATCH. A blocking send may wait for its receive. sendrecv does both at once, with the same or different ranks,
 * from and to memory that does not overlap. */
GYRE_API gyre_status gyre_send(gyre_comm *comm, const void *input, size_t count, gyre_dtype dtype, int peer);
GYRE_API gyre_status gyre_recv(gyre_comm *comm, void *output, size_t count, gyre_dtype dtype, int peer);
GYRE_API gyre_status gyre_sendrecv(gyre_comm *comm, const void *input, size_t input_count, int to, void *output,
                                   size_t output_count, int from, gyre_dtype dtype);

/* As requests. Never block; the buffers belong to gyre until the request completes. */
GYRE_API gyre_status gyre_send_start(gyre_comm *comm, const void *input, size_t count, gyre_dtype dtype, int peer,
                                     gyre_request **request_p);
GYRE_API gyre_status gyre_recv_start(gyre_comm *comm, void *output, size_t count, gyre_dtype dtype, int peer,
                                     gyre_request **request_p);

/* As persistent requests: see gyre_start. */
GYRE_API gyre_status gyre_send_init(gyre_comm *comm, const void *input, size_t count, gyre_dtype dtype, int peer,
                                    gyre_request **request_p);
GYRE_API gyre_status gyre_recv_init(gyre_comm *comm, void *output, size_t count, gyre_dtype dtype, int peer,
                                    gyre_request **request_p);

/* ---- Requests and groups ----------------------------------------------------------------------------------------- */

/* test: GYRE_IN_PROGRESS, or the request's status; wait: blocks until complete. A request that completed (in success or
 * failure) is freed and *request becomes NULL; a persistent one stays, and can be started again. NULL and persistent
 * requests that are not under way complete at once with success. wait_all waits for all and returns the first failure.
 * wait_any waits for one that is under way, and gives its index and its status; *index_p is −1 when there is none.
 * wait_some waits for at least one, and gives the indices of all that have completed, in `indices[count]`, and their
 * number; it returns the first failure among them. Every one of these advances all requests of the worlds concerned. */
GYRE_API gyre_status gyre_test(gyre_request **request);
GYRE_API gyre_status gyre_wait(gyre_request **request);
GYRE_API gyre_status gyre_wait_all(gyre_request **requests, size_t count);
GYRE_API gyre_status gyre_wait_any(gyre_request **requests, size_t count, ptrdiff_t *index_p);
GYRE_API gyre_status gyre_wait_some(gyre_request **requests, size_t count, size_t *indices, size_t *completed_p);

/* Starts a persistent request; never blocks. One that is under way, or is not persistent, is GYRE_INVALID_ARGUMENT. */
GYRE_API gyre_status gyre_start(gyre_request *request);
/* Frees a persistent request that is not under way, and makes *request NULL; NULL is allowed. */
GYRE_API gyre_status gyre_request_free(gyre_request **request);

/* Advances all outstanding requests of comm's world a little, without blocking; for use between pieces of
 * computation. */
GYRE_API gyre_status gyre_progress(gyre_comm *comm);

/* A group: between the two calls, blocking calls of this thread on any communicator are started and not waited for;
 * gyre_group_end waits for all of them and returns the first failure. Sends and receives inside a group match in any
 * order, and one thread may drive several ranks of one world. Groups may be nested: the outermost one waits. A group's
 * buffers belong to gyre until its end. gyre_group_end without a beginning is GYRE_INVALID_ARGUMENT, and so is a call inside
 * a group that waits for all ranks at once: making a communicator of any kind, setting `order`, `ends` or `algorithm`, making or
 * destroying a window; the group goes on. What is local, and one-sided access, is done at once as ever. */
GYRE_API gyre_status gyre_group_begin(void);
GYRE_API gyre_status gyre_group_end(void);

/* ---- Operations of one's own ------------------------------------------------------------------------------------- */

/* Operations of one's own. Collective only in this: every rank makes the same operations in the same order, as their
 * numbers are compared between ranks. They live as long as the world, at most 128 of them; from any of its communicators.
 *
 * A user-defined operation: result[i] = left[i] op right[i] for `count` elements; `result` may be the same memory as
 * `left` or `right`. It is called inside gyre's calls, in whichever thread drives; it must not call gyre, and is to be
 * associative up to rounding. Not commutative: operands are combined in rank order, always. */
typedef void (*gyre_reduce_func)(void *user, const void *left, const void *right, void *result, size_t count,
                                 gyre_dtype dtype);
GYRE_API gyre_status gyre_op_create(gyre_comm *comm, gyre_reduce_func func, void *user, int commutative, gyre_op *op_p);
/* A pre-multiplied sum: this rank's contributions are multiplied by *scalar, one element of type `dtype`, which is copied;
 * other ranks may have other scalars. To be used with that type only. */
GYRE_API gyre_status gyre_op_create_premul_sum(gyre_comm *comm, const void *scalar, gyre_dtype dtype, gyre_op *op_p);

/* ---- Memory and one-sided access --------------------------------------------------------------------------------- */

/* Memory that every rank of this host has mapped. Page-aligned, zeroed; in bytes. Local, not collective. To be freed by
 * gyre_mem_free before the world ends. Inside a host, collectives use large operands in it where they are instead of
 * copying them, and one-sided access reaches it directly, but neither between ranks that are threads of one process. Where
 * there is no shared memory it is plain memory. */
GYRE_API gyre_status gyre_mem_alloc(gyre_comm *comm, size_t bytes, void **memory_p);
GYRE_API gyre_status gyre_mem_free(gyre_comm *comm, void *memory);

/* Announces memory of the caller's that will be used again and again, so that a transport which has to register memory
 * with its device does so once. Local. RDMA does so when it first sends 16 KiB or more from there at once, or puts or
 * gets, and then reads and writes the memory where it is instead of copying; that locks its pages (RLIMIT_MEMLOCK), and
 * where they cannot be locked it goes on copying. To shared memory and TCP it makes no difference. Counts: as many
 * deregisters as registers; the same beginning with another length is GYRE_INVALID_ARGUMENT, and so is to deregister
 * what is not registered. The memory stays the caller's; it is deregistered before it is freed, or with the world. */
GYRE_API gyre_status gyre_mem_register(gyre_comm *comm, void *memory, size_t bytes);
GYRE_API gyre_status gyre_mem_deregister(gyre_comm *comm, void *memory);

/* One-sided access. A window exposes `bytes` of this rank's memory to the others of `comm`, who put, get and accumulate
 * there without this rank's calling anything for it. Sizes may differ from rank to rank; offsets are in bytes from the
 * beginning of the target's memory, counts in elements. Memory of gyre_mem_alloc is reached directly by ranks of the same
 * host that are other processes. Over RDMA the device puts and gets, and flushes that, whatever the target is doing meanwhile; the
 * window's memory is locked for that, and where it cannot be, messages serve. Everything else, over RDMA too what accumulates and
 * signals, goes by messages, which the target takes while it is inside gyre, or at any time with a progress thread
 * (GYRE_PROGRESS_THREAD).
 *
 * gyre_window_create connects to every rank that is not reached directly. It and gyre_window_destroy are collective and
 * blocking, and a rank that has no memory for its part ends the world with GYRE_NO_MEMORY; the memory stays the caller's, and has to
 * outlive the window. destroy(NULL) is nothing. The other calls are local and block until their own side is done: the
 * source of a put or an accumulation may be overwritten, a get's destination is complete. They are not ordered among
 * ranks: flush waits until everything that this rank has asked of `target` (−1: of every rank) has happened there, and a
 * signal comes after everything that this rank asked of the same target before it. Accumulations of the same window
 * exclude one another, element by element `memory = memory op source`; an operation of one's own is one that the target has made,
 * too: where it has not, nothing is added by that, nor by any of one's own after it until the next flush, which (or
 * gyre_window_destroy) is then GYRE_INVALID_ARGUMENT, of this rank alone, and everything else has happened. Neither averages nor
 * pre-multiplied sums, which are for collectives. Access to the same bytes that nothing orders gives any mixture of them.
 *
 * When gyre_window_destroy succeeds no rank touches this one's memory any more; where it is GYRE_UNSUPPORTED, and the world has not
 * failed, GYRE_FORKED, or refused because a group is open, the window is there as before; after any other error it is gone. When any call of this rank fails because its world
 * has failed, what others still store does not change what this rank writes to the memory from then on, and a block of
 * gyre_mem_alloc is given out no more. A window also goes with its communicator (gyre_comm_destroy), which waits for nobody:
 * until the others' have gone as well they may store to the memory, and a block that is freed before is not given out again.
 * Memory that they do not reach directly is this rank's alone from then on.
 *
 * A target that does not answer within GYRE_TIMEOUT is GYRE_PEER_LATE, and one that is stopped while it accumulates
 * GYRE_PEER_STALLED; both end the world. Who does not get its turn to accumulate on its own host within GYRE_TIMEOUT, because
 * others have theirs, is told GYRE_PEER_LATE, nothing has been added, and the communicator goes on. One that has
 * destroyed its communicator before it answers is GYRE_PEER_LEFT at once, and so is a wait for a signal when all the others
 * have: as in a collective that needs them, of this rank alone. Where that was not the last communicator of its world, the world
 * and its other communicators go on; gyre_window_destroy of the others is GYRE_PEER_LEFT then, waits for nobody, and the window is
 * gone.
 *
 * Every rank has GYRE_WINDOW_SIGNALS counters per window, which begin at 0. signal adds one to that of the target;
 * gyre_window_wait waits until this rank's own has come to at least `value`, GYRE_TIMEOUT at most (then
 * GYRE_PEER_LATE). */
#define GYRE_WINDOW_SIGNALS 32
typedef struct gyre_window gyre_window;
GYRE_API gyre_status gyre_window_create(gyre_comm *comm, void *memory, size_t bytes, gyre_window **window_p);
GYRE_API gyre_status gyre_window_destroy(gyre_window *window);
GYRE_API gyre_status gyre_window_put(gyre_window *window, const void *source, size_t count, gyre_dtype dtype,
                                     int target, size_t offset);
GYRE_API gyre_status gyre_window_get(gyre_window *window, void *destination, size_t count, gyre_dtype dtype, int target,
                                     size_t offset);
GYRE_API gyre_status gyre_window_accumulate(gyre_window *window, const void *source, size_t count, gyre_dtype dtype,
                                            gyre_op op, int target, size_t offset);
GYRE_API gyre_status gyre_window_flush(gyre_window *window, int target);
GYRE_API gyre_status gyre_window_signal(gyre_window *window, int target, unsigned index);
GYRE_API gyre_status gyre_window_wait(gyre_window *window, unsigned index, uint64_t value);

/* ---- Further communicators, and what can be set of one ----------------------------------------------------------- */

/* A communicator of the same ranks with its own order of operations. Collective; blocking. Opens no connection. */
GYRE_API gyre_status gyre_comm_duplicate(gyre_comm *comm, gyre_comm **comm_p);

/* Divides the ranks of `comm`: those that give the same `color` get a communicator of their own, ordered by `key`, ranks
 * with equal keys by their rank in `comm`. A negative color gives none: *comm_p is NULL. Collective over `comm`; blocking.
 * Opens no connection; shares the world of `comm`. */
GYRE_API gyre_status gyre_comm_split(gyre_comm *comm, int color, int key, gyre_comm **comm_p);

/* A communicator of the `count` ranks of `comm` that are listed, in that order. Every rank of `comm` calls with the same
 * list; those that are not in it get NULL in *comm_p. Different lists are GYRE_INVALID_ARGUMENT on every rank. Collective
 * over `comm`; blocking. Opens no connection. */
GYRE_API gyre_status gyre_comm_sub(gyre_comm *comm, const int *ranks, int count, gyre_comm **comm_p);

/* Attributes of a communicator, as text. `key` is one of
 *
 *   name        this rank's own name for it, at most 63 bytes; shown by gyre_comm_dump. Empty at first
 *   order       "shape" or "canonical": in which order reductions combine, as GYRE_ORDER
 *   ends        "local" or "uniform": how collectives end in which a rank fails, as GYRE_ENDS; see below
 *   algorithm   "all_reduce:ring,broadcast:binary_tree", ...: what is forced, as GYRE_ALGORITHM; empty: nothing. A call
 *               that a forced algorithm cannot do (order, counts, no shared memory) is GYRE_UNSUPPORTED. Nothing is
 *               forced upon what gyre itself sends to make communicators and windows, or to set this
 *   timeout     seconds that a live rank may take to enter an operation that this rank waits in, as GYRE_TIMEOUT
 *
 *   meeting     where newcomers find this process, "tcp://HOST:PORT", as long as it lives (gyre_comm_grow): to be read
 *               only. Each rank has its own; it listens there from the first time that it is asked, or has grown
 *   joined      "yes" where this process has come as a newcomer (gyre_comm_grow), "no" where it was there when the world
 *               began: to be read only
 *
 * They begin as the settings of those names; a communicator that is made of another one begins as that one, without its
 * name. Setting `order`, `ends` or `algorithm` is collective and blocking, as they must be the same everywhere: different
 * values are GYRE_INVALID_ARGUMENT on every rank, and nothing changes. They hold for what is called afterwards; persistent
 * requests stay as they were made, but for `ends`, which is that of their start. get writes at most `value_bytes` bytes with
 * the final zero; a buffer that is too small and an unknown key are GYRE_INVALID_ARGUMENT.
 *
 * Ends. `local`: when a rank fails during a collective, each rank that is left sees for itself how it ends: one may have
 * its result already and succeed, where another one fails. `uniform`: on all ranks that are left it succeeds, or on all of
 * them it fails; this holds for every collective in all its forms (blocking, started, persistent, in a group), and not for
 * send, recv and one-sided access. Success means that the part of every rank that is left is complete, its output as it
 * should be; it is possible although a rank has died, which the next call then says. After a failure the output is
 * undefined on all, and the communicator has failed as ever. No operation succeeds that was started after one that fails.
 *
 * What it costs. A collective returns when all ranks are known to be through: on one host a store of each rank and a load
 * of each other one, else ceil(log2 N) messages of 64 bytes from each rank, one after the other, at the operation's end
 * (docs/tuning.md has figures). So a root, too, waits for all. When the world fails, operations under way end after an
 * agreement as gyre_comm_agree's among all ranks of the world, those that have no part in the operation, too: it waits for
 * those who compute until they make a call, which may be any, or end, for GYRE_TIMEOUT at most, whether they have not come yet,
 * or have tested a request once and gone on computing; only who is inside a call that blocks, and silent for
 * GYRE_STALL_TIMEOUT, counts as stopped. A blocking call that comes to it later waits for it as well, and gyre_comm_shrink
 * does so for what is under way on any communicator of the world.
 *
 * The same without a failure: an operation ends everywhere only when each rank has come back to gyre after its part was
 * there, so who starts one and computes keeps the others in it. That is legal, as being late is, until GYRE_TIMEOUT.
 *
 * Who is left: who has not failed, does not go (gyre_comm_destroy before the end), and is neither GYRE_EXCLUDED nor
 * GYRE_PARTITIONED, which are the status then. After an abort there is no agreement: GYRE_ABORTED, on every rank for itself.
 * GYRE_NO_MEMORY during the agreement is of one rank alone, which the others go on without. */
GYRE_API gyre_status gyre_comm_set(gyre_comm *comm, const char *key, const char *value);
GYRE_API gyre_status gyre_comm_get(gyre_comm *comm, const char *key, char *value_p, size_t value_bytes);

/* Where a rank of a communicator is. Set `size = sizeof(gyre_rank_place)`; as much of it is written. */
typedef struct gyre_rank_place {
    size_t size;       /* sizeof(gyre_rank_place), for compatibility */
    int world_rank;    /* its rank in the world */
    int host, hosts;   /* number of its host, from 0 in order of the lowest rank there; hosts of this communicator */
    int local, locals; /* its place among the ranks of the communicator on its host, in rank order; how many */
    int same_host;     /* 1: it shares memory with this process's host, 0: it does not */
    int64_t process;   /* its process number, in its own name space */
    const char *transport; /* what carries messages to it, static: "self", "shm", "rdma", "tcp", "none" */
} gyre_rank_place;
GYRE_API gyre_status gyre_comm_topology(gyre_comm *comm, int rank, gyre_rank_place *place_p);

/* The algorithm that would be chosen ("ring", "direct_two_shot", ...) for this call on this communicator; static.
 * collective: "all_reduce", "reduce", "reduce_scatter", "broadcast", "all_gather", "gather", "scatter", "all_to_all",
 * "barrier". NULL where the name is unknown, or a forced algorithm cannot do it. */
GYRE_API const char *gyre_comm_algorithm(const gyre_comm *comm, const char *collective, size_t count, gyre_dtype dtype);

/* ---- Failure: ending all, going on, letting others in ------------------------------------------------------------ */

/* Ends all outstanding requests with GYRE_ABORTED, on this rank and, as they are inside or at their next call, on all
 * others. Duplicates share the world and end with it. From any thread, does not block. The world stays failed; only
 * destroy is useful after it. Buffers are the caller's again when the request has ended, or after destroy. */
GYRE_API gyre_status gyre_comm_abort(gyre_comm *comm);

/* Going on after a failure. When a rank fails, every call on its world ends with an error, on every rank that is inside or
 * comes later. Those who are left may then make a world of themselves:
 *
 *     while (status != GYRE_SUCCESS) {            // of the call that failed
 *         gyre_comm_revoke(comm);                 // whoever has not noticed shall come here, too
 *         if (gyre_comm_shrink(comm, &next) != GYRE_SUCCESS)
 *             break;                              // this rank is out: see gyre_last_error(comm)
 *         gyre_comm_destroy(comm);
 *         comm = next;
 *         status = ...                            // repeat what was lost
 *     }
 *
 * A rank has failed when it is dead (GYRE_PEER_DEAD), out of reach (UNREACHABLE), stopped inside a call (STALLED), later than
 * GYRE_TIMEOUT (LATE), or has left in order (LEFT). A failure is final: one that is only late, or stopped, and wakes, finds
 * itself shut out (GYRE_EXCLUDED), whatever the others have done meanwhile.
 *
 * Where the network is cut in two, at most one side goes on: the one with more than half of the members of which it is not
 * known that they are gone, or with just half and the lowest rank among these. On the other agree and shrink return
 * GYRE_PARTITIONED. Of more parts the same holds: of 2:1:1 the two go on if rank 0 is one of them, and else nobody does. A
 * process that has ended is known to be gone; one that is stopped or out of reach is not, so that a rank which loses all
 * its peers that way, and is not the lowest of just half, cannot go on alone.
 *
 * revoke ends all outstanding requests of comm's world with GYRE_REVOKED, on this rank and, as they are inside or at their
 * next call, on all others; duplicates and splits share the world and end with it. Unlike after an abort, agree and shrink
 * still work. After a failure it changes nothing: that has told everybody. From any thread, does not block.
 *
 * failed tells what is known of a rank of `comm`: whether it has failed, when and why. Set `size = sizeof(gyre_failure)`; as
 * much of it is written. It looks for news, and does not block. After an agree that succeeded all ranks know of everybody
 * whom it was held without. */
typedef struct gyre_failure {
    size_t size;        /* sizeof(gyre_failure), for compatibility */
    gyre_status status; /* GYRE_SUCCESS: it has not; GYRE_PEER_DEAD, _UNREACHABLE, _STALLED, _LATE or _LEFT */
    int64_t when;       /* nanoseconds of CLOCK_MONOTONIC: when this process learnt it; 0: it has not failed */
    const char *why;    /* a sentence, as long as the communicator; empty: it has not failed */
} gyre_failure;
GYRE_API gyre_status gyre_comm_revoke(gyre_comm *comm);
GYRE_API gyre_status gyre_comm_failed(gyre_comm *comm, int rank, gyre_failure *failure_p);

/* Agreement among those who are left. Collective over the ranks of `comm` that have not failed; blocking; also in a world in
 * which nothing has failed. *bits_p is the same on every rank that returns success: the AND of what all have given that
 * took part. Ranks may die meanwhile, any number of them: then it is of those who are left, and of none or all of one that
 * dies. Ranks that do not come within GYRE_TIMEOUT have failed. The lowest rank that lives is connected to all others
 * meanwhile. Errors: GYRE_EXCLUDED, GYRE_PARTITIONED, GYRE_ABORTED; GYRE_MISMATCH where others call gyre_comm_shrink.
 *
 * The algorithm is Lamport's synod (1998), with the ranks as ballots; early return as in ERA (Herault and others, 2015). */
GYRE_API gyre_status gyre_comm_agree(gyre_comm *comm, uint64_t bits, uint64_t *bits_p);

/* A communicator of those who are left, in their order, with ranks from 0. Collective over the ranks of `comm` that have
 * not failed; blocking; also where nothing has failed. It is a world of its own, the next epoch: it shares no connection and
 * no memory with the old one, of which nothing can reach it. Settings, attributes (not the name) and operations of one's own
 * go on; memory of gyre_mem_alloc belongs to the old world and ends with it. `comm` stays as it was, and the caller's to
 * destroy.
 *
 * Who dies in time is not in it. One that dies later is a failure of the new communicator, whose first call says so: shrink
 * that one then. Errors: as gyre_comm_agree; GYRE_NO_MEMORY, GYRE_NO_DESCRIPTORS of this rank alone. */
GYRE_API gyre_status gyre_comm_shrink(gyre_comm *comm, gyre_comm **comm_p);

/* Lets newcomers in: a communicator of the ranks of `comm`, which keep their numbers, and of processes that join, which get
 * the next ones. Like shrink's it is a world of its own, the next epoch, with the settings, attributes and operations of
 * `comm`, which stays as it was and the caller's to destroy. Collective over `comm`; blocking.
 *
 * A newcomer is a process that calls gyre_comm_create with GYRE_JOIN=1 (or gyre_config.join) and the world's secret and
 * settings; the call returns when the world has let it in, or fails after GYRE_MEET_TIMEOUT. It may come at any time, and
 * waits. Its meeting address is that of any member: what gyre_comm_get(comm, "meeting") says there. Or it is the address at
 * which the world met in the first place: from the first grow on rank 0 renews it, as the line of a file:// and as the port
 * of a tcp:// on its own host, and so does the lowest rank that is left in every epoch after it, one that has itself joined,
 * wherever that was, too. Strangers, other secrets, versions, runs and settings are refused as in a meeting. Rank 0 is whom
 * all are sent to in the end.
 *
 * Rank 0 waits until `newcomers` of them are there, at most `seconds`, and then lets in those who are there, at most
 * `newcomers`; with 0 it lets in who stands at its door now, at most 64. What the other ranks give for both means nothing.
 * The wait is at most half of GYRE_TIMEOUT. When nobody has come, *comm_p is NULL on every rank, that is GYRE_SUCCESS, and
 * `comm` goes on. A newcomer has none of the operations of one's own that were made before.
 *
 * Deaths meanwhile, any number of them: all who are left get the same, the new communicator or the failure, after which they
 * shrink and grow again. Who dies later, newcomers too, is a failure of the new communicator, as after a shrink. So is one
 * that is stopped on its way into the new world, after GYRE_STALL_TIMEOUT (PEER_STALLED); a newcomer that wakes later comes
 * again by itself, or its gyre_comm_create is GYRE_EXCLUDED, as grow and shrink are on a member. Errors: as
 * gyre_comm_agree; GYRE_NO_MEMORY, GYRE_NO_DESCRIPTORS and GYRE_SYSTEM of one rank are all ranks'; where no rank has failed
 * `comm` stays usable. */
GYRE_API gyre_status gyre_comm_grow(gyre_comm *comm, int newcomers, double seconds, gyre_comm **comm_p);

/* ---- What happens inside; log and memory of the process ---------------------------------------------------------- */

/* Writes the flight recorder (the last 256 operations) and the counters of `comm` as text to file descriptor `fd`. Errors:
 * GYRE_INVALID_ARGUMENT where there is no such descriptor, GYRE_SYSTEM where not all of it could be written. */
GYRE_API gyre_status gyre_comm_dump(const gyre_comm *comm, int fd);

/* What a communicator has done on this rank. Set `size = sizeof(gyre_counters)`; as much of it is written. */
typedef struct gyre_counters {
    size_t size;                    /* sizeof(gyre_counters), for compatibility */
    uint64_t started, done, failed; /* operations; those under way are the difference */
    uint64_t bytes;                 /* of the vectors that these operations were called with */
    uint64_t window_bytes;          /* part of `bytes`: through memory that a host's ranks share */
    uint64_t self_bytes, shm_bytes, tcp_bytes, other_bytes; /* payload handed to links, by transport */
} gyre_counters;
GYRE_API gyre_status gyre_comm_counters(gyre_comm *comm, gyre_counters *counters_p);

/* Tells `func` of every operation of this communicator on this rank, at its start and at its end; NULL: no more. It is
 * called inside gyre's calls, in whichever thread drives (at an end that may be gyre's own), must not call gyre, and the
 * event is valid until it returns. Communicators that are made of this one have no trace of their own at first. */
typedef struct gyre_trace_event {
    size_t size;            /* of this version's struct */
    int ended;              /* 0: it starts, 1: it has ended */
    gyre_status status;     /* GYRE_IN_PROGRESS at its start */
    const char *collective; /* "all_reduce", "send", ...; static */
    const char *algorithm;  /* "ring", ...; static */
    uint64_t sequence;      /* number of the operation, from 1; messages are counted for each peer and direction */
    uint64_t count;         /* elements; 0 where the counts differ by rank */
    gyre_dtype dtype;
    gyre_op op;
    int root;            /* of a message its sender: both ends are a "send" */
    int64_t began, time; /* nanoseconds of CLOCK_MONOTONIC: at the start, and now */
} gyre_trace_event;
typedef void (*gyre_trace_func)(void *user, const gyre_trace_event *event);
GYRE_API gyre_status gyre_comm_trace(gyre_comm *comm, gyre_trace_func func, void *user);

/* Lines of gyre's log go to `func`, without the newline, instead of standard error; NULL: back to it. For the whole
 * process. GYRE_LOG says which levels there are. It is called in any thread, must not call gyre, and is not changed while
 * a call of gyre is under way in another thread. */
typedef enum gyre_log_level {
    GYRE_LOG_ERROR = 0,
    GYRE_LOG_WARN = 1,
    GYRE_LOG_INFO = 2,
    GYRE_LOG_DEBUG = 3,
} gyre_log_level;
typedef void (*gyre_log_func)(void *user, gyre_log_level level, const char *line);
GYRE_API void gyre_log_set(gyre_log_func func, void *user);

/* gyre's memory comes from these functions; NULL: from malloc again. For the whole process, before its first communicator
 * is made: GYRE_INVALID_ARGUMENT when gyre holds memory already. Copied. All three are called in any thread. Shared memory,
 * and what other libraries take for themselves, does not come from here. */
typedef struct gyre_allocator {
    size_t size;                                               /* sizeof(gyre_allocator), for compatibility */
    void *(*allocate)(void *user, size_t bytes, size_t align); /* align: a power of two; NULL: there is none */
    void *(*resize)(void *user, void *memory, size_t bytes);   /* as realloc; NULL leaves `memory` as it was */
    void (*release)(void *user, void *memory);                 /* never of NULL */
    void *user;                                                /* first argument of the three */
} gyre_allocator;
GYRE_API gyre_status gyre_allocator_set(const gyre_allocator *allocator);

/* Information for tools. `print` is called once per line of text (no newline). */
typedef void (*gyre_print_func)(void *user, const char *line);
GYRE_API void gyre_info(gyre_print_func print, void *user);            /* build, topology, transports and why not */
GYRE_API void gyre_config_describe(gyre_print_func print, void *user); /* every setting: name, default, unit, meaning */
/* Checks the GYRE_* environment; an unknown name or a bad value is an error with the nearest name in text. */
GYRE_API gyre_status gyre_config_check(char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif
#endif

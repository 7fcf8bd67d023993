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
 * A *communicator* is an ordered set of ranks. gyre_comm_create makes the world communicator. All state of the library
 * (links, segments, descriptors) belongs to the world and ends with the world's last communicator. Collective calls
 * are made by every rank of a communicator, in the same order, with the same shape (kind, count, dtype, op, root).
 *
 * Blocking. A call without `_start` returns when the caller's part is complete: its output is complete, and its input
 * may be overwritten. A call with `_start` never blocks. It gives a request, which gyre_test, gyre_wait or
 * gyre_wait_all completes. The calling thread makes the progress, inside these calls. The library starts a thread only
 * with GYRE_PROGRESS_THREAD=1; that thread moves requests while no caller is inside.
 *
 * Pointers. A pointer argument is required unless its comment allows NULL. A buffer may be NULL where this rank reads
 * or writes no element of it: its count is 0, or the buffer is ignored on this rank. Arguments named `…_p` are
 * outputs. Output arguments are written only on success.
 *
 * Units. Counts, displacements and lists of counts are in elements of `dtype`. Sizes named `bytes`, and offsets into a
 * window, are in bytes. Times in settings and in gyre_comm_grow are in seconds; times named `when`, `began` and `time`
 * are in nanoseconds.
 *
 * Ranks. A rank, root, peer or target is a number from 0 to size − 1 of the communicator of the call. No value stands
 * for "no rank": a negative peer is GYRE_INVALID_ARGUMENT, and a message that has no peer is not called. Exceptions:
 * −1 as the target of gyre_window_flush is every rank, and a negative color of gyre_comm_split is no communicator.
 *
 * Ownership. Buffers belong to the caller. Between `_start` and the completion of the request gyre reads the input and
 * writes the output, and the caller does neither. Strings, lists and structs that a call is given are copied. Strings
 * that a call returns belong to gyre.
 *
 * Order of destruction. Each of these ends before the next one:
 *
 *   requests         completed by a wait or test; persistent ones freed by gyre_request_free
 *   windows          gyre_window_destroy, collective, before their communicator and before their memory is freed
 *   registrations    gyre_mem_deregister, before the memory is freed
 *   memory           gyre_mem_free, before the last communicator of its world is destroyed
 *   communicators    gyre_comm_destroy, in any order; the world ends with its last communicator
 *
 * Destroying a communicator first ends what is left of it. Its outstanding requests end with GYRE_ABORTED; their
 * handles remain valid for gyre_test, gyre_wait and gyre_request_free. Its windows are freed and their handles are
 * invalid. Memory of gyre_mem_alloc and registrations end with the world. Operations of one's own need no end; they
 * live as long as the world.
 *
 * Threads. One thread at a time per communicator; several communicators of one world may be driven by as many threads.
 * gyre_comm_abort and gyre_comm_revoke may be called from any thread.
 *
 * Forks. A forked child has no part in the worlds of its parent: its calls on them are GYRE_FORKED. Exceptions only
 * look: rank, size, algorithm, counters, dump, and attributes other than "meeting". The child may make worlds of its
 * own.
 *
 * Errors. Most functions return a status. When it is not GYRE_SUCCESS, gyre_last_error gives the error message: which
 * rank, which operation, what the system said and what to try. The comments of functions list statuses and causes
 * under "Errors", where a name in brackets stands for these:
 *
 *   [comm]        GYRE_INVALID_ARGUMENT   the communicator is NULL or was destroyed
 *   [comm]        GYRE_FORKED             the process is a forked child of the one that made the world
 *   [world]       GYRE_PEER_DEAD          a process of the world has ended without destroying its communicators
 *   [world]       GYRE_PEER_UNREACHABLE   a rank cannot be reached any more
 *   [world]       GYRE_PEER_STALLED       a rank is inside a call and has moved nothing for GYRE_STALL_TIMEOUT
 *   [world]       GYRE_PEER_LATE          a rank has not entered the operation within GYRE_TIMEOUT
 *   [world]       GYRE_ABORTED            gyre_comm_abort was called on a communicator of the world
 *   [world]       GYRE_REVOKED            gyre_comm_revoke was called on a communicator of the world
 *   [world]       GYRE_CORRUPTED          bytes of a rank were changed on their way (GYRE_INTEGRITY)
 *   [world]       GYRE_PROTOCOL           a rank sent something that this version does not understand
 *   [world]       GYRE_INTERNAL           a fault of gyre; please report it
 *   [shortage]    GYRE_NO_MEMORY          this rank has no memory for the call
 *   [shortage]    GYRE_NO_DESCRIPTORS     this rank has no file descriptor for a connection
 *   [shortage]    GYRE_SYSTEM             a system call has failed, which the error message names
 *   [group]       GYRE_INVALID_ARGUMENT   the call stands inside a group (gyre_group_begin)
 *   [buffer]      GYRE_INVALID_ARGUMENT   a buffer with elements is NULL; input and output overlap other than in place
 *   [buffer]      GYRE_INVALID_ARGUMENT   dtype is no type; the elements are more than memory can hold
 *   [collective]  GYRE_MISMATCH           ranks called with different operations, counts, types or roots
 *   [collective]  GYRE_PEER_LEFT          a rank that the operation needs has destroyed the communicator
 *   [collective]  GYRE_UNSUPPORTED        a forced algorithm cannot do the call (GYRE_ALGORITHM)
 *   [collective]  GYRE_WRONG_RESULT       GYRE_VERIFY is set, and a rank has another result than the others
 *   [collective]  GYRE_EXCLUDED           ends are uniform, and the other ranks have gone on without this one
 *   [collective]  GYRE_PARTITIONED        ends are uniform, and too few ranks are left
 *   [op]          GYRE_INVALID_ARGUMENT   op is no operation, or none for this type
 *   [root]        GYRE_INVALID_ARGUMENT   root is not a rank of the communicator
 *   [v]           GYRE_INVALID_ARGUMENT   a list of counts is NULL; blocks overlap by their displacements
 *   [request]     GYRE_INVALID_ARGUMENT   request_p is NULL
 *
 * Statuses of [world] end the world, and every later call on it returns the first of them. */
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

/* Returns the name ("PEER_DEAD") or the text of a status. The string is static and never NULL. The strings of an
 * unknown status are "UNKNOWN" and "unknown status".
 * Errors: none. */
/* Returns the name of a status: "PEER_DEAD". */
GYRE_API const char *gyre_status_name(gyre_status status);
/* Returns the text of a status: "a rank died". */
GYRE_API const char *gyre_status_text(gyre_status status);

/* Returns the message of the last error on `comm`. After a failure of the world it is the message of that failure, the
 * first one, which stays. Calls that are refused afterwards have a status, and no message of their own.
 *
 * comm may be NULL or destroyed. The result is then the message of this thread's last call without a communicator to
 * keep it. That is a gyre_comm_create that failed, or a call with a handle that is NULL, destroyed or freed
 * (GYRE_INVALID_ARGUMENT).
 *
 * The string belongs to gyre and is valid until the next error on the communicator, or in the thread. It is never
 * NULL; it is empty when there was no error.
 * Errors: none. */
GYRE_API const char *gyre_last_error(const gyre_comm *comm);

/* Every element type: code, name, name as text, bytes. The values are frozen and travel on the wire.
 *
 *   bool          one byte: 0 is false, any other byte is true
 *   float16       IEEE 754 binary16               1 + 5 + 10 bits
 *   bfloat16      the upper half of a float32     1 + 8 + 7 bits
 *   float8_e5m2   OCP's, a float16 cut short      1 + 5 + 2 bits
 *   float8_e4m3   OCP's, PyTorch's float8_e4m3fn  1 + 4 + 3 bits: no infinity, one NaN of either sign, at most 448
 *
 * A complex number is two floats, real part and imaginary part: n of them are a count of 2n elements of the float
 * type. Such a count can be moved, summed, averaged and multiplied by a real scalar. The other operations have no
 * meaning for complex numbers, and gyre cannot detect that. */
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
 * Operand order, and so every bit of the result, depends only on the shape of the call and on facts that all ranks
 * share since bootstrap. These are: the collective, count and type; the ranks; which of them share a host; whether a
 * host has fewer cores than ranks; and the settings. So all ranks get the same bits. In detail:
 *
 * Integers wrap: sum and product are modulo 2^bits. An average truncates toward zero, and is that of the wrapped sum.
 *
 * Booleans: sum, max and bit_or are or; product, min and bit_and are and; bit_xor is exclusive or. A premul_sum is the
 * or of the contributions, each combined by and with its rank's scalar. A result is 0 or 1, whatever non-zero bytes
 * went in, also with one rank. An average is refused. What is only copied (broadcast, all_gather, messages) keeps its
 * bytes. A user-defined operation gets the bytes as they are.
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
 * Canonical order, with GYRE_ORDER=canonical: one tree over the ranks serves every element. The bits then depend on the
 * contributions and their number alone, and not on algorithm, transport, topology, root or count. T(x_0 ... x_{n−1}) is
 * T(x_0 ... x_{h−1}) op T(x_h ... x_{n−1}), where h is the largest power of two below n: for six ranks ((x_0 op x_1) op
 * (x_2 op x_3)) op (x_4 op x_5). Narrow floats stay in float32 through the whole tree, also between ranks, and are
 * rounded once, at the end. An average then divides the rounded sum, as in the other order. Canonical order holds for
 * every type and operation, user-defined ones too. It holds for every reducing call, reduce_scatterv with any counts
 * among them.
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

/* Size and names of types and operations. Names are those of the lists above: "float32", "sum". Strings are static. A
 * value that is no type or operation gives 0 or NULL.
 * Errors: none. */
/* Returns the size of one element in bytes; 0 for an unknown type. */
GYRE_API size_t gyre_dtype_size(gyre_dtype dtype);
/* Returns the name of an element type; NULL for an unknown type. */
GYRE_API const char *gyre_dtype_name(gyre_dtype dtype);
/* Returns the name of an operation; NULL for an unknown one. */
GYRE_API const char *gyre_op_name(gyre_op op);

/* Find a type or an operation by its name: one of the lists above, or a name that other libraries use, in any case of
 * letters. Neither argument may be NULL.
 *
 *   half, fp16     float16       float, fp32, single  float32        fp8_e4m3, float8_e4m3fn  float8_e4m3
 *   bf16           bfloat16      double, fp64         float64        fp8_e5m2                 float8_e5m2
 *   char, byte     int8, uint8   int, uint            int32, uint32  boolean                  bool
 *   avg, mean      average       prod                 product        band, bor, bxor          bit_and, bit_or, bit_xor
 *
 * Errors:
 *   GYRE_INVALID_ARGUMENT  the name is not known; an argument is NULL (the message is that of gyre_last_error(NULL))
 */
/* Finds an element type by its name. */
GYRE_API gyre_status gyre_dtype_from_name(const char *name, gyre_dtype *dtype_p);
/* Finds an operation by its name. */
GYRE_API gyre_status gyre_op_from_name(const char *name, gyre_op *op_p);

/* Returns the version of the library, "0.1.0". The string is static.
 * Errors: none. */
GYRE_API const char *gyre_version(void);

/* ---- A world: made, ended ---------------------------------------------------------------------------------------- */

/* An all-gather of opaque bytes, supplied by a framework that already has a way to communicate. Every rank calls it
 * with `bytes` bytes at `mine`; on return `all` holds world_size * bytes, in rank order. It returns 0 on success, and
 * may block. */
typedef int (*gyre_exchange_func)(void *user, const void *mine, void *all, size_t bytes);

/* How ranks meet. The program zeroes the struct, sets `size = sizeof(gyre_config)` and sets what it knows. gyre finds
 * the rest in this order: this struct, the exchange callback, GYRE_ADDRESS, MASTER_ADDR and MASTER_PORT, and the
 * launcher that started the process. Launchers are torchrun, Open MPI's mpirun, PMIx, MPICH's mpiexec and Slurm's srun
 * (see GYRE_LAUNCHER). Strings are copied. Where `world_size` is 0 the environment decides rank and world size. */
typedef struct gyre_config {
    size_t size;         /* sizeof(gyre_config); as much of it is read, the rest is as if it were zero */
    int rank;            /* this process's rank, used when world_size > 0 */
    int world_size;      /* number of ranks, 0: from the environment */
    const char *address; /* meeting place: "tcp://HOST:PORT", "file:///PATH"; NULL: from the environment */
    const char *secret;  /* the job's secret: a random text of 22 bytes or more, 32 where all are hexadecimal digits;
                                  * NULL: GYRE_SECRET, whose value is then overwritten in the environment and
                                  * kept for further worlds, or GYRE_SECRET_FILE */
    gyre_exchange_func exchange; /* or NULL */
    void *exchange_user;         /* first argument of `exchange` */
    int join;                    /* 1: join a world that is there (gyre_comm_grow), at `address`, which is any member's;
                                  * rank and world_size mean nothing then, nor do the environment's:
                                  * whatever the world's size is. 0: GYRE_JOIN decides */
} gyre_config;

/* Makes the world communicator. Collective over the ranks of the world; blocks until every rank has arrived, at most
 * GYRE_MEET_TIMEOUT (default 5 min). `config` may be NULL: everything is then from the environment. comm_p may not be
 * NULL. The communicator belongs to the caller until gyre_comm_destroy.
 * Errors: [group], [shortage].
 *   GYRE_INVALID_ARGUMENT   comm_p is NULL; config->size is not that of a gyre_config; rank or world_size do not fit
 *   GYRE_BAD_CONFIGURATION  a GYRE_* variable has no valid value; there is no secret or no address to meet at
 *   GYRE_MEETING_FAILED     ranks are missing after GYRE_MEET_TIMEOUT (the message names them); the exchange failed
 *   GYRE_REFUSED            a peer has another secret, job, version or settings, or the same rank
 *   GYRE_PEER_DEAD          a rank died while the ranks met
 *   GYRE_EXCLUDED           the world that was joined has gone on without this process
 *   GYRE_PROTOCOL           a peer speaks another protocol */
GYRE_API gyre_status gyre_comm_create(const gyre_config *config, gyre_comm **comm_p);

/* Rank of this process in the communicator, and number of ranks. comm may be NULL.
 * Errors: none. The result is −1 where comm is NULL or was destroyed. */
/* Returns the rank of this process in the communicator, from 0. */
GYRE_API int gyre_comm_rank(const gyre_comm *comm);
/* Returns the number of ranks of the communicator. */
GYRE_API int gyre_comm_size(const gyre_comm *comm);

/* Destroys a communicator. Local: the call waits for no other rank and takes under a second. NULL is allowed and does
 * nothing. The last communicator of a world ends the world. Windows, persistent requests and memory of the
 * communicator are destroyed or freed before (see "Order of destruction"). Outstanding requests end with GYRE_ABORTED.
 *
 * A member that has completed its last operation may destroy its communicator at once: what it has sent arrives, and
 * the others complete that operation. An operation that needs the member after that is GYRE_PEER_LEFT at once. So is
 * from then on every collective and every message on this communicator, on each of its members, at the next call. The
 * message names the rank that destroyed it and the operation. Only this communicator has ended then: the world and its
 * other communicators go on, and buffers are the caller's again.
 *
 * Exceptions. A short message does not wait for its receiver. Where other ranks use a buffer of gyre_mem_alloc
 * directly, the call returns when each of them has been inside gyre. The world ends in three cases: ends are uniform
 * (gyre_comm_set) or GYRE_VERIFY is set; the communicator was the member's last of its world; its own requests do not
 * end within 200 ms.
 * Errors: [comm]. */
GYRE_API gyre_status gyre_comm_destroy(gyre_comm *comm);

/* ---- Collectives ------------------------------------------------------------------------------------------------- */

/* Collectives. Buffers belong to the caller; counts and displacements are in elements. Alignment of the element type
 * is not required. A count of 0 is legal. Every rank of the communicator calls with the same count, dtype, op and
 * root; `root` is a rank of the communicator. A buffer may be NULL where its count is 0 or it is ignored on this rank.
 * comm may not be NULL.
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
 * In place: input == output for all_reduce, reduce, broadcast and all_to_all; for all_gather and gather input ==
 * output + rank*count elements; for reduce_scatter and scatter output == input + rank*count. Any other overlap is an
 * error.
 *
 * The v-forms have a count for every rank, in `counts[size]`, which is the same list on every rank (of the root too)
 * and may not be NULL. Displacements may be NULL: the blocks then lie one after the other. Otherwise block r begins
 * `displacements[r]` elements after the beginning of the buffer. Blocks must not overlap. The lists are copied. In
 * place means the same as above, with displacements for rank*count.
 *
 * all_to_allv has two lists of its own on each rank, and compares them pair by pair: what one rank sends is what the
 * other expects, or GYRE_MISMATCH. all_to_allv in place needs equal lists.
 *
 *   all_gatherv      input[counts[rank]]  -> output: block r of counts[r] elements at displacements[r]
 *   gatherv          likewise, on root
 *   scatterv         input on root: block r at displacements[r] -> output[counts[rank]]
 *   reduce_scatterv  input[sum of counts] -> output[counts[rank]]
 *   all_to_allv      input: block r for rank r -> output: block r from rank r
 *
 * Every call comes in three forms. The blocking form returns when this rank's part is complete. The form `_start`
 * never blocks and gives a request; the buffers belong to gyre until the request completes. The form `_init` gives a
 * persistent request, with fixed buffers and counts, which gyre_start begins any number of times and which allocates
 * nothing then. The order of starts counts, like that of calls.
 * Errors: [comm], [world], [shortage], [collective]. */
/* Reduces the inputs of all ranks to every rank.
 * Errors: [buffer], [op]. */
GYRE_API gyre_status gyre_all_reduce(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                     gyre_op op);
/* Reduces the inputs of all ranks to the root. output is ignored elsewhere, and may be NULL there.
 * Errors: [buffer], [op], [root]. */
GYRE_API gyre_status gyre_reduce(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                 gyre_op op, int root);
/* Reduces the inputs of all ranks, and gives each rank its block.
 * Errors: [buffer], [op]. */
GYRE_API gyre_status gyre_reduce_scatter(gyre_comm *comm, const void *input, void *output, size_t count,
                                         gyre_dtype dtype, gyre_op op);
/* Copies the root's input to the output of every rank. input is ignored elsewhere, and may be NULL there.
 * Errors: [buffer], [root]. */
GYRE_API gyre_status gyre_broadcast(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                    int root);
/* Gathers the inputs of all ranks on every rank.
 * Errors: [buffer]. */
GYRE_API gyre_status gyre_all_gather(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype);
/* Gathers the inputs of all ranks on the root. output is ignored elsewhere, and may be NULL there.
 * Errors: [buffer], [root]. */
GYRE_API gyre_status gyre_gather(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                 int root);
/* Gives each rank its block of the root's input. input is ignored elsewhere, and may be NULL there.
 * Errors: [buffer], [root]. */
GYRE_API gyre_status gyre_scatter(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                  int root);
/* Sends a block to every rank, and receives one from every rank.
 * Errors: [buffer]. */
GYRE_API gyre_status gyre_all_to_all(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype);
/* Returns when every rank has called it. */
GYRE_API gyre_status gyre_barrier(gyre_comm *comm);
/* Gathers the inputs of all ranks, of a count for each rank, on every rank.
 * Errors: [buffer], [v]. */
GYRE_API gyre_status gyre_all_gatherv(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                      const size_t *displacements, gyre_dtype dtype);
/* Gathers the inputs of all ranks, of a count for each rank, on the root. output is ignored elsewhere, and may be NULL
 * there.
 * Errors: [buffer], [root], [v]. */
GYRE_API gyre_status gyre_gatherv(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                  const size_t *displacements, gyre_dtype dtype, int root);
/* Gives each rank its block, of a count for each rank, of the root's input. input is ignored elsewhere, and may be
 * NULL there.
 * Errors: [buffer], [root], [v]. */
GYRE_API gyre_status gyre_scatterv(gyre_comm *comm, const void *input, const size_t *counts,
                                   const size_t *displacements, void *output, gyre_dtype dtype, int root);
/* Reduces the inputs of all ranks, and gives each rank its block, of a count for each rank.
 * Errors: [buffer], [op], [v]. */
GYRE_API gyre_status gyre_reduce_scatterv(gyre_comm *comm, const void *input, void *output, const size_t *counts,
                                          gyre_dtype dtype, gyre_op op);
/* Sends a block to every rank, and receives one from every rank, of counts of their own.
 * Errors: [buffer], [v].
 *   GYRE_INVALID_ARGUMENT  in place, the lists of input and output differ; this rank sends itself another count than
 *                          it expects */
GYRE_API gyre_status gyre_all_to_allv(gyre_comm *comm, const void *input, const size_t *input_counts,
                                      const size_t *input_displacements, void *output, const size_t *output_counts,
                                      const size_t *output_displacements, gyre_dtype dtype);

/* As requests. The calls do not block. request_p may not be NULL. The request belongs to the caller until a wait or a
 * test has completed it, before gyre_comm_destroy; the buffers belong to gyre until then.
 * Errors: [request]. What fails after the start is the status of the wait. */
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

/* As persistent requests. The calls do not block and begin nothing: see gyre_start. request_p may not be NULL. The
 * request belongs to the caller until gyre_request_free, before gyre_comm_destroy. The buffers belong to gyre from a
 * start to the end of its wait.
 * Errors: [request]. What fails after a start is the status of the wait. */
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

/* Point to point. A message goes from one rank to another, or to itself. `peer`, `to` and `from` are ranks of the
 * communicator; there is no "none". A rank without a neighbour leaves the call out. Messages between the same two
 * ranks arrive in the order in which they were sent, and the k-th receive takes the k-th message. Both sides give the
 * same count, in elements, and the same dtype. A buffer may be NULL where its count is 0.
 * Errors: [comm], [world], [shortage].
 *   GYRE_INVALID_ARGUMENT  a peer is not a rank of the communicator; a buffer with elements is NULL; dtype is no type
 *   GYRE_MISMATCH          sender and receiver gave different counts or types
 *   GYRE_PEER_LEFT         the peer has destroyed the communicator */
/* Sends a message to a rank. Blocks until the input may be overwritten; it may wait for the receive. */
GYRE_API gyre_status gyre_send(gyre_comm *comm, const void *input, size_t count, gyre_dtype dtype, int peer);
/* Receives a message of a rank. Blocks until it is there. */
GYRE_API gyre_status gyre_recv(gyre_comm *comm, void *output, size_t count, gyre_dtype dtype, int peer);
/* Sends a message and receives one at the same time, with the same rank or different ones, from and to memory that
 * does not overlap. Blocks until both are complete.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  input and output overlap */
GYRE_API gyre_status gyre_sendrecv(gyre_comm *comm, const void *input, size_t input_count, int to, void *output,
                                   size_t output_count, int from, gyre_dtype dtype);

/* As requests. The calls do not block. request_p may not be NULL. The request belongs to the caller until a wait or a
 * test has completed it, before gyre_comm_destroy; the buffers belong to gyre until then.
 * Errors: [request]. What fails after the start is the status of the wait. */
GYRE_API gyre_status gyre_send_start(gyre_comm *comm, const void *input, size_t count, gyre_dtype dtype, int peer,
                                     gyre_request **request_p);
GYRE_API gyre_status gyre_recv_start(gyre_comm *comm, void *output, size_t count, gyre_dtype dtype, int peer,
                                     gyre_request **request_p);

/* As persistent requests. The calls do not block and begin nothing: see gyre_start. request_p may not be NULL. The
 * request belongs to the caller until gyre_request_free, before gyre_comm_destroy. The buffers belong to gyre from a
 * start to the end of its wait.
 * Errors: [request]. What fails after a start is the status of the wait. */
GYRE_API gyre_status gyre_send_init(gyre_comm *comm, const void *input, size_t count, gyre_dtype dtype, int peer,
                                    gyre_request **request_p);
GYRE_API gyre_status gyre_recv_init(gyre_comm *comm, void *output, size_t count, gyre_dtype dtype, int peer,
                                    gyre_request **request_p);

/* ---- Requests and groups ----------------------------------------------------------------------------------------- */

/* Completion of requests. A request that completed, in success or failure, is freed and *request becomes NULL. A
 * persistent request stays, and can be started again. *request may be NULL. NULL, and a persistent request that is not
 * under way, complete at once with success. Each of these functions advances all requests of the worlds concerned.
 * Requests are completed before their communicator is destroyed; those that are not end with GYRE_ABORTED.
 * Errors: [world]. The status of a request is that of its operation.
 *   GYRE_INVALID_ARGUMENT  the pointer to the request or to the list is NULL; a request was completed or freed before
 *   GYRE_MISMATCH          ranks called the operation with different counts, types, operations or roots
 *   GYRE_PEER_LEFT         a rank that the operation needs has destroyed the communicator
 *   GYRE_ABORTED           the communicator was destroyed before the operation was complete
 *   GYRE_FORKED            the process is a forked child of the one that made the request */
/* Returns the status of a request that is complete, GYRE_IN_PROGRESS otherwise. Never blocks.
 * Errors:
 *   GYRE_IN_PROGRESS  the request is not complete; it stays */
GYRE_API gyre_status gyre_test(gyre_request **request);
/* Blocks until a request is complete, and returns its status. */
GYRE_API gyre_status gyre_wait(gyre_request **request);
/* Blocks until all requests of a list are complete, and returns the first failure. The list may be NULL where `count`
 * is 0; `count` is in requests. */
GYRE_API gyre_status gyre_wait_all(gyre_request **requests, size_t count);
/* Blocks until one request of a list that is under way is complete. Gives its index, and returns its status. *index_p
 * is −1 when none is under way; index_p may not be NULL. */
GYRE_API gyre_status gyre_wait_any(gyre_request **requests, size_t count, ptrdiff_t *index_p);
/* Blocks until at least one request of a list that is under way is complete. Gives the indices of all that have
 * completed, in `indices[count]`, and their number. Returns the first failure among them. */
GYRE_API gyre_status gyre_wait_some(gyre_request **requests, size_t count, size_t *indices, size_t *completed_p);

/* Starts a persistent request. Never blocks. The request may not be NULL, and belongs to the caller. The buffers
 * belong to gyre until it completes.
 * Errors: [world].
 *   GYRE_INVALID_ARGUMENT  the request is NULL, was freed, is not persistent or is under way; its communicator was
 *                          destroyed
 *   GYRE_FORKED            the process is a forked child of the one that made the request */
GYRE_API gyre_status gyre_start(gyre_request *request);
/* Frees a persistent request that is not under way, and makes *request NULL. Local; does not block. *request may be
 * NULL: nothing happens. The call comes before or after the destruction of the communicator.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  request is NULL; *request was freed, is under way, or is not persistent (a wait frees that)
 */
GYRE_API gyre_status gyre_request_free(gyre_request **request);

/* Advances all outstanding requests of comm's world a little, without blocking. The call stands between pieces of
 * computation. comm may not be NULL.
 * Errors: [comm], [world]. */
GYRE_API gyre_status gyre_progress(gyre_comm *comm);

/* A group. Between the two calls, blocking calls of this thread on any communicator are started and not waited for.
 * gyre_group_end waits for all of them and returns the first failure; it blocks. Sends and receives inside a group
 * match in any order, and one thread may drive several ranks of one world. Groups may be nested: the outermost one
 * waits. The buffers of the calls belong to gyre until the end of the group.
 *
 * Some calls wait for all ranks at once, and are GYRE_INVALID_ARGUMENT inside a group: making a communicator of any
 * kind, setting `order`, `ends` or `algorithm`, making or destroying a window. The group goes on after that. Local
 * calls and one-sided access are done at once, as outside a group. */
/* Begins a group. Local; does not block.
 * Errors: none. The result is GYRE_SUCCESS. */
GYRE_API gyre_status gyre_group_begin(void);
/* Ends a group: waits for the calls inside, and returns the first failure.
 * Errors: [world]. The status is that of the first call that failed.
 *   GYRE_INVALID_ARGUMENT  this thread has begun no group
 *   GYRE_MISMATCH          ranks called an operation of the group with different counts, types, operations or roots
 *   GYRE_PEER_LEFT         a rank that an operation of the group needs has destroyed its communicator
 *   GYRE_FORKED            the process is a forked child of the one that made the world */
GYRE_API gyre_status gyre_group_end(void);

/* ---- Operations of one's own ------------------------------------------------------------------------------------- */

/* Operations of one's own. Local calls that do not block. Every rank makes the same operations in the same order, as
 * their numbers are compared between ranks. An operation lives as long as the world, and any communicator of the world
 * may use it. A world has at most 128. There is no function that frees one. comm, op_p and the function or scalar may
 * not be NULL.
 *
 * A user-defined operation computes result[i] = left[i] op right[i] for `count` elements; `result` may be the same
 * memory as `left` or `right`. It is called inside gyre's calls, in the thread that makes progress. It must not call
 * gyre, and is to be associative up to rounding. Where `commutative` is 0 operands are combined in rank order, always.
 * `user` may be NULL, and is passed on.
 * Errors: [comm], [world].
 *   GYRE_INVALID_ARGUMENT  a pointer is NULL; dtype is no type; the world has 128 operations already
 *   GYRE_NO_MEMORY         this rank has no memory for the operation */
typedef void (*gyre_reduce_func)(void *user, const void *left, const void *right, void *result, size_t count,
                                 gyre_dtype dtype);
/* Makes an operation of a function. */
GYRE_API gyre_status gyre_op_create(gyre_comm *comm, gyre_reduce_func func, void *user, int commutative, gyre_op *op_p);
/* Makes a pre-multiplied sum: the contributions of this rank are multiplied by *scalar, one element of type `dtype`,
 * which is copied. Other ranks may have other scalars. The operation is used with that type only. */
GYRE_API gyre_status gyre_op_create_premul_sum(gyre_comm *comm, const void *scalar, gyre_dtype dtype, gyre_op *op_p);

/* ---- Memory and one-sided access --------------------------------------------------------------------------------- */

/* Memory that every rank of this host has mapped. Page-aligned, zeroed; the size is in bytes, and 0 is legal. Local,
 * not collective. Any communicator of the world serves for both calls. The memory is freed by gyre_mem_free before the
 * world ends; the world's end unmaps what is left. A window over it, and requests that use it, end before.
 *
 * Inside a host, collectives use large operands in it where they are instead of copying them, and one-sided access
 * reaches it directly. Neither happens between ranks that are threads of one process. Where there is no shared memory
 * it is plain memory.
 * Errors: [comm]. */
/* Allocates memory that the ranks of this host share. memory_p may not be NULL.
 * Errors: [world].
 *   GYRE_INVALID_ARGUMENT  memory_p is NULL
 *   GYRE_NO_MEMORY         the host or this process has no memory for so many bytes */
GYRE_API gyre_status gyre_mem_alloc(gyre_comm *comm, size_t bytes, void **memory_p);
/* Frees memory of gyre_mem_alloc. memory may be NULL: nothing happens.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  the memory was not given by gyre_mem_alloc of this world, or was freed */
GYRE_API gyre_status gyre_mem_free(gyre_comm *comm, void *memory);

/* Announces memory of the caller that will be used again and again, so that a transport that registers memory with its
 * device does so once. Local. RDMA registers the memory when it first sends 16 KiB or more from there at once, or puts
 * or gets. It then reads and writes the memory in place instead of copying. That locks the pages (RLIMIT_MEMLOCK);
 * where they cannot be locked it goes on copying. For shared memory and TCP the calls have no effect.
 *
 * Calls are counted: as many deregisters as registers. `bytes` is in bytes and not 0; memory may not be NULL. The
 * memory stays the caller's. It is deregistered before it is freed; the end of the world deregisters the rest.
 * Errors: [comm], [world].
 *   GYRE_INVALID_ARGUMENT  memory is NULL or bytes is 0; it is registered with another length; it is not registered
 *   GYRE_NO_MEMORY         this rank has no memory for a registered range */
/* Announces memory that will be used again and again. */
GYRE_API gyre_status gyre_mem_register(gyre_comm *comm, void *memory, size_t bytes);
/* Takes back an announcement, before the memory is freed. */
GYRE_API gyre_status gyre_mem_deregister(gyre_comm *comm, void *memory);

/* One-sided access. A window exposes `bytes` bytes of this rank's memory to the other ranks of `comm`. They put, get
 * and accumulate there without a call of this rank. Sizes may differ from rank to rank. Offsets are in bytes from the
 * beginning of the target's memory; counts are in elements. `target` is a rank of the communicator, this rank
 * included. Only gyre_window_flush takes −1, for every rank.
 *
 * Memory of gyre_mem_alloc is reached directly by ranks of the same host that are other processes. Over RDMA the
 * device puts, gets and flushes, whatever the target is doing meanwhile. The window's memory is locked for that; where
 * it cannot be locked, messages serve. Everything else goes by messages, over RDMA too what accumulates and signals.
 * The target takes messages while it is inside gyre, or at any time with a progress thread (GYRE_PROGRESS_THREAD).
 *
 * Order of destruction. The memory stays the caller's and outlives the window. gyre_window_destroy comes before
 * gyre_comm_destroy of its communicator, and before the memory is freed. A window also ends with its communicator,
 * which waits for no other rank. Until the other ranks' windows have ended as well they may store to the memory, and a
 * block of gyre_mem_alloc that is freed before is not given out again. Memory that they do not reach directly is this
 * rank's alone from then on.
 *
 * Completion. put, get, accumulate and signal are local and block until their own side is done: the source of a put or
 * an accumulation may be overwritten, and the destination of a get is complete. They are not ordered among ranks.
 * flush waits until everything that this rank has asked of `target` has happened there. A signal comes after
 * everything that this rank has asked of the same target before it. Access to the same bytes that nothing orders gives
 * any mixture of them.
 *
 * Accumulations of the same window exclude one another, element by element `memory = memory op source`. Averages and
 * pre-multiplied sums are for collectives only. An operation of one's own is made on the target, too. Where it was
 * not, neither it nor later ones of one's own add anything, until the next flush or gyre_window_destroy. That call is
 * then GYRE_INVALID_ARGUMENT, on this rank alone, and everything else has happened.
 *
 * Failure. A target that does not answer within GYRE_TIMEOUT is GYRE_PEER_LATE, and a target that is stopped while it
 * accumulates is GYRE_PEER_STALLED; both end the world. A rank that does not get its turn to accumulate on its own
 * host within GYRE_TIMEOUT, because others have theirs, gets GYRE_PEER_LATE. Nothing has been added then, and the
 * communicator goes on. A target that has destroyed its communicator before it answers is GYRE_PEER_LEFT at once. So
 * is a wait for a signal when all the other ranks have destroyed theirs. That status is of this rank alone. Where that
 * was not the last communicator of its world, the world goes on; gyre_window_destroy of the others is GYRE_PEER_LEFT
 * then, waits for no rank, and the window is gone.
 *
 * When gyre_window_destroy succeeds no rank touches this rank's memory any more. After GYRE_UNSUPPORTED in a world
 * that has not failed, after GYRE_FORKED, and inside a group the window is there as before; after any other error it
 * is gone. When a call fails because the world has failed, later stores of other ranks do not change what this rank
 * writes to the memory, and a block of gyre_mem_alloc is given out no more.
 *
 * Signals. Every rank has GYRE_WINDOW_SIGNALS counters per window, which begin at 0.
 * Errors: [world].
 *   GYRE_INVALID_ARGUMENT  the window or the communicator is NULL or was destroyed
 *   GYRE_FORKED            the process is a forked child of the one that made the world
 *   GYRE_PEER_LEFT         the target has destroyed the communicator */
#define GYRE_WINDOW_SIGNALS 32
typedef struct gyre_window gyre_window;
/* Makes a window over memory of this rank. Collective over `comm`; blocking; connects to every rank that is not
 * reached directly. memory may be NULL where `bytes` is 0. window_p may not be NULL.
 * Errors: [group], [shortage].
 *   GYRE_INVALID_ARGUMENT  window_p is NULL; memory is NULL with bytes
 *   GYRE_NO_MEMORY         a rank has no memory for its part; that ends the world
 *   GYRE_PROTOCOL          a rank says what cannot be of its memory */
GYRE_API gyre_status gyre_window_create(gyre_comm *comm, void *memory, size_t bytes, gyre_window **window_p);
/* Destroys a window. Collective over its communicator; blocking; flushes first. NULL is allowed and does nothing.
 * Errors: [group].
 *   GYRE_INVALID_ARGUMENT  an operation of one's own that was accumulated with is not made on a target
 *   GYRE_UNSUPPORTED       a forced algorithm cannot do the exchange at the end; the window is there as before
 *   GYRE_NO_MEMORY         a rank has no memory for its part; that ends the world */
GYRE_API gyre_status gyre_window_destroy(gyre_window *window);
/* Stores count elements of source at byte `offset` of the target's memory. source may be NULL where count is 0.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  target is no rank; dtype is no type; source is NULL; the elements do not lie in the
 *                          target's memory */
GYRE_API gyre_status gyre_window_put(gyre_window *window, const void *source, size_t count, gyre_dtype dtype,
                                     int target, size_t offset);
/* Loads count elements at byte `offset` of the target's memory into destination, which is complete on return.
 * destination may be NULL where count is 0.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  target is no rank; dtype is no type; destination is NULL; the elements do not lie in the
 *                          target's memory */
GYRE_API gyre_status gyre_window_get(gyre_window *window, void *destination, size_t count, gyre_dtype dtype, int target,
                                     size_t offset);
/* Combines count elements of source with those at byte `offset` of the target's memory. source may be NULL where count
 * is 0.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  target is no rank; dtype is no type; source is NULL; the elements do not lie in the
 *                          target's memory
 *   GYRE_INVALID_ARGUMENT  op is no operation for dtype, an average or a pre-multiplied sum
 *   GYRE_PEER_LATE         this rank did not get its turn within GYRE_TIMEOUT; nothing was added, and the communicator
 *                          goes on */
GYRE_API gyre_status gyre_window_accumulate(gyre_window *window, const void *source, size_t count, gyre_dtype dtype,
                                            gyre_op op, int target, size_t offset);
/* Blocks until everything that this rank has asked of `target` has happened there; −1 is every rank.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  target is no rank, and not −1; an operation of one's own that was accumulated with is not
 *                          made there */
GYRE_API gyre_status gyre_window_flush(gyre_window *window, int target);
/* Adds one to the counter `index` of the target, after everything that this rank has asked of it before. Local; index
 * is below GYRE_WINDOW_SIGNALS.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  target is no rank; index is not below GYRE_WINDOW_SIGNALS */
GYRE_API gyre_status gyre_window_signal(gyre_window *window, int target, unsigned index);
/* Blocks until this rank's own counter `index` is at least `value`, GYRE_TIMEOUT at most.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  index is not below GYRE_WINDOW_SIGNALS
 *   GYRE_PEER_LATE         the counter did not come to `value` within GYRE_TIMEOUT */
GYRE_API gyre_status gyre_window_wait(gyre_window *window, unsigned index, uint64_t value);

/* ---- Further communicators, and what can be set of one ----------------------------------------------------------- */

/* Makes a communicator of the same ranks with its own order of operations. Collective over `comm`; blocking. Opens no
 * connection and shares the world. comm and comm_p may not be NULL. The new communicator belongs to the caller, and
 * either one may be destroyed first.
 * Errors: [comm], [world], [group].
 *   GYRE_INVALID_ARGUMENT  comm_p is NULL; other ranks make another communicator in this call
 *   GYRE_NO_MEMORY         a rank has no memory for the communicator
 *   GYRE_MISMATCH          a rank makes another call
 *   GYRE_PEER_LEFT         a rank has destroyed `comm` */
GYRE_API gyre_status gyre_comm_duplicate(gyre_comm *comm, gyre_comm **comm_p);

/* Divides the ranks of `comm`. Ranks that give the same `color` get a communicator of their own, ordered by `key`;
 * ranks with equal keys are ordered by their rank in `comm`. A negative color gives none: *comm_p is NULL, and the
 * status GYRE_SUCCESS. Collective over `comm`; blocking. Opens no connection; shares the world of `comm`. comm and
 * comm_p may not be NULL.
 * Errors: [comm], [world], [group].
 *   GYRE_INVALID_ARGUMENT  comm_p is NULL; other ranks make another kind of communicator in this call
 *   GYRE_NO_MEMORY         a rank has no memory for the communicator
 *   GYRE_MISMATCH          a rank makes another call
 *   GYRE_PEER_LEFT         a rank has destroyed `comm` */
GYRE_API gyre_status gyre_comm_split(gyre_comm *comm, int color, int key, gyre_comm **comm_p);

/* Makes a communicator of the `count` ranks of `comm` that are listed, in that order. Every rank of `comm` calls with
 * the same list. Ranks that are not in it get NULL in *comm_p, and GYRE_SUCCESS. `ranks` may be NULL where `count` is
 * 0. Collective over `comm`; blocking. Opens no connection; shares the world of `comm`. comm and comm_p may not be
 * NULL.
 * Errors: [comm], [world], [group].
 *   GYRE_INVALID_ARGUMENT  on every rank: the lists differ; a list has a rank twice, or one that does not exist
 *   GYRE_INVALID_ARGUMENT  comm_p is NULL, or ranks is NULL with a count
 *   GYRE_NO_MEMORY         a rank has no memory for the communicator
 *   GYRE_MISMATCH          a rank makes another call
 *   GYRE_PEER_LEFT         a rank has destroyed `comm` */
GYRE_API gyre_status gyre_comm_sub(gyre_comm *comm, const int *ranks, int count, gyre_comm **comm_p);

/* Attributes of a communicator, as text. No argument may be NULL. `key` is one of
 *
 *   name        this rank's own name for it, at most 63 bytes; shown by gyre_comm_dump. Empty at first
 *   order       "shape" or "canonical": in which order reductions combine, as GYRE_ORDER
 *   ends        "local" or "uniform": how collectives end in which a rank fails, as GYRE_ENDS; see below
 *   algorithm   "all_reduce:ring,broadcast:binary_tree", ...: what is forced, as GYRE_ALGORITHM; empty: nothing. A call
 *               that a forced algorithm cannot do (order, counts, no shared memory) is GYRE_UNSUPPORTED. Nothing is
 *               forced upon what gyre itself sends to make communicators and windows, or to set this
 *   timeout     seconds that a live rank may take to enter an operation that this rank waits in, as GYRE_TIMEOUT
 *
 *   meeting     where joining processes find this process, "tcp://HOST:PORT", as long as it lives (gyre_comm_grow);
 *               read only. Each rank has its own. It listens there from the first time that it is asked, or has grown
 *   joined      "yes" where this process joined a running world (gyre_comm_grow), "no" where it was there when the
 *               world began: read only
 *   device      the number of the GPU that this rank is attached to (gyre_cuda_attach), "none" where it is attached to
 *               none, empty where the communicator is not attached: read only
 *
 * Attributes begin as the settings of those names. A communicator that is made of another one begins as that one,
 * without its name. Setting `order`, `ends` or `algorithm` is collective and blocking, as they must be the same
 * everywhere. Different values are GYRE_INVALID_ARGUMENT on every rank, and nothing changes. Attributes hold for later
 * calls. Persistent requests stay as they were made, but for `ends`, which is that of their start.
 *
 * Ends. `local`: when a rank fails during a collective, each rank that is left ends by what it knows: one may have its
 * result already and succeed, where another one fails. `uniform`: it succeeds on all ranks that are left, or fails on
 * all of them. That holds for every collective in all its forms (blocking, started, persistent, in a group), and not
 * for send, recv and one-sided access. Success means that the part of every rank that is left is complete, its output
 * as it should be. Success is possible although a rank has died; the next call then reports the death. After a failure
 * the output is undefined on all ranks, and the communicator has failed as ever. No operation succeeds that was
 * started after one that fails.
 *
 * Costs of uniform ends. A collective returns when all ranks are known to be through. On one host that takes a store
 * of each rank and a load of each other one. Elsewhere it takes ceil(log2 N) messages of 64 bytes from each rank, one
 * after the other, at the operation's end (docs/tuning.md has figures). A root, too, waits for all ranks.
 *
 * When the world fails, operations under way end after an agreement, as that of gyre_comm_agree, among all ranks of
 * the world, those without a part in the operation too. The agreement waits for ranks that compute until they make any
 * call, or end, for GYRE_TIMEOUT at most. Only a rank that is inside a call that blocks, and silent for
 * GYRE_STALL_TIMEOUT, counts as stopped. A blocking call that comes to it later waits for it as well. gyre_comm_shrink
 * does so for what is under way on any communicator of the world.
 *
 * The same without a failure: an operation ends everywhere only when each rank has come back to gyre after its part
 * was there. A rank that starts an operation and computes keeps the others in it. That is legal, as being late is,
 * until GYRE_TIMEOUT.
 *
 * Ranks that are left have not failed and do not go (gyre_comm_destroy before the end). They are neither GYRE_EXCLUDED
 * nor GYRE_PARTITIONED, which are the status then. After an abort there is no agreement: the status is GYRE_ABORTED,
 * on every rank for itself. GYRE_NO_MEMORY during the agreement is of one rank alone, and the other ranks go on
 * without it. */
/* Sets an attribute. Local for `name` and `timeout`; collective and blocking for `order`, `ends` and `algorithm`,
 * which all ranks set to the same value.
 * Errors: [comm], [world].
 *   GYRE_INVALID_ARGUMENT  key or value is NULL; the attribute is not known, or is read only; the value is not valid
 *   GYRE_INVALID_ARGUMENT  on every rank: ranks gave different values; the call stands inside a group */
GYRE_API gyre_status gyre_comm_set(gyre_comm *comm, const char *key, const char *value);
/* Writes the value of an attribute, at most `value_bytes` bytes with the final zero. Local.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  comm, key or value_p is NULL; the attribute is not known; the buffer is too small
 *   GYRE_FORKED            a forked child asks for "meeting"
 *   GYRE_SYSTEM            "meeting": the process cannot listen
 *   GYRE_NO_DESCRIPTORS    "meeting": the process has no descriptor to listen with
 *   GYRE_NO_MEMORY         "meeting": the process has no memory to listen with */
GYRE_API gyre_status gyre_comm_get(gyre_comm *comm, const char *key, char *value_p, size_t value_bytes);

/* Where a rank of a communicator is. The caller sets `size = sizeof(gyre_rank_place)`; as much of it is written.
 * Local; does not block. `rank` is a rank of `comm`; comm and place_p may not be NULL. The struct belongs to the
 * caller; its strings are static.
 * Errors: [comm].
 *   GYRE_INVALID_ARGUMENT  place_p is NULL, or its size is not set; rank is not a rank of comm */
typedef struct gyre_rank_place {
    size_t size;       /* sizeof(gyre_rank_place), for compatibility */
    int world_rank;    /* its rank in the world */
    int host, hosts;   /* number of its host, from 0 in order of the lowest rank there; hosts of this communicator */
    int local, locals; /* its place among the ranks of the communicator on its host, in rank order; how many */
    int same_host;     /* 1: it shares memory with this process's host, 0: it does not */
    int64_t process;   /* its process number, in its own name space */
    const char *transport; /* what carries messages to it, static: a name of GYRE_TRANSPORT, "self" or "none" */
} gyre_rank_place;
GYRE_API gyre_status gyre_comm_topology(gyre_comm *comm, int rank, gyre_rank_place *place_p);

/* Returns the algorithm that would be chosen ("ring", "direct_two_shot", ...) for this call on this communicator. The
 * string is static. Local; does not block. count is in elements. collective: "all_reduce", "reduce", "reduce_scatter",
 * "broadcast", "all_gather", "gather", "scatter", "all_to_all", "barrier".
 * Errors: none. The result is NULL where comm or collective is NULL, the name is unknown, or a forced algorithm cannot
 * do it. */
GYRE_API const char *gyre_comm_algorithm(const gyre_comm *comm, const char *collective, size_t count, gyre_dtype dtype);

/* ---- Failure: ending all, going on, letting others in ------------------------------------------------------------ */

/* Ends the world. All outstanding requests end with GYRE_ABORTED, on this rank and, as they are inside or at their
 * next call, on all others. Duplicates and splits share the world and end with it. May be called from any thread; does
 * not block. comm may not be NULL. The world stays failed; only gyre_comm_destroy is useful after it. Buffers are the
 * caller's again when the request has ended, or after gyre_comm_destroy.
 * Errors: [comm]. */
GYRE_API gyre_status gyre_comm_abort(gyre_comm *comm);

/* Going on after a failure. When a rank fails, every call on its world ends with an error, on every rank that is
 * inside or comes later. The ranks that are left may then make a world of themselves:
 *
 *     while (status != GYRE_SUCCESS) {            // of the call that failed
 *         gyre_comm_revoke(comm);                 // ranks that have not noticed come here, too
 *         if (gyre_comm_shrink(comm, &next) != GYRE_SUCCESS)
 *             break;                              // this rank is out: see gyre_last_error(comm)
 *         gyre_comm_destroy(comm);
 *         comm = next;
 *         status = ...                            // repeat what was lost
 *     }
 *
 * A rank has failed when it is dead (GYRE_PEER_DEAD), out of reach (UNREACHABLE), stopped inside a call (STALLED),
 * later than GYRE_TIMEOUT (LATE), or has left in order (LEFT). A failure is final. A rank that was only late or
 * stopped, and goes on, is GYRE_EXCLUDED, whatever the others have done meanwhile.
 *
 * Where the network is cut in two, at most one side goes on. That is the side with more than half of the members of
 * which it is not known that they are gone, or with just half and the lowest rank among these. On the other side agree
 * and shrink return GYRE_PARTITIONED. Of more parts the same holds: of 2:1:1 the two go on if rank 0 is one of them,
 * and else no part does. A process that has ended is known to be gone. A process that is stopped or out of reach is
 * not; so a rank that loses all its peers that way, and is not the lowest of just half, cannot go on alone. */
typedef struct gyre_failure {
    size_t size;        /* sizeof(gyre_failure), for compatibility */
    gyre_status status; /* GYRE_SUCCESS: it has not; GYRE_PEER_DEAD, _UNREACHABLE, _STALLED, _LATE or _LEFT */
    int64_t when;       /* nanoseconds of CLOCK_MONOTONIC: when this process learnt it; 0: it has not failed */
    const char *why;    /* an error message, as long as the communicator; empty: it has not failed */
} gyre_failure;
/* Ends all outstanding requests of comm's world with GYRE_REVOKED, on this rank and, as they are inside or at their
 * next call, on all others. Duplicates and splits share the world and end with it. Unlike after an abort, agree and
 * shrink still work. After a failure the call changes nothing, as every rank knows of that. May be called from any
 * thread; does not block. comm may not be NULL.
 * Errors: [comm]. */
GYRE_API gyre_status gyre_comm_revoke(gyre_comm *comm);
/* Gives what is known of a rank of `comm`: whether it has failed, when and why. The caller sets `size =
 * sizeof(gyre_failure)`; as much of it is written. The call looks for news and does not block. After an agree that
 * succeeded all ranks know of every rank that it was held without. comm and failure_p may not be NULL.
 * Errors: [comm].
 *   GYRE_INVALID_ARGUMENT  failure_p is NULL, or its size is not set; rank is not a rank of comm */
GYRE_API gyre_status gyre_comm_failed(gyre_comm *comm, int rank, gyre_failure *failure_p);

/* Agreement among the ranks that are left. Collective over the ranks of `comm` that have not failed; blocking; also in
 * a world in which nothing has failed. *bits_p is the same on every rank that returns success: the AND of the bits of
 * all ranks that took part. comm and bits_p may not be NULL.
 *
 * Ranks may die meanwhile, any number of them. The result is then that of the ranks that are left, with all or none of
 * the bits of one that dies. Ranks that do not come within GYRE_TIMEOUT have failed. The lowest rank that lives is
 * connected to all others meanwhile.
 *
 * The algorithm is Lamport's synod (1998), with the ranks as ballots; early return as in ERA (Herault and others,
 * 2015).
 * Errors: [comm], [group].
 *   GYRE_INVALID_ARGUMENT  bits_p is NULL
 *   GYRE_EXCLUDED          the other ranks took this one for failed
 *   GYRE_PARTITIONED       too few ranks are left on this side
 *   GYRE_ABORTED           gyre_comm_abort was called on a communicator of the world
 *   GYRE_MISMATCH          other ranks call gyre_comm_shrink
 *   GYRE_NO_MEMORY         this rank alone has no memory for the agreement */
GYRE_API gyre_status gyre_comm_agree(gyre_comm *comm, uint64_t bits, uint64_t *bits_p);

/* Makes a communicator of the ranks that are left, in their order, with ranks from 0. Collective over the ranks of
 * `comm` that have not failed; blocking; also where nothing has failed. comm and comm_p may not be NULL.
 *
 * The new communicator is a world of its own, the next epoch: it shares no connection and no memory with the old one,
 * of which nothing can reach it. Settings, attributes (not the name) and operations of one's own go on. Memory of
 * gyre_mem_alloc belongs to the old world and ends with it. `comm` stays as it was, and is the caller's to destroy,
 * before or after the new one.
 *
 * A rank that dies in time is not in the new communicator. One that dies later is a failure of the new communicator,
 * whose first call reports it; that one is then shrunk.
 * Errors: [comm], [group].
 *   GYRE_INVALID_ARGUMENT  comm_p is NULL
 *   GYRE_EXCLUDED          the other ranks took this one for failed
 *   GYRE_PARTITIONED       too few ranks are left on this side
 *   GYRE_ABORTED           gyre_comm_abort was called on a communicator of the world
 *   GYRE_MISMATCH          other ranks call gyre_comm_agree or gyre_comm_grow
 *   GYRE_NO_MEMORY         this rank alone has no memory for the new world
 *   GYRE_NO_DESCRIPTORS    this rank alone has no descriptor for the new world */
GYRE_API gyre_status gyre_comm_shrink(gyre_comm *comm, gyre_comm **comm_p);

/* Makes a communicator of the ranks of `comm`, which keep their numbers, and of processes that join, which get the next
 * numbers. Collective over `comm`; blocking. It is a world of its own, the next epoch, as that of gyre_comm_shrink,
 * with the settings, attributes and operations of `comm`. `comm` stays as it was and is the caller's to destroy. comm
 * and comm_p may not be NULL.
 *
 * A joining process calls gyre_comm_create with GYRE_JOIN=1 (or gyre_config.join) and the world's secret and settings.
 * That call returns when the world has let the process in, or fails after GYRE_MEET_TIMEOUT. A joining process may come
 * at any time, and waits. Its meeting address is that of any member: the result of gyre_comm_get(comm, "meeting")
 * there.
 *
 * The address at which the world met in the first place serves as well. From the first grow on rank 0 renews it, as
 * the line of a file:// and as the port of a tcp:// on its own host. So does the lowest rank that is left in every
 * epoch after it, also one that has itself joined. Unauthenticated processes, other secrets, versions, runs and
 * settings are refused as in a meeting.
 *
 * Rank 0 waits until `newcomers` processes have asked to join, for at most `seconds`. It then lets in the processes
 * that are there, at most `newcomers`. With 0 it lets in the processes that wait now, at most 64. The values of the
 * other ranks have no meaning. The wait is at most half of GYRE_TIMEOUT. When no process has come, *comm_p is NULL on
 * every rank, the status is GYRE_SUCCESS, and `comm` goes on. A process that joins has none of the user-defined
 * operations that were made before.
 *
 * Ranks may die meanwhile, any number of them. All ranks that are left get the same result: the new communicator, or
 * the failure, after which they shrink and grow again. A rank that dies later, a joined one too, is a failure of the
 * new communicator, as after a shrink. So is one that is stopped on its way into the new world, after
 * GYRE_STALL_TIMEOUT (PEER_STALLED). A joining process that goes on later joins again by itself, or its
 * gyre_comm_create is GYRE_EXCLUDED, as grow and shrink are on a member.
 * Errors: [comm], [group]. Where no rank has failed, `comm` stays usable.
 *   GYRE_INVALID_ARGUMENT  comm_p is NULL; on rank 0: `newcomers` is below 0 or above 64, or seconds is negative or no
 *                          number
 *   GYRE_EXCLUDED          the other ranks took this one for failed
 *   GYRE_PARTITIONED       too few ranks are left on this side
 *   GYRE_ABORTED           gyre_comm_abort was called on a communicator of the world
 *   GYRE_MISMATCH          other ranks call gyre_comm_agree or gyre_comm_shrink
 *   GYRE_PEER_DEAD         a rank failed meanwhile: shrink, and grow again
 *   GYRE_NO_MEMORY         a rank has no memory; the status is that of all ranks
 *   GYRE_NO_DESCRIPTORS    a rank has no descriptor; the status is that of all ranks
 *   GYRE_SYSTEM            a system call failed on a rank; the status is that of all ranks */
GYRE_API gyre_status gyre_comm_grow(gyre_comm *comm, int newcomers, double seconds, gyre_comm **comm_p);

/* ---- What happens inside; log and memory of the process ---------------------------------------------------------- */

/* Writes the flight recorder (the last 256 operations) and the counters of `comm` as text to file descriptor `fd`,
 * which stays the caller's. Local. comm may not be NULL; a forked child may call it.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  comm is NULL or was destroyed; fd is no open descriptor
 *   GYRE_SYSTEM            the text could not be written, or not all of it */
GYRE_API gyre_status gyre_comm_dump(const gyre_comm *comm, int fd);

/* What a communicator has done on this rank. The caller sets `size = sizeof(gyre_counters)`; as much of it is written.
 * Local; does not block. comm and counters_p may not be NULL; a forked child may call it.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  comm is NULL or was destroyed; counters_p is NULL, or its size is not set */
typedef struct gyre_counters {
    size_t size;                    /* sizeof(gyre_counters), for compatibility */
    uint64_t started, done, failed; /* operations; those under way are the difference */
    uint64_t bytes;                 /* of the vectors that these operations were called with */
    uint64_t window_bytes;          /* part of `bytes`: through memory that a host's ranks share */
    uint64_t self_bytes, shm_bytes, tcp_bytes, other_bytes; /* payload handed to links, by transport */
} gyre_counters;
GYRE_API gyre_status gyre_comm_counters(gyre_comm *comm, gyre_counters *counters_p);

/* Calls `func` for every operation of this communicator on this rank, at its start and at its end. func may be NULL:
 * there are no more calls. `user` may be NULL, and is passed on. func is called inside gyre's calls, in the thread
 * that makes progress (at an end that may be gyre's own). It must not call gyre, and the event is valid until it
 * returns. Communicators that are made of this one have no trace of their own at first.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  comm is NULL or was destroyed */
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

/* Passes lines of gyre's log to `func`, without the newline, instead of standard error. func may be NULL: standard
 * error again. For the whole process. GYRE_LOG says which levels there are. func is called in any thread and must not
 * call gyre. It is not changed while a call of gyre is under way in another thread.
 * Errors: none. */
typedef enum gyre_log_level {
    GYRE_LOG_ERROR = 0,
    GYRE_LOG_WARN = 1,
    GYRE_LOG_INFO = 2,
    GYRE_LOG_DEBUG = 3,
} gyre_log_level;
typedef void (*gyre_log_func)(void *user, gyre_log_level level, const char *line);
GYRE_API void gyre_log_set(gyre_log_func func, void *user);

/* Sets the functions that gyre's memory comes from. allocator may be NULL: malloc again. For the whole process, before
 * its first communicator is made. The struct is copied. All three functions are called in any thread. Shared memory,
 * memory for keys, and what other libraries allocate, does not come from here.
 * Errors:
 *   GYRE_INVALID_ARGUMENT  gyre holds memory already; size is not that of the struct; a function is NULL */
typedef struct gyre_allocator {
    size_t size;                                               /* sizeof(gyre_allocator), for compatibility */
    void *(*allocate)(void *user, size_t bytes, size_t align); /* align: a power of two; NULL: there is none */
    void *(*resize)(void *user, void *memory, size_t bytes);   /* as realloc; NULL leaves `memory` as it was */
    void (*release)(void *user, void *memory);                 /* never of NULL */
    void *user;                                                /* first argument of the three */
} gyre_allocator;
GYRE_API gyre_status gyre_allocator_set(const gyre_allocator *allocator);

/* Information for tools. `print` is called once per line of text (no newline), inside the call. It may be NULL:
 * nothing happens. `user` may be NULL, and is passed on. Local.
 * Errors: none. */
typedef void (*gyre_print_func)(void *user, const char *line);
/* Prints the build, the topology, and the transports with the reason where one is not there. */
GYRE_API void gyre_info(gyre_print_func print, void *user);
/* Prints every setting: name, default, unit, meaning. */
GYRE_API void gyre_config_describe(gyre_print_func print, void *user);
/* Checks the GYRE_* environment. The error message, with the nearest name, is written to text, at most `text_bytes`
 * bytes with the final zero. text may be NULL. Local.
 * Errors:
 *   GYRE_BAD_CONFIGURATION  a GYRE_* variable is not known, or has no valid value */
GYRE_API gyre_status gyre_config_check(char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif
#endif

/* What follows from the shape of an eager exchange (eager.h) and from this rank. It is computed once for all
 * progress of a started request, or for all equal calls (call_cache.h). */
#ifndef GY_COLLECTIVES_ENGINE_EAGER_SHAPE_H
#define GY_COLLECTIVES_ENGINE_EAGER_SHAPE_H

#include "core/kernels.h"

struct gyre_comm;
struct gy_call_signature;
struct gy_exchange;
struct gy_operation;
struct gy_region_control;

/* The ranks from `first` up to, but without, `end`. */
struct gy_ranks {
    int first, end;
};

/* Moves data out of the lines into the output, when all awaited ranks have published. If there is a kernel, call it
 * between gy_fp_enter and gy_fp_leave. */
typedef void (*gy_take_func)(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical);

struct gy_exchange_kind {
    size_t block, bytes;     /* of `count` elements; of a contribution */
    size_t counted;          /* bytes, as counted by the flight recorder */
    uint64_t word;           /* the shape, but for the sequence number */
    gy_reduce_kernel kernel; /* the whole reduction, in rank order; NULL: it needs more, or nothing is reduced */
    gy_take_func take;
    struct gy_ranks awaited; /* the ranks for which this rank waits; it may itself be between them */
    bool awaits_all;         /* all other ranks */
    bool gives;              /* this rank has a contribution, and peers read it */
    bool pair;               /* the result is this kernel of two operands, and no lines of the peer's are
                              * write-prefetched */
};

/* An exchange in flight, of a call or of its request. */
struct gy_exchange {
    struct gyre_comm *comm;
    const struct gy_exchange_kind *kind;
    const struct gy_call_signature *shape;
    struct gy_region_control *mine;
    /* Not adjacent, as they are in a call just written: compilers would load both at once. Such a load waits until
     * both stores have retired, behind all stores in flight before them. */
    const unsigned char *input;
    uint64_t number;
    unsigned char *output;
    /* Decided when it is published: */
    bool nontemporal; /* its vector is written with non-temporal stores */
    bool claims;      /* this rank write-prefetches the lines of vectors that it alone reads: autotune.h */
    bool kept;        /* its own block was copied to the output at publishing: gy_exchange_keeps */
};

/* Does not use the shape's sequence number. `element`: bytes of one element. */
struct gy_exchange_kind gy_exchange_kind_of(const struct gyre_comm *comm, const struct gy_call_signature *shape,
                                            size_t element);

#endif

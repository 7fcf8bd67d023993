/* What follows from the shape of a direct exchange (eager.h), and from which rank this is: found once, for all turns of a request
 * that has been started, or for all calls that are alike (call_cache.h). */
#ifndef GY_COLLECTIVES_ENGINE_EAGER_SHAPE_H
#define GY_COLLECTIVES_ENGINE_EAGER_SHAPE_H

#include "core/kernels.h"

struct gyre_comm;
struct gy_call_signature;
struct gy_exchange;
struct gy_operation;
struct gy_region_control;

/* Ranks from `first` on, as far as `end`. */
struct gy_ranks {
    int first, end;
};

/* Out of the lines into the output, when all that are waited for have published. Where there is a kernel between gy_fp_enter and
 * gy_fp_leave. */
typedef void (*gy_take_func)(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical);

struct gy_exchange_kind {
    size_t block, bytes;     /* of `count` elements; of a contribution */
    size_t counted;          /* bytes, as the flight recorder counts them */
    uint64_t word;           /* what tells its shape from others, but for the sequence number */
    gy_reduce_kernel kernel; /* all that its reduction takes, in rank order; NULL: it takes more, or reduces nothing */
    gy_take_func take;
    struct gy_ranks awaited; /* those for whom this rank waits; itself may be between them */
    bool awaits_all;         /* all others */
    bool gives;              /* there is a contribution of this rank's, and others read it */
    bool pair;               /* what it takes is this kernel of two operands, of which nobody claims the other rank's */
};

/* One under way, from a call or from its request. */
struct gy_exchange {
    struct gyre_comm *comm;
    const struct gy_exchange_kind *kind;
    const struct gy_call_signature *shape;
    struct gy_region_control *mine;
    /* Not side by side, as they are in a call that has just been written: compilers would read both there at once, which waits until
     * the stores of each have left the core, behind whatever is under way before them. */
    const unsigned char *input;
    uint64_t number;
    unsigned char *output;
    /* What is found when it is shown: */
    bool nontemporal; /* its vector is written past the caches */
    bool claims;      /* this rank claims the lines of vectors that it alone reads: autotune.h */
    bool kept;        /* its own block has gone into the output when it was shown: gy_exchange_keeps */
};

/* The shape's sequence number is nothing to it. `element`: bytes of one. */
struct gy_exchange_kind gy_exchange_kind_of(const struct gyre_comm *comm, const struct gy_call_signature *shape,
                                            size_t element);

#endif

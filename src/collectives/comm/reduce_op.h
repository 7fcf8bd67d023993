/* What a reduction does to elements: a kernel of core, or a function of the user's, with what belongs before and after.
 *
 *   premul_sum   multiply by my scalar ──▶ sum
 *   average                               sum ──▶ divide by the number of ranks
 *
 * Operations that the user makes live in the context and have the numbers from GY_OP_MADE on, in the order in which they
 * were made, which is the same on every rank. */
#ifndef GY_COLLECTIVES_COMM_REDUCE_OP_H
#define GY_COLLECTIVES_COMM_REDUCE_OP_H

#include "core/dtype.h"
#include "core/error.h"

#define GY_OP_MADE 64
#define GY_OPS_MADE_MOST 128 /* the number travels in a byte */

struct gy_op_made {
    bool used;
    gyre_reduce_func func; /* NULL: a pre-multiplied sum */
    void *user;
    bool commutative;
    gyre_dtype dtype; /* of the scalar */
    unsigned char scalar[8];
};

struct gy_operations {
    struct gy_op_made *made; /* [GY_OPS_MADE_MOST], NULL until the first */
    int count;
};

/* As the executor uses it; by value in a request. */
struct gy_operation {
    gyre_dtype dtype;
    gyre_op op;
    const struct gy_op_made *made; /* NULL: of the kernels alone */
};

gyre_status gy_operations_add(struct gy_operations *operations, const struct gy_op_made *made, gyre_op *op_p,
                              struct gy_error *error);
/* NULL: no such operation. */
const struct gy_op_made *gy_operations_find(const struct gy_operations *operations, gyre_op op);
/* The same operations with the same numbers; the next one is number `count`, at least as many as there are. */
gyre_status gy_operations_copy(struct gy_operations *operations, const struct gy_operations *from, int count,
                               struct gy_error *error);
void gy_operations_free(struct gy_operations *operations);

/* dst = left op right; dst may equal either. */
void gy_combine(const struct gy_operation *operation, void *dst, const void *left, const void *right, size_t count);
/* dst = sources in order; also to dst2 if that is not NULL. dst may equal one of the sources. */
void gy_combine_many(const struct gy_operation *operation, void *dst, void *dst2, const void *const *sources,
                     int nsources, size_t count);
/* The same in the canonical tree (reduction_order.h): the partial results of narrow floats stay in float32, with one rounding at
 * the end. dst and dst2 may equal sources. */
void gy_combine_tree(const struct gy_operation *operation, void *dst, void *dst2, const void *const *sources,
                     int nsources, size_t count);
/* Where a reduction goes: to several places, the first `streamed` of them past the caches (gy_stream_fence is the
 * caller's). Any of them may equal a source. */
struct gy_targets {
    unsigned char *const *at;
    int count, streamed;
};
void gy_combine_into(const struct gy_operation *operation, bool canonical, struct gy_targets targets,
                     const void *const *sources, int nsources, size_t count);
/* Do its partial results travel as float32 in canonical order? */
bool gy_operation_widens(const struct gy_operation *operation);
/* Does it have a meaning for one operand and what it is combined with, beginning and end left out? So no average and no
 * pre-multiplied sum. The type is valid. */
bool gy_operation_accumulates(const struct gy_operation *operation);
/* Is it the number of an operation of the program's own, made here or not? */
static inline bool gy_op_is_own(unsigned op)
{
    return op >= GY_OP_MADE && op < GY_OP_MADE + GY_OPS_MADE_MOST;
}
/* Has the input to be changed before its first use? Then into `dst`. */
bool gy_operation_begins(const struct gy_operation *operation);
void gy_operation_begin(const struct gy_operation *operation, void *dst, const void *src, size_t count);
/* What is left to do with the reduced elements. */
void gy_operation_end(const struct gy_operation *operation, void *output, size_t count, int ranks);

#endif

/* A reduction on elements: a core kernel or a user function, with its preparation and completion.
 *
 *   premul_sum   multiply by my scalar ──▶ sum
 *   average                               sum ──▶ divide by the number of ranks
 *
 * User-defined operations live in the context. They are numbered from GY_OP_MADE on in the order of creation, which
 * is the same on every rank. */
#ifndef GY_COLLECTIVES_COMM_REDUCE_OP_H
#define GY_COLLECTIVES_COMM_REDUCE_OP_H

#include "core/dtype.h"
#include "core/error.h"

#define GY_OP_MADE 64
#define GY_OPS_MADE_MOST 128 /* the number is sent in one byte */

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

/* The executor's form of an operation; by value in a request. */
struct gy_operation {
    gyre_dtype dtype;
    gyre_op op;
    const struct gy_op_made *made; /* NULL: kernels only */
};

gyre_status gy_operations_add(struct gy_operations *operations, const struct gy_op_made *made, gyre_op *op_p,
                              struct gy_error *error);
/* Returns NULL if there is no such operation. */
const struct gy_op_made *gy_operations_find(const struct gy_operations *operations, gyre_op op);
/* Copies the operations with their numbers. The next one gets number `count`, at least the number of existing ones. */
gyre_status gy_operations_copy(struct gy_operations *operations, const struct gy_operations *from, int count,
                               struct gy_error *error);
void gy_operations_free(struct gy_operations *operations);

/* dst = left op right; dst may equal either. */
void gy_combine(const struct gy_operation *operation, void *dst, const void *left, const void *right, size_t count);
/* dst = sources reduced in order; also to dst2 if not NULL. dst may equal one of the sources. */
void gy_combine_many(const struct gy_operation *operation, void *dst, void *dst2, const void *const *sources,
                     int nsources, size_t count);
/* The same in the canonical tree (reduction_order.h): partial results of narrow floats stay in float32 and are
 * rounded once. dst and dst2 may equal sources. */
void gy_combine_tree(const struct gy_operation *operation, void *dst, void *dst2, const void *const *sources,
                     int nsources, size_t count);
/* Destinations of a reduction: the first `streamed` of them are written with non-temporal stores (gy_stream_fence is
 * the caller's). Any may equal a source. */
struct gy_targets {
    unsigned char *const *at;
    int count, streamed;
};
void gy_combine_into(const struct gy_operation *operation, bool canonical, struct gy_targets targets,
                     const void *const *sources, int nsources, size_t count);
/* True if partial results are sent as float32 in canonical order. */
bool gy_operation_widens(const struct gy_operation *operation);
/* True if the operation is defined on two operands without preparation and completion: neither average nor
 * pre-multiplied sum. The type is valid. */
bool gy_operation_accumulates(const struct gy_operation *operation);
/* True for the number of a user-defined operation, made here or not. */
static inline bool gy_op_is_own(unsigned op)
{
    return op >= GY_OP_MADE && op < GY_OP_MADE + GY_OPS_MADE_MOST;
}
/* True if the input must be transformed before its first use, into `dst`. */
bool gy_operation_begins(const struct gy_operation *operation);
void gy_operation_begin(const struct gy_operation *operation, void *dst, const void *src, size_t count);
/* Completes the reduced elements. */
void gy_operation_end(const struct gy_operation *operation, void *output, size_t count, int ranks);

#endif

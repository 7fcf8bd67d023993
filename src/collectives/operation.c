#include "collectives/operation.h"

#include <string.h>

#include "core/mem.h"

#define TILE_BYTES 8192 /* of a chain of user calls whose destination is also one of their sources */

gyre_status gy_operations_add(struct gy_operations *operations, const struct gy_op_made *made, gyre_op *op_p,
                              struct gy_error *error)
{
    if (!operations->made)
        operations->made = gy_alloc_zero(GY_OPS_MADE_MOST, sizeof(*operations->made));
    if (!operations->made)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "out of memory for an operation");
    if (operations->count == GY_OPS_MADE_MOST)
        return gy_error_set(error, GYRE_INVALID_ARGUMENT, -1, "a world has at most %d operations of its own",
                            GY_OPS_MADE_MOST);
    operations->made[operations->count] = *made;
    operations->made[operations->count].used = true;
    *op_p = (gyre_op)(GY_OP_MADE + operations->count++);
    return GYRE_SUCCESS;
}

const struct gy_op_made *gy_operations_find(const struct gy_operations *operations, gyre_op op)
{
    int index = (int)op - GY_OP_MADE;
    return index >= 0 && index < operations->count && operations->made[index].used ? &operations->made[index] : NULL;
}

void gy_operations_free(struct gy_operations *operations)
{
    gy_free(operations->made);
}

static gyre_op kernel_of(const struct gy_operation *operation)
{
    return operation->made ? GYRE_PREMUL_SUM : operation->op;
}

void gy_combine(const struct gy_operation *operation, void *dst, const void *left, const void *right, size_t count)
{
    if (operation->made && operation->made->func) {
        operation->made->func(operation->made->user, left, right, dst, count, operation->dtype);
        return;
    }
    uint32_t saved = gy_fp_enter();
    gy_reduce2(dst, left, right, count, operation->dtype, kernel_of(operation));
    gy_fp_leave(saved);
}

/* dst may be a source that is read later: the partial result has a tile of its own. */
static void chain(const struct gy_operation *operation, unsigned char *dst, unsigned char *dst2,
                  const void *const *sources, int nsources, size_t count)
{
    _Alignas(64) unsigned char partial[TILE_BYTES];
    size_t element = gyre_dtype_size(operation->dtype), tile = TILE_BYTES / element;
    for (size_t at = 0; at < count; at += tile) {
        size_t n = gy_min_size(tile, count - at);
        memcpy(partial, (const unsigned char *)sources[0] + at * element, n * element);
        for (int i = 1; i < nsources; i++)
            operation->made->func(operation->made->user, partial, (const unsigned char *)sources[i] + at * element,
                                  partial, n, operation->dtype);
        memcpy(dst + at * element, partial, n * element);
        if (dst2)
            memcpy(dst2 + at * element, partial, n * element);
    }
}

void gy_combine_many(const struct gy_operation *operation, void *dst, void *dst2, const void *const *sources,
                     int nsources, size_t count)
{
    if (operation->made && operation->made->func) {
        chain(operation, dst, dst2, sources, nsources, count);
        return;
    }
    uint32_t saved = gy_fp_enter();
    gy_reduce_many(dst, dst2, sources, nsources, count, operation->dtype, kernel_of(operation));
    gy_fp_leave(saved);
}

bool gy_operation_begins(const struct gy_operation *operation)
{
    return operation->made && !operation->made->func;
}

void gy_operation_begin(const struct gy_operation *operation, void *dst, const void *src, size_t count)
{
    uint32_t saved = gy_fp_enter();
    gy_reduce_multiply(dst, src, operation->made->scalar, count, operation->dtype);
    gy_fp_leave(saved);
}

void gy_operation_end(const struct gy_operation *operation, void *output, size_t count, int ranks)
{
    if (operation->op != GYRE_AVERAGE || count == 0)
        return;
    uint32_t saved = gy_fp_enter();
    gy_reduce_divide(output, output, count, operation->dtype, ranks);
    gy_fp_leave(saved);
}

#include "collectives/comm/reduce_op.h"

#include <string.h>

#include "collectives/schedule/limits.h"
#include "collectives/schedule/reduction_order.h"
#include "core/mem.h"

#define TILE_BYTES 8192 /* of a chain of user calls whose destination is one of their sources */

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

gyre_status gy_operations_copy(struct gy_operations *operations, const struct gy_operations *from, int count,
                               struct gy_error *error)
{
    if (count == 0 || count > GY_OPS_MADE_MOST)
        return GYRE_SUCCESS;
    operations->made = gy_alloc_zero(GY_OPS_MADE_MOST, sizeof(*operations->made));
    if (!operations->made)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "out of memory for the operations of a world");
    if (from->made)
        memcpy(operations->made, from->made, (size_t)from->count * sizeof(*from->made));
    operations->count = count;
    return GYRE_SUCCESS;
}

const struct gy_op_made *gy_operations_find(const struct gy_operations *operations, gyre_op op)
{
    if ((int)op < GY_OP_MADE || (int)op - GY_OP_MADE >= operations->count)
        return NULL;
    const struct gy_op_made *made = &operations->made[(int)op - GY_OP_MADE];
    return made->used ? made : NULL;
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

/* dst may be a source that is read later: the partial result is kept in a separate tile. */
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

bool gy_operation_widens(const struct gy_operation *operation)
{
    return gy_dtype_narrow(operation->dtype) && !(operation->made && operation->made->func);
}

#define TREE_TILE 2048 /* bytes; fits the first-level cache with all levels */
#define TREE_LEVELS 12 /* of up to 2048 sources, their leaves included */

struct tree {
    struct gy_operation inner; /* used between partial results */
    gyre_dtype narrow;         /* of the sources, when `widens` */
    bool widens;
    const void *const *sources;
    size_t at, count; /* the tile: byte offset in the sources, elements */
    _Alignas(64) unsigned char partial[TREE_LEVELS][TREE_TILE];
};

/* Reduces sources [first, first + n). Returns partial[level], or the source itself. Writes no lower level. */
static const void *combine_subtree(struct tree *tree, int first, int n, int level)
{
    unsigned char *result = tree->partial[level];
    const unsigned char *source = (const unsigned char *)tree->sources[first] + tree->at;
    if (n == 1 && !tree->widens)
        return source;
    if (n == 1) {
        gy_widen((float *)(void *)result, source, tree->count, tree->narrow);
        return result;
    }
    int half = gy_tree_split(n);
    const void *left = combine_subtree(tree, first, half, level);
    const void *right = combine_subtree(tree, first + half, n - half, level + 1);
    gy_combine(&tree->inner, result, left, right, tree->count);
    return result;
}

void gy_combine_tree(const struct gy_operation *operation, void *dst, void *dst2, const void *const *sources,
                     int nsources, size_t count)
{
    struct tree tree; /* its tiles are written before they are read */
    tree.inner = *operation;
    tree.narrow = operation->dtype;
    tree.widens = gy_operation_widens(operation) && nsources > 1;
    tree.sources = sources;
    if (tree.widens)
        tree.inner.dtype = GYRE_FLOAT32;
    size_t element = gyre_dtype_size(operation->dtype), most = TREE_TILE / gyre_dtype_size(tree.inner.dtype);
    for (size_t done = 0; done < count; done += tree.count) {
        tree.at = done * element;
        tree.count = gy_min_size(most, count - done);
        const void *result = combine_subtree(&tree, 0, nsources, 0);
        unsigned char *to = (unsigned char *)dst + tree.at;
        if (tree.widens)
            gy_narrow(to, result, tree.count, operation->dtype);
        else
            memmove(to, result, tree.count * element);
        if (dst2)
            memcpy((unsigned char *)dst2 + tree.at, to, tree.count * element);
    }
}

#define PIECE_BYTES 4096 /* of a reduction with several destinations: fits the first-level cache */

static void copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

/* Reduces one piece after another in a buffer, so that all its sources are read before any destination is written. */
static void combine_pieces(const struct gy_operation *operation, bool canonical, struct gy_targets targets,
                           const void *const *sources, int nsources, size_t count)
{
    _Alignas(64) unsigned char piece[PIECE_BYTES];
    const void *from[GY_REGION_RANKS];
    size_t element = gyre_dtype_size(operation->dtype), n;
    if (nsources < 1) /* never; a static analyser cannot know */
        return;
    for (size_t at = 0; at < count; at += n) {
        n = gy_min_size(PIECE_BYTES / element, count - at);
        for (int i = 0; i < nsources; i++)
            from[i] = (const unsigned char *)sources[i] + at * element;
        (canonical ? gy_combine_tree : gy_combine_many)(operation, piece, NULL, from, nsources, n);
        for (int t = 0; t < targets.count; t++)
            (t < targets.streamed ? gy_copy_stream : copy)(targets.at[t] + at * element, piece, n * element);
    }
}

void gy_combine_into(const struct gy_operation *operation, bool canonical, struct gy_targets targets,
                     const void *const *sources, int nsources, size_t count)
{
    unsigned char *dst2 = targets.count > 1 ? targets.at[1] : NULL;
    bool direct = targets.count <= 2, called = operation->made && operation->made->func;
    if (direct && targets.streamed == 0) {
        (canonical ? gy_combine_tree : gy_combine_many)(operation, targets.at[0], dst2, sources, nsources, count);
        return;
    }
    if (!direct || canonical || called) {
        combine_pieces(operation, canonical, targets, sources, nsources, count);
        return;
    }
    uint32_t saved = gy_fp_enter();
    gy_reduce_many_stream(targets.at[0], dst2, sources, nsources, count, operation->dtype, kernel_of(operation),
                          targets.streamed > 1 ? GY_STREAM_DST | GY_STREAM_DST2 : GY_STREAM_DST);
    gy_fp_leave(saved);
}

bool gy_operation_accumulates(const struct gy_operation *operation)
{
    if (operation->made)
        return operation->made->func != NULL;
    return gy_op_valid((int)operation->op, operation->dtype) && operation->op != GYRE_AVERAGE &&
           operation->op != GYRE_PREMUL_SUM;
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

/* Reductions. MPI requires datatype, operation and counts to be the same on every rank. */
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "reduction.h"
#include "short.h"
#include "take.h"

static const void *input_of(const void *input, const void *output)
{
    return input == MPI_IN_PLACE ? output : input;
}

int gm_allreduce(const void *input, struct gm_data output, MPI_Op op, MPI_Comm comm)
{
    struct gm_reduction how;
    if (output.count < 0 || !gm_reduction_find(output.type, op, &how))
        return GM_PASS;
    struct gm_shadow *shadow = gm_shadow_find(comm, GM_ALLREDUCE);
    if (!shadow)
        return GM_PASS;
    if (output.count == 0)
        return MPI_SUCCESS;
    gm_take_begin(shadow);
    return gm_take_end(shadow,
                       gyre_all_reduce(shadow->comm, input_of(input, output.buffer), output.buffer,
                                       (size_t)output.count * how.factor, how.dtype, how.op),
                       GM_ALLREDUCE);
}

int gm_reduce(const void *input, struct gm_data output, MPI_Op op, int root, MPI_Comm comm)
{
    struct gm_reduction how;
    if (output.count < 0 || !gm_reduction_find(output.type, op, &how))
        return GM_PASS;
    struct gm_shadow *shadow = gm_shadow_find(comm, GM_REDUCE);
    if (!shadow || !gm_is_rank(shadow, root))
        return GM_PASS;
    if (output.count == 0)
        return MPI_SUCCESS;
    gm_take_begin(shadow);
    return gm_take_end(
        shadow,
        gm_short_reduce(shadow, input_of(input, output.buffer), output.buffer, (size_t)output.count, &how, root),
        GM_REDUCE);
}

/* The destination of a rank's block. With MPI_IN_PLACE MPI expects the block at the beginning of the buffer, which also
 * holds the input; gyre expects it elsewhere. The block is then reduced into a copy. */
struct block {
    const void *input;
    void *output, *copy;
    size_t bytes;
};

static bool open_block(struct block *block, const void *input, void *output, size_t bytes)
{
    bool in_place = input == MPI_IN_PLACE;
    *block = (struct block){in_place ? output : input, output, in_place && bytes > 0 ? malloc(bytes) : NULL, bytes};
    return !in_place || bytes == 0 || block->copy;
}

static void *place_of(const struct block *block)
{
    return block->copy ? block->copy : block->output;
}

static void close_block(struct block *block, bool back)
{
    if (block->copy && back)
        memcpy(block->output, block->copy, block->bytes);
    free(block->copy);
}

static int reduce_blocks(struct gm_shadow *shadow, const struct block *block, size_t count,
                         const struct gm_reduction *how)
{
    gm_take_begin(shadow);
    return gm_take_end(
        shadow,
        gyre_reduce_scatter(shadow->comm, block->input, place_of(block), count * how->factor, how->dtype, how->op),
        GM_REDUCE_SCATTER_BLOCK);
}

int gm_reduce_scatter_block(const void *input, struct gm_data output, MPI_Op op, MPI_Comm comm)
{
    struct gm_reduction how;
    struct block block;
    if (output.count < 0 || !gm_reduction_find(output.type, op, &how))
        return GM_PASS;
    struct gm_shadow *shadow = gm_shadow_find(comm, GM_REDUCE_SCATTER_BLOCK);
    if (!shadow)
        return GM_PASS;
    if (output.count == 0)
        return MPI_SUCCESS;
    int code = open_block(&block, input, output.buffer, (size_t)output.count * how.bytes)
                   ? reduce_blocks(shadow, &block, (size_t)output.count, &how)
                   : gm_failure_no_memory(shadow, GM_REDUCE_SCATTER_BLOCK);
    close_block(&block, code == MPI_SUCCESS);
    return code;
}

/* Lists the counts in gyre elements. Returns false if a count is invalid. */
static bool list_counts(const struct gm_shadow *shadow, struct gm_counts counts, size_t factor, size_t *sum_p)
{
    size_t *list = gm_shadow_list(shadow, 0);
    *sum_p = 0;
    for (int rank = 0; rank < shadow->size; rank++) {
        if (gm_count(counts, rank) < 0)
            return false;
        list[rank] = (size_t)gm_count(counts, rank) * factor;
        *sum_p += list[rank];
    }
    return true;
}

static gyre_status reduce_lists(struct gm_shadow *shadow, const struct block *block, const struct gm_reduction *how)
{
    const size_t *counts = gm_shadow_list(shadow, 0);
    if (gm_are_equal(counts, shadow->size))
        return gyre_reduce_scatter(shadow->comm, block->input, place_of(block), counts[0], how->dtype, how->op);
    return gyre_reduce_scatterv(shadow->comm, block->input, place_of(block), counts, how->dtype, how->op);
}

static int take_reduce_lists(struct gm_shadow *shadow, const struct block *block, const struct gm_reduction *how)
{
    gm_take_begin(shadow);
    return gm_take_end(shadow, reduce_lists(shadow, block, how), GM_REDUCE_SCATTER);
}

int gm_reduce_scatter(const void *input, void *output, struct gm_counts counts, MPI_Datatype type, MPI_Op op,
                      MPI_Comm comm)
{
    struct gm_reduction how;
    struct block block;
    size_t sum;
    if ((!counts.narrow && !counts.wide) || !gm_reduction_find(type, op, &how))
        return GM_PASS;
    struct gm_shadow *shadow = gm_shadow_find(comm, GM_REDUCE_SCATTER);
    if (!shadow || !list_counts(shadow, counts, how.factor, &sum))
        return GM_PASS;
    if (sum == 0)
        return MPI_SUCCESS;
    int code = open_block(&block, input, output, (size_t)gm_count(counts, shadow->rank) * how.bytes)
                   ? take_reduce_lists(shadow, &block, &how)
                   : gm_failure_no_memory(shadow, GM_REDUCE_SCATTER);
    close_block(&block, code == MPI_SUCCESS);
    return code;
}

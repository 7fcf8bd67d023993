/* block_pull.h says what is pulled, and why. A rank starts with the rank after it, so that ranks do not all read the
 * same one at the same time: the kernel counts the readers of every page, in cache lines that travel between the
 * cores. */
#include "collectives/shm/block_pull.h"

#include <string.h>

#include "collectives/engine/call_check.h"
#include "collectives/engine/lane.h"
#include "collectives/shm/zero_copy.h"

#define PIECE ((size_t)1 << 20) /* bytes per piece: peers, clocks and other requests need progress in between */

/* Where a rank's block lies in its exposed buffer, and its destination. */
struct block {
    unsigned char *to;
    size_t from, bytes;
};

static bool is_in_place(const struct gyre_request *r)
{
    return r->schedule->shape.collective == GY_ALL_TO_ALL && r->input == r->output;
}

void gy_block_pull_begin(struct gyre_request *r)
{
    r->whole = !is_in_place(r);
    r->taken.ranks = r->taken.under_way = 0;
    r->taken.bytes = 0;
    memset(r->taken.of, 0, ((size_t)r->comm->size + 63) / 64 * sizeof(r->taken.of[0]));
}

bool gy_block_pull_reads(const struct gy_step *step)
{
    return step->range.width > 0 &&
           (step->kind == GY_EXCHANGE || (step->kind == GY_COLLECT && step->src == GY_PUBLISHED));
}

bool gy_block_pull_has(const struct gyre_request *r, int rank)
{
    return r->whole && (r->taken.of[rank / 64] >> (rank % 64) & 1);
}

bool gy_block_pull_is_all(const struct gyre_request *r, const struct gy_step *step)
{
    return r->whole && gy_block_pull_reads(step) && r->taken.ranks == (step->peer >= 0 ? 1 : r->comm->size - 1);
}

static struct block block_of(const struct gyre_request *r, const struct gy_step *step, int rank)
{
    bool exchange = step->kind == GY_EXCHANGE;
    const struct gy_layout *layout = exchange ? &r->out : &r->in;
    int32_t b = step->peer >= 0 ? step->range.lo : rank;
    size_t start = gy_layout_start(layout, b);
    return (struct block){.to = gy_operand_at(r, step->dst, b, start),
                          .from = exchange ? gy_layout_start(&r->in, r->comm->rank) * r->element : 0,
                          .bytes = (gy_layout_start(layout, b + 1) - start) * r->element};
}

static bool move(struct gyre_request *r, const struct block *block, int rank)
{
    const unsigned char *input = gy_mapped_input(r, rank);
    size_t done = r->taken.bytes, bytes = gy_min_size(PIECE, block->bytes - done);
    if (bytes > 0 && input)
        gy_put(r, block->to + done, input + block->from + done, bytes);
    else if (bytes > 0 &&
             !gy_mapped_fetch(r, rank, gy_mapped_peer_input(r, rank), block->from + done, bytes, block->to + done))
        return false;
    r->taken.bytes += bytes;
    return true;
}

static bool take_from(struct gyre_request *r, const struct gy_step *step, int rank)
{
    struct block block = block_of(r, step, rank);
    if (!gy_signature_compare(r->comm, r->shape.sequence, rank) || !move(r, &block, rank))
        return false;
    r->taken.under_way = rank + 1;
    if (r->taken.bytes < block.bytes)
        return true;
    r->taken.of[rank / 64] |= UINT64_C(1) << (rank % 64);
    r->taken.ranks++;
    r->taken.under_way = 0;
    r->taken.bytes = 0;
    return true;
}

static bool is_offered(const struct gyre_request *r, const struct gy_step *step, int rank)
{
    return (step->peer < 0 || rank == step->peer) && !gy_block_pull_has(r, rank) &&
           (gy_mapped_input(r, rank) || gy_mapped_peer_input(r, rank));
}

bool gy_block_pull(struct gyre_request *r, const struct gy_step *step)
{
    int size = r->comm->size;
    if (r->taken.under_way > 0)
        return take_from(r, step, r->taken.under_way - 1);
    for (int i = 1; i < size; i++) {
        int rank = (r->comm->rank + i) % size;
        if (is_offered(r, step, rank))
            return take_from(r, step, rank);
    }
    return false;
}

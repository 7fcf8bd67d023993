/* Reductions over shared regions, tile by tile: the sources and destinations of a tile.
 *
 *   slots of ranks that publish their input ─┐
 *   memory that a rank exposes, mapped here ─┼─ one pass ──▶ output, others' outputs, result slot
 *   peers' private memory, by the kernel ────┘ */
#include <assert.h>

#include "collectives/engine/lane.h"
#include "collectives/shm/slot_tile.h"
#include "collectives/shm/zero_copy.h"
#include "core/line.h"

#define GY_PEER_MEMORY_BOUNCE \
    (32u << 10)                /* bytes of operands that are read through the kernel at once before they are reduced */
#define GY_PEER_MEMORY_TILES 8 /* tiles that the kernel reads at once: entering it takes half a microsecond */

/* What a reduction of one tile reads and writes. */
struct operands {
    int size; /* ranks: the arrays are filled up to here */
    const void *sources[GY_REGION_RANKS];
    bool shown[GY_REGION_RANKS]; /* a source is in its rank's slot */
    uint64_t
        private_input[GY_REGION_RANKS]; /* address of a source in the peer's private memory; 0: it is in `sources` */
    int private_inputs, slots;          /* the number of those; the number of slots, the result's included */
    unsigned char *targets[GY_REGION_RANKS + 1];
    struct gy_targets to;
};

static void find_operands(struct gyre_request *r, const struct gy_step *step, int32_t b, uint64_t iteration,
                          size_t start, struct operands *it)
{
    int size = r->comm->size, rank = r->comm->rank;
    it->size = size;
    it->private_inputs = it->slots = 0;
    for (int p = 0; p < size; p++) {
        const unsigned char *input = p == rank ? NULL : gy_mapped_input(r, p);
        it->private_input[p] = p == rank ? 0 : gy_mapped_peer_input(r, p);
        it->private_inputs += it->private_input[p] != 0;
        it->shown[p] = p != rank && !it->private_input[p] && !input;
        it->slots += it->shown[p];
        it->sources[p] = p == rank      ? gy_operand_at(r, step->src, b, start)
                         : input        ? input + start * r->element
                         : it->shown[p] ? gy_slot_published(r, p, b, iteration)
                                        : NULL;
    }
    it->to = (struct gy_targets){.at = it->targets};
    bool keeps = gy_mapped_keeps(r, step), first = keeps && r->offer.nontemporal; /* non-temporal ones come first */
    it->slots += keeps;
    if (first)
        it->targets[it->to.count++] = gy_slot_of(r->comm, rank, GY_RESULT, iteration);
    if (step->dst != GY_RESULT)
        it->targets[it->to.count++] = gy_operand_at(r, step->dst, b, start);
    for (int p = 0; p < size && step->keep; p++) {
        unsigned char *output = p == rank ? NULL : gy_mapped_output(r, p);
        if (output)
            it->targets[it->to.count++] = output + start * r->element;
    }
    it->to.streamed = r->stream ? it->to.count : first;
    if (keeps && !first)
        it->targets[it->to.count++] = gy_slot_of(r->comm, rank, GY_RESULT, iteration);
}

/* The destinations of element `at` of the result and of the next ones. */
static struct gy_targets targets_from(const struct gyre_request *r, const struct operands *it, size_t at,
                                      unsigned char **to)
{
    for (int t = 0; t < it->to.count; t++)
        to[t] = it->targets[t] + at * r->element;
    return (struct gy_targets){.at = to, .count = it->to.count, .streamed = it->to.streamed};
}

static void combine(struct gyre_request *r, const struct gy_step *step, struct operands *it, size_t count)
{
    bool claiming = gy_slot_claims(r, step);
    size_t most = claiming ? GY_CLAIMED / r->element : count, n;
    for (size_t at = 0; at < count; at += n) {
        const void *from[GY_REGION_RANKS];
        unsigned char *to[GY_REGION_RANKS + 1];
        n = gy_min_size(most, count - at);
        for (int p = 0; p < it->size; p++) {
            from[p] = (const unsigned char *)it->sources[p] + at * r->element;
            if (claiming && it->shown[p])
                gy_line_claim(from[p], n * r->element);
        }
        gy_combine_into(&r->operation, r->canonical, targets_from(r, it, at, to), from, it->size, n);
    }
}

/* True if a destination is also a source. */
static bool is_source(const struct operands *it, const void *target)
{
    for (int p = 0; p < it->size; p++)
        if (!it->private_input[p] && it->sources[p] == target)
            return true;
    return false;
}

/* A single operand is read to where the result will be: every entry into the kernel costs as much as copying many
 * kilobytes. That is faster than non-temporal results, too. Several operands, or one whose destination is in use,
 * are read piece by piece through memory that stays in the first-level cache. */
static bool gather_peer_memory(struct gyre_request *r, struct operands *it, size_t start, size_t count)
{
    _Static_assert(GY_PEER_MEMORY_BOUNCE / GY_PEER_MEMORY_RANKS >= GY_CACHE_LINE,
                   "each operand has room for a line at least");
    assert(it->private_inputs <= GY_PEER_MEMORY_RANKS);
    _Alignas(GY_CACHE_LINE) unsigned char bounce[GY_PEER_MEMORY_BOUNCE];
    size_t most = GY_PEER_MEMORY_BOUNCE / (size_t)it->private_inputs / GY_CACHE_LINE * GY_CACHE_LINE / r->element, n;
    bool straight = it->private_inputs == 1 && it->to.count > 0 && !is_source(it, it->targets[0]);
    for (size_t at = 0; at < count; at += n) {
        const void *from[GY_REGION_RANKS];
        unsigned char *to[GY_REGION_RANKS + 1], *next = straight ? it->targets[0] : bounce;
        n = straight ? count : gy_min_size(most, count - at);
        for (int p = 0; p < it->size; p++) {
            from[p] = it->private_input[p] ? next : (const unsigned char *)it->sources[p] + at * r->element;
            if (!it->private_input[p])
                continue;
            if (!gy_mapped_fetch(r, p, it->private_input[p], (start + at) * r->element, n * r->element, next))
                return false;
            next += n * r->element;
        }
        struct gy_targets targets = targets_from(r, it, at, to);
        targets.streamed = straight ? 0 : it->to.streamed;
        gy_combine_into(&r->operation, r->canonical, targets, from, it->size, n);
    }
    return true;
}

/* Several tiles of block b are read at once. Returns true if the lane stands at the first of them; the others are
 * skipped. */
static bool first_of_many(const struct gyre_request *r, int l, const struct gy_layout *layout, int32_t b,
                          struct gy_piece *piece_p)
{
    size_t tile = r->lane[l].tile;
    *piece_p = gy_layout_piece(layout, b, 1, r->tile * GY_PEER_MEMORY_TILES, tile / GY_PEER_MEMORY_TILES);
    return tile % GY_PEER_MEMORY_TILES == 0;
}

/* Reads several tiles of every slice. */
static bool gather_all(struct gyre_request *r, const struct gy_step *step, int l)
{
    for (int32_t b = 0; b < r->schedule->blocks; b++) {
        struct gy_piece piece;
        struct operands it; /* filled up to the number of ranks */
        if (!first_of_many(r, l, &r->in, b, &piece) || piece.count == 0)
            continue;
        find_operands(r, step, b, 0, piece.start, &it);
        if (it.private_inputs > 0 && !gather_peer_memory(r, &it, piece.start, piece.count))
            return false;
    }
    return true;
}

bool gy_slot_reduce(struct gyre_request *r, const struct gy_step *step, int l, uint64_t iteration)
{
    if (gy_mapped_takes_all(r))
        return gather_all(r, step, l);
    struct gy_piece piece = gy_layout_piece(&r->in, step->range.lo, 1, r->tile, r->lane[l].tile);
    if (step->range.width == 0 || piece.count == 0)
        return true;
    struct operands it; /* filled up to the number of ranks */
    find_operands(r, step, step->range.lo, iteration, piece.start, &it);
    if (it.private_inputs > 0 && it.slots == 0 && !first_of_many(r, l, &r->in, step->range.lo, &piece))
        return true;
    if (it.private_inputs > 0)
        return gather_peer_memory(r, &it, piece.start, piece.count);
    combine(r, step, &it, piece.count);
    return true;
}

bool gy_slot_reduce_whole(struct gyre_request *r, int l)
{
    const struct gy_step *step = &r->schedule->step[r->schedule->lane[l].first];
    struct operands it; /* filled up to the number of ranks */
    find_operands(r, step, step->range.lo, 0, 0, &it);
    if (it.private_inputs > 0)
        return gather_peer_memory(r, &it, 0, r->in.total);
    gy_combine_into(&r->operation, r->canonical, it.to, it.sources, r->comm->size, r->in.total);
    return true;
}

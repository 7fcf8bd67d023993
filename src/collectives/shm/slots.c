/* The steps over shared regions.
 *
 *   rank i:  publish  region[i][slot] = my tile            counter 0 of i ──▶ all ranks
 *            reduce   dst = reduce over region[*][slot]    counter 1 of i ──▶ all ranks: slot is free; result is there
 *            collect  dst = result[*][slot]                counter 2 of i ──▶ all ranks: result slot may be reused
 *
 * Counters have one writer, only grow, and count iterations through the life of the communicator: a slot is (counter
 * mod GY_REGION_SLOTS). A counter is stored with release after the data that it announces, and read with acquire
 * before the data is touched. Short vectors skip the slots: see eager_call.c. Gathering is in slot_reduce.c. Exposed
 * operands are used in place: see zero_copy.h. Outputs larger than the cache are written with non-temporal stores,
 * and so are slots if that is faster (autotune.h). A fence stands between such stores and the counter. */
#include <assert.h>
#include <string.h>

#include "collectives/engine/call_check.h"
#include "collectives/engine/core_affinity.h"
#include "collectives/engine/lane.h"
#include "collectives/shm/autotune.h"
#include "collectives/shm/slot_tile.h"
#include "collectives/shm/zero_copy.h"
#include "core/fence.h"
#include "core/line.h"
#include "core/topology.h"

/* Bytes of a rank's output from which on non-temporal stores may be faster; a copy loses less in the caches. */
#define GY_STREAM_REDUCED (1u << 20)
#define GY_STREAM_COPIED (16u << 20)
#define GY_TILE_MOST (128u << 10) /* bytes */
#define GY_TILE_LEAST (32u << 10)
#define GY_TILE_ROOTED (8u << 10) /* between two ranks: one sends while the other receives */

static int local_of(const struct gyre_comm *comm, int rank)
{
    return comm->ctx->world->members[gy_group_world(&comm->group, rank)].local;
}

static bool sleeps(const struct gyre_comm *comm, int rank)
{
    return atomic_load_explicit(&comm->standing[rank]->sleeping, memory_order_relaxed) != 0;
}

static __attribute__((noinline)) void ring_doorbells(const struct gyre_comm *comm)
{
    for (int p = 0; p < comm->size; p++)
        if (p != comm->rank && sleeps(comm, p))
            gy_segment_ring_doorbell(comm->ctx->segment, local_of(comm, p));
}

static inline bool any_sleeps(const struct gyre_comm *comm)
{
    if (comm->size == 2)
        return sleeps(comm, 1 - comm->rank);
    for (int p = 0; p < comm->size; p++)
        if (sleeps(comm, p))
            return true;
    return false;
}

/* Most often no rank sleeps. */
void gy_slot_wake(const struct gyre_comm *comm)
{
    gy_segment_fence(comm->ctx->segment);
    if (any_sleeps(comm))
        ring_doorbells(comm);
}

/* Returns the tile size: at most what a slot holds and what stays in a core's own cache while it is copied. Long
 * tiles help ranks that share a core, which switch every few tiles. A block of a single tile is split into halves,
 * so that one travels while the other is made. In a reduction all ranks make tiles while all wait, and halves are of
 * no use. Between two ranks a reduction uses as many tiles as there are slots, which keeps the slots in the cores'
 * own caches; one rank then reads tiles while the other goes on publishing. */
size_t gy_slot_tile(const struct gyre_comm *comm, const struct gy_schedule *schedule, size_t block, size_t element)
{
    enum gy_collective collective = schedule->shape.collective;
    size_t slot = gy_segment_region_bytes(comm->ctx->segment) / (2 * GY_REGION_SLOTS);
    size_t most = schedule->side_by_side > 1 ? slot / (size_t)schedule->side_by_side : slot;
    size_t least = gy_max_size(block / 2, most / 2);
    if (collective == GY_ALL_REDUCE || collective == GY_REDUCE_SCATTER)
        least = comm->size > 2 ? most : gy_max_size(block / GY_REGION_SLOTS, GY_TILE_LEAST);
    else if (gy_has_root(collective) && schedule->one_shot && comm->size == 2 && !comm->ctx->oversubscribed)
        least = gy_max_size(block / GY_REGION_SLOTS, GY_TILE_ROOTED);
    size_t bytes = gy_min_size(gy_min_size(most, GY_TILE_MOST), least);
    bytes = bytes >= 128 ? bytes & ~(size_t)63 : bytes;
    return gy_max_size(1, bytes / element);
}

unsigned char *gy_slot_of(const struct gyre_comm *comm, int rank, enum gy_space space, uint64_t iteration)
{
    size_t slot = gy_segment_region_bytes(comm->ctx->segment) / (2 * GY_REGION_SLOTS);
    size_t index = (size_t)(iteration % GY_REGION_SLOTS) + (space == GY_RESULT ? GY_REGION_SLOTS : 0);
    return gy_segment_region_data(comm->ctx->segment, local_of(comm, rank), comm->region) + index * slot;
}

static bool verify_everyone(struct gyre_request *r)
{
    for (int p = 0; p < r->comm->size && !r->verified; p++)
        if (p != r->comm->rank && !gy_signature_compare(r->comm, r->shape.sequence, p))
            return false;
    r->verified = true;
    return true;
}

/* True if the lines to be overwritten are not in the caches any more, so that non-temporal stores save reading them.
 * This is certain if the data of the call exceeds the last-level cache, or nearly does, since the cache holds other
 * data, too. Otherwise the tuner decides. An exchange without slots copies everything once: there "nearly" does not
 * count, since data as large as the cache stays in it. For an exchange with slots that nearly exceeds the cache the
 * tuner decides, too: non-temporal stores are a fifth faster on one machine and a tenth slower on another. */
static bool outgrows(struct gyre_request *r)
{
    const struct gy_schedule *schedule = r->schedule;
    enum gy_collective collective = schedule->shape.collective;
    bool reduces = collective == GY_ALL_REDUCE || collective == GY_REDUCE_SCATTER || collective == GY_REDUCE_TO;
    bool exchanges = collective == GY_ALL_TO_ALL && r->comm->ctx->oversubscribed;
    size_t begin = gy_layout_start(&r->out, schedule->output_lo);
    size_t end = gy_layout_start(&r->out, schedule->output_lo + schedule->output_blocks);
    size_t bytes = (end - begin) * r->element, input = r->input == r->output ? 0 : r->in.total * r->element;
    size_t all = (bytes + input) * (size_t)r->comm->size, cache = gy_topology_last_cache();
    if (exchanges && cache > 0 && all > cache)
        return true;
    if (exchanges && cache > 0 && all > cache / 4 * 3 && !r->offer.input)
        return gy_tuner_streams(r, bytes);
    if (!reduces || bytes < GY_STREAM_REDUCED)
        return bytes >= GY_STREAM_COPIED;
    return all > cache / 4 * 3 || gy_tuner_streams(r, bytes);
}

/* One pass that publishes a tile and reads another one overlaps reads and writes of memory. Cached data gains
 * nothing by it. A rank with a core of its own has no wait to fill. */
static bool exchanges_in_one_pass(const struct gyre_request *r)
{
    return r->schedule->shape.collective == GY_ALL_TO_ALL && r->comm->ctx->oversubscribed && r->stream &&
           !r->offer.input && !r->offer.peer_input;
}

gyre_status gy_slot_begin(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    r->begun = true;
    gy_cores_show(comm);
    gy_cores_tell(comm->ctx);
    r->stream = outgrows(r);
    r->one_pass = exchanges_in_one_pass(r);
    r->region_base = comm->region_base;
    comm->region_base += gy_layout_tiles(gy_layout_longest(&r->in, 1), r->tile);
    return GYRE_SUCCESS;
}

/* Stores the least progress of all ranks, not only what was asked for. A later check that a slot is free then needs
 * no lines of other cores. */
static bool poll_all(struct gyre_request *r, struct gy_lane_state *lane, int region_lane, uint64_t target)
{
    struct gyre_comm *comm = r->comm;
    if (lane->everyone == 0)
        lane->everyone_done = UINT64_MAX;
    for (; lane->everyone < comm->size; lane->everyone++) {
        const struct gy_region_control *peer = comm->control[lane->everyone];
        if (lane->everyone == comm->rank)
            continue;
        uint64_t done = atomic_load_explicit(&peer->lane[region_lane].progress, memory_order_acquire);
        if (done < target) {
            r->waiting_for = lane->everyone;
            return false;
        }
        lane->everyone_done = done < lane->everyone_done ? done : lane->everyone_done;
    }
    lane->everyone = 0;
    comm->known[region_lane] = lane->everyone_done;
    return true;
}

bool gy_slot_everyone(struct gyre_request *r, int l, const struct gy_step *step, int region_lane, uint64_t target)
{
    struct gyre_comm *comm = r->comm;
    bool ours = target > r->region_base; /* progress in this collective: the peer's signature is there as well */
    if (step->peer >= 0) {
        const struct gy_region_control *peer = comm->control[step->peer];
        r->waiting_for = step->peer;
        return step->peer == comm->rank ||
               (atomic_load_explicit(&peer->lane[region_lane].progress, memory_order_acquire) >= target &&
                (!ours || gy_signature_compare(comm, r->shape.sequence, step->peer)));
    }
    if (comm->known[region_lane] < target && !poll_all(r, &r->lane[l], region_lane, target))
        return false;
    return !ours || r->verified || verify_everyone(r);
}

/* Returns the only reader of block b of this rank's slots: of several blocks the rank of its number; -1: not a
 * single one. */
static int reader_of(const struct gyre_request *r, const struct gy_step *step, int32_t b)
{
    enum gy_collective collective = r->schedule->shape.collective;
    if (step->range.width > 1)
        return b;
    return collective == GY_REDUCE_TO || collective == GY_GATHER_TO ? r->schedule->shape.root : -1;
}

static bool is_nontemporal(const struct gyre_request *r, const struct gy_step *step, int32_t b)
{
    int reader = reader_of(r, step, b);
    return r->offer.nontemporal && (reader < 0 || !gy_cores_same(r->comm, reader));
}

/* A cached copy beside non-temporal stores costs little. Beside write-prefetched lines it does, too, if both have
 * one source. */
bool gy_slot_keeps_own(const struct gyre_request *r)
{
    int rank = r->comm->rank;
    enum gy_collective collective = r->schedule->shape.collective;
    bool gathers = collective == GY_ALL_GATHER && (r->offer.nontemporal || r->offer.claimed),
         exchanges = collective == GY_ALL_TO_ALL && r->comm->size == 2 && r->offer.nontemporal;
    return r->schedule->shm && (gathers || exchanges) && !r->offer.input && !r->offer.peer_input &&
           gy_operand_at(r, GY_INPUT, rank, gy_layout_start(&r->in, rank)) !=
               gy_operand_at(r, GY_OUTPUT, rank, gy_layout_start(&r->out, rank));
}

/* A piece that is copied into a slot, or out of one. */
struct moved {
    unsigned char *to;
    const unsigned char *from;
    size_t bytes;
    bool nontemporal; /* into a slot, with non-temporal stores */
};

/* The piece of block b that the lane publishes now. */
static struct moved shown_to(const struct gyre_request *r, const struct gy_step *step, int l, int32_t b)
{
    struct gy_piece piece = gy_layout_piece(&r->in, b, 1, r->tile, r->lane[l].tile);
    size_t place = step->range.width == 1 ? 0 : (size_t)(b < r->comm->rank ? b : b - 1) * r->tile * r->element;
    return (struct moved){
        .to = gy_slot_of(r->comm, r->comm->rank, GY_PUBLISHED, r->region_base + r->lane[l].iteration) + place,
        .from = gy_operand_at(r, step->src, b, piece.start),
        .bytes = piece.count * r->element,
        .nontemporal = is_nontemporal(r, step, b)};
}

/* The piece of this rank's own block for the output, which may differ in length. */
static struct moved kept(const struct gyre_request *r, int l)
{
    int rank = r->comm->rank;
    struct gy_piece own = gy_layout_piece(&r->in, rank, 1, r->tile, r->lane[l].tile);
    size_t within = own.start - gy_layout_start(&r->in, rank);
    return (struct moved){.to = gy_operand_at(r, GY_OUTPUT, rank, gy_layout_start(&r->out, rank) + within),
                          .from = gy_operand_at(r, GY_INPUT, rank, own.start),
                          .bytes = own.count * r->element};
}

static void show(const struct moved *it)
{
    if (it->bytes > 0)
        (it->nontemporal ? gy_copy_stream : gy_copy)(it->to, it->from, it->bytes);
}

/* Copies a piece into a slot and one into the output in one pass. The one that is certainly non-temporal comes
 * first. */
static void show_and_put(const struct gyre_request *r, const struct moved *shown, const struct moved *put)
{
    size_t both = gy_min_size(shown->bytes, put->bytes);
    if (shown->nontemporal)
        gy_copy_both(shown->to, shown->from, put->to, put->from, both,
                     GY_STREAM_DST | (r->stream ? GY_STREAM_DST2 : 0));
    else
        gy_copy_both(put->to, put->from, shown->to, shown->from, both, r->stream ? GY_STREAM_DST : 0);
    show(&(struct moved){shown->to + both, shown->from + both, shown->bytes - both, shown->nontemporal});
    gy_put(r, put->to + both, put->from + both, put->bytes - both);
}

static void publish(struct gyre_request *r, const struct gy_step *step, int l)
{
    if (r->offer.input || r->offer.peer_input) /* peers read it in place */
        return;
    bool keeps = gy_slot_keeps_own(r);
    for (int32_t i = 0; i < step->range.width; i++) {
        int32_t b = step->range.lo + i;
        if (step->range.width > 1 && b == r->comm->rank)
            continue;
        const struct moved shown = shown_to(r, step, l, b), own = keeps ? kept(r, l) : (struct moved){0};
        if (keeps)
            show_and_put(r, &shown, &own);
        else
            show(&shown);
    }
}

const unsigned char *gy_slot_published(const struct gyre_request *r, int p, int32_t b, uint64_t iteration)
{
    size_t place = r->schedule->blocks == 1 ? 0 : (size_t)(b < p ? b : b - 1) * r->tile * r->element;
    return gy_slot_of(r->comm, p, GY_PUBLISHED, iteration) + place;
}

bool gy_slot_claims(const struct gyre_request *r, const struct gy_step *step)
{
    enum gy_collective collective = r->schedule->shape.collective;
    bool alone = r->comm->size == 2 || step->kind == GY_EXCHANGE ||
                 (step->kind == GY_REDUCE_PUBLISHED && !r->schedule->one_shot) || collective == GY_REDUCE_TO ||
                 collective == GY_GATHER_TO;
    return r->claims && alone;
}

/* Copies from a slot into the output. */
static void put_shown(const struct gyre_request *r, const struct gy_step *step, unsigned char *to,
                      const unsigned char *slot, size_t bytes)
{
    bool claiming = gy_slot_claims(r, step);
    if (claiming && !r->stream) {
        gy_copy_claim(to, slot, bytes);
        return;
    }
    size_t most = claiming ? GY_CLAIMED : bytes, n;
    for (size_t at = 0; at < bytes; at += n) {
        n = gy_min_size(most, bytes - at);
        if (claiming)
            gy_line_claim(slot + at, n);
        gy_put(r, to + at, slot + at, n);
    }
}

bool gy_slot_idle(const struct gyre_request *r, const struct gy_step *step)
{
    if (step->kind == GY_PUBLISH)
        return r->offer.input != 0 || r->offer.peer_input != 0;
    return step->kind == GY_REDUCE_PUBLISHED && !gy_mapped_keeps(r, step);
}

/* Copies a tile of slice b that rank `from` has gathered, or of its own block, into the output. */
static bool collect_from(struct gyre_request *r, const struct gy_step *step, int from, int32_t b,
                         const struct gy_piece *piece, uint64_t iteration)
{
    unsigned char *to = gy_operand_at(r, step->dst, b, piece->start);
    size_t bytes = piece->count * r->element, within = (piece->start - gy_layout_start(&r->in, b)) * r->element;
    const unsigned char *whole = step->src == GY_RESULT ? gy_mapped_output(r, from) : NULL;
    const unsigned char *block = step->src == GY_PUBLISHED ? gy_mapped_input(r, from) : NULL;
    uint64_t private_input = step->src == GY_PUBLISHED ? gy_mapped_peer_input(r, from) : 0;
    if (private_input)
        return gy_mapped_fetch(r, from, private_input, within, bytes, to);
    if (whole || block)
        gy_put(r, to, whole ? whole + piece->start * r->element : block + within, bytes);
    else
        put_shown(r, step, to, gy_slot_of(r->comm, from, step->src, iteration), bytes);
    return true;
}

static bool collect(struct gyre_request *r, const struct gy_step *step, int l, uint64_t iteration)
{
    if (step->src == GY_RESULT && (r->offer.output || gy_mapped_takes_all(r))) /* it is in its place already */
        return true;
    int32_t first = step->peer >= 0 ? step->range.lo : 0;
    int32_t end = step->peer >= 0 ? step->range.lo + step->range.width : r->schedule->blocks;
    for (int32_t b = first; b < end && step->range.width > 0; b++) {
        int from = step->peer >= 0 ? step->peer : b;
        if (from == r->comm->rank)
            continue;
        struct gy_piece piece = gy_layout_piece(&r->in, b, 1, r->tile, r->lane[l].tile);
        if (piece.count > 0 && !collect_from(r, step, from, b, &piece, iteration))
            return false;
    }
    return true;
}

/* In one pass, tile t + GY_REGION_LEAD is published while tile t is read. So a rank that has published tile t has
 * read tile t - GY_REGION_LEAD. If all ranks do so, the slot is free. */
#define GY_REGION_LEAD (GY_REGION_SLOTS / 2)

enum { PUBLISH_LANE, EXCHANGE_LANE }; /* of the schedule of an all_to_all */

bool gy_slot_follows(const struct gyre_request *r, const struct gy_step *step)
{
    const struct gy_lane_state *lane = r->lane;
    return r->one_pass && step->kind == GY_PUBLISH && !lane[EXCHANGE_LANE].exhausted &&
           lane[PUBLISH_LANE].iteration >= lane[EXCHANGE_LANE].iteration + GY_REGION_LEAD;
}

/* Returns the step that the publishing lane has left to the reading one. NULL: there is none, or its slot is not
 * free, for which this does not wait. */
static const struct gy_step *left_to_show(struct gyre_request *r)
{
    const struct gy_lane_state *lane = &r->lane[PUBLISH_LANE];
    const struct gy_step *step = &r->schedule->step[lane->step];
    bool left = r->one_pass && !lane->exhausted && gy_slot_follows(r, step);
    return left && gy_needs_met(r, PUBLISH_LANE, step, lane->lane_round, lane->tile) ? step : NULL;
}

/* Finds the piece that comes from rank p: copies it here if p exposes it, otherwise *put_p says in which slot it is. */
static bool find_piece(struct gyre_request *r, const struct gy_step *step, int l, int p, struct moved *put_p)
{
    int32_t b = step->peer >= 0 ? step->range.lo : p;
    struct gy_piece piece = gy_layout_piece(&r->out, b, 1, r->tile, r->lane[l].tile);
    const unsigned char *input = gy_mapped_input(r, p);
    uint64_t private_input = gy_mapped_peer_input(r, p);
    unsigned char *to = gy_operand_at(r, step->dst, b, piece.start);
    size_t bytes = piece.count * r->element;
    size_t mine = (gy_layout_start(&r->in, r->comm->rank) + piece.start - gy_layout_start(&r->out, b)) * r->element;
    if (bytes > 0 && private_input && !gy_mapped_fetch(r, p, private_input, mine, bytes, to))
        return false;
    if (bytes > 0 && input)
        gy_put(r, to, input + mine, bytes);
    else if (bytes > 0 && !private_input)
        *put_p = (struct moved){to, gy_slot_published(r, p, r->comm->rank, r->region_base + r->lane[l].iteration),
                                bytes, false};
    return true;
}

/* shows: the step published in the same pass; NULL: none. */
static bool exchange(struct gyre_request *r, const struct gy_step *step, int l, const struct gy_step *shows)
{
    for (int p = 0; p < r->comm->size && step->range.width > 0; p++) {
        struct moved put = {.bytes = 0}, shown;
        if (p == r->comm->rank || (step->peer >= 0 && p != step->peer))
            continue;
        if (!find_piece(r, step, l, p, &put))
            return false;
        if (shows) {
            shown = shown_to(r, shows, PUBLISH_LANE, p);
            if (put.bytes > 0)
                show_and_put(r, &shown, &put);
            else
                show(&shown);
        } else if (put.bytes > 0) {
            put_shown(r, step, put.to, put.from, put.bytes);
        }
    }
    return true;
}

static void announce(struct gyre_request *r, int l)
{
    int shared = r->schedule->lane[l].region_lane;
    struct gy_region_control *mine = r->comm->control[r->comm->rank];
    uint64_t after = r->region_base + r->lane[l].iteration + 1;
    if (shared < 0)
        return;
    assert(atomic_load_explicit(&mine->lane[shared].progress, memory_order_relaxed) <= after);
    atomic_store_explicit(&mine->lane[shared].progress, after, memory_order_release);
}

bool gy_slot_step(struct gyre_request *r, int l)
{
    struct gy_lane_state *lane = &r->lane[l], *led = &r->lane[PUBLISH_LANE];
    const struct gy_step *step = &r->schedule->step[lane->step], *shows = NULL;
    uint64_t iteration = r->region_base + lane->iteration;
    bool moved = true;
    switch (step->kind) {
    case GY_PUBLISH: publish(r, step, l); break;
    case GY_REDUCE_PUBLISHED: moved = gy_slot_reduce(r, step, l, iteration); break;
    case GY_COLLECT: moved = collect(r, step, l, iteration); break;
    default: moved = exchange(r, step, l, shows = left_to_show(r));
    }
    if (!moved)
        return false;
    if (r->stream || r->offer.nontemporal)
        gy_stream_fence();
    announce(r, l);
    if (shows) {
        announce(r, PUBLISH_LANE);
        gy_lane_done(led, led->lane_round, led->tile, led->tiles);
        gy_lane_next(r, PUBLISH_LANE);
    }
    if (r->schedule->lane[l].region_lane >= 0)
        gy_slot_wake(r->comm);
    return true;
}

uint64_t gy_slot_after(const struct gyre_request *r)
{
    return r->region_base + gy_layout_tiles(gy_layout_longest(&r->in, 1), r->tile);
}

bool gy_slot_end(struct gyre_request *r)
{
    struct gy_region_control *mine = r->comm->control[r->comm->rank];
    uint64_t after = gy_slot_after(r);
    bool changed = false;
    if (r->stream) /* for the caller's other threads */
        gy_stream_fence();
    for (int w = 0; w < GY_REGION_LANES; w++) {
        if (atomic_load_explicit(&mine->lane[w].progress, memory_order_relaxed) == after)
            continue;
        atomic_store_explicit(&mine->lane[w].progress, after, memory_order_release);
        changed = true;
    }
    if (changed)
        gy_slot_wake(r->comm);
    return gy_mapped_quiet(r, after);
}

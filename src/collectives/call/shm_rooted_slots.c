/* Blocking broadcasts and reductions to a root through slots, between ranks with cores of their own: one function,
 * without a schedule in flight and without a request.
 *
 *   sender     entry: shape                                  (senders: root of a broadcast, all others in a reduction)
 *              tile t ──▶ its slot, when that is free; counter 0 ──▶ receivers
 *   receiver   entry: shape; counters of the senders ──▶ copies or reduces tile t; its counter ──▶ senders
 *
 * This is the schedule of direct_one_shot if no rank exposes its input (zero_copy.h). Each rank chooses this path
 * alone, since its peers see the same protocol either way. Whatever can wait is done after the first tile is published,
 * since peers wait for that tile. A receiver counts tiles with one counter; it advances the others when it needs no
 * slot of this call any more. A sender that reuses a slot reads one of these counters, whichever has counted before. A
 * rank that a peer blocks becomes a request that stands in its schedule where this function stood. So does a rank that
 * finds an exposed input where it expected none. */
#include <string.h>

#include "collectives/call/prepare.h"
#include "collectives/call/shm_blocking.h"
#include "collectives/engine/call_check.h"
#include "collectives/engine/lane.h"
#include "collectives/engine/progress.h"
#include "collectives/schedule/reduction_order.h"
#include "collectives/shm/slot_tile.h"
#include "collectives/shm/slots.h"
#include "collectives/shm/zero_copy.h"
#include "core/fence.h"
#include "core/line.h"

/* One call. Bytes, not elements. */
struct stream {
    struct gyre_comm *comm;
    const struct gy_call *call;
    struct gy_schedule *schedule;
    struct gy_call_signature shape;
    struct gy_offer offer; /* exposes nothing; says how slots are written */
    size_t bytes, tile;
    uint64_t base, tiles, done; /* counters before the call, tiles of it, tiles done by this rank */
    int lane;                   /* the receivers' counter */
    bool gives, claims, verified;
};

static uint64_t seen_of(const struct stream *it, int rank, int lane)
{
    return atomic_load_explicit(&it->comm->control[rank]->lane[lane].progress, memory_order_acquire);
}

static void count(const struct stream *it, int lane, uint64_t after)
{
    atomic_store_explicit(&it->comm->control[it->comm->rank]->lane[lane].progress, after, memory_order_release);
}

/* Advances the counters in which this rank has no part, once it reads no slot any more: a sender may poll any of
 * them before it reuses a slot. */
static void count_the_rest(const struct stream *it)
{
    int busy = it->gives ? GY_PUBLISH_COUNTER : it->lane;
    for (int lane = 0; lane < GY_REGION_LANES; lane++)
        if (lane != busy)
            count(it, lane, it->base + it->tiles);
    gy_slot_wake(it->comm); /* a rank that waits for one of these may sleep since the last tile */
}

static bool takes_from(const struct stream *it, int rank)
{
    return rank != it->comm->rank && (it->shape.collective == GY_REDUCE_TO || rank == (int)it->shape.root);
}

/* Continues in the schedule, where this function stands. */
static gyre_status go_on(const struct stream *it)
{
    struct gyre_request *r = gy_shm_blocking_fill(it->comm, it->call, it->schedule);
    r->shape = it->shape;
    r->offer = it->offer;
    r->claims = it->claims;
    r->begun = true;
    r->verified = it->verified;
    r->region_base = it->base;
    gy_request_rewind(r);
    for (int l = 0; l < r->schedule->lanes; l++) {
        struct gy_lane_state *lane = &r->lane[l];
        int counter = r->schedule->lane[l].region_lane;
        bool busy = counter == (it->gives ? GY_PUBLISH_COUNTER : it->lane);
        for (uint64_t t = 0; busy && t < it->done; t++) {
            gy_lane_done(lane, lane->lane_round, lane->tile, lane->tiles);
            gy_lane_next(r, l);
        }
        if (!busy)
            lane->exhausted = lane->finished = true;
    }
    return gy_shm_blocking_go_on(r);
}

/* Waits until the slot of this rank's next tile is free: all ranks have read its old tile. */
static bool is_free(struct stream *it, struct gy_spin *spinning)
{
    struct gyre_comm *comm = it->comm;
    uint64_t number = it->base + it->done + 1, least = UINT64_MAX;
    if (number <= GY_REGION_SLOTS || comm->known[it->lane] >= number - GY_REGION_SLOTS)
        return true;
    for (int p = 0; p < comm->size; p++) {
        uint64_t seen;
        if (p == comm->rank)
            continue;
        while ((seen = seen_of(it, p, it->lane)) < number - GY_REGION_SLOTS)
            if (!gy_spin_policy(spinning))
                return false;
        if (number - GY_REGION_SLOTS > it->base && !it->verified && !gy_signature_compare(comm, it->shape.sequence, p))
            return false;
        least = seen < least ? seen : least;
    }
    it->verified |= number - GY_REGION_SLOTS > it->base;
    comm->known[it->lane] = least;
    return true;
}

static void show_tile(const struct stream *it)
{
    const struct gyre_comm *comm = it->comm;
    size_t at = it->done * it->tile, bytes = gy_min_size(it->tile, it->bytes - at);
    (it->offer.nontemporal ? gy_copy_stream : gy_copy)(gy_slot_of(comm, comm->rank, GY_PUBLISHED, it->base + it->done),
                                                       (const unsigned char *)it->call->input + at, bytes);
    if (it->offer.nontemporal)
        gy_stream_fence();
}

static bool give(struct stream *it, struct gyre_page_record **record_p)
{
    struct gy_spin spinning = gy_spin_of(it->comm->ctx);
    for (; it->done < it->tiles; it->done++) {
        bool free = is_free(it, &spinning);
        if (free) {
            show_tile(it);
            count(it, GY_PUBLISH_COUNTER, it->base + it->done + 1);
        }
        if (it->done == 0) /* while the peers read it */
            *record_p = gy_shm_blocking_note(it->comm, &it->shape, it->bytes);
        if (!free)
            return false;
        gy_slot_wake(it->comm);
    }
    return true;
}

/* Waits until every sender has published that many tiles. Returns false if one is late. */
static bool is_shown(const struct stream *it, uint64_t tiles, struct gy_spin *spinning)
{
    for (int p = 0; p < it->comm->size; p++)
        while (takes_from(it, p) && seen_of(it, p, GY_PUBLISH_COUNTER) < it->base + tiles)
            if (!gy_spin_policy(spinning))
                return false;
    return true;
}

/* True if the senders, which have arrived, make the same call and expose no input instead. */
static bool is_as_expected(struct stream *it)
{
    for (int p = 0; p < it->comm->size; p++) {
        if (!takes_from(it, p))
            continue;
        if (!gy_signature_compare(it->comm, it->shape.sequence, p))
            return false;
        const struct gy_offer offer = gy_mapped_offer_of(it->comm, it->shape.sequence, p);
        if (offer.input || offer.peer_input) {
            it->comm->eager[it->shape.collective].offered = true;
            return false;
        }
    }
    it->verified = true;
    return true;
}

static void reduce_tile(const struct stream *it, const struct gy_operation *operation, size_t at, size_t bytes)
{
    const struct gyre_comm *comm = it->comm;
    size_t most = it->claims ? GY_CLAIMED : bytes, n, element = gy_dtype_bytes(it->call->dtype);
    const unsigned char *sources[GY_REGION_RANKS];
    for (int p = 0; p < comm->size; p++)
        sources[p] = p == comm->rank ? (const unsigned char *)it->call->input + at
                                     : gy_slot_of(comm, p, GY_PUBLISHED, it->base + it->done);
    for (size_t within = 0; within < bytes; within += n) {
        const void *from[GY_REGION_RANKS];
        unsigned char *to = (unsigned char *)it->call->output + at + within;
        n = gy_min_size(most, bytes - within);
        for (int p = 0; p < comm->size; p++) {
            from[p] = sources[p] + within;
            if (it->claims && p != comm->rank)
                gy_line_claim(from[p], n);
        }
        gy_combine_into(operation, gy_comm_canonical(comm), (struct gy_targets){.at = &to, .count = 1}, from,
                        comm->size, n / element);
    }
}

static void take_tile(const struct stream *it, const struct gy_operation *operation)
{
    size_t at = it->done * it->tile, bytes = gy_min_size(it->tile, it->bytes - at);
    if (it->shape.collective == GY_REDUCE_TO)
        reduce_tile(it, operation, at, bytes);
    else
        (it->claims ? gy_copy_claim
                    : gy_copy)((unsigned char *)it->call->output + at,
                               gy_slot_of(it->comm, (int)it->shape.root, GY_PUBLISHED, it->base + it->done), bytes);
}

static bool take(struct stream *it, struct gyre_page_record **record_p)
{
    struct gy_spin spinning = gy_spin_of(it->comm->ctx);
    const struct gy_operation operation = {.dtype = it->call->dtype, .op = it->call->op};
    *record_p = gy_shm_blocking_note(it->comm, &it->shape, it->bytes);
    count(it, GY_PUBLISH_COUNTER, it->base + it->tiles); /* polled only before a slot is used again */
    if (!is_shown(it, 1, &spinning) || !is_as_expected(it))
        return false;
    for (; it->done < it->tiles; it->done++) {
        if (!is_shown(it, it->done + 1, &spinning))
            return false;
        take_tile(it, &operation);
        count(it, it->lane, it->base + it->done + 1);
        gy_slot_wake(it->comm);
    }
    count_the_rest(it);
    it->comm->compared = it->shape.sequence;
    if (it->shape.collective == GY_REDUCE_TO)
        gy_operation_end(&operation, it->call->output, it->call->count, it->comm->size);
    return true;
}

/* Finishes a root of a broadcast or a sender of a reduction: the counters, and the root's own output. */
static void give_the_rest(const struct stream *it)
{
    count_the_rest(it);
    if (it->schedule->output_blocks > 0 && it->call->output != it->call->input)
        memcpy(it->call->output, it->call->input, it->bytes);
}

gyre_status gy_shm_blocking_slots(struct gyre_comm *comm, const struct gy_call *call, struct gy_schedule *schedule,
                                  enum gy_shm_variant variant)
{
    size_t element = gy_dtype_bytes(call->dtype), bytes = call->count * element;
    struct stream it = {
        .comm = comm,
        .call = call,
        .schedule = schedule,
        .shape = gy_shape_of(call, GY_SHM_ONE_SHOT, comm->size),
        .offer = {.nontemporal = variant == GY_SHM_SLOT_NT, .claimed = variant == GY_SHM_SLOT_PREFETCHW},
        .bytes = bytes,
        .tile = gy_slot_tile(comm, schedule, bytes, element) * element,
        .base = comm->region_base,
        .lane = call->collective == GY_BROADCAST ? GY_COLLECT_COUNTER : GY_GATHER_COUNTER,
        .gives = (comm->rank == call->root) == (call->collective == GY_BROADCAST)};
    it.tiles = (bytes - 1) / it.tile + 1;
    it.claims = it.offer.claimed && (comm->size == 2 || call->collective == GY_REDUCE_TO);
    it.shape.sequence = ++comm->sequence;
    comm->region_base += it.tiles;
    gy_line_own(gy_shm_blocking_entry(comm, comm->rank, it.shape.sequence));
    gy_line_own(&comm->control[comm->rank]->lane[it.gives ? GY_PUBLISH_COUNTER : it.lane].progress);
    gy_signature_publish(comm, &it.shape, &it.offer);
    struct gyre_page_record *record = NULL;
    bool over = it.gives ? give(&it, &record) : take(&it, &record);
    if (it.gives)
        give_the_rest(&it);
    if (!over)
        return go_on(&it);
    gy_recorder_done(&comm->recorder, record);
    gy_comm_schedule_release(comm, schedule);
    if ((it.shape.sequence & (GY_POLL_EVERY - 1)) == 0)
        gy_progress_occasional(comm->ctx);
    return GYRE_SUCCESS;
}

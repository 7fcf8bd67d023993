/* The executor: moves the lanes of a request through its plan.
 *
 *        lane 0   send ──▶ send ──▶ send          each lane is a cursor (step, round, tile);
 *                   ▲        ▲                     an iteration starts when its needs are complete,
 *        lane 1   recv ──▶ recv ──▶ recv          and completes when its data has moved
 *
 * Nothing here blocks: an iteration that cannot start is tried again at the next turn. A lane moves at most
 * GY_TILES_PER_TURN tiles a turn, so that all requests of a context advance together. */
#include <string.h>

#include "collectives/lifecycle/comm_teardown.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "collectives/shm/block_pull.h"

#define GY_TILES_PER_TURN 4

/* The vector that a step's ranges are blocks of. */
static const struct gy_layout *layout_of(const struct gyre_request *r, const struct gy_step *step)
{
    return step->kind == GY_RECV || step->kind == GY_RECV_REDUCE || step->kind == GY_EXCHANGE ? &r->out : &r->in;
}

size_t gy_step_longest(const struct gyre_request *r, const struct gy_step *step)
{
    const struct gy_layout *layout = layout_of(r, step);
    if (r->plan->shape.collective == GY_ALL_TO_ALL && !r->plan->window && step->range.width == 1)
        return gy_layout_start(layout, step->range.lo + 1) - gy_layout_start(layout, step->range.lo);
    return gy_layout_longest(layout, step->range.width);
}

static uint64_t messages_of(const struct gyre_request *r, const struct gy_step *step)
{
    return (uint64_t)step->rounds * gy_layout_tiles(gy_step_longest(r, step), r->tile);
}

/* Grants of the step before count on where the peer is the same. Where it is another one, what was granted beyond that
 * step is for a later one of this lane, and is kept until then: the peer does not send it again unless it is asked. */
static void carry_grants(struct gyre_request *r, int l, const struct gy_step *step)
{
    struct gy_lane_state *lane = &r->lane[l];
    const struct gy_step *before = lane->step > r->plan->lane[l].first ? step - 1 : NULL;
    if (before && before->peer == step->peer)
        return;
    if (before && before->kind == GY_SEND && !lane->eager && lane->granted > lane->pair_base + messages_of(r, before))
        gy_channel_keep_grant(r->comm->channels[before->peer], r->shape.sequence, r->plan->lane[l].channel,
                              lane->granted);
    lane->granted = 0;
}

/* The step and round under the cursor have changed: works out what follows from them. */
void gy_lane_begin(struct gyre_request *r, int l)
{
    const struct gy_plan *plan = r->plan;
    struct gy_lane_state *lane = &r->lane[l];
    const struct gy_step *step = &plan->step[lane->step];
    bool shared = plan->lane[l].window_lane >= 0;
    bool at_once = step->kind == GY_PACK || step->kind == GY_UNPACK;
    size_t longest = at_once ? 0 : shared ? gy_layout_longest(&r->in, 1) : gy_step_longest(r, step);
    lane->tiles = gy_layout_tiles(longest, r->tile);
    lane->everyone = 0;
    if (lane->round != 0 || step->kind > GY_RECV_REDUCE)
        return;
    carry_grants(r, l, step);
    lane->eager = gy_flow_is_eager(r, l, step);
    lane->pair_base = 0;
    for (int32_t s = plan->lane[l].first; s < lane->step; s++) {
        const struct gy_step *earlier = &plan->step[s];
        if (earlier->peer == step->peer)
            lane->pair_base += messages_of(r, earlier);
    }
    if (step->kind != GY_SEND && !lane->eager)
        lane->ahead = gy_flow_ahead(r, step->peer);
    lane->want = step->kind == GY_SEND && !lane->eager;
    lane->wanted = 0;
}

/* Moves the cursor past an iteration that has been started. */
void gy_lane_next(struct gyre_request *r, int l)
{
    struct gy_lane_state *lane = &r->lane[l];
    lane->iteration++;
    lane->everyone = 0;
    if (++lane->tile < lane->tiles)
        return;
    lane->tile = 0;
    lane->lane_round++;
    if (++lane->round == r->plan->step[lane->step].rounds) {
        lane->round = 0;
        if (++lane->step == r->plan->lane[l].first + r->plan->lane[l].count) {
            lane->exhausted = true;
            return;
        }
    }
    gy_lane_begin(r, l);
}

void gy_lane_done(struct gy_lane_state *lane, int64_t round, size_t tile, size_t tiles)
{
    lane->done_round = tile + 1 == tiles ? round + 1 : round;
    lane->done_tiles = tile + 1 == tiles ? 0 : tile + 1;
}

static bool completed(const struct gy_lane_state *lane, int64_t round, size_t tile, bool whole)
{
    if (round < 0 || lane->done_round > round)
        return true;
    return !whole && lane->done_round == round && lane->done_tiles > tile;
}

bool gy_needs_met(struct gyre_request *r, int l, const struct gy_step *step, int64_t lane_round, size_t tile)
{
    for (int n = 0; n < GY_NEEDS; n++) {
        const struct gy_need *need = &step->needs[n];
        if (need->lane < 0)
            continue;
        if (need->everyone) {
            if (need->lag > 0 && gy_window_idle(r, step))
                continue;
            uint64_t target = r->window_base + r->lane[l].iteration + 1;
            uint64_t lag = (uint64_t)need->lag;
            if (target > lag && !gy_window_everyone(r, l, step, r->plan->lane[need->lane].window_lane, target - lag))
                return false;
        } else if (!completed(&r->lane[need->lane], lane_round - need->lag, tile, need->whole)) {
            return false;
        }
    }
    return true;
}

static int32_t block_of(const struct gyre_request *r, int l)
{
    const struct gy_lane_state *lane = &r->lane[l];
    return gy_range_block(r->plan->step[lane->step].range, r->plan->blocks, lane->round);
}

struct gy_piece gy_lane_piece(const struct gyre_request *r, int l)
{
    const struct gy_lane_state *lane = &r->lane[l];
    const struct gy_step *step = &r->plan->step[lane->step];
    return gy_layout_piece(layout_of(r, step), block_of(r, l), step->range.width, r->tile, lane->tile);
}

/* Element `start` of the vector in a slot that begins with block `origin`, or with the plan's own. */
static unsigned char *scratch_at(const struct gyre_request *r, int64_t slot, int32_t origin, size_t start)
{
    const struct gy_plan *plan = r->plan;
    slot %= plan->scratch_slots;
    if (slot < 0)
        slot += plan->scratch_slots;
    size_t begin = gy_layout_start(&r->in, plan->scratch_lo >= 0 ? plan->scratch_lo : origin);
    return (unsigned char *)r->scratch.memory + (size_t)slot * r->slot_bytes + (start - begin) * r->element;
}

static unsigned char *scratch_operand(const struct gyre_request *r, int l, size_t start)
{
    const struct gy_step *step = &r->plan->step[r->lane[l].step];
    int64_t slot = (int64_t)step->slot0 + (int64_t)step->slot_stride * r->lane[l].round;
    return scratch_at(r, slot, block_of(r, l), start);
}

unsigned char *gy_operand_at(const struct gyre_request *r, enum gy_space space, int32_t block, size_t start)
{
    if (space == GY_INPUT) /* never written: the cast serves callers that share one type for both operands */
        return (unsigned char *)(uintptr_t)r->input +
               gy_layout_place(&r->in, block, start, r->plan->input_lo) * r->element;
    return r->output + gy_layout_place(&r->out, block, start, r->plan->output_lo) * r->element;
}

unsigned char *gy_operand(const struct gyre_request *r, int l, enum gy_space space, size_t start)
{
    return space == GY_SCRATCH ? scratch_operand(r, l, start) : gy_operand_at(r, space, block_of(r, l), start);
}

/* Blocks between a range and runs. All have one length; those of a run lie side by side, but for the vector's end. */
static void rearrange(const struct gyre_request *r, const struct gy_step *step)
{
    const struct gy_runs *runs = &step->runs;
    bool pack = step->kind == GY_PACK;
    enum gy_space near = pack ? step->dst : step->src, far = pack ? step->src : step->dst;
    for (int32_t p = 0, n; p < step->range.width; p += n) {
        int32_t within = p % runs->run, lo = step->range.lo + p;
        int32_t b = gy_range_block((struct gy_range){runs->lo + within, runs->stride, 0}, r->plan->blocks,
                                   p / runs->run);
        n = runs->run - within < step->range.width - p ? runs->run - within : step->range.width - p;
        n = n < r->plan->blocks - b ? n : r->plan->blocks - b;
        size_t here = gy_layout_start(&r->in, lo), there = gy_layout_start(&r->in, b);
        size_t bytes = (gy_layout_start(&r->in, b + n) - there) * r->element;
        unsigned char *at = near == GY_SCRATCH ? scratch_at(r, step->slot0, 0, here) : gy_operand_at(r, near, lo, here);
        unsigned char *other = far == GY_SCRATCH ? scratch_at(r, runs->slot, 0, there)
                                                 : gy_operand_at(r, far, b, there);
        if (bytes > 0)
            memcpy(pack ? at : other, pack ? other : at, bytes);
    }
}

static void copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

/* Into the output: past the caches where the whole of it outgrows them. */
void gy_put(const struct gyre_request *r, void *dst, const void *src, size_t bytes)
{
    (r->stream ? gy_copy_stream : copy)(dst, src, bytes);
}

static void local_step(struct gyre_request *r, int l)
{
    const struct gy_step *step = &r->plan->step[r->lane[l].step];
    if (step->kind == GY_PACK || step->kind == GY_UNPACK) {
        rearrange(r, step);
        return;
    }
    if (gy_window_keeps_own(r)) /* the only one that such a plan has is of that block */
        return;
    struct gy_piece piece = gy_lane_piece(r, l);
    if (piece.count == 0)
        return;
    unsigned char *src = gy_operand(r, l, step->src, piece.start), *dst;
    if (step->kind == GY_COPY && step->src == GY_INPUT && step->dst == GY_OUTPUT) {
        /* all_to_allv: the block has the same length on both sides, and begins elsewhere */
        int32_t block = block_of(r, l);
        size_t offset = piece.start - gy_layout_start(layout_of(r, step), block);
        src = gy_operand(r, l, GY_INPUT, gy_layout_start(&r->in, block) + offset);
        dst = gy_operand(r, l, GY_OUTPUT, gy_layout_start(&r->out, block) + offset);
    } else {
        dst = gy_operand(r, l, step->dst, piece.start);
    }
    if (step->kind == GY_REDUCE) {
        gy_combine(&r->operation, dst, src, gy_operand(r, l, step->src2, piece.start), piece.count);
    } else if (src != dst) {
        gy_put(r, dst, src, piece.count * r->element);
    }
}

/* A lane on windows with nothing left to do but to count does that at once: whoever waits for its last iteration need not wait
 * for this rank's next turns. */
static bool counts_only(struct gyre_request *r, int l, const struct gy_step *step)
{
    struct gy_lane_state *lane = &r->lane[l];
    if (step->kind < GY_PUBLISH || !(step->kind == GY_PUBLISH ? gy_window_idle(r, step) : gy_whole_is_all(r, step)))
        return false;
    lane->iteration += lane->tiles - 1 - lane->tile;
    lane->tile = lane->tiles - 1;
    return true;
}

/* One iteration of a step that completes at once, or a block that does without. */
static bool immediate_step(struct gyre_request *r, int l)
{
    struct gy_lane_state *lane = &r->lane[l];
    const struct gy_step *step = &r->plan->step[lane->step];
    if (gy_window_follows(r, step))
        return false;
    bool whole = r->whole && lane->tile == 0 && gy_whole_reads(step);
    if (whole && gy_whole_take(r, step))
        return true;
    if (!counts_only(r, l, step) && !gy_needs_met(r, l, step, lane->lane_round, lane->tile))
        return false;
    if (whole && gy_whole_take(r, step)) /* everyone is there by now: what they offer is taken before the first tile */
        return true;
    if (step->kind < GY_PUBLISH)
        local_step(r, l);
    else if (!gy_window_step(r, l))
        return false;
    gy_lane_done(lane, lane->lane_round, lane->tile, lane->tiles);
    gy_lane_next(r, l);
    return true;
}

static bool lane_advance(struct gyre_request *r, int l)
{
    struct gy_lane_state *lane = &r->lane[l];
    bool moved = lane->flights > 0 && gy_flow_reap(r, l);
    for (int i = 0; i < GY_TILES_PER_TURN && !lane->exhausted && !r->complete; i++) {
        bool now;
        switch (r->plan->step[lane->step].kind) {
        case GY_SEND: now = gy_flow_send(r, l); break;
        case GY_RECV:
        case GY_RECV_REDUCE: now = gy_flow_receive(r, l); break;
        default: now = immediate_step(r, l);
        }
        if (!now)
            break;
        moved = true;
    }
    if (lane->flights > 0 && gy_flow_reap(r, l))
        moved = true;
    lane->finished = lane->exhausted && lane->flights == 0 && !lane->control.queued;
    return moved;
}

/* A grant behind the tiles that this rank sends to the same peer would leave them idle for as long as those take: 42 ms for
 * a turn's 1 MiB at 200 Mbit/s. So long messages are granted before any are sent. */
static void grant_first(struct gyre_request *r)
{
    for (int l = 0; l < r->plan->lanes && !r->plan->window; l++) {
        const struct gy_lane_state *lane = &r->lane[l];
        if (lane->exhausted || lane->eager)
            continue;
        enum gy_step_kind kind = r->plan->step[lane->step].kind;
        if (kind == GY_RECV || kind == GY_RECV_REDUCE)
            gy_flow_receive(r, l);
    }
}

/* Every lane has a turn. *over_p: all that there is to do here is done. */
bool gy_lanes_turn(struct gyre_request *r, bool *over_p)
{
    bool moved = false, finished = true;
    int missed = -1;
    for (int l = 0; l < r->plan->lanes && !r->complete; l++) {
        r->waiting_for = -1;
        if (!r->lane[l].finished) {
            moved |= lane_advance(r, l);
            finished &= r->lane[l].finished;
        }
        r->lane[l].waiting_for = r->waiting_for;
        missed = missed >= 0 ? missed : r->waiting_for;
    }
    if (!r->complete)
        r->waiting_for = missed;
    *over_p = finished && !r->complete && (!r->plan->window || gy_window_end(r));
    return moved;
}

bool gy_request_advance(struct gyre_request *r)
{
    if (r->phase != GY_MOVES)
        return r->phase == GY_CONFIRMS ? gy_ends_advance(r) : gy_comm_end_advance(r);
    if (r->plan->window) {
        if (r->comm->window_first != r || r->shape.sequence > r->comm->arrived)
            return false;
        if (r->tiny)
            return gy_tiny_advance(r);
        if (!r->begun && gy_window_begin(r) != GYRE_SUCCESS)
            return true;
    }
    bool over;
    grant_first(r);
    bool moved = gy_lanes_turn(r, &over);
    if (over)
        gy_request_through(r);
    return moved || over;
}

/* A lane is a cursor into a schedule: (step, round, tile). This file advances it, and finds what its iteration needs
 * and where its data lies. */
#include "collectives/engine/lane.h"

#include <string.h>

/* The vector that a step's ranges are blocks of. */
static const struct gy_layout *layout_of(const struct gyre_request *r, const struct gy_step *step)
{
    return step->kind == GY_RECV || step->kind == GY_RECV_REDUCE || step->kind == GY_EXCHANGE ? &r->out : &r->in;
}

size_t gy_step_longest(const struct gyre_request *r, const struct gy_step *step)
{
    const struct gy_layout *layout = layout_of(r, step);
    if (r->schedule->shape.collective == GY_ALL_TO_ALL && !r->schedule->shm && step->range.width == 1)
        return gy_layout_start(layout, step->range.lo + 1) - gy_layout_start(layout, step->range.lo);
    return gy_layout_longest(layout, step->range.width);
}

/* The step and round under the cursor have changed: works out what follows from them. */
void gy_lane_begin(struct gyre_request *r, int l)
{
    const struct gy_schedule *schedule = r->schedule;
    struct gy_lane_state *lane = &r->lane[l];
    const struct gy_step *step = &schedule->step[lane->step];
    bool shared = schedule->lane[l].region_lane >= 0;
    bool at_once = step->kind == GY_PACK || step->kind == GY_UNPACK;
    size_t longest = at_once ? 0 : shared ? gy_layout_longest(&r->in, 1) : gy_step_longest(r, step);
    lane->tiles = gy_layout_tiles(longest, r->tile);
    lane->everyone = 0;
    if (lane->round != 0 || step->kind > GY_RECV_REDUCE)
        return;
    r->comm->ctx->up->step_begins(r, l, step);
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
    if (++lane->round == r->schedule->step[lane->step].rounds) {
        lane->round = 0;
        if (++lane->step == r->schedule->lane[l].first + r->schedule->lane[l].count) {
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
            if (need->lag > 0 && r->comm->ctx->up->needs_nobody(r, step))
                continue;
            uint64_t target = r->region_base + r->lane[l].iteration + 1;
            uint64_t lag = (uint64_t)need->lag;
            if (target > lag &&
                !r->comm->ctx->up->everyone(r, l, step, r->schedule->lane[need->lane].region_lane, target - lag))
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
    return gy_range_block(r->schedule->step[lane->step].range, r->schedule->blocks, lane->round);
}

struct gy_piece gy_lane_piece(const struct gyre_request *r, int l)
{
    const struct gy_lane_state *lane = &r->lane[l];
    const struct gy_step *step = &r->schedule->step[lane->step];
    return gy_layout_piece(layout_of(r, step), block_of(r, l), step->range.width, r->tile, lane->tile);
}

/* Element `start` of the vector in a slot that begins with block `origin`, or with the schedule's own first block. */
static unsigned char *scratch_at(const struct gyre_request *r, int64_t slot, int32_t origin, size_t start)
{
    const struct gy_schedule *schedule = r->schedule;
    slot %= schedule->scratch_slots;
    if (slot < 0)
        slot += schedule->scratch_slots;
    size_t begin = gy_layout_start(&r->in, schedule->scratch_lo >= 0 ? schedule->scratch_lo : origin);
    return (unsigned char *)r->scratch.memory + (size_t)slot * r->slot_bytes + (start - begin) * r->element;
}

static unsigned char *scratch_operand(const struct gyre_request *r, int l, size_t start)
{
    const struct gy_step *step = &r->schedule->step[r->lane[l].step];
    int64_t slot = (int64_t)step->slot0 + (int64_t)step->slot_stride * r->lane[l].round;
    return scratch_at(r, slot, block_of(r, l), start);
}

unsigned char *gy_operand_at(const struct gyre_request *r, enum gy_space space, int32_t block, size_t start)
{
    if (space == GY_INPUT) /* never written: the cast serves callers that share one type for both operands */
        return (unsigned char *)(uintptr_t)r->input +
               gy_layout_place(&r->in, block, start, r->schedule->input_lo) * r->element;
    return r->output + gy_layout_place(&r->out, block, start, r->schedule->output_lo) * r->element;
}

unsigned char *gy_operand(const struct gyre_request *r, int l, enum gy_space space, size_t start)
{
    return space == GY_SCRATCH ? scratch_operand(r, l, start) : gy_operand_at(r, space, block_of(r, l), start);
}

/* Moves blocks between a range and runs. All blocks have one length. The blocks of a run are adjacent, but for the
 * vector's end. */
static void rearrange(const struct gyre_request *r, const struct gy_step *step)
{
    const struct gy_runs *runs = &step->runs;
    bool pack = step->kind == GY_PACK;
    enum gy_space local = pack ? step->dst : step->src, packed = pack ? step->src : step->dst;
    for (int32_t p = 0, n; p < step->range.width; p += n) {
        int32_t within = p % runs->run, lo = step->range.lo + p;
        int32_t b = gy_range_block((struct gy_range){runs->lo + within, runs->stride, 0}, r->schedule->blocks,
                                   p / runs->run);
        n = runs->run - within < step->range.width - p ? runs->run - within : step->range.width - p;
        n = n < r->schedule->blocks - b ? n : r->schedule->blocks - b;
        size_t here = gy_layout_start(&r->in, lo), there = gy_layout_start(&r->in, b);
        size_t bytes = (gy_layout_start(&r->in, b + n) - there) * r->element;
        unsigned char *at = local == GY_SCRATCH ? scratch_at(r, step->slot0, 0, here)
                                                : gy_operand_at(r, local, lo, here);
        unsigned char *other = packed == GY_SCRATCH ? scratch_at(r, runs->slot, 0, there)
                                                    : gy_operand_at(r, packed, b, there);
        if (bytes > 0)
            memcpy(pack ? at : other, pack ? other : at, bytes);
    }
}

static void copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

/* Copies into the output, with non-temporal stores if the whole output exceeds the caches. */
void gy_put(const struct gyre_request *r, void *dst, const void *src, size_t bytes)
{
    (r->stream ? gy_copy_stream : copy)(dst, src, bytes);
}

void gy_lane_local(struct gyre_request *r, int l)
{
    const struct gy_step *step = &r->schedule->step[r->lane[l].step];
    if (step->kind == GY_PACK || step->kind == GY_UNPACK) {
        rearrange(r, step);
        return;
    }
    struct gy_piece piece = gy_lane_piece(r, l);
    if (piece.count == 0)
        return;
    unsigned char *src = gy_operand(r, l, step->src, piece.start), *dst;
    if (step->kind == GY_COPY && step->src == GY_INPUT && step->dst == GY_OUTPUT) {
        /* all_to_allv: the block has the same length on both sides, but another start */
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

/* Iterations of a symbolic run: which elements they cover, what they wait for, and where a lane stands. See run.h. */
#include <stdlib.h>

#include "run.h"

void events_push(struct events *events, int event)
{
    if (events->count == events->capacity) {
        events->capacity = events->capacity == 0 ? 8 : 2 * events->capacity;
        events->event = realloc(events->event, (size_t)events->capacity * sizeof(events->event[0]));
        if (events->event == NULL)
            abort();
    }
    events->event[events->count++] = event;
}

size_t block_begin(const struct gy_checker_call *call, int blocks, int block)
{
    return call->starts ? call->starts[block] : call->total * (size_t)block / (size_t)blocks;
}

int block_of(const struct gy_checker_call *call, int size, size_t element)
{
    int block = 0;
    while (block + 1 < size && block_begin(call, size, block + 1) <= element)
        block++;
    return block;
}

/* Tile t of blocks [block, block + width); a range beyond the vector is an error. */
size_t piece_of(const struct run *run, const struct iteration *it, int block, int width, size_t *start_p)
{
    const struct gy_checker_call *call = &run->calls[run->rank[it->rank].call];
    size_t begin = block_begin(call, it->schedule->blocks, block);
    size_t end = block_begin(call, it->schedule->blocks, block + width);
    *start_p = begin + it->tile * call->tile;
    if (*start_p >= end)
        return 0;
    return end - *start_p < call->tile ? end - *start_p : call->tile;
}

size_t tiles_of(const struct gy_checker_call *call, const struct gy_schedule *schedule, const struct gy_step *step)
{
    size_t width = step->kind >= GY_PUBLISH ? 1 : (size_t)step->range.width, blocks = (size_t)schedule->blocks;
    size_t longest = (call->total * width + blocks - 1) / blocks;
    if (step->kind == GY_PACK || step->kind == GY_UNPACK)
        return 1;
    if (call->starts) {
        longest = 0;
        for (size_t b = 0; b + width <= blocks; b++)
            if (call->starts[b + width] - call->starts[b] > longest)
                longest = call->starts[b + width] - call->starts[b];
    }
    return longest == 0 ? 1 : (longest + call->tile - 1) / call->tile;
}

const struct gy_schedule *schedule_of(const struct run *run, int rank)
{
    return run->calls[run->rank[rank].call].schedules[rank];
}

int chain_of(const struct run *run, int rank, int lane)
{
    return rank * run->chains + 1 + lane;
}

const struct gy_step *lane_head(const struct run *run, int rank, int lane)
{
    const struct gy_schedule *schedule = schedule_of(run, rank);
    const struct lane_state *state = &run->rank[rank].lane[lane];
    return state->step < schedule->lane[lane].count ? &schedule->step[schedule->lane[lane].first + state->step] : NULL;
}

static const struct gy_step *step_of_round(const struct gy_schedule *schedule, int lane, int round)
{
    for (int s = schedule->lane[lane].first; s < schedule->lane[lane].first + schedule->lane[lane].count; s++) {
        if (round < schedule->step[s].rounds)
            return &schedule->step[s];
        round -= schedule->step[s].rounds;
    }
    return NULL;
}

/* The event that a need on my own lane waits for: −1 no need, −2 not yet. */
static int local_need(struct run *run, int rank, const struct lane_state *state, const struct gy_step *step,
                      const struct gy_need *need)
{
    const struct gy_schedule *schedule = schedule_of(run, rank);
    const struct lane_state *other = &run->rank[rank].lane[need->lane];
    int round = state->round - need->lag;
    if (round < 0)
        return -1;
    const struct gy_step *target = step_of_round(schedule, need->lane, round);
    if (target == NULL)
        return -2; /* never: shows as a deadlock */
    size_t tiles = tiles_of(&run->calls[run->rank[rank].call], schedule, target);
    if (!need->whole && tiles != tiles_of(&run->calls[run->rank[rank].call], schedule, step)) {
        run_fail(run, rank, "a need by tile between rounds of %d and %d blocks", step->range.width,
                 target->range.width);
        return -2;
    }
    if (round >= other->first_done.count)
        return -2;
    int index = other->first_done.event[round] + (int)(need->whole ? tiles - 1 : state->tile);
    return index < other->done.count ? other->done.event[index] : -2;
}

bool needs_met(struct run *run, int rank, int lane, int event)
{
    const struct gy_schedule *schedule = schedule_of(run, rank);
    const struct lane_state *state = &run->rank[rank].lane[lane];
    const struct gy_step *step = lane_head(run, rank, lane);
    for (int i = 0; i < GY_NEEDS; i++) {
        const struct gy_need *need = &step->needs[i];
        if (need->lane < 0)
            continue;
        if (need->lane >= schedule->lanes || (need->everyone && schedule->lane[need->lane].region_lane < 0))
            return run_fail(run, rank, "lane %d needs a lane that is not there", lane);
        if (!need->everyone) {
            int before = local_need(run, rank, state, step, need);
            if (before == -2)
                return false;
            if (before >= 0 && event >= 0)
                gy_order_after(&run->order, event, before);
            continue;
        }
        if (need->lag > 0 && mapped_idle(run, rank, step))
            continue;
        int count = run->rank[rank].base + (int)state->tile + 1 - need->lag;
        for (int r = 0; r < run->size && count > 0; r++) {
            if (r == rank || (step->peer >= 0 && r != step->peer))
                continue;
            if (mapped_whole(run, rank, step, r)) {
                if (!mapped_arrived(run, rank, r, event))
                    return false;
                continue;
            }
            const struct events *counter = &run->rank[r].counter[schedule->lane[need->lane].region_lane];
            if (counter->count < count)
                return false;
            if (event >= 0)
                gy_order_after(&run->order, event, counter->event[count - 1]);
        }
    }
    return true;
}

struct iteration iteration_begin(struct run *run, int rank, int lane)
{
    struct rank_state *state = &run->rank[rank];
    const struct lane_state *at = &state->lane[lane];
    struct iteration it = {
        .rank = rank, .lane = lane, .schedule = schedule_of(run, rank), .step = lane_head(run, rank, lane)};
    it.tile = at->tile;
    it.round_in_step = at->round_in_step;
    it.number = state->base + (int)at->tile;
    it.event = gy_order_event(&run->order, chain_of(run, rank, lane), run->rank[rank].call);
    gy_order_after(&run->order, it.event, state->start_event);
    needs_met(run, rank, lane, it.event);
    if (run->sends > 0 && it.step->kind == GY_SEND) { /* it has started; what reads comes after that */
        int start = it.event, chain = run->lanes + lane * GY_RUN_SENDS + it.step->peer % GY_RUN_SENDS;
        it.event = gy_order_event(&run->order, chain_of(run, rank, chain), run->rank[rank].call);
        run->order.depth[it.event] = run->order.depth[start];
        gy_order_after(&run->order, it.event, start);
    }
    return it;
}

void iteration_end(struct run *run, const struct iteration *it)
{
    struct lane_state *at = &run->rank[it->rank].lane[it->lane];
    if (at->tile == 0)
        events_push(&at->first_done, at->done.count);
    int event = it->event;
    if (run->sends > 0 && it->step->kind == GY_SEND) { /* done: after all that the lane has done before */
        int chain = run->lanes + run->sends + it->lane;
        event = gy_order_event(&run->order, chain_of(run, it->rank, chain), run->rank[it->rank].call);
        gy_order_after(&run->order, event, it->event);
    }
    events_push(&at->done, event);
    int region_lane = it->schedule->lane[it->lane].region_lane;
    if (region_lane >= 0)
        events_push(&run->rank[it->rank].counter[region_lane], it->event);
    if (++at->tile < tiles_of(&run->calls[run->rank[it->rank].call], it->schedule, it->step))
        return;
    at->tile = 0;
    at->round++;
    if (++at->round_in_step < it->step->rounds)
        return;
    at->round_in_step = 0;
    at->step++;
}

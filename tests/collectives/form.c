/* The form of a schedule: what must hold before anything runs. See schedule.h. */
#include "run.h"

enum covers { NOTHING, MINE, ALL, ALL_OF_ROOT };

bool form_to_self(const struct gy_schedule *schedule)
{
    return schedule->shape.collective == GY_SEND_TO && schedule->shape.root == schedule->shape.rank;
}

/* Blocks that a space covers, by the definition of the collective and not by the schedule. */
void form_view(const struct gy_schedule *schedule, enum gy_space space, int *lo_p, int *width_p)
{
    static const struct {
        enum covers input, output;
    } definition[GY_COLLECTIVES] = {
        [GY_ALL_REDUCE] = {ALL, ALL},         [GY_REDUCE_SCATTER] = {ALL, MINE},
        [GY_ALL_GATHER] = {MINE, ALL},        [GY_BROADCAST] = {ALL_OF_ROOT, ALL},
        [GY_BARRIER] = {NOTHING, NOTHING},    [GY_REDUCE_TO] = {ALL, ALL_OF_ROOT},
        [GY_GATHER_TO] = {MINE, ALL_OF_ROOT}, [GY_SCATTER_FROM] = {ALL_OF_ROOT, MINE},
        [GY_ALL_TO_ALL] = {ALL, ALL},         [GY_SEND_TO] = {ALL, NOTHING},
        [GY_RECEIVE_FROM] = {NOTHING, ALL},
    };
    const struct gy_schedule_shape *shape = &schedule->shape;
    enum covers covers = space == GY_INPUT ? definition[shape->collective].input : definition[shape->collective].output;
    if (form_to_self(schedule))
        covers = ALL;
    bool none = covers == NOTHING || (covers == ALL_OF_ROOT && shape->rank != shape->root);
    *lo_p = covers == MINE ? shape->rank : 0;
    *width_p = none ? 0 : covers == MINE ? 1 : schedule->blocks;
}

static bool views_hold(struct run *run, int rank, const struct gy_schedule *schedule)
{
    int lo, width, out_lo, out_width;
    form_view(schedule, GY_INPUT, &lo, &width);
    form_view(schedule, GY_OUTPUT, &out_lo, &out_width);
    if (width != schedule->input_blocks || out_width != schedule->output_blocks ||
        (width > 0 && lo != schedule->input_lo) || (out_width > 0 && out_lo != schedule->output_lo))
        return run_fail(run, rank, "input or output covers the wrong blocks");
    if (schedule->blocks < 1 ||
        (gy_checker_by_rank(schedule->shape.collective) && schedule->blocks != schedule->shape.size))
        return run_fail(run, rank, "%d blocks", schedule->blocks);
    return true;
}

/* The slices that share a slot decide how long a tile is: all ranks must know the same, and a rank that publishes
 * all slices must have room for them. */
static bool slots_hold(struct run *run, int rank, const struct gy_schedule *schedule)
{
    const struct gy_schedule *first = run->calls[run->rank[rank].call].schedules[0];
    int slices = schedule->shm ? 1 : 0;
    for (int s = 0; s < schedule->steps; s++)
        if (schedule->step[s].kind == GY_PUBLISH && schedule->step[s].range.width > 1)
            slices = schedule->shape.size - 1;
    if (first != NULL && (first->shm != schedule->shm || first->side_by_side != schedule->side_by_side))
        return run_fail(run, rank, "%d slices side by side, %d on rank 0", schedule->side_by_side, first->side_by_side);
    if (slices > (schedule->side_by_side > 1 ? schedule->side_by_side : 1))
        return run_fail(run, rank, "publishes %d slices where %d have room", slices, schedule->side_by_side);
    return true;
}

/* True if two lanes send to the same peer with one tag. Then arrivals have no order. */
static bool sends_alike(const struct gy_schedule *schedule, int lane, int other, const struct gy_step *step)
{
    const struct gy_lane *that = &schedule->lane[other];
    for (int s = that->first; s < that->first + that->count; s++)
        if (schedule->step[s].kind == GY_SEND && schedule->step[s].peer == step->peer &&
            that->tag == schedule->lane[lane].tag)
            return true;
    return false;
}

static bool step_holds(struct run *run, int rank, const struct gy_schedule *schedule, int lane,
                       const struct gy_step *step)
{
    bool sends = step->kind == GY_SEND, sent = schedule->step[schedule->lane[lane].first].kind == GY_SEND;
    if (sends != sent || step->rounds < 1 || step->range.width < 0)
        return run_fail(run, rank, "lane %d is not well formed", lane);
    if (step->kind <= GY_RECV_REDUCE && (step->peer < 0 || step->peer >= schedule->shape.size))
        return run_fail(run, rank, "lane %d has a message without a peer", lane);
    if (!sends && step->range.width > 0 && step->dst == GY_INPUT)
        return run_fail(run, rank, "lane %d writes to the input", lane);
    bool moves = step->kind == GY_PACK || step->kind == GY_UNPACK;
    if (moves && (schedule->shape.collective != GY_ALL_TO_ALL || step->runs.run < 1 || step->rounds != 1 ||
                  schedule->scratch_lo < 0 || run->calls[run->rank[rank].call].starts))
        return run_fail(run, rank, "lane %d moves blocks that may have different lengths", lane);
    for (int k = 0; k < step->rounds; k++)
        if (gy_range_block(step->range, schedule->blocks, k) + step->range.width > schedule->blocks)
            return run_fail(run, rank, "lane %d reaches beyond the last block", lane);
    for (int other = 0; other < lane && sends; other++)
        if (sends_alike(schedule, lane, other, step))
            return run_fail(run, rank, "two lanes send to rank %d with one tag", step->peer);
    return true;
}

/* Lanes send, or receive, or do neither; over shared memory they are one step of one round. */
static bool lane_holds(struct run *run, int rank, const struct gy_schedule *schedule, int i)
{
    const struct gy_lane *lane = &schedule->lane[i];
    const struct gy_step *first = &schedule->step[lane->first];
    if (lane->region_lane >= GY_REGION_LANES || (lane->region_lane >= 0) != (first->kind >= GY_PUBLISH))
        return run_fail(run, rank, "lane %d has the wrong region lane", i);
    if (lane->count < 1 || (lane->region_lane >= 0 && (lane->count != 1 || first->rounds != 1)))
        return run_fail(run, rank, "lane %d has the wrong number of steps", i);
    for (int s = lane->first; s < lane->first + lane->count; s++)
        if (!step_holds(run, rank, schedule, i, &schedule->step[s]))
            return false;
    return true;
}

bool form_holds(struct run *run, int rank, const struct gy_schedule *schedule)
{
    for (int i = 0; i < schedule->lanes; i++)
        if (!lane_holds(run, rank, schedule, i))
            return false;
    return views_hold(run, rank, schedule) && slots_hold(run, rank, schedule);
}

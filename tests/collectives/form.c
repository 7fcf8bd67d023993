/* The form of a plan: what must hold before anything runs. See plan.h for the rules. */
#include "run.h"

enum covers { NOTHING, MINE, ALL, ALL_OF_ROOT };

bool form_to_self(const struct gy_plan *plan)
{
    return plan->shape.collective == GY_SEND_TO && plan->shape.root == plan->shape.rank;
}

/* Blocks that a space covers, by the definition of the collective and not by the plan. */
void form_view(const struct gy_plan *plan, enum gy_space space, int *lo_p, int *width_p)
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
    const struct gy_plan_shape *shape = &plan->shape;
    enum covers covers = space == GY_INPUT ? definition[shape->collective].input : definition[shape->collective].output;
    if (form_to_self(plan))
        covers = ALL;
    bool none = covers == NOTHING || (covers == ALL_OF_ROOT && shape->rank != shape->root);
    *lo_p = covers == MINE ? shape->rank : 0;
    *width_p = none ? 0 : covers == MINE ? 1 : plan->blocks;
}

static bool views_hold(struct run *run, int rank, const struct gy_plan *plan)
{
    int lo, width, out_lo, out_width;
    form_view(plan, GY_INPUT, &lo, &width);
    form_view(plan, GY_OUTPUT, &out_lo, &out_width);
    if (width != plan->input_blocks || out_width != plan->output_blocks || (width > 0 && lo != plan->input_lo) ||
        (out_width > 0 && out_lo != plan->output_lo))
        return run_fail(run, rank, "input or output covers the wrong blocks");
    if (plan->blocks < 1 || (gy_checker_by_rank(plan->shape.collective) && plan->blocks != plan->shape.size))
        return run_fail(run, rank, "%d blocks", plan->blocks);
    return true;
}

/* The slices that share a slot decide how long a tile is: everyone must know the same, and whoever publishes all slices
 * have room for them. */
static bool slots_hold(struct run *run, int rank, const struct gy_plan *plan)
{
    const struct gy_plan *first = run->calls[run->rank[rank].call].plans[0];
    int slices = plan->shm ? 1 : 0;
    for (int s = 0; s < plan->steps; s++)
        if (plan->step[s].kind == GY_PUBLISH && plan->step[s].range.width > 1)
            slices = plan->shape.size - 1;
    if (first != NULL && (first->shm != plan->shm || first->side_by_side != plan->side_by_side))
        return run_fail(run, rank, "%d slices side by side, %d on rank 0", plan->side_by_side, first->side_by_side);
    if (slices > (plan->side_by_side > 1 ? plan->side_by_side : 1))
        return run_fail(run, rank, "publishes %d slices where %d have room", slices, plan->side_by_side);
    return true;
}

/* Do two lanes send to the same peer on one channel? Then what arrives has no order. */
static bool sends_alike(const struct gy_plan *plan, int lane, int other, const struct gy_step *step)
{
    const struct gy_lane *that = &plan->lane[other];
    for (int s = that->first; s < that->first + that->count; s++)
        if (plan->step[s].kind == GY_SEND && plan->step[s].peer == step->peer &&
            that->channel == plan->lane[lane].channel)
            return true;
    return false;
}

static bool step_holds(struct run *run, int rank, const struct gy_plan *plan, int lane, const struct gy_step *step)
{
    bool sends = step->kind == GY_SEND, sent = plan->step[plan->lane[lane].first].kind == GY_SEND;
    if (sends != sent || step->rounds < 1 || step->range.width < 0)
        return run_fail(run, rank, "lane %d is not well formed", lane);
    bool moves = step->kind == GY_PACK || step->kind == GY_UNPACK;
    if (moves && (plan->shape.collective != GY_ALL_TO_ALL || step->runs.run < 1 || step->rounds != 1 ||
                  plan->scratch_lo < 0 || run->calls[run->rank[rank].call].starts))
        return run_fail(run, rank, "lane %d moves blocks that may have different lengths", lane);
    for (int k = 0; k < step->rounds; k++)
        if (gy_range_block(step->range, plan->blocks, k) + step->range.width > plan->blocks)
            return run_fail(run, rank, "lane %d reaches beyond the last block", lane);
    for (int other = 0; other < lane && sends; other++)
        if (sends_alike(plan, lane, other, step))
            return run_fail(run, rank, "two lanes send to rank %d on one channel", step->peer);
    return true;
}

/* Lanes send, or receive, or do neither; on windows they are one step of one round. */
static bool lane_holds(struct run *run, int rank, const struct gy_plan *plan, int i)
{
    const struct gy_lane *lane = &plan->lane[i];
    const struct gy_step *first = &plan->step[lane->first];
    if (lane->region_lane >= GY_REGION_LANES || (lane->region_lane >= 0) != (first->kind >= GY_PUBLISH))
        return run_fail(run, rank, "lane %d has the wrong window lane", i);
    if (lane->count < 1 || (lane->region_lane >= 0 && (lane->count != 1 || first->rounds != 1)))
        return run_fail(run, rank, "lane %d has the wrong number of steps", i);
    for (int s = lane->first; s < lane->first + lane->count; s++)
        if (!step_holds(run, rank, plan, i, &plan->step[s]))
            return false;
    return true;
}

bool form_holds(struct run *run, int rank, const struct gy_plan *plan)
{
    for (int i = 0; i < plan->lanes; i++)
        if (!lane_holds(run, rank, plan, i))
            return false;
    return views_hold(run, rank, plan) && slots_hold(run, rank, plan);
}

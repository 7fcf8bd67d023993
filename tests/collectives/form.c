/* The form of a plan: what must hold before anything runs. See plan.h for the rules. */
#include "run.h"

/* Blocks that a space covers, by the definition of the collective and not by the plan. */
void form_view(const struct gy_plan *plan, enum gy_space space, int *lo_p, int *width_p)
{
    const struct gy_plan_shape *shape = &plan->shape;
    bool mine = (space == GY_INPUT && shape->collective == GY_ALL_GATHER) ||
                (space == GY_OUTPUT && shape->collective == GY_REDUCE_SCATTER);
    bool none = shape->collective == GY_BARRIER ||
                (space == GY_INPUT && shape->collective == GY_BROADCAST && shape->rank != shape->root);
    *lo_p = mine ? shape->rank : 0;
    *width_p = none ? 0 : mine ? 1 : plan->blocks;
}

static bool views_hold(struct run *run, int rank, const struct gy_plan *plan)
{
    int lo, width, out_lo, out_width;
    form_view(plan, GY_INPUT, &lo, &width);
    form_view(plan, GY_OUTPUT, &out_lo, &out_width);
    if (width != plan->input_blocks || out_width != plan->output_blocks || (width > 0 && lo != plan->input_lo) ||
        (out_width > 0 && out_lo != plan->output_lo))
        return run_fail(run, rank, "input or output covers the wrong blocks");
    bool by_rank = plan->shape.collective == GY_REDUCE_SCATTER || plan->shape.collective == GY_ALL_GATHER;
    if (plan->blocks < 1 || (by_rank && plan->blocks != plan->shape.size))
        return run_fail(run, rank, "%d blocks", plan->blocks);
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
    if (lane->window_lane >= GY_WINDOW_LANES || (lane->window_lane >= 0) != (first->kind >= GY_PUBLISH))
        return run_fail(run, rank, "lane %d has the wrong window lane", i);
    if (lane->count < 1 || (lane->window_lane >= 0 && (lane->count != 1 || first->rounds != 1)))
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
    return views_hold(run, rank, plan);
}

/* Two shots through windows: rank i reduces slice i of everyone's vector, then everyone collects. Blocks are slices,
 * one per rank; iteration t handles tile t of every slice.
 *
 *   all_reduce       publish (window lane 0): input, every slice but mine -> window[slot], side by side
 *                    gather  (window lane 1): my slice of everyone's window[slot] and my input -> output and
 *                            result[slot]
 *                    collect (window lane 2): the other slices from the other ranks' result[slot] -> output
 *   reduce_scatter   publish and gather
 *   all_gather       publish my block, collect the others from window[slot]; a lane of its own copies my block
 *
 * Invariants: every half's slot is written again only after its readers of GY_WINDOW_SLOTS iterations ago have finished
 * on every other rank. In
 * place: collecting tile t of a slice overwrites what I published of it, but its owner has reduced it by then, so I had
 * published it; my own slice is never published, only gathered. */
#include "collectives/builder.h"
#include "transport/segment.h"

static struct gy_step *add_lane(struct gy_builder *builder, int window_lane, enum gy_step_kind kind, int lo, int width,
                                enum gy_space src, enum gy_space dst)
{
    gy_builder_lane(builder, 0, window_lane);
    struct gy_step *step = gy_builder_step(builder, kind);
    step->range.lo = lo;
    step->range.width = width;
    step->src = src;
    step->dst = dst;
    return step;
}

static void reduce_slice(struct gy_builder *builder, const struct gy_plan_shape *shape, bool spread)
{
    enum { PUBLISH_LANE, GATHER_LANE, COLLECT_LANE };
    struct gy_step *publish = add_lane(builder, 0, GY_PUBLISH, 0, shape->size, GY_INPUT, GY_WINDOW);
    gy_step_need(publish, GATHER_LANE, GY_WINDOW_SLOTS, true, false);
    struct gy_step *gather = add_lane(builder, 1, GY_GATHER, shape->rank, 1, GY_INPUT, GY_OUTPUT);
    gy_step_need(gather, PUBLISH_LANE, 0, true, false);
    if (!spread)
        return;
    gy_step_need(gather, COLLECT_LANE, GY_WINDOW_SLOTS, true, false);
    gather->keep = true;
    struct gy_step *collect = add_lane(builder, 2, GY_COLLECT, 0, shape->size, GY_RESULT, GY_OUTPUT);
    gy_step_need(collect, GATHER_LANE, 0, true, false);
}

static void all_gather(struct gy_builder *builder, const struct gy_plan_shape *shape)
{
    enum { PUBLISH_LANE, COLLECT_LANE };
    struct gy_step *publish = add_lane(builder, 0, GY_PUBLISH, shape->rank, 1, GY_INPUT, GY_WINDOW);
    gy_step_need(publish, COLLECT_LANE, GY_WINDOW_SLOTS, true, false);
    struct gy_step *collect = add_lane(builder, 2, GY_COLLECT, 0, shape->size, GY_WINDOW, GY_OUTPUT);
    gy_step_need(collect, PUBLISH_LANE, 0, true, false);
    add_lane(builder, -1, GY_COPY, shape->rank, 1, GY_INPUT, GY_OUTPUT);
}

void gy_build_direct_two_shot(struct gy_builder *builder, const struct gy_plan_shape *shape)
{
    struct gy_plan *plan = gy_builder_plan(builder);
    plan->blocks = shape->size;
    plan->window = true;
    if (shape->collective == GY_ALL_GATHER)
        all_gather(builder, shape);
    else
        reduce_slice(builder, shape, shape->collective == GY_ALL_REDUCE);
}

/* One shot over shared memory: all ranks use published data directly. One round of tiles over the whole vector.
 *
 *   all_reduce   publish (region lane 0): tile of input -> published[slot]
 *                reduce  (region lane 1): output = x0 op x1 op ... over all ranks' published[slot], in rank order, own
 *                        part from input
 *   broadcast    publish (0): the root's tile; the others only count
 *                collect (2): the others copy it; the root only counts
 *                copy: the root's own output
 *   reduce       the lanes of all_reduce, where only the root reduces
 *   barrier      the lanes of all_reduce with nothing in them
 *
 * Invariants: a slot is rewritten only after its readers of GY_REGION_SLOTS iterations ago have finished on all
 * other ranks, for any root. In place, the reduction overwrites an input tile after it was published. In a broadcast
 * the readers wait for the root only, and the root for the readers four iterations back only, so a root may run
 * ahead. The same holds for the other ranks in a reduction to the root. */
#include "collectives/schedule/builder.h"
#include "transport/shm/segment.h"

enum { PUBLISH_LANE, USE_LANE };

static struct gy_step *add_lane(struct gy_builder *builder, int region_lane, enum gy_step_kind kind, int width,
                                enum gy_space src, enum gy_space dst)
{
    gy_builder_lane(builder, 0, region_lane);
    struct gy_step *step = gy_builder_step(builder, kind);
    step->range.width = width;
    step->src = src;
    step->dst = dst;
    return step;
}

static void reduce_all(struct gy_builder *builder, int width)
{
    struct gy_step *publish = add_lane(builder, 0, GY_PUBLISH, width, GY_INPUT, GY_PUBLISHED);
    if (width > 0)
        gy_step_need(publish, USE_LANE, GY_REGION_SLOTS, GY_NEED_EVERYONE);
    struct gy_step *reduce = add_lane(builder, 1, GY_REDUCE_PUBLISHED, width, GY_INPUT, GY_OUTPUT);
    gy_step_need(reduce, PUBLISH_LANE, 0, GY_NEED_EVERYONE);
    if (width > 0)
        gy_step_need(reduce, PUBLISH_LANE, 0, GY_NEED_TILE);
}

static void reduce_to_root(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    if (shape->rank == shape->root) { /* the published data would have no reader */
        add_lane(builder, 0, GY_PUBLISH, 0, GY_INPUT, GY_PUBLISHED);
        struct gy_step *reduce = add_lane(builder, 1, GY_REDUCE_PUBLISHED, 1, GY_INPUT, GY_OUTPUT);
        gy_step_need(reduce, PUBLISH_LANE, 0, GY_NEED_EVERYONE);
        return;
    }
    struct gy_step *publish = add_lane(builder, 0, GY_PUBLISH, 1, GY_INPUT, GY_PUBLISHED);
    gy_step_need(publish, USE_LANE, GY_REGION_SLOTS, GY_NEED_EVERYONE);
    add_lane(builder, 1, GY_REDUCE_PUBLISHED, 0, GY_INPUT, GY_OUTPUT);
}

static void broadcast(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    bool root = shape->rank == shape->root;
    struct gy_step *publish = add_lane(builder, 0, GY_PUBLISH, root, GY_INPUT, GY_PUBLISHED);
    if (root)
        gy_step_need(publish, USE_LANE, GY_REGION_SLOTS, GY_NEED_EVERYONE);
    struct gy_step *collect = add_lane(builder, 2, GY_COLLECT, !root, GY_PUBLISHED, GY_OUTPUT);
    if (!root) {
        collect->peer = shape->root;
        gy_step_need(collect, PUBLISH_LANE, 0, GY_NEED_EVERYONE);
    } else {
        add_lane(builder, -1, GY_COPY, 1, GY_INPUT, GY_OUTPUT);
    }
}

void gy_build_shm_one_shot(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    struct gy_schedule *schedule = gy_builder_schedule(builder);
    schedule->blocks = 1;
    schedule->shm = schedule->one_shot = true;
    if (shape->collective == GY_BROADCAST)
        broadcast(builder, shape);
    else if (shape->collective == GY_REDUCE_TO)
        reduce_to_root(builder, shape);
    else
        reduce_all(builder, shape->collective == GY_BARRIER ? 0 : 1);
}

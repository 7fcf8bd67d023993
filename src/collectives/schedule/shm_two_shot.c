/* Two shots over shared memory: rank i reduces slice i of all vectors, then all ranks collect. Blocks are slices, one
 * per rank; iteration t handles tile t of every slice.
 *
 *   all_reduce       publish (region lane 0): input, every slice but mine -> published[slot], side by side
 *                    reduce  (region lane 1): the own slice of all ranks' published[slot] and my input -> output and
 *                            result[slot]
 *                    collect (region lane 2): the other slices from the other ranks' result[slot] -> output
 *   reduce_scatter   publish and reduce
 *   reduce           like all_reduce, but the reduction goes to result[slot] alone, and only the root collects
 *   all_gather       publish my block, collect the others from published[slot]; a lane of its own copies my block
 *   gather           likewise, and only the root collects
 *   all_to_all       publish every block but mine, side by side; exchange: from every other rank's published[slot] the
 *                    block that is for me
 *   scatter          only the root publishes; each other rank copies its block
 *
 * Invariants: a slot of either half is rewritten only after its readers of GY_REGION_SLOTS iterations ago have
 * finished on all other ranks. In place, collecting a tile overwrites published data whose owner has already reduced
 * it. The own slice is never published, only reduced. */
#include "collectives/schedule/builder.h"
#include "transport/shm/segment.h"

static struct gy_step *add_lane(struct gy_builder *builder, int region_lane, enum gy_step_kind kind, int lo, int width,
                                enum gy_space src, enum gy_space dst)
{
    gy_builder_lane(builder, 0, region_lane);
    struct gy_step *step = gy_builder_step(builder, kind);
    step->range.lo = lo;
    step->range.width = width;
    step->src = src;
    step->dst = dst;
    return step;
}

static void reduce_slice(struct gy_builder *builder, const struct gy_schedule_shape *shape, bool spread)
{
    enum { PUBLISH_LANE, REDUCE_LANE, COLLECT_LANE };
    struct gy_step *publish = add_lane(builder, 0, GY_PUBLISH, 0, shape->size, GY_INPUT, GY_PUBLISHED);
    gy_step_need(publish, REDUCE_LANE, GY_REGION_SLOTS, GY_NEED_EVERYONE);
    struct gy_step *reduce = add_lane(builder, 1, GY_REDUCE_PUBLISHED, shape->rank, 1, GY_INPUT, GY_OUTPUT);
    gy_step_need(reduce, PUBLISH_LANE, 0, GY_NEED_EVERYONE);
    if (!spread)
        return;
    gy_step_need(reduce, COLLECT_LANE, GY_REGION_SLOTS, GY_NEED_EVERYONE);
    reduce->keep = true;
    struct gy_step *collect = add_lane(builder, 2, GY_COLLECT, 0, shape->size, GY_RESULT, GY_OUTPUT);
    gy_step_need(collect, REDUCE_LANE, 0, GY_NEED_EVERYONE);
}

static void all_gather(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    enum { PUBLISH_LANE, COLLECT_LANE };
    struct gy_step *publish = add_lane(builder, 0, GY_PUBLISH, shape->rank, 1, GY_INPUT, GY_PUBLISHED);
    gy_step_need(publish, COLLECT_LANE, GY_REGION_SLOTS, GY_NEED_EVERYONE);
    struct gy_step *collect = add_lane(builder, 2, GY_COLLECT, 0, shape->size, GY_PUBLISHED, GY_OUTPUT);
    gy_step_need(collect, PUBLISH_LANE, 0, GY_NEED_EVERYONE);
    add_lane(builder, -1, GY_COPY, shape->rank, 1, GY_INPUT, GY_OUTPUT);
}

static void reduce_to_root(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    enum { PUBLISH_LANE, REDUCE_LANE, COLLECT_LANE };
    bool root = shape->rank == shape->root;
    struct gy_step *publish = add_lane(builder, 0, GY_PUBLISH, 0, shape->size, GY_INPUT, GY_PUBLISHED);
    gy_step_need(publish, REDUCE_LANE, GY_REGION_SLOTS, GY_NEED_EVERYONE);
    struct gy_step *reduce = add_lane(builder, 1, GY_REDUCE_PUBLISHED, shape->rank, 1, GY_INPUT,
                                      root ? GY_OUTPUT : GY_RESULT);
    gy_step_need(reduce, PUBLISH_LANE, 0, GY_NEED_EVERYONE);
    if (!root)
        gy_step_need(reduce, COLLECT_LANE, GY_REGION_SLOTS, GY_NEED_EVERYONE);
    struct gy_step *collect = add_lane(builder, 2, GY_COLLECT, 0, root ? shape->size : 0, GY_RESULT, GY_OUTPUT);
    if (root) { /* its counter then says that this iteration has no reader left, itself included */
        gy_step_need(collect, REDUCE_LANE, 0, GY_NEED_EVERYONE);
        gy_step_need(collect, REDUCE_LANE, 0, GY_NEED_TILE);
    }
}

static void copy_own(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    add_lane(builder, -1, GY_COPY, shape->rank, 1, GY_INPUT, GY_OUTPUT);
}

static void gather(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    enum { PUBLISH_LANE, COLLECT_LANE };
    bool root = shape->rank == shape->root;
    struct gy_step *publish = add_lane(builder, 0, GY_PUBLISH, shape->rank, root ? 0 : 1, GY_INPUT, GY_PUBLISHED);
    if (!root)
        gy_step_need(publish, COLLECT_LANE, GY_REGION_SLOTS, GY_NEED_EVERYONE);
    struct gy_step *collect = add_lane(builder, 2, GY_COLLECT, 0, root ? shape->size : 0, GY_PUBLISHED, GY_OUTPUT);
    if (root) {
        gy_step_need(collect, PUBLISH_LANE, 0, GY_NEED_EVERYONE);
        copy_own(builder, shape);
    }
}

static void scatter(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    enum { PUBLISH_LANE, EXCHANGE_LANE };
    bool root = shape->rank == shape->root;
    struct gy_step *publish = add_lane(builder, 0, GY_PUBLISH, 0, root ? shape->size : 0, GY_INPUT, GY_PUBLISHED);
    if (root)
        gy_step_need(publish, EXCHANGE_LANE, GY_REGION_SLOTS, GY_NEED_EVERYONE);
    struct gy_step *exchange = add_lane(builder, 2, GY_EXCHANGE, shape->rank, root ? 0 : 1, GY_PUBLISHED, GY_OUTPUT);
    if (!root) {
        exchange->peer = shape->root;
        gy_step_need(exchange, PUBLISH_LANE, 0, GY_NEED_EVERYONE);
    } else {
        copy_own(builder, shape);
    }
}

/* In place, the block received from rank b overwrites the block sent to it, which was published before, tile by
 * tile. */
static void all_to_all(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    enum { PUBLISH_LANE, EXCHANGE_LANE };
    struct gy_step *publish = add_lane(builder, 0, GY_PUBLISH, 0, shape->size, GY_INPUT, GY_PUBLISHED);
    gy_step_need(publish, EXCHANGE_LANE, GY_REGION_SLOTS, GY_NEED_EVERYONE);
    struct gy_step *exchange = add_lane(builder, 2, GY_EXCHANGE, 0, shape->size, GY_PUBLISHED, GY_OUTPUT);
    gy_step_need(exchange, PUBLISH_LANE, 0, GY_NEED_EVERYONE);
    gy_step_need(exchange, PUBLISH_LANE, 0, GY_NEED_TILE);
    copy_own(builder, shape);
}

void gy_build_shm_two_shot(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    struct gy_schedule *schedule = gy_builder_schedule(builder);
    bool whole = shape->collective == GY_ALL_GATHER || shape->collective == GY_GATHER_TO;
    schedule->blocks = shape->size;
    schedule->shm = true;
    schedule->side_by_side = whole ? 1 : shape->size - 1;
    switch (shape->collective) {
    case GY_ALL_GATHER: all_gather(builder, shape); break;
    case GY_GATHER_TO: gather(builder, shape); break;
    case GY_SCATTER_FROM: scatter(builder, shape); break;
    case GY_ALL_TO_ALL: all_to_all(builder, shape); break;
    case GY_REDUCE_TO: reduce_to_root(builder, shape); break;
    default: reduce_slice(builder, shape, shape->collective == GY_ALL_REDUCE);
    }
}

/* Everyone with everyone, one partner after the other: in step k rank r exchanges its two blocks with rank (k − r) mod N,
 * whose partner in that step is r.
 *
 *   step      0    1    2    3           N = 4: the partner; whoever is its own copies
 *   rank 0    -    1    2    3
 *   rank 1    3    0    -    2
 *
 * Sends and receives are a lane each and do not wait for one another; both have the same partners in the same order, so
 * no two ranks wait for each other in a circle. */
#include "collectives/builder.h"

static void add_lane(struct gy_builder *builder, const struct gy_plan_shape *shape, enum gy_step_kind kind)
{
    gy_builder_lane(builder, 0, -1);
    for (int k = 0; k < shape->size; k++) {
        int partner = (k - shape->rank + shape->size) % shape->size;
        if (partner == shape->rank)
            continue;
        struct gy_step *step = gy_builder_step(builder, kind);
        step->peer = partner;
        step->range.lo = partner;
        step->range.width = 1;
        step->src = GY_INPUT;
        step->dst = GY_OUTPUT;
    }
}

void gy_build_pairwise(struct gy_builder *builder, const struct gy_plan_shape *shape)
{
    gy_builder_plan(builder)->blocks = shape->size;
    add_lane(builder, shape, GY_SEND);
    add_lane(builder, shape, GY_RECV);
    gy_builder_lane(builder, 0, -1);
    struct gy_step *copy = gy_builder_step(builder, GY_COPY);
    copy->range.lo = shape->rank;
    copy->range.width = 1;
    copy->src = GY_INPUT;
    copy->dst = GY_OUTPUT;
}

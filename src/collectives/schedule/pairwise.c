/* Everyone with everyone, one step after the other: in step k = 1 ... N − 1 rank r sends a block to rank r + k and receives one
 * from rank r − k, modulo N.
 *
 *   step      1        2        3           N = 4: to whom, from whom
 *   rank 0    1  3     2  2     3  1
 *   rank 1    2  0     3  3     0  2
 *
 * In every step each rank sends once and receives once, so that no link is idle in either direction, and none has two senders,
 * whatever N is. (Two who exchange their blocks with each other need N steps where N is odd, and as many by the usual rule,
 * partner k − r, where it is even; whoever has no partner in a step begins the next one, and sends to a rank that is being sent
 * to.) Steps take turns on two lanes in each direction: while a rank waits for the grant of its next block, or for the end of
 * the last one, the other lane's block has the link. Three ranks have two steps, which on two lanes would send from everybody to
 * everybody at once, two to each link: they take one after the other.
 *
 * Sends and receives do not wait for one another, and all lanes have their steps in order: of all steps that are under way
 * anywhere the lowest can always end, so no ranks wait for each other in a circle. */
#include "collectives/schedule/builder.h"

static void add_lane(struct gy_builder *builder, const struct gy_plan_shape *shape, enum gy_step_kind kind, int first,
                     int lanes)
{
    gy_builder_lane(builder, 0, -1);
    for (int k = first; k < shape->size; k += lanes) {
        struct gy_step *step = gy_builder_step(builder, kind);
        step->peer = (shape->rank + (kind == GY_SEND ? k : shape->size - k)) % shape->size;
        step->range.lo = step->peer;
        step->range.width = 1;
        step->src = GY_INPUT;
        step->dst = GY_OUTPUT;
    }
}

void gy_build_pairwise(struct gy_builder *builder, const struct gy_plan_shape *shape)
{
    int lanes = shape->size > 3 ? 2 : 1;
    gy_builder_plan(builder)->blocks = shape->size;
    for (int first = 1; first <= lanes && first < shape->size; first++) {
        add_lane(builder, shape, GY_SEND, first, lanes);
        add_lane(builder, shape, GY_RECV, first, lanes);
    }
    gy_builder_lane(builder, 0, -1);
    struct gy_step *copy = gy_builder_step(builder, GY_COPY);
    copy->range.lo = shape->rank;
    copy->range.width = 1;
    copy->src = GY_INPUT;
    copy->dst = GY_OUTPUT;
}

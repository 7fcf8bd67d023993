/* All pairs in N − 1 steps: in step k = 1 ... N − 1 rank r sends a block to rank r + k and receives one from rank r
 * − k, modulo N.
 *
 *   step      1        2        3           N = 4: destination, source
 *   rank 0    1  3     2  2     3  1
 *   rank 1    2  0     3  3     0  2
 *
 * In every step each rank sends once and receives once, so every link is busy in both directions and has one sender,
 * for any N. (A schedule of pairwise swaps needs N steps if N is odd. With the usual rule, partner k − r, it needs N
 * as well if N is even: a rank without a partner begins the next step early and sends to a rank that already
 * receives.) Steps alternate between two lanes per direction: while one lane waits for a grant or for its last block
 * to end, the other uses the link. Three ranks have two steps. On two lanes each rank would send to both others at
 * once, two senders per link; so these steps run one after the other.
 *
 * Sends and receives have no needs on each other, and each lane executes its steps in order. So the lowest step in
 * progress on any rank can always complete, and no cyclic wait is possible. */
#include "collectives/schedule/builder.h"

static void add_lane(struct gy_builder *builder, const struct gy_schedule_shape *shape, enum gy_step_kind kind,
                     int first, int lanes)
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

void gy_build_pairwise(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    int lanes = shape->size > 3 ? 2 : 1;
    gy_builder_schedule(builder)->blocks = shape->size;
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

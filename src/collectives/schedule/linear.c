/* Direct transfers between the root and every other rank: one hop, and no rank forwards another rank's data.
 *
 *   gather     1 ──▶ root      scatter    root ──▶ 1          point to point     root: the other one
 *              2 ──▶ root                 root ──▶ 2
 *              3 ──▶ root                 root ──▶ 3
 *
 * The root serves LANES ranks at a time: lane k serves ranks root + 1 + k, root + 1 + k + LANES, ..., one step each.
 * So a late rank delays one lane only. All lanes use one tag: two ranks exchange a single message. */
#include "collectives/schedule/builder.h"

enum { LANES = 4 };

static struct gy_step *add_step(struct gy_builder *builder, enum gy_step_kind kind, int peer, int block)
{
    struct gy_step *step = gy_builder_step(builder, kind);
    step->peer = peer;
    step->range.lo = block;
    step->range.width = 1;
    step->src = GY_INPUT;
    step->dst = GY_OUTPUT;
    return step;
}

static void serve_all(struct gy_builder *builder, const struct gy_schedule_shape *shape, enum gy_step_kind kind)
{
    for (int lane = 0; lane < LANES && lane < shape->size - 1; lane++) {
        gy_builder_lane(builder, 0, -1);
        for (int i = lane; i < shape->size - 1; i += LANES) {
            int peer = (shape->root + 1 + i) % shape->size;
            add_step(builder, kind, peer, peer);
        }
    }
    gy_builder_lane(builder, 0, -1);
    add_step(builder, GY_COPY, -1, shape->rank);
}

void gy_build_linear(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    bool point_to_point = shape->collective == GY_SEND_TO || shape->collective == GY_RECEIVE_FROM;
    bool to_root = shape->collective == GY_GATHER_TO || shape->collective == GY_SEND_TO;
    gy_builder_schedule(builder)->blocks = point_to_point ? 1 : shape->size;
    if (!point_to_point && shape->rank == shape->root) {
        serve_all(builder, shape, to_root ? GY_RECV : GY_SEND);
        return;
    }
    gy_builder_lane(builder, 0, -1);
    add_step(builder, to_root ? GY_SEND : GY_RECV, shape->root, point_to_point ? 0 : shape->rank);
}

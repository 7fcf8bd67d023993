/* Rings: rank r sends to r + 1 and receives from r − 1. One lane sends, one receives; block numbers are mod N.
 *
 *   all_reduce     N = 4, block b begins at rank b   round  0   1   2 | 3   4   5
 *                  r sends    r, r−1, r−2, ...       send   r  r−1 r−2 r−3  r  r−1    (input in round 0, then output)
 *                  r receives r−1, r−2, ...          recv  r−1 r−2 r−3| r  r−1 r−2    (reduce before |, store after)
 *   reduce_scatter the first half, shifted by one so that block r ends at rank r; partial sums pass two scratch slots
 *   all_gather     the second half; a lane of its own copies the own block
 *   broadcast      a chain from the root, tile after tile
 *   reduce         a chain to the root, from the rank before it in the circle: own op (received so far)
 *
 * Invariant: round k sends what round k − 1 received. The reduction of block b is own op (received so far), so that
 * its expression is a function of b and N alone. In place, a result never overwrites unsent data: a block returns
 * only after the own send of it was received. Scratch slots have no such cycle, so they carry a need for their
 * reuse. */
#include "collectives/schedule/builder.h"

static int next_rank(const struct gy_schedule_shape *shape)
{
    return (shape->rank + 1) % shape->size;
}

static int previous_rank(const struct gy_schedule_shape *shape)
{
    return (shape->rank + shape->size - 1) % shape->size;
}

enum { SEND_LANE, RECV_LANE };

/* Appends a loop over blocks lo, lo − 1, ... */
static struct gy_step *add_loop(struct gy_builder *builder, enum gy_step_kind kind, int peer, int lo, int rounds,
                                enum gy_space src, enum gy_space dst)
{
    struct gy_step *step = gy_builder_step(builder, kind);
    int size = gy_builder_schedule(builder)->shape.size;
    step->peer = peer;
    step->rounds = rounds;
    step->range = (struct gy_range){(lo % size + size) % size, rounds > 1 ? -1 : 0, 1};
    step->src = src;
    step->dst = dst;
    return step;
}

static void all_reduce(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    int r = shape->rank, n = shape->size, next = next_rank(shape), previous = previous_rank(shape);
    gy_builder_lane(builder, 0, -1);
    add_loop(builder, GY_SEND, next, r, 1, GY_INPUT, GY_INPUT);
    struct gy_step *send = add_loop(builder, GY_SEND, next, r - 1, 2 * n - 3, GY_OUTPUT, GY_OUTPUT);
    gy_step_need(send, RECV_LANE, 1, GY_NEED_TILE);
    gy_builder_lane(builder, 0, -1);
    add_loop(builder, GY_RECV_REDUCE, previous, r - 1, n - 1, GY_INPUT, GY_OUTPUT);
    add_loop(builder, GY_RECV, previous, r, n - 1, GY_OUTPUT, GY_OUTPUT);
}

static void reduce_scatter(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    int r = shape->rank, n = shape->size, next = next_rank(shape), previous = previous_rank(shape);
    struct gy_schedule *schedule = gy_builder_schedule(builder);
    schedule->scratch_slots = n > 3 ? 2 : n - 2;
    schedule->scratch_width = schedule->scratch_slots > 0 ? 1 : 0;
    gy_builder_lane(builder, 0, -1);
    add_loop(builder, GY_SEND, next, r - 1, 1, GY_INPUT, GY_INPUT);
    if (n > 2) {
        struct gy_step *send = add_loop(builder, GY_SEND, next, r - 2, n - 2, GY_SCRATCH, GY_SCRATCH);
        send->slot_stride = 1;
        gy_step_need(send, RECV_LANE, 1, GY_NEED_TILE);
    }
    gy_builder_lane(builder, 0, -1);
    if (n > 2) {
        struct gy_step *recv = add_loop(builder, GY_RECV_REDUCE, previous, r - 2, n - 2, GY_INPUT, GY_SCRATCH);
        recv->slot_stride = 1;
        if (n > 4) /* round k >= 2 overwrites what the send of round k − 1 read */
            gy_step_need(recv, SEND_LANE, 1, GY_NEED_TILE);
    }
    add_loop(builder, GY_RECV_REDUCE, previous, r, 1, GY_INPUT, GY_OUTPUT);
}

static void all_gather(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    int r = shape->rank, n = shape->size, next = next_rank(shape), previous = previous_rank(shape);
    gy_builder_lane(builder, 0, -1);
    add_loop(builder, GY_SEND, next, r, 1, GY_INPUT, GY_INPUT);
    if (n > 2) {
        struct gy_step *send = add_loop(builder, GY_SEND, next, r - 1, n - 2, GY_OUTPUT, GY_OUTPUT);
        gy_step_need(send, RECV_LANE, 1, GY_NEED_TILE);
    }
    gy_builder_lane(builder, 0, -1);
    add_loop(builder, GY_RECV, previous, r - 1, n - 1, GY_OUTPUT, GY_OUTPUT);
    gy_builder_lane(builder, 0, -1);
    add_loop(builder, GY_COPY, -1, r, 1, GY_INPUT, GY_OUTPUT);
}

static void broadcast(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    int next = next_rank(shape), previous = previous_rank(shape);
    if (shape->rank == shape->root) {
        gy_builder_lane(builder, 0, -1);
        add_loop(builder, GY_SEND, next, 0, 1, GY_INPUT, GY_INPUT);
        gy_builder_lane(builder, 0, -1);
        add_loop(builder, GY_COPY, -1, 0, 1, GY_INPUT, GY_OUTPUT);
        return;
    }
    int recv_lane = gy_builder_lane(builder, 0, -1);
    add_loop(builder, GY_RECV, previous, 0, 1, GY_OUTPUT, GY_OUTPUT);
    if (next == shape->root)
        return;
    gy_builder_lane(builder, 0, -1);
    struct gy_step *send = add_loop(builder, GY_SEND, next, 0, 1, GY_OUTPUT, GY_OUTPUT);
    gy_step_need(send, recv_lane, 0, GY_NEED_TILE);
}

/* A broadcast backwards: rank root − 1 begins, the root ends. */
static void reduce(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    int next = next_rank(shape), previous = previous_rank(shape);
    bool first = next == shape->root, root = shape->rank == shape->root;
    enum gy_space work = root ? GY_OUTPUT : GY_SCRATCH;
    if (!first) {
        gy_builder_lane(builder, 0, -1);
        add_loop(builder, GY_RECV_REDUCE, next, 0, 1, GY_INPUT, work);
    }
    if (root)
        return;
    gy_builder_lane(builder, 0, -1);
    struct gy_step *send = add_loop(builder, GY_SEND, previous, 0, 1, first ? GY_INPUT : work, work);
    if (first)
        return;
    gy_step_need(send, 0, 0, GY_NEED_TILE);
    gy_builder_schedule(builder)->scratch_slots = gy_builder_schedule(builder)->scratch_width = 1;
}

void gy_build_ring(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    bool chain = shape->collective == GY_BROADCAST || shape->collective == GY_REDUCE_TO;
    gy_builder_schedule(builder)->blocks = chain ? 1 : shape->size;
    switch (shape->collective) {
    case GY_ALL_REDUCE: all_reduce(builder, shape); break;
    case GY_REDUCE_SCATTER: reduce_scatter(builder, shape); break;
    case GY_ALL_GATHER: all_gather(builder, shape); break;
    case GY_BROADCAST: broadcast(builder, shape); break;
    case GY_REDUCE_TO: reduce(builder, shape); break;
    default: break;
    }
}

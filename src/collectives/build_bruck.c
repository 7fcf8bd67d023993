/* Bruck's all-gather for any world size N: what a rank has is a run of blocks that begins with its own, and doubles.
 *
 *   distance d = 1, 2, 4, ...:  rank r sends the first of its blocks, r, r + 1, ..., d of them or what is missing, to rank
 *                               r − d, and receives from r + d the blocks from r + d on; all modulo N
 *
 * Everything goes straight to its place in the output: a run that goes round the end of the vector is two messages.
 * Invariant: a send waits for the last receive of what it reads, and for the
 * copy of my own block. */
#include "collectives/builder.h"

enum { SEND_LANE, RECV_LANE, COPY_LANE };
enum { RUNS = 64 };

struct run {
    int lo, width;
};

struct script {
    struct gy_builder *builder;
    int rank, size;
    struct run received[RUNS]; /* so far, in order */
    int receives;
};

/* Blocks [lo, lo + width) modulo N as one run or two; returns how many. */
static int cut(const struct script *script, int lo, int width, struct run runs[2])
{
    int over = lo + width - script->size;
    runs[0] = (struct run){lo, over > 0 ? width - over : width};
    runs[1] = (struct run){0, over};
    return over > 0 ? 2 : 1;
}

/* After the last receive that brought any of it, and the copy of my own block where it is one of them. */
static void add_needs(const struct script *script, struct gy_step *step, int round, struct run run)
{
    int last = script->receives - 1;
    while (last >= 0 && (script->received[last].lo >= run.lo + run.width ||
                         script->received[last].lo + script->received[last].width <= run.lo))
        last--;
    /* Of two runs of equal length the one that begins later has each element in no later a tile. */
    bool same = last >= 0 && script->received[last].lo >= run.lo && script->received[last].width == run.width;
    if (last >= 0)
        gy_step_need(step, RECV_LANE, round - last, false, !same);
    if (step->src == GY_OUTPUT && script->rank >= run.lo && script->rank < run.lo + run.width)
        gy_step_need(step, COPY_LANE, round, false, run.width > 1);
}

static struct gy_step *add_step(struct script *script, enum gy_step_kind kind, int peer, struct run run,
                                enum gy_space space)
{
    struct gy_step *step = gy_builder_step(script->builder, kind);
    step->peer = peer;
    step->range = (struct gy_range){run.lo, 0, run.width};
    step->src = step->dst = space;
    return step;
}

static void add_lane(struct script *script, bool sends)
{
    int size = script->size, round = 0;
    script->receives = 0;
    gy_builder_lane(script->builder, 0, -1);
    for (int d = 1; d < size; d *= 2) {
        int width = d < size - d ? d : size - d, from = (script->rank + d) % size,
            to = (script->rank + size - d) % size;
        struct run runs[2];
        int count = cut(script, script->rank, width, runs);
        for (int i = 0; sends && i < count; i++, round++)
            add_needs(script, add_step(script, GY_SEND, to, runs[i], d == 1 ? GY_INPUT : GY_OUTPUT), round, runs[i]);
        count = cut(script, from, width, runs);
        for (int i = 0; i < count; i++) {
            script->received[script->receives++] = runs[i];
            if (!sends)
                add_step(script, GY_RECV, from, runs[i], GY_OUTPUT);
        }
    }
}

void gy_build_bruck(struct gy_builder *builder, const struct gy_plan_shape *shape)
{
    gy_builder_plan(builder)->blocks = shape->size;
    struct script script = {.builder = builder, .rank = shape->rank, .size = shape->size};
    add_lane(&script, true);
    add_lane(&script, false);
    gy_builder_lane(builder, 0, -1);
    struct gy_step *copy = gy_builder_step(builder, GY_COPY);
    copy->range = (struct gy_range){shape->rank, 0, 1};
    copy->src = GY_INPUT;
    copy->dst = GY_OUTPUT;
}

/* Bruck's algorithms for any world size N: few messages for small blocks.
 *
 * All-gather: a rank's blocks form a run that begins with its own and doubles in each round.
 *
 *   distance d = 1, 2, 4, ...:  rank r sends the first of its blocks, r, r + 1, ..., d of them or what is missing, to
 *                               rank r − d, and receives from r + d the blocks from r + d on; all modulo N
 *
 * Every block is received at its final place in the output; a run that wraps around the end of the vector is two
 * messages. Invariant: a send waits for the last receive of any block it reads, and for the copy of the own block.
 *
 * All-to-all: a block for rank r + i travels 2^k ranks for every bit k of i. Position i holds a block whose
 * remaining or completed distance is i:
 *
 *   turn       position i <- input block r + i
 *   k = 0, 1, 2, ...   pack      the positions with bit k, side by side
 *                      send      them to rank r + 2^k, receive those of rank r − 2^k
 *                      unpack    what came into the same positions
 *   turn       output block r − i <- position i; all modulo N
 *
 * A rank sends log2 N messages instead of N − 1; a block is sent once per set bit of its distance. Scratch slot 0
 * holds the positions. Slot 1 holds the outgoing message and, from block N / 2 on, the incoming one: at most N / 2
 * of i = 1 ... N − 1 have a given bit set. Invariant: one lane does all copies, so a pack follows all earlier
 * receives. It overwrites the outgoing message only after that was sent; a receive overwrites the incoming one only
 * after it was unpacked. */
#include "collectives/schedule/builder.h"

enum { SEND_LANE, RECV_LANE, COPY_LANE };
enum { RUNS = 64 };

struct run {
    int lo, width;
};

struct script {
    struct gy_builder *builder;
    int rank, size;
    struct run received[RUNS]; /* so far, in order of arrival */
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

/* Adds needs on the last receive that covers each part of the run, and on the copy of the own block if it is in it. */
static void add_needs(const struct script *script, struct gy_step *step, int round, struct run run)
{
    int last = script->receives - 1;
    while (last >= 0 && (script->received[last].lo >= run.lo + run.width ||
                         script->received[last].lo + script->received[last].width <= run.lo))
        last--;
    /* Of two runs of equal length, each element of the run with the later start lies in the same or an earlier tile. */
    bool same = last >= 0 && script->received[last].lo >= run.lo && script->received[last].width == run.width;
    if (last >= 0)
        gy_step_need(step, RECV_LANE, round - last, same ? GY_NEED_TILE : GY_NEED_ROUND);
    if (step->src == GY_OUTPUT && script->rank >= run.lo && script->rank < run.lo + run.width)
        gy_step_need(step, COPY_LANE, round, run.width > 1 ? GY_NEED_ROUND : GY_NEED_TILE);
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

enum { POSITIONS, MESSAGES }; /* slots */
enum { MOVE_LANE = COPY_LANE };

/* Returns how many of the positions 1 ... size − 1 have the bit set. */
static int count_with_bit(int size, int bit)
{
    int whole = size / (2 * bit) * bit, rest = size % (2 * bit) - bit;
    return whole + (rest > 0 ? rest : 0);
}

static struct gy_step *add_move(struct gy_builder *builder, enum gy_step_kind kind, int lo, int width,
                                struct gy_runs runs, enum gy_space src, enum gy_space dst)
{
    struct gy_step *step = gy_builder_step(builder, kind);
    step->range = (struct gy_range){lo, 0, width};
    step->runs = runs;
    step->src = src;
    step->dst = dst;
    return step;
}

static void exchange(struct gy_builder *builder, const struct gy_schedule_shape *shape, enum gy_step_kind kind)
{
    int size = shape->size;
    gy_builder_lane(builder, 0, -1);
    for (int k = 0, d = 1; d < size; k++, d *= 2) {
        bool sends = kind == GY_SEND;
        struct gy_step *step = gy_builder_step(builder, kind);
        step->peer = (shape->rank + (sends ? d : size - d)) % size;
        step->range = (struct gy_range){sends ? 0 : size / 2, 0, count_with_bit(size, d)};
        step->src = step->dst = GY_SCRATCH;
        step->slot0 = MESSAGES;
        if (sends) /* copies: a rotation, then packs and unpacks alternately */
            gy_step_need(step, MOVE_LANE, -(k + 1), GY_NEED_ROUND);
        else if (k > 0)
            gy_step_need(step, MOVE_LANE, -k, GY_NEED_ROUND);
    }
}

static void all_to_all(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    struct gy_schedule *schedule = gy_builder_schedule(builder);
    int size = shape->size, rank = shape->rank;
    schedule->scratch_slots = 2;
    schedule->scratch_lo = 0;
    schedule->scratch_width = size;
    exchange(builder, shape, GY_SEND);
    exchange(builder, shape, GY_RECV);
    gy_builder_lane(builder, 0, -1);
    add_move(builder, GY_PACK, 0, size, (struct gy_runs){rank, 0, size, 0}, GY_INPUT, GY_SCRATCH)->slot0 = POSITIONS;
    for (int k = 0, d = 1; d < size; k++, d *= 2) {
        struct gy_runs runs = {d, 2 * d, d, POSITIONS};
        int count = count_with_bit(size, d);
        struct gy_step *pack = add_move(builder, GY_PACK, 0, count, runs, GY_SCRATCH, GY_SCRATCH);
        pack->slot0 = MESSAGES;
        if (k > 0)
            gy_step_need(pack, SEND_LANE, k + 2, GY_NEED_ROUND);
        struct gy_step *unpack = add_move(builder, GY_UNPACK, size / 2, count, runs, GY_SCRATCH, GY_SCRATCH);
        unpack->slot0 = MESSAGES;
        gy_step_need(unpack, RECV_LANE, k + 2, GY_NEED_ROUND);
    }
    add_move(builder, GY_UNPACK, 0, size, (struct gy_runs){rank, -1, 1, 0}, GY_SCRATCH, GY_OUTPUT)->slot0 = POSITIONS;
}

void gy_build_bruck(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    gy_builder_schedule(builder)->blocks = shape->size;
    if (shape->collective == GY_ALL_TO_ALL) {
        all_to_all(builder, shape);
        return;
    }
    struct script script = {.builder = builder, .rank = shape->rank, .size = shape->size};
    add_lane(&script, true);
    add_lane(&script, false);
    gy_builder_lane(builder, 0, -1);
    struct gy_step *copy = gy_builder_step(builder, GY_COPY);
    copy->range = (struct gy_range){shape->rank, 0, 1};
    copy->src = GY_INPUT;
    copy->dst = GY_OUTPUT;
}

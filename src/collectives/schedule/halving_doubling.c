/* Recursive halving and doubling for any world size N. P is the largest power of two <= N, E = N − P ranks are
 * *folded*:
 *
 *   ranks   0 1 | 2 3 | ... | 2E−1 | 2E | 2E+1 | ...     the even rank of each of the first E pairs
 *   cores    0  |  1  | ... |  E−1 |  E |  E+1 | ...     is a core and works for both; so is every rank from 2E on.
 *   Core c begins at rank 2c (c < E) or c + E.
 *
 *   fold     odd -> even: the whole input is reduced into the even rank
 *   halve    for d = P/2 ... 1: with core c ^ d, keep the half of the range with the own bit d, send the other, reduce
 *            what comes
 *   double   for d = 1 ... P/2: with core c ^ d, swap ranges and keep both
 *   unfold   even -> odd: the whole result
 *
 *   all_reduce       fold halve double unfold, P blocks
 *   reduce_scatter   fold halve, N blocks: a core's range covers the blocks of its ranks; even -> odd: its block. Sums
 *                    live in placed scratch
 *   all_gather       odd -> even: its block; double; unfold
 *   barrier          dissemination: in round k to rank + 2^k, from rank − 2^k, empty messages; needs no fold
 *
 * Invariant: a send waits for the whole previous receive, which holds all it reads; for single tiles if both ranges
 * are equal. Reductions put the lower rank on the left. Data that a receive overwrites in place had been sent,
 * received and used by the peer before the peer could send back. */
#include "collectives/schedule/builder.h"

#define MOVES 80 /* messages of one direction: fold, 31 halvings, 31 doublings, unfold */

/* One message, in program order of this rank. */
struct move {
    enum gy_step_kind kind;
    int peer, lo, width;
    enum gy_space src, dst;
    int after;    /* number of receives that must be complete first */
    bool by_tile; /* the last of them covers the same range */
    bool copied;  /* waits for the copy of the own block */
};

struct script {
    const struct gy_schedule_shape *shape;
    int cores, folded; /* P, E */
    int core;          /* this rank's core; −1: the rank is folded */
    bool fine;         /* blocks are ranks, else cores */
    int receives, moves;
    int last_lo, last_width; /* range of the last receive */
    struct move move[MOVES];
};

static int core_rank(const struct script *script, int core)
{
    return core < script->folded ? 2 * core : core + script->folded;
}

/* First block of a core; cores [a, b) cover blocks [edge(a), edge(b)). */
static int edge(const struct script *script, int core)
{
    return script->fine ? core_rank(script, core) : core;
}

static void set_up(struct script *script, const struct gy_schedule_shape *shape)
{
    *script = (struct script){.shape = shape, .cores = 1};
    while (script->cores <= shape->size / 2)
        script->cores *= 2;
    script->folded = shape->size - script->cores;
    script->fine = shape->collective != GY_ALL_REDUCE;
    if (shape->rank >= 2 * script->folded)
        script->core = shape->rank - script->folded;
    else
        script->core = shape->rank % 2 == 0 ? shape->rank / 2 : -1;
}

static bool has_partner(const struct script *script)
{
    return script->shape->rank < 2 * script->folded;
}

static struct move *add_send(struct script *script, int peer, int lo, int width, enum gy_space src)
{
    struct move *move = &script->move[script->moves++];
    *move = (struct move){.kind = GY_SEND, .peer = peer, .lo = lo, .width = width, .src = src, .dst = src};
    move->after = src == GY_INPUT ? 0 : script->receives;
    move->by_tile = width > 0 && lo == script->last_lo && width == script->last_width;
    return move;
}

static void add_receive(struct script *script, enum gy_step_kind kind, int peer, int lo, int width, enum gy_space src,
                        enum gy_space dst)
{
    script->move[script->moves++] = (struct move){
        .kind = kind, .peer = peer, .lo = lo, .width = width, .src = src, .dst = dst};
    script->last_lo = lo;
    script->last_width = width;
    script->receives++;
}

/* The range of `core` when ranges are d cores wide. */
static int range_lo(const struct script *script, int core, int d)
{
    return edge(script, core & ~(d - 1));
}

static int range_width(const struct script *script, int core, int d)
{
    return edge(script, (core & ~(d - 1)) + d) - range_lo(script, core, d);
}

/* Leaves the reduction of this core's range in `work`; in the output if the range is this rank's output. */
static void halve(struct script *script, enum gy_space work)
{
    enum gy_space src = has_partner(script) ? work : GY_INPUT;
    for (int d = script->cores / 2; d >= 1; d /= 2) {
        int other = script->core ^ d, peer = core_rank(script, other);
        add_send(script, peer, range_lo(script, other, d), range_width(script, other, d), src);
        enum gy_space dst = d == 1 && !has_partner(script) ? GY_OUTPUT : work;
        add_receive(script, GY_RECV_REDUCE, peer, range_lo(script, script->core, d),
                    range_width(script, script->core, d), src, dst);
        src = work;
    }
}

static void exchange_back(struct script *script, enum gy_space first_src, bool copied)
{
    enum gy_space src = first_src;
    for (int d = 1; d < script->cores; d *= 2) {
        int other = script->core ^ d, peer = core_rank(script, other);
        struct move *send = add_send(script, peer, range_lo(script, script->core, d),
                                     range_width(script, script->core, d), src);
        send->copied = copied && src == GY_OUTPUT;
        if (send->copied)
            copied = false;
        add_receive(script, GY_RECV, peer, range_lo(script, other, d), range_width(script, other, d), GY_OUTPUT,
                    GY_OUTPUT);
        src = GY_OUTPUT;
    }
}

static void script_all_reduce(struct script *script)
{
    int rank = script->shape->rank, all = script->cores;
    if (script->core < 0) {
        add_send(script, rank - 1, 0, all, GY_INPUT);
        add_receive(script, GY_RECV, rank - 1, 0, all, GY_OUTPUT, GY_OUTPUT);
        return;
    }
    if (has_partner(script))
        add_receive(script, GY_RECV_REDUCE, rank + 1, 0, all, GY_INPUT, GY_OUTPUT);
    halve(script, GY_OUTPUT);
    exchange_back(script, GY_OUTPUT, false);
    if (has_partner(script))
        add_send(script, rank + 1, 0, all, GY_OUTPUT);
}

static void script_reduce_scatter(struct script *script)
{
    int rank = script->shape->rank, all = script->shape->size;
    if (script->core < 0) {
        add_send(script, rank - 1, 0, all, GY_INPUT);
        add_receive(script, GY_RECV, rank - 1, rank, 1, GY_OUTPUT, GY_OUTPUT);
        return;
    }
    if (has_partner(script))
        add_receive(script, GY_RECV_REDUCE, rank + 1, 0, all, GY_INPUT, GY_SCRATCH);
    halve(script, GY_SCRATCH);
    if (has_partner(script))
        add_send(script, rank + 1, rank + 1, 1, GY_SCRATCH);
}

static void script_all_gather(struct script *script)
{
    int rank = script->shape->rank, all = script->shape->size;
    if (script->core < 0) {
        add_send(script, rank - 1, rank, 1, GY_INPUT);
        add_receive(script, GY_RECV, rank - 1, 0, all, GY_OUTPUT, GY_OUTPUT);
        return;
    }
    if (has_partner(script))
        add_receive(script, GY_RECV, rank + 1, rank + 1, 1, GY_OUTPUT, GY_OUTPUT);
    exchange_back(script, has_partner(script) ? GY_OUTPUT : GY_INPUT, true);
    if (has_partner(script))
        add_send(script, rank + 1, 0, all, GY_OUTPUT);
}

static void script_barrier(struct script *script)
{
    int rank = script->shape->rank, size = script->shape->size;
    for (int d = 1; d < size; d *= 2) {
        add_send(script, (rank + d) % size, 0, 0, GY_OUTPUT);
        add_receive(script, GY_RECV, (rank + size - d) % size, 0, 0, GY_OUTPUT, GY_OUTPUT);
    }
}

enum { SEND_LANE, RECV_LANE, COPY_LANE };

static void emit_lane(struct gy_builder *builder, const struct script *script, bool sends)
{
    int round = 0;
    gy_builder_lane(builder, 0, -1);
    for (int i = 0; i < script->moves; i++) {
        const struct move *move = &script->move[i];
        if ((move->kind == GY_SEND) != sends)
            continue;
        struct gy_step *step = gy_builder_step(builder, move->kind);
        step->peer = move->peer;
        step->range = (struct gy_range){move->lo, 0, move->width};
        step->src = move->src;
        step->dst = move->dst;
        step->flip = move->kind == GY_RECV_REDUCE && move->peer < script->shape->rank;
        if (move->after > 0)
            gy_step_need(step, RECV_LANE, round - (move->after - 1), move->by_tile ? GY_NEED_TILE : GY_NEED_ROUND);
        if (move->copied)
            gy_step_need(step, COPY_LANE, round, GY_NEED_ROUND);
        round++;
    }
}

/* The lane that copies the own block to the output: from the input in all_gather, from the sums of both blocks in
 * reduce_scatter. */
static void emit_copy(struct gy_builder *builder, const struct script *script)
{
    bool gather = script->shape->collective == GY_ALL_GATHER;
    bool scatter = script->shape->collective == GY_REDUCE_SCATTER && has_partner(script);
    if (script->core < 0 || (!gather && !scatter))
        return;
    gy_builder_lane(builder, 0, -1);
    struct gy_step *copy = gy_builder_step(builder, GY_COPY);
    copy->range = (struct gy_range){script->shape->rank, 0, 1};
    copy->src = gather ? GY_INPUT : GY_SCRATCH;
    copy->dst = GY_OUTPUT;
    if (scatter)
        gy_step_need(copy, RECV_LANE, -(script->receives - 1), GY_NEED_ROUND);
}

static void set_scratch(struct gy_schedule *schedule, const struct script *script)
{
    if (script->core < 0 || (!has_partner(script) && script->cores == 2))
        return;
    schedule->scratch_slots = 1;
    schedule->scratch_lo = has_partner(script) ? 0 : range_lo(script, script->core, script->cores / 2);
    schedule->scratch_width = has_partner(script) ? script->shape->size
                                                  : range_width(script, script->core, script->cores / 2);
}

void gy_build_halving_doubling(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    struct script script;
    set_up(&script, shape);
    switch (shape->collective) {
    case GY_ALL_REDUCE: script_all_reduce(&script); break;
    case GY_REDUCE_SCATTER: script_reduce_scatter(&script); break;
    case GY_ALL_GATHER: script_all_gather(&script); break;
    default: script_barrier(&script); break;
    }
    struct gy_schedule *schedule = gy_builder_schedule(builder);
    schedule->blocks = shape->collective == GY_ALL_REDUCE ? script.cores
                       : shape->collective == GY_BARRIER  ? 1
                                                          : shape->size;
    if (shape->collective == GY_REDUCE_SCATTER)
        set_scratch(schedule, &script);
    emit_lane(builder, &script, true);
    emit_lane(builder, &script, false);
    emit_copy(builder, &script);
}

/* Canonical order over links at full bandwidth: recursive halving with growing distance, for any world size N. The
 * ranks are cut into groups by the bits of N, the largest first; A is the first group, of P ranks:
 *
 *   N = 7      A = 0 1 2 3   B = 4 5   C = 6          tree: A · (B · C), inside A: (0 · 1) · (2 · 3)
 *
 *   halve      in each group, at distances 1, 2, 4, ...: with the partner at that distance, keep the half of the range
 *              selected by the own bit, send the other, reduce what arrives. A rank of a group of 2^b ends with one of
 *              2^b parts of its group's reduction, that of its bits in reverse
 *   fold       C into B, then B into A: a rank's part goes, in pieces, to the ranks that hold parts of it, as right
 *              operand. A now has the reduction of all, one of P pieces per rank
 *   spread     all_reduce: A to B, B to C: the pieces return on the same links; then each group, at distances
 *              ..., 4, 2, 1, swaps parts. reduce: every rank of A sends its piece to the root. reduce_scatter: every
 *              rank of A sends the blocks of its piece to their owners, where it is not the owner itself
 *
 * Each direction moves N − 1 vectors, as a ring does. Every operand of a reduction is a run of ranks, the lower one
 * on the left: the expression is the canonical tree of reduction_order.h for every element.
 *
 * Invariants: a send waits for the whole previous receive, which holds all it reads; for single tiles if both ranges
 * are equal. Data that a receive overwrites had been sent, received and used before the peer could compute the
 * message. */
#include "collectives/schedule/builder.h"

enum { SEND_LANE, RECV_LANE };

struct script {
    struct gy_builder *builder;
    const struct gy_schedule_shape *shape;
    struct gy_bit_groups of;
    int pieces; /* P */
    bool fine;  /* blocks are ranks, else pieces */
    enum gy_space work;
    bool sends, open;        /* this pass emits sends, else receives; its lane has been opened */
    int round, receives;     /* of the lane under construction; of the receives so far */
    int last_lo, last_width; /* of the last receive, in pieces */
};

static int group_size(const struct gy_bit_group *group)
{
    return 1 << group->bits;
}

static void set_up(struct script *script, struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    *script = (struct script){.builder = builder,
                              .shape = shape,
                              .of = gy_bit_groups(shape->size, shape->rank),
                              .fine = shape->collective == GY_REDUCE_SCATTER};
    script->pieces = group_size(&script->of.groups[0]);
    bool output = shape->collective == GY_ALL_REDUCE ||
                  (shape->collective == GY_REDUCE_TO && shape->rank == shape->root);
    script->work = output ? GY_OUTPUT : GY_SCRATCH;
}

/* First block of a piece; of reduce_scatter a piece is one or two ranks' blocks. */
static int edge(const struct script *script, int piece)
{
    return script->fine ? (int)((int64_t)piece * script->shape->size / script->pieces) : piece;
}

/* First piece of the range that rank `index` of a group has after `steps` halvings; its length is P >> steps. */
static int range_lo(const struct script *script, int index, int steps)
{
    int lo = 0;
    for (int k = 0; k < steps; k++)
        lo += (index >> k & 1) * (script->pieces >> (k + 1));
    return lo;
}

static struct gy_step *add_step(struct script *script, enum gy_step_kind kind, int peer, int block, int blocks,
                                enum gy_space src, enum gy_space dst)
{
    if (!script->open)
        gy_builder_lane(script->builder, 0, -1);
    script->open = true;
    struct gy_step *step = gy_builder_step(script->builder, kind);
    step->peer = peer;
    step->range = (struct gy_range){block, 0, blocks};
    step->src = src;
    step->dst = dst;
    script->round++;
    return step;
}

static void add_send(struct script *script, int peer, int lo, int width, enum gy_space src)
{
    if (!script->sends)
        return;
    bool by_tile = lo == script->last_lo && width == script->last_width;
    int round = script->round, block = edge(script, lo);
    struct gy_step *step = add_step(script, GY_SEND, peer, block, edge(script, lo + width) - block, src, src);
    if (src != GY_INPUT)
        gy_step_need(step, RECV_LANE, round - (script->receives - 1), by_tile ? GY_NEED_TILE : GY_NEED_ROUND);
}

static void add_receive(struct script *script, enum gy_step_kind kind, int peer, int lo, int width, enum gy_space src,
                        enum gy_space dst)
{
    script->receives++;
    script->last_lo = lo;
    script->last_width = width;
    if (script->sends)
        return;
    int block = edge(script, lo);
    struct gy_step *step = add_step(script, kind, peer, block, edge(script, lo + width) - block, src, dst);
    step->flip = kind == GY_RECV_REDUCE && peer < script->shape->rank;
}

static void halve(struct script *script)
{
    const struct gy_bit_group *group = &script->of.groups[script->of.mine];
    for (int k = 0; k < group->bits; k++) {
        int other = script->of.index ^ (1 << k), width = script->pieces >> (k + 1);
        enum gy_space src = k == 0 ? GY_INPUT : script->work;
        add_send(script, group->first + other, range_lo(script, other, k + 1), width, src);
        add_receive(script, GY_RECV_REDUCE, group->first + other, range_lo(script, script->of.index, k + 1), width, src,
                    script->work);
    }
}

/* From the group behind mine, then to the one before. */
static void fold(struct script *script)
{
    const struct gy_bit_group *group = &script->of.groups[script->of.mine];
    if (script->of.mine + 1 < script->of.count) {
        int peer = group[1].first + (script->of.index & (group_size(&group[1]) - 1));
        add_receive(script, GY_RECV_REDUCE, peer, range_lo(script, script->of.index, group->bits),
                    script->pieces >> group->bits, script->work, script->work);
    }
    if (script->of.mine == 0)
        return;
    for (int i = script->of.index; i < group_size(&group[-1]); i += group_size(group))
        add_send(script, group[-1].first + i, range_lo(script, i, group[-1].bits), script->pieces >> group[-1].bits,
                 group->bits == 0 ? GY_INPUT : script->work);
}

static void spread(struct script *script)
{
    const struct gy_bit_group *group = &script->of.groups[script->of.mine];
    if (script->of.mine > 0)
        for (int i = script->of.index; i < group_size(&group[-1]); i += group_size(group))
            add_receive(script, GY_RECV, group[-1].first + i, range_lo(script, i, group[-1].bits),
                        script->pieces >> group[-1].bits, GY_OUTPUT, GY_OUTPUT);
    if (script->of.mine + 1 < script->of.count)
        add_send(script, group[1].first + (script->of.index & (group_size(&group[1]) - 1)),
                 range_lo(script, script->of.index, group->bits), script->pieces >> group->bits, GY_OUTPUT);
    for (int k = group->bits - 1; k >= 0; k--) {
        int other = script->of.index ^ (int)(1u << (k & 31)), width = script->pieces >> (k + 1);
        add_send(script, group->first + other, range_lo(script, script->of.index, k + 1), width, GY_OUTPUT);
        add_receive(script, GY_RECV, group->first + other, range_lo(script, other, k + 1), width, GY_OUTPUT, GY_OUTPUT);
    }
}

static void send_to_root(struct script *script)
{
    int root = script->shape->root, bits = script->of.groups[0].bits;
    if (script->shape->rank == root) {
        for (int i = 0; i < script->pieces; i++)
            if (i != root)
                add_receive(script, GY_RECV, i, range_lo(script, i, bits), 1, GY_OUTPUT, GY_OUTPUT);
    } else if (script->of.mine == 0) {
        add_send(script, root, range_lo(script, script->of.index, bits), 1, script->work);
    }
}

/* The rank of A whose piece has the block. */
static int holder_of(const struct script *script, int block)
{
    for (int i = 0; i < script->pieces; i++) {
        int piece = range_lo(script, i, script->of.groups[0].bits);
        if (block >= edge(script, piece) && block < edge(script, piece + 1))
            return i;
    }
    return -1;
}

/* Returns the number of blocks in the piece that this rank holds after the reduction. */
static int piece_blocks(const struct script *script)
{
    int piece = range_lo(script, script->of.index, script->of.groups[0].bits);
    return edge(script, piece + 1) - edge(script, piece);
}

/* Receives this rank's block last, so that `receives` is still that of the reduction when the blocks leave. */
static void send_to_owners(struct script *script)
{
    int rank = script->shape->rank, piece = range_lo(script, script->of.index, script->of.groups[0].bits);
    for (int b = edge(script, piece); script->of.mine == 0 && b < edge(script, piece + 1); b++) {
        if (b == rank || !script->sends)
            continue;
        int round = script->round;
        struct gy_step *step = add_step(script, GY_SEND, b, b, 1, script->work, script->work);
        gy_step_need(step, RECV_LANE, round - (script->receives - 1),
                     piece_blocks(script) > 1 ? GY_NEED_ROUND : GY_NEED_TILE);
    }
    int holder = holder_of(script, rank);
    if (holder != rank && !script->sends)
        add_step(script, GY_RECV, holder, rank, 1, GY_OUTPUT, GY_OUTPUT);
}

static void emit_lane(struct script *script, bool sends)
{
    script->sends = sends;
    script->open = false;
    script->round = script->receives = 0;
    script->last_lo = script->last_width = -1;
    halve(script);
    fold(script);
    switch (script->shape->collective) {
    case GY_ALL_REDUCE: spread(script); break;
    case GY_REDUCE_TO: send_to_root(script); break;
    default: send_to_owners(script);
    }
}

/* Copies the own block, if this rank holds it. */
static void emit_copy(struct script *script)
{
    if (script->shape->collective != GY_REDUCE_SCATTER || holder_of(script, script->shape->rank) != script->shape->rank)
        return;
    script->open = false;
    struct gy_step *copy = add_step(script, GY_COPY, -1, script->shape->rank, 1, GY_SCRATCH, GY_OUTPUT);
    gy_step_need(copy, RECV_LANE, -(script->receives - 1), piece_blocks(script) > 1 ? GY_NEED_ROUND : GY_NEED_TILE);
}

void gy_build_canonical(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    struct script script;
    set_up(&script, builder, shape);
    struct gy_schedule *schedule = gy_builder_schedule(builder);
    schedule->blocks = script.fine ? shape->size : script.pieces;
    if (script.work == GY_SCRATCH && script.of.groups[script.of.mine].bits > 0) {
        int lo = range_lo(&script, script.of.index, 1);
        schedule->scratch_slots = 1;
        schedule->scratch_lo = edge(&script, lo);
        schedule->scratch_width = edge(&script, lo + script.pieces / 2) - schedule->scratch_lo;
    }
    emit_lane(&script, true);
    emit_lane(&script, false);
    emit_copy(&script);
}

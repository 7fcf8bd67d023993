/* Recursive doubling for any world size N: whole vectors, few messages, in canonical order (reduction_order.h). The
 * ranks are cut into groups by the bits of N, the largest first.
 *
 *   N = 7      A = 0 1 2 3   B = 4 5   C = 6          tree: A · (B · C), inside A: (0 · 1) · (2 · 3)
 *
 *   double   in each group, at distances 1, 2, 4, ...: exchange the accumulated vector with the partner at that
 *            distance, and reduce; not before it is complete: the previous exchange fills the link, and a rank that
 *            is ahead would fill its way
 *            to the next
 *            partner before it allows that one to send
 *   fold     C into B, then B into A: rank j of B sends to the ranks j, j + 2, ... of A, as their right operand
 *   spread   rank j of A sends the result to rank j of B, and that to rank j of C
 *
 * The accumulated vector has versions: 0 is the input, odd ones lie in scratch, even ones in the output, so a new
 * version is written beside the one being sent. Invariant: version v + 1 overwrites v − 1 after v − 1 has been sent.
 * The final result overwrites the output after all sends from there have left: its arrival proves that one message
 * was received, not that all were. */
#include "collectives/schedule/builder.h"

/* In this order, so that the grant for the next partner leaves before the data to it. */
enum { RECV_LANE, SEND_LANE };

struct script {
    struct gy_builder *builder;
    const struct gy_schedule_shape *shape;
    struct gy_bit_groups of;
    int last; /* version with the group's reduction, and later ones */
};

static void set_up(struct script *script, struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    *script = (struct script){.builder = builder, .shape = shape, .of = gy_bit_groups(shape->size, shape->rank)};
    script->last = script->of.groups[script->of.mine].bits + (script->of.mine + 1 < script->of.count);
}

static enum gy_space place_of(int version)
{
    return version == 0 ? GY_INPUT : version % 2 ? GY_SCRATCH : GY_OUTPUT;
}

static struct gy_step *add_step(struct script *script, enum gy_step_kind kind, int peer, enum gy_space src,
                                enum gy_space dst)
{
    struct gy_step *step = gy_builder_step(script->builder, kind);
    step->peer = peer;
    step->range.width = 1;
    step->src = src;
    step->dst = dst;
    return step;
}

static void emit_sends(struct script *script)
{
    const struct gy_bit_group *group = &script->of.groups[script->of.mine];
    int round = 0, version = script->last, own = script->of.index;
    for (; round < group->bits; round++) {
        struct gy_step *step = add_step(script, GY_SEND, group->first + (own ^ (1 << round)), place_of(round),
                                        GY_OUTPUT);
        if (round == 0)
            continue;
        gy_step_need(step, RECV_LANE, 1, GY_NEED_ROUND);
        step->needs[0].paced = true;
    }
    for (int i = own; script->of.mine > 0 && i < 1 << group[-1].bits; i += 1 << group->bits, round++) {
        struct gy_step *step = add_step(script, GY_SEND, group[-1].first + i, place_of(version), GY_OUTPUT);
        if (version > 0)
            gy_step_need(step, RECV_LANE, round - (version - 1), GY_NEED_TILE);
    }
    if (script->of.mine + 1 == script->of.count || own >= 1 << group[1].bits)
        return;
    struct gy_step *step = add_step(script, GY_SEND, group[1].first + own,
                                    script->of.mine > 0 ? GY_OUTPUT : place_of(version), GY_OUTPUT);
    gy_step_need(step, RECV_LANE, round - (version - (script->of.mine == 0)), GY_NEED_TILE);
}

static void emit_receives(struct script *script)
{
    const struct gy_bit_group *group = &script->of.groups[script->of.mine];
    for (int version = 0; version < script->last; version++) {
        int peer = version < group->bits ? group->first + (script->of.index ^ (1 << version))
                                         : group[1].first + (script->of.index & ((1 << group[1].bits) - 1));
        struct gy_step *step = add_step(script, GY_RECV_REDUCE, peer, place_of(version), place_of(version + 1));
        step->flip = peer < script->shape->rank;
        if (version > 0)
            gy_step_need(step, SEND_LANE, 1, GY_NEED_TILE);
    }
    if (script->of.mine == 0)
        return;
    struct gy_step *step = add_step(script, GY_RECV, group[-1].first + script->of.index, GY_OUTPUT, GY_OUTPUT);
    int last_send = script->last % 2 ? (group->bits - 1) & ~1 /* last send not read from scratch */
                                     : group->bits + (1 << (group[-1].bits - group->bits)) - 1;
    gy_step_need(step, SEND_LANE, script->last - last_send, GY_NEED_TILE);
}

/* The result lies in scratch: copies it over the previous version, once that has been sent. */
static void emit_copy(struct script *script)
{
    int version = script->last;
    gy_builder_lane(script->builder, 0, -1);
    struct gy_step *copy = add_step(script, GY_COPY, -1, GY_SCRATCH, GY_OUTPUT);
    gy_step_need(copy, RECV_LANE, -(version - 1), GY_NEED_TILE);
    if (version - 1 < script->of.groups[0].bits)
        gy_step_need(copy, SEND_LANE, -(version - 1), GY_NEED_TILE);
}

void gy_build_recursive_doubling(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    struct script script;
    set_up(&script, builder, shape);
    struct gy_schedule *schedule = gy_builder_schedule(builder);
    schedule->blocks = 1;
    schedule->scratch_slots = schedule->scratch_width = script.last > 0;
    gy_builder_lane(builder, 0, -1);
    emit_receives(&script);
    gy_builder_lane(builder, 0, -1);
    emit_sends(&script);
    if (script.of.mine == 0 && script.last % 2)
        emit_copy(&script);
}

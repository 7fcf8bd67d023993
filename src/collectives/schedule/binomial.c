/* Binomial trees over runs of ranks: the canonical tree (reduction_order.h). The holder of a group is the root if it
 * is a member, else the group's first rank.
 *
 *   N = 6, root 3      ((0 1)(2 3))(4 5)      1 ─▶ 0 ─▶ 3     the holder of a part sends it to the holder of the whole
 *                                             2 ─▶ 3          (reduce, gather), or receives it (broadcast, scatter)
 *                                             5 ─▶ 4 ─▶ 3
 *
 *   reduce      parts are whole vectors; the lower ranks' is the left operand: canonical order, for any root
 *   gather      parts are the blocks of the group, which lie together whatever the root
 *   broadcast, scatter     the same backwards, the largest group first
 *
 * Invariant: a range is sent after all of it has been received. Partial sums and forwarded blocks live in scratch;
 * at the root in the output. */
#include "collectives/schedule/builder.h"
#include "collectives/schedule/reduction_order.h"

#define CHILDREN 32

struct part {
    int holder, lo, width; /* ranks [lo, lo + width) */
};

/* This rank's position in the tree. */
struct place {
    int parent;                  /* −1: this rank is the root */
    struct part whole;           /* the largest group this rank holds */
    struct part child[CHILDREN]; /* its parts held by other ranks, the smallest first */
    int children;
};

static int holder_of(const struct gy_schedule_shape *shape, int lo, int width)
{
    return shape->root >= lo && shape->root < lo + width ? shape->root : lo;
}

static struct place find_place(const struct gy_schedule_shape *shape)
{
    struct place place = {.parent = -1};
    struct part other[CHILDREN];
    int lo = 0, width = shape->size, others = 0;
    while (width > 1) {
        int half = gy_tree_split(width), holder = holder_of(shape, lo, width);
        bool left = shape->rank < lo + half;
        struct part mine = {0, left ? lo : lo + half, left ? half : width - half};
        struct part theirs = {0, left ? lo + half : lo, left ? width - half : half};
        theirs.holder = holder_of(shape, theirs.lo, theirs.width);
        if (holder == shape->rank)
            other[others++] = theirs;
        else
            place.parent = holder; /* finally: the holder of the smallest group this rank does not hold */
        lo = mine.lo;
        width = mine.width;
    }
    place.whole = (struct part){shape->rank, shape->rank, 1};
    for (place.children = 0; place.children < others; place.children++) {
        struct part *child = &place.child[place.children];
        *child = other[others - 1 - place.children];
        place.whole.lo = child->lo < place.whole.lo ? child->lo : place.whole.lo;
        place.whole.width += child->width;
    }
    return place;
}

static struct gy_step *add_step(struct gy_builder *builder, enum gy_step_kind kind, int peer, int lo, int width,
                                enum gy_space src, enum gy_space dst)
{
    struct gy_step *step = gy_builder_step(builder, kind);
    step->peer = peer;
    step->range = (struct gy_range){lo, 0, width};
    step->src = src;
    step->dst = dst;
    return step;
}

static void reduce(struct gy_builder *builder, const struct place *place, int rank)
{
    enum gy_space work = place->parent < 0 ? GY_OUTPUT : GY_SCRATCH;
    int lane = -1;
    for (int c = 0; c < place->children; c++) {
        int peer = place->child[c].holder;
        lane = c == 0 ? gy_builder_lane(builder, 0, -1) : lane;
        add_step(builder, GY_RECV_REDUCE, peer, 0, 1, c == 0 ? GY_INPUT : work, work)->flip = peer < rank;
    }
    if (place->parent < 0)
        return;
    gy_builder_lane(builder, 0, -1);
    struct gy_step *send = add_step(builder, GY_SEND, place->parent, 0, 1, lane < 0 ? GY_INPUT : work, work);
    if (lane >= 0)
        gy_step_need(send, lane, -(place->children - 1), GY_NEED_TILE);
}

static void broadcast(struct gy_builder *builder, const struct place *place)
{
    enum gy_space src = place->parent < 0 ? GY_INPUT : GY_OUTPUT;
    gy_builder_lane(builder, 0, -1);
    if (place->parent < 0)
        add_step(builder, GY_COPY, -1, 0, 1, GY_INPUT, GY_OUTPUT);
    else
        add_step(builder, GY_RECV, place->parent, 0, 1, GY_OUTPUT, GY_OUTPUT);
    for (int round = 0; round < place->children; round++) {
        if (round == 0)
            gy_builder_lane(builder, 0, -1);
        int peer = place->child[place->children - 1 - round].holder;
        struct gy_step *send = add_step(builder, GY_SEND, peer, 0, 1, src, src);
        if (place->parent >= 0)
            gy_step_need(send, 0, round, GY_NEED_TILE);
    }
}

static void gather(struct gy_builder *builder, const struct place *place, int rank)
{
    enum { COPY_LANE, RECV_LANE };
    enum gy_space work = place->parent < 0 ? GY_OUTPUT : GY_SCRATCH;
    if (place->children == 0) {
        gy_builder_lane(builder, 0, -1);
        add_step(builder, GY_SEND, place->parent, rank, 1, GY_INPUT, GY_INPUT);
        return;
    }
    gy_builder_lane(builder, 0, -1);
    add_step(builder, GY_COPY, -1, rank, 1, GY_INPUT, work);
    gy_builder_lane(builder, 0, -1);
    for (int c = 0; c < place->children; c++)
        add_step(builder, GY_RECV, place->child[c].holder, place->child[c].lo, place->child[c].width, work, work);
    if (place->parent < 0)
        return;
    gy_builder_lane(builder, 0, -1);
    struct gy_step *send = add_step(builder, GY_SEND, place->parent, place->whole.lo, place->whole.width, work, work);
    gy_step_need(send, COPY_LANE, 0, GY_NEED_ROUND);
    gy_step_need(send, RECV_LANE, -(place->children - 1), GY_NEED_ROUND);
}

static void scatter(struct gy_builder *builder, const struct place *place, int rank)
{
    enum { RECV_LANE };
    enum gy_space work = place->parent < 0 ? GY_INPUT : place->children > 0 ? GY_SCRATCH : GY_OUTPUT;
    if (place->parent >= 0) {
        gy_builder_lane(builder, 0, -1);
        add_step(builder, GY_RECV, place->parent, place->whole.lo, place->whole.width, work, work);
    }
    if (place->children == 0)
        return;
    gy_builder_lane(builder, 0, -1);
    for (int round = 0; round < place->children; round++) {
        const struct part *child = &place->child[place->children - 1 - round];
        struct gy_step *send = add_step(builder, GY_SEND, child->holder, child->lo, child->width, work, work);
        if (place->parent >= 0)
            gy_step_need(send, RECV_LANE, round, GY_NEED_ROUND);
    }
    gy_builder_lane(builder, 0, -1);
    struct gy_step *copy = add_step(builder, GY_COPY, -1, rank, 1, work, GY_OUTPUT);
    if (place->parent >= 0)
        gy_step_need(copy, RECV_LANE, 0, GY_NEED_ROUND);
}

void gy_build_binomial(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    struct place place = find_place(shape);
    struct gy_schedule *schedule = gy_builder_schedule(builder);
    bool blocks = shape->collective == GY_GATHER_TO || shape->collective == GY_SCATTER_FROM;
    schedule->blocks = blocks ? shape->size : 1;
    if (place.parent >= 0 && place.children > 0 && shape->collective != GY_BROADCAST) {
        schedule->scratch_slots = 1;
        schedule->scratch_lo = blocks ? place.whole.lo : -1;
        schedule->scratch_width = blocks ? place.whole.width : 1;
    }
    switch (shape->collective) {
    case GY_REDUCE_TO: reduce(builder, &place, shape->rank); break;
    case GY_GATHER_TO: gather(builder, &place, shape->rank); break;
    case GY_SCATTER_FROM: scatter(builder, &place, shape->rank); break;
    default: broadcast(builder, &place);
    }
}

/* Hierarchical schedules: inside groups and between them, over any grouping (hierarchy.h). There are G groups and L
 * slices; owner s of every group works on slice s.
 *
 *            group 0          group 1          group 2
 *   inside   0 1   each sends owner s its slice s, which the owner reduces: own · next · next but one, in the circle
 *   outside  owners of slice s of all groups run a schedule of their own: rings (chains), halving-doubling, or double
 *   trees
 *   inside   each owner sends its slice to the others of its group
 *
 *   all_reduce       all of it; the schedule outside is an all_reduce, in place
 *   broadcast        the root sends owner s slice s; outside a broadcast from its group; inside as above
 *   reduce           inside as above; outside a reduce to the root's group; its owners send their slices to the root
 *   barrier          inside to rank 0 of the group; outside all ranks 0 among them; and back
 *   reduce_scatter, all_gather: hierarchical_blocks.c
 *
 * The slice is cut into P pieces, as the outer schedule cuts its vector. Pieces move inside a few at a time, in the
 * order in which that schedule first reads them, and back in the order of its last writes. So both levels work
 * concurrently.
 *
 * Invariant: in step x of each inner exchange a rank talks to the ranks x before and x after it in its group, even
 * if its message is empty. The final inner exchange uses the lanes of the first one, after it. So every rank expects
 * its peers' messages in the order of sending, even with rendezvous or few credits. A received piece that overwrites
 * an input piece (in place) was computed from that piece, which had been sent. */
#include "collectives/schedule/hierarchical_internal.h"

#include "core/mem.h"

#define CHUNKS 8 /* lots of pieces that move inside together; bounds the steps of a schedule */

/* Pieces of a slice in some order, sent in `chunks` lots. Whole: as one range. */
struct pieces {
    struct gy_moment *order; /* of `count` */
    int count, chunks;
    bool whole;
};

struct slices {
    struct gy_composition base;
    struct gy_schedule *outside; /* this group's, for any slice; NULL: there is one group only */
    struct pieces before, after; /* outside */
    enum gy_space work;          /* where an owner accumulates */
    bool owner;
    int pieces;
};

static int chunk_end(const struct pieces *pieces, int chunk)
{
    return (int)((int64_t)pieces->count * (chunk + 1) / pieces->chunks);
}

/* One chunk of a slice. */
static void add_chunk(struct slices *slices, const struct pieces *pieces, int chunk, int lane, int slice,
                      struct gy_round round)
{
    for (int i = chunk ? chunk_end(pieces, chunk - 1) : 0; i < chunk_end(pieces, chunk); i++) {
        int piece = pieces->whole ? 0 : pieces->order[i].block;
        round.lo = slice * slices->pieces + piece;
        round.width = pieces->whole ? slices->pieces : 1;
        round.slot = piece;
        gy_rounds_add(&slices->base.rounds, lane, round);
    }
}

static void reduce_inside(struct slices *slices)
{
    const struct gy_hierarchy *h = &slices->base.hierarchy;
    const struct pieces *pieces = &slices->before;
    for (int chunk = 0; chunk < pieces->chunks; chunk++)
        for (int x = 1; x < h->members; x++) {
            int to = (h->place + h->members - x) % h->members, from = (h->place + x) % h->members;
            if (to < h->slices)
                add_chunk(slices, pieces, chunk, GY_INSIDE_SEND, to,
                          (struct gy_round){.kind = GY_SEND, .peer = h->peers[to], .src = GY_INPUT, .dst = GY_INPUT});
            if (slices->owner)
                add_chunk(slices, pieces, chunk, GY_INSIDE_RECV, h->place,
                          (struct gy_round){.kind = GY_RECV_REDUCE,
                                            .peer = h->peers[from],
                                            .src = x == 1 ? GY_INPUT : slices->work,
                                            .dst = slices->work});
        }
}

/* Sends every owner's slice, from `src`, to all other members of its group except `except`, which has it. */
static void gather_inside(struct slices *slices, enum gy_space src, int except)
{
    const struct gy_hierarchy *h = &slices->base.hierarchy;
    const struct pieces *pieces = &slices->after;
    int rank = h->peers[h->place];
    for (int chunk = 0; chunk < pieces->chunks; chunk++)
        for (int x = 1; x < h->members; x++) {
            int to = (h->place + h->members - x) % h->members, from = (h->place + x) % h->members;
            if (slices->owner && h->peers[to] != except)
                add_chunk(slices, pieces, chunk, GY_INSIDE_SEND, h->place,
                          (struct gy_round){.kind = GY_SEND, .peer = h->peers[to], .src = src, .dst = src});
            if (from < h->slices && rank != except)
                add_chunk(
                    slices, pieces, chunk, GY_INSIDE_RECV, from,
                    (struct gy_round){.kind = GY_RECV, .peer = h->peers[from], .src = GY_OUTPUT, .dst = GY_OUTPUT});
        }
}

static void play_outside(struct slices *slices, enum gy_space input, enum gy_space output, bool uncopied)
{
    const struct gy_hierarchy *h = &slices->base.hierarchy;
    if (!slices->outside || !slices->owner)
        return;
    struct gy_part part = {.ranks = slices->base.owners,
                           .lo = h->place * slices->pieces,
                           .input = input,
                           .output = output,
                           .scratch = GY_SCRATCH,
                           .uncopied = uncopied,
                           .tag = 1};
    gy_rounds_play(&slices->base.rounds, slices->outside, &part);
}

static void all_reduce(struct slices *slices)
{
    reduce_inside(slices);
    play_outside(slices, slices->base.hierarchy.members > 1 ? GY_OUTPUT : GY_INPUT, GY_OUTPUT, false);
    gather_inside(slices, GY_OUTPUT, -1);
}

/* Transfers between the root and the owners of its group, in either direction. */
static void with_root(struct slices *slices, int root, bool from_root)
{
    const struct gy_hierarchy *h = &slices->base.hierarchy;
    const struct pieces *pieces = from_root ? &slices->before : &slices->after;
    int rank = h->peers[h->place];
    if (h->mine != h->group[root])
        return;
    for (int chunk = 0; chunk < pieces->chunks; chunk++)
        for (int s = 0; s < h->slices; s++) {
            bool mine = s == h->place;
            if (h->peers[s] == root || (rank != root && !mine))
                continue;
            bool sends = from_root == (rank == root);
            enum gy_space space = !sends ? GY_OUTPUT : from_root ? GY_INPUT : slices->work;
            add_chunk(
                slices, pieces, chunk, sends ? GY_INSIDE_SEND : GY_INSIDE_RECV, s,
                (struct gy_round){
                    .kind = sends ? GY_SEND : GY_RECV, .peer = mine ? root : h->peers[s], .src = space, .dst = space});
        }
}

static void broadcast(struct slices *slices, const struct gy_schedule_shape *shape)
{
    bool root = shape->rank == shape->root;
    with_root(slices, shape->root, true);
    play_outside(slices, root ? GY_INPUT : GY_OUTPUT, GY_OUTPUT, true);
    gather_inside(slices, root ? GY_INPUT : GY_OUTPUT, shape->root);
    if (root)
        gy_rounds_add(
            &slices->base.rounds, GY_INSIDE_COPY,
            (struct gy_round){
                .kind = GY_COPY, .peer = -1, .width = slices->base.rounds.blocks, .src = GY_INPUT, .dst = GY_OUTPUT});
}

static void reduce(struct slices *slices, const struct gy_schedule_shape *shape)
{
    reduce_inside(slices);
    play_outside(slices, slices->base.hierarchy.members > 1 ? slices->work : GY_INPUT, slices->work, true);
    with_root(slices, shape->root, false);
}

/* A ring sends its first piece and reduces into the second. The second is nevertheless handled first. Otherwise the
 * grant that the previous owner waits for would queue behind sent data, and a link's two directions would alternate. */
static void grant_before_sending(struct gy_moment order[2])
{
    struct gy_moment sent = order[0];
    order[0] = order[1];
    order[1] = sent;
}

/* Sets both orders; one chunk if the outer schedule moves half of a slice at first. */
static bool set_pieces(struct slices *slices, enum gy_algorithm outside)
{
    struct gy_moment *order = gy_alloc(2 * (size_t)slices->pieces * sizeof(*order));
    if (!order)
        return false;
    bool whole = outside == GY_HALVING_DOUBLING;
    int count = whole ? 1 : slices->pieces, chunks = count < CHUNKS ? count : CHUNKS;
    slices->before = (struct pieces){order, count, chunks, whole};
    slices->after = (struct pieces){order + slices->pieces, count, chunks, whole};
    if (slices->outside)
        gy_rounds_survey(slices->outside, slices->before.order, slices->after.order);
    else
        order[0] = order[1] = (struct gy_moment){0, 0};
    if (outside == GY_RING && slices->base.shape->collective == GY_ALL_REDUCE && slices->pieces > 1)
        grant_before_sending(order);
    return true;
}

/* Builds the schedule among the owners of one slice; its ranks are the groups' numbers. */
static bool schedule_outside(struct slices *slices, const struct gy_schedule_shape *shape, enum gy_algorithm algorithm)
{
    const struct gy_hierarchy *h = &slices->base.hierarchy;
    slices->pieces = 1;
    if (h->groups == 1)
        return true;
    struct gy_schedule_shape outside = {.collective = shape->collective,
                                        .algorithm = algorithm,
                                        .rank = h->mine,
                                        .size = h->groups,
                                        .root = gy_has_root(shape->collective) ? h->group[shape->root] : 0};
    slices->outside = gy_schedule_build(&outside);
    if (slices->outside)
        slices->pieces = slices->outside->blocks;
    return slices->outside != NULL;
}

static void build_slices(struct gy_builder *builder, const struct gy_schedule_shape *shape, enum gy_algorithm algorithm,
                         struct slices *slices)
{
    struct gy_hierarchy *h = &slices->base.hierarchy;
    struct gy_schedule *schedule = gy_builder_schedule(builder);
    bool to_root = shape->collective == GY_REDUCE_TO;
    if (!schedule_outside(slices, shape, algorithm) || !set_pieces(slices, algorithm)) {
        gy_builder_fail(builder);
        return;
    }
    slices->owner = h->place < h->slices;
    slices->work = to_root && shape->rank != shape->root ? GY_SCRATCH : GY_OUTPUT;
    schedule->blocks = h->slices * slices->pieces;
    if (slices->work == GY_SCRATCH && slices->owner) {
        schedule->scratch_slots = slices->pieces;
        schedule->scratch_width = 1;
    }
    gy_composition_begin(&slices->base, builder);
    switch (shape->collective) {
    case GY_ALL_REDUCE: all_reduce(slices); break;
    case GY_BROADCAST: broadcast(slices, shape); break;
    default: reduce(slices, shape); break;
    }
    gy_rounds_close(&slices->base.rounds);
}

static void barrier(struct gy_builder *builder, struct gy_composition *base)
{
    const struct gy_hierarchy *h = &base->hierarchy;
    struct gy_schedule_shape shape = {GY_BARRIER, GY_HALVING_DOUBLING, h->mine, h->groups, 0, NULL};
    struct gy_schedule *outside = h->groups > 1 ? gy_schedule_build(&shape) : NULL;
    if (h->groups > 1 && !outside) {
        gy_builder_fail(builder);
        return;
    }
    gy_builder_schedule(builder)->blocks = 1;
    gy_composition_begin(base, builder);
    for (int in = 1; in >= 0; in--) {
        for (int x = 1; x < h->members; x++) {
            bool sends = in == (h->place > 0);
            if (h->place == 0 || h->place == x)
                gy_rounds_add(&base->rounds, sends ? GY_INSIDE_SEND : GY_INSIDE_RECV,
                              (struct gy_round){.kind = sends ? GY_SEND : GY_RECV,
                                                .peer = h->peers[h->place == 0 ? x : 0],
                                                .src = GY_OUTPUT,
                                                .dst = GY_OUTPUT});
        }
        if (in && outside && h->place == 0)
            gy_rounds_play(&base->rounds, outside,
                           &(struct gy_part){.ranks = base->owners, .input = GY_INPUT, .output = GY_OUTPUT, .tag = 1});
    }
    gy_rounds_close(&base->rounds);
    gy_schedule_free(outside);
}

void gy_composition_begin(struct gy_composition *base, struct gy_builder *builder)
{
    gy_rounds_open(&base->rounds, builder);
    gy_rounds_lane(&base->rounds, 0); /* GY_INSIDE_SEND */
    gy_rounds_lane(&base->rounds, 0); /* GY_INSIDE_RECV */
    gy_rounds_lane(&base->rounds, 0); /* GY_INSIDE_COPY */
}

static bool composition_open(struct gy_composition *base, const struct gy_schedule_shape *shape)
{
    *base = (struct gy_composition){.shape = shape};
    if (!gy_hierarchy_open(&base->hierarchy, shape))
        return false;
    const struct gy_hierarchy *h = &base->hierarchy;
    base->owners = gy_alloc((size_t)h->groups * sizeof(*base->owners));
    for (int g = 0; base->owners && g < h->groups; g++)
        base->owners[g] = gy_hierarchy_rank(h, g, h->place < h->slices ? h->place : 0);
    return base->owners != NULL;
}

static void composition_close(struct gy_composition *base)
{
    gy_free(base->owners);
    gy_hierarchy_close(&base->hierarchy);
}

static void build(struct gy_builder *builder, const struct gy_schedule_shape *shape, enum gy_algorithm outside)
{
    struct slices slices = {.outside = NULL};
    if (!composition_open(&slices.base, shape)) {
        gy_builder_fail(builder);
    } else if (shape->collective == GY_BARRIER) {
        barrier(builder, &slices.base);
    } else if (shape->collective == GY_REDUCE_SCATTER || shape->collective == GY_ALL_GATHER) {
        gy_build_hierarchical_blocks(builder, &slices.base);
    } else {
        build_slices(builder, shape, outside, &slices);
        gy_schedule_free(slices.outside);
        gy_free(slices.before.order);
    }
    composition_close(&slices.base);
}

void gy_build_hierarchical(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    build(builder, shape, GY_RING);
}

void gy_build_hierarchical_halving(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    build(builder, shape, GY_HALVING_DOUBLING);
}

void gy_build_hierarchical_tree(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    build(builder, shape, GY_DOUBLE_TREE);
}

/* Hierarchical reduce_scatter and all_gather. No block is cut, so the v-forms are served as well. The block of rank
 * r, with index i in its group, belongs to slice i mod L. Owner s of every group works on the blocks of slice s,
 * with the owners s of the other groups. If all groups have equal sizes and numbering, these are one block per
 * group, the owner's.
 *
 *   reduce_scatter   inside   each rank sends owner s the blocks of slice s, which it reduces: own · next · next but
 *                             one
 *                    outside  a ring of the owners, against the circle: the blocks of group g end there
 *                    inside   a rank without a slice gets its block from the owner of its slice
 *   all_gather       the same backwards
 *
 * Blocks move in the order in which the ring uses them, a few groups' at a time. Invariant: as in
 * hierarchical_slices.c. A block being reduced has a scratch slot; the rank's own block is reduced in the output. */
#include "collectives/schedule/hierarchical_internal.h"
#include "core/mem.h"

#define CHUNKS 8 /* lots of groups whose blocks move inside together */

enum { OUTSIDE_SEND = GY_INSIDE_COPY + 1, OUTSIDE_RECV };

struct blocks {
    struct gy_composition *base;
    const struct gy_hierarchy *h;
    const int *below; /* [groups + 1] number of this slice's blocks in the groups before: their slots */
    int rank;
    bool owner;
};

/* Returns the group k places before this rank's in the circle of groups. */
static int group_before(const struct gy_hierarchy *h, int k)
{
    return ((h->mine - k) % h->groups + h->groups) % h->groups;
}

/* Returns the list `below`, owned by the caller; NULL: no memory. Zeros for a rank that owns no slice. */
static int *count_slots(const struct gy_hierarchy *h)
{
    int *below = gy_alloc_zero((size_t)h->groups + 1, sizeof(*below));
    for (int g = 0; below && h->place < h->slices && g < h->groups; g++)
        below[g + 1] = below[g] + (gy_hierarchy_members(h, g) - h->place + h->slices - 1) / h->slices;
    return below;
}

static enum gy_space place_of(const struct blocks *blocks, int block)
{
    return block == blocks->rank ? GY_OUTPUT : GY_SCRATCH;
}

static void add(struct blocks *blocks, int lane, enum gy_step_kind kind, int peer, int block, enum gy_space src,
                enum gy_space dst, int slot)
{
    gy_rounds_add(
        &blocks->base->rounds, lane,
        (struct gy_round){.kind = kind, .peer = peer, .lo = block, .width = 1, .src = src, .dst = dst, .slot = slot});
}

/* Returns the group whose blocks are reduced in place k. The ring first sends the blocks of the group before this
 * one and reduces into those of the group before that. The latter nevertheless come first. Otherwise the grant that
 * the next owner waits for would queue behind sent data, and a link's two directions would alternate. */
static int group_reduced(const struct gy_hierarchy *h, int k)
{
    return group_before(h, k == 0 ? 2 : k == 1 ? 1 : k + 1);
}

/* The exchange inside a group: this rank sends to the member x places before it and receives from the member x
 * places behind it. A few groups' blocks move at a time, in the order in which the ring uses or delivers them. */
static void inside(struct blocks *blocks, int (*group)(const struct gy_hierarchy *, int k),
                   void (*give)(struct blocks *, int group, int to),
                   void (*take)(struct blocks *, int group, int from, int x))
{
    const struct gy_hierarchy *h = blocks->h;
    int chunks = h->groups < CHUNKS ? h->groups : CHUNKS;
    for (int chunk = 0; chunk < chunks; chunk++)
        for (int x = 1; x < h->members; x++) {
            int to = (h->place + h->members - x) % h->members, from = (h->place + x) % h->members;
            for (int k = h->groups * chunk / chunks; k < h->groups * (chunk + 1) / chunks; k++) {
                give(blocks, group(h, k), to);
                take(blocks, group(h, k), from, x);
            }
        }
}

/* ---- reduce_scatter ---- */

static void give_inputs(struct blocks *blocks, int group, int to)
{
    for (int i = to; to < blocks->h->slices && i < gy_hierarchy_members(blocks->h, group); i += blocks->h->slices)
        add(blocks, GY_INSIDE_SEND, GY_SEND, blocks->h->peers[to], gy_hierarchy_rank(blocks->h, group, i), GY_INPUT,
            GY_INPUT, 0);
}

static void reduce_blocks(struct blocks *blocks, int lane, int group, int peer, bool first)
{
    const struct gy_hierarchy *h = blocks->h;
    int slot = blocks->below[group];
    for (int i = h->place; i < gy_hierarchy_members(h, group); i += h->slices, slot++) {
        int block = gy_hierarchy_rank(h, group, i);
        enum gy_space work = place_of(blocks, block);
        add(blocks, lane, GY_RECV_REDUCE, peer, block, first ? GY_INPUT : work, work, slot);
    }
}

static void take_operands(struct blocks *blocks, int group, int from, int x)
{
    if (blocks->owner)
        reduce_blocks(blocks, GY_INSIDE_RECV, group, blocks->h->peers[from], x == 1);
}

static void reduce_outside(struct blocks *blocks)
{
    const struct gy_hierarchy *h = blocks->h;
    int next = blocks->base->owners[(h->mine + 1) % h->groups], previous = blocks->base->owners[group_before(h, 1)];
    for (int k = 0; k + 1 < h->groups; k++) {
        int group = group_before(h, k + 1), slot = blocks->below[group];
        enum gy_space src = k == 0 && h->members == 1 ? GY_INPUT : GY_SCRATCH;
        for (int i = h->place; i < gy_hierarchy_members(h, group); i += h->slices, slot++)
            add(blocks, OUTSIDE_SEND, GY_SEND, next, gy_hierarchy_rank(h, group, i), src, src, slot);
        reduce_blocks(blocks, OUTSIDE_RECV, group_before(h, k + 2), previous, h->members == 1);
    }
}

static void reduce_scatter(struct blocks *blocks)
{
    const struct gy_hierarchy *h = blocks->h;
    inside(blocks, group_reduced, give_inputs, take_operands);
    if (blocks->owner)
        reduce_outside(blocks);
    int slot = blocks->below[h->mine];
    for (int i = h->place + h->slices; blocks->owner && i < h->members; i += h->slices)
        add(blocks, GY_INSIDE_SEND, GY_SEND, h->peers[i], h->peers[i], GY_SCRATCH, GY_SCRATCH, ++slot);
    if (!blocks->owner)
        add(blocks, GY_INSIDE_RECV, GY_RECV, h->peers[h->place % h->slices], blocks->rank, GY_OUTPUT, GY_OUTPUT, 0);
}

/* ---- all_gather ---- */

static enum gy_space gathered(const struct blocks *blocks, int block)
{
    return block == blocks->rank ? GY_INPUT : GY_OUTPUT;
}

static void gather_outside(struct blocks *blocks)
{
    const struct gy_hierarchy *h = blocks->h;
    int next = blocks->base->owners[(h->mine + 1) % h->groups], previous = blocks->base->owners[group_before(h, 1)];
    for (int k = 0; k + 1 < h->groups; k++) {
        int group = group_before(h, k), coming = group_before(h, k + 1);
        for (int i = h->place; i < gy_hierarchy_members(h, group); i += h->slices) {
            int block = gy_hierarchy_rank(h, group, i);
            enum gy_space src = gathered(blocks, block);
            add(blocks, OUTSIDE_SEND, GY_SEND, next, block, src, src, 0);
        }
        for (int i = h->place; i < gy_hierarchy_members(h, coming); i += h->slices)
            add(blocks, OUTSIDE_RECV, GY_RECV, previous, gy_hierarchy_rank(h, coming, i), GY_OUTPUT, GY_OUTPUT, 0);
    }
}

/* A group's blocks of one slice, without the block of the receiving rank. */
static void pass_on(struct blocks *blocks, int group, int slice, int peer, bool sends)
{
    int receiver = sends ? peer : blocks->rank;
    for (int i = slice; i < gy_hierarchy_members(blocks->h, group); i += blocks->h->slices) {
        int block = gy_hierarchy_rank(blocks->h, group, i);
        enum gy_space space = sends ? gathered(blocks, block) : GY_OUTPUT;
        if (block != receiver)
            add(blocks, sends ? GY_INSIDE_SEND : GY_INSIDE_RECV, sends ? GY_SEND : GY_RECV, peer, block, space, space,
                0);
    }
}

static void give_gathered(struct blocks *blocks, int group, int to)
{
    if (blocks->owner)
        pass_on(blocks, group, blocks->h->place, blocks->h->peers[to], true);
}

static void take_gathered(struct blocks *blocks, int group, int from, int x)
{
    (void)x;
    if (from < blocks->h->slices)
        pass_on(blocks, group, from, blocks->h->peers[from], false);
}

static void all_gather(struct blocks *blocks)
{
    const struct gy_hierarchy *h = blocks->h;
    add(blocks, GY_INSIDE_COPY, GY_COPY, -1, blocks->rank, GY_INPUT, GY_OUTPUT, 0);
    if (!blocks->owner)
        add(blocks, GY_INSIDE_SEND, GY_SEND, h->peers[h->place % h->slices], blocks->rank, GY_INPUT, GY_INPUT, 0);
    for (int i = h->place + h->slices; blocks->owner && i < h->members; i += h->slices)
        add(blocks, GY_INSIDE_RECV, GY_RECV, h->peers[i], h->peers[i], GY_OUTPUT, GY_OUTPUT, 0);
    if (blocks->owner)
        gather_outside(blocks);
    inside(blocks, group_before, give_gathered, take_gathered);
}

void gy_build_hierarchical_blocks(struct gy_builder *builder, struct gy_composition *composition)
{
    const struct gy_hierarchy *h = &composition->hierarchy;
    int *below = count_slots(h);
    struct blocks blocks = {composition, h, below, composition->shape->rank, h->place < h->slices};
    struct gy_schedule *schedule = gy_builder_schedule(builder);
    bool scatters = composition->shape->collective == GY_REDUCE_SCATTER;
    if (!below) {
        gy_builder_fail(builder);
        return;
    }
    schedule->blocks = h->size;
    if (scatters && blocks.owner) {
        schedule->scratch_slots = below[h->groups];
        schedule->scratch_width = 1;
    }
    gy_composition_begin(composition, builder);
    gy_rounds_lane(&composition->rounds, 1); /* OUTSIDE_SEND */
    gy_rounds_lane(&composition->rounds, 1); /* OUTSIDE_RECV */
    if (scatters)
        reduce_scatter(&blocks);
    else
        all_gather(&blocks);
    gy_rounds_close(&composition->rounds);
    gy_free(below);
}

/* Binary trees, pipelined by tile: position v has the children 2v + 1 and 2v + 2; position 0 is the root.
 *
 *            0            up:   tile t of own op left op right goes to the parent        (all_reduce, reduce, barrier)
 *          /   \          down: tile t of the result comes from the parent, goes to the children
 *         1     2
 *        / \   / \        all_reduce and barrier: v = rank; broadcast, reduce: v = rank − root
 *       3   4 5   6
 *
 * Tags: up from a left child 0, from a right child 1; down to a left child 2, to a right child 3. Every
 * direction is a lane of its own and has one round, so tile t of one waits only for tile t of the other. Invariant:
 * the down tile overwrites the source of the up tile only after the parent, and so the root, has received that.
 * Causality guarantees this without a need. */
#include "collectives/schedule/builder.h"

struct tree {
    struct gy_builder *builder;
    int parent, left, right; /* ranks, −1: none */
    int side;                /* 0: this rank is a left child, 1: a right child */
    int width;               /* 0 in a barrier */
    enum gy_space sum;       /* where the subtree's partial sum accumulates */
};

static int rank_at(const struct gy_schedule_shape *shape, int root, int position)
{
    return position < shape->size ? (position + root) % shape->size : -1;
}

static struct tree make_tree(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    bool rooted = shape->collective == GY_BROADCAST || shape->collective == GY_REDUCE_TO;
    int root = rooted ? shape->root : 0;
    int v = (shape->rank + shape->size - root) % shape->size;
    return (struct tree){
        .builder = builder,
        .parent = v == 0 ? -1 : rank_at(shape, root, (v - 1) / 2),
        .left = rank_at(shape, root, 2 * v + 1),
        .right = rank_at(shape, root, 2 * v + 2),
        .side = v == 0 ? 0 : (v - 1) % 2,
        .width = shape->collective == GY_BARRIER ? 0 : 1,
        .sum = shape->collective == GY_REDUCE_TO && v > 0 ? GY_SCRATCH : GY_OUTPUT,
    };
}

/* Opens a lane with one step; returns the lane. `after` is the lane whose same tile comes first; −1: none. */
static int add_lane(struct tree *tree, int tag, enum gy_step_kind kind, int peer, enum gy_space src, enum gy_space dst,
                    int after)
{
    int lane = gy_builder_lane(tree->builder, (uint16_t)tag, -1);
    struct gy_step *step = gy_builder_step(tree->builder, kind);
    step->peer = peer;
    step->range.width = tree->width;
    step->src = src;
    step->dst = dst;
    if (after >= 0)
        gy_step_need(step, after, 0, GY_NEED_TILE);
    return lane;
}

/* Returns the lane after which the subtree's reduction is in the output; −1 for a leaf, whose input is its
 * reduction. */
static int go_up(struct tree *tree)
{
    enum gy_step_kind kind = tree->width == 0 ? GY_RECV : GY_RECV_REDUCE;
    int lane = -1;
    if (tree->left >= 0)
        lane = add_lane(tree, 0, kind, tree->left, GY_INPUT, tree->sum, -1);
    if (tree->right >= 0)
        lane = add_lane(tree, 1, kind, tree->right, tree->sum, tree->sum, lane);
    if (tree->parent >= 0)
        add_lane(tree, tree->side, GY_SEND, tree->parent, lane < 0 ? GY_INPUT : tree->sum, tree->sum, lane);
    return lane;
}

static void go_down(struct tree *tree, enum gy_space root_src, int root_after)
{
    enum gy_space src = root_src;
    int after = root_after;
    if (tree->parent >= 0) {
        after = add_lane(tree, 2 + tree->side, GY_RECV, tree->parent, GY_OUTPUT, GY_OUTPUT, -1);
        src = GY_OUTPUT;
    }
    if (tree->left >= 0)
        add_lane(tree, 2, GY_SEND, tree->left, src, GY_OUTPUT, after);
    if (tree->right >= 0)
        add_lane(tree, 3, GY_SEND, tree->right, src, GY_OUTPUT, after);
}

void gy_build_binary_tree(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    struct tree tree = make_tree(builder, shape);
    gy_builder_schedule(builder)->blocks = 1;
    if (shape->collective == GY_BROADCAST) {
        go_down(&tree, GY_INPUT, -1);
        if (tree.parent < 0)
            add_lane(&tree, 0, GY_COPY, -1, GY_INPUT, GY_OUTPUT, -1);
        return;
    }
    int summed = go_up(&tree);
    if (shape->collective != GY_REDUCE_TO) {
        go_down(&tree, GY_OUTPUT, summed);
    } else if (tree.sum == GY_SCRATCH && summed >= 0) {
        gy_builder_schedule(builder)->scratch_slots = 1;
        gy_builder_schedule(builder)->scratch_width = 1;
    }
}

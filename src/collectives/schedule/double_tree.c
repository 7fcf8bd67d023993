/* Two binary trees, each for one half of the vector, pipelined by tile. An inner node of one tree is a leaf of the
 * other, so all ranks send and receive about equal amounts. The depth is about log2 N.
 *
 *   in-order tree of n positions 1 ... n: the root is the largest power of two <= n; what is below it is a tree of its
 *   own,
 *   and so is what is above; odd positions are leaves
 *
 *   n = 6        4            member m has position m + 1 in the first tree, and in the second n − m where n is even,
 *                             else
 *              /   \          m + 2, the last one 1: an odd position here is even there (or odd in both)
 *             2     6
 *            / \   /
 *           1   3 5
 *
 *   all_reduce           members are the ranks; up and down, as binary_tree; the trees have different roots
 *   broadcast, reduce    members are the ranks but the root, rank root + 1 first; the root feeds, or drains, both trees
 *
 * The reduction of a subtree is (own · left) · right, at the root of a reduce own · tree. Channels, of tree t: 4t +
 * side up and 4t + 2 + side down, where side is 0 for a left child and the trees' tops, 1 for a right child.
 * Invariant: as in binary_tree. */
#include "collectives/schedule/builder.h"

struct node {
    int tree, parent, left, right, side; /* ranks; −1: none */
};

/* The member at a position of a tree, and the inverse. */
static int member_at(int tree, int n, int position)
{
    if (tree == 0)
        return position - 1;
    if (n % 2 == 0)
        return n - position;
    return position == 1 ? n - 1 : position - 2;
}

static int position_of(int tree, int n, int member)
{
    if (tree == 0)
        return member + 1;
    if (n % 2 == 0)
        return n - member;
    return member == n - 1 ? 1 : member + 2;
}

/* Position of the root of the tree of `n` positions after `offset`; 0 when there are none. */
static int top_of(int offset, int n)
{
    int top = 1;
    while (2 * top <= n)
        top *= 2;
    return n > 0 ? offset + top : 0;
}

static int rank_of(const struct gy_schedule_shape *shape, bool rooted, int member)
{
    return rooted ? (shape->root + 1 + member) % shape->size : member;
}

static int rank_at(const struct gy_schedule_shape *shape, bool rooted, int tree, int position)
{
    int n = shape->size - rooted;
    return position == 0 ? -1 : rank_of(shape, rooted, member_at(tree, n, position));
}

static struct node find_node(const struct gy_schedule_shape *shape, bool rooted, int tree)
{
    int n = shape->size - rooted, offset = 0, length = n;
    struct node node = {tree, rooted ? shape->root : -1, -1, -1, 0};
    if (rooted && shape->rank == shape->root) {
        node.parent = -1;
        node.left = rank_at(shape, rooted, tree, top_of(0, n));
        return node;
    }
    int member = rooted ? (shape->rank + shape->size - shape->root - 1) % shape->size : shape->rank;
    int mine = position_of(tree, n, member), top = top_of(0, n);
    while (top != mine) {
        node.parent = rank_at(shape, rooted, tree, top);
        node.side = mine > top;
        length = mine > top ? offset + length - top : top - 1 - offset;
        offset = mine > top ? top : offset;
        top = top_of(offset, length);
    }
    node.left = rank_at(shape, rooted, tree, top_of(offset, top - 1 - offset));
    node.right = rank_at(shape, rooted, tree, top_of(top, offset + length - top));
    return node;
}

/* Opens a lane with one step; returns the lane. `after` is the lane whose same tile comes first, −1: none. */
static int add_lane(struct gy_builder *builder, const struct node *node, int tag, enum gy_step_kind kind, int peer,
                    enum gy_space src, enum gy_space dst, int after)
{
    int lane = gy_builder_lane(builder, (uint16_t)(4 * node->tree + tag), -1);
    struct gy_step *step = gy_builder_step(builder, kind);
    step->peer = peer;
    step->range = (struct gy_range){node->tree, 0, 1};
    step->src = src;
    step->dst = dst;
    if (after >= 0)
        gy_step_need(step, after, 0, GY_NEED_TILE);
    return lane;
}

/* Returns the lane after which the reduction of the subtree is in `sum`; −1 for a leaf, whose input it is. */
static int go_up(struct gy_builder *builder, const struct node *node, enum gy_space sum)
{
    int lane = -1;
    if (node->left >= 0)
        lane = add_lane(builder, node, 0, GY_RECV_REDUCE, node->left, GY_INPUT, sum, -1);
    if (node->right >= 0)
        lane = add_lane(builder, node, 1, GY_RECV_REDUCE, node->right, sum, sum, lane);
    if (node->parent >= 0)
        add_lane(builder, node, node->side, GY_SEND, node->parent, lane < 0 ? GY_INPUT : sum, sum, lane);
    return lane;
}

static void go_down(struct gy_builder *builder, const struct node *node, enum gy_space top_src, int top_after)
{
    enum gy_space src = node->parent < 0 ? top_src : GY_OUTPUT;
    int after = top_after;
    if (node->parent >= 0)
        after = add_lane(builder, node, 2 + node->side, GY_RECV, node->parent, GY_OUTPUT, GY_OUTPUT, -1);
    if (node->left >= 0)
        add_lane(builder, node, 2, GY_SEND, node->left, src, src, after);
    if (node->right >= 0)
        add_lane(builder, node, 3, GY_SEND, node->right, src, src, after);
}

void gy_build_double_tree(struct gy_builder *builder, const struct gy_schedule_shape *shape)
{
    struct gy_schedule *schedule = gy_builder_schedule(builder);
    bool rooted = shape->collective != GY_ALL_REDUCE, root = rooted && shape->rank == shape->root;
    bool reduce = shape->collective == GY_REDUCE_TO;
    schedule->blocks = 2;
    for (int tree = 0; tree < 2; tree++) {
        struct node node = find_node(shape, rooted, tree);
        if (shape->collective == GY_BROADCAST) {
            go_down(builder, &node, GY_INPUT, -1);
            continue;
        }
        int summed = go_up(builder, &node, reduce && !root ? GY_SCRATCH : GY_OUTPUT);
        if (!reduce)
            go_down(builder, &node, summed < 0 ? GY_INPUT : GY_OUTPUT, summed);
        else if (!root && summed >= 0) /* an inner node of one tree at most: one block of scratch */
            schedule->scratch_slots = schedule->scratch_width = 1;
    }
    if (shape->collective == GY_BROADCAST && root) {
        gy_builder_lane(builder, 0, -1);
        struct gy_step *copy = gy_builder_step(builder, GY_COPY);
        copy->range.width = 2;
        copy->src = GY_INPUT;
        copy->dst = GY_OUTPUT;
    }
}

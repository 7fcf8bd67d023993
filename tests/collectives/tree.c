/* The order of each algorithm in closed form; "·" is the reduction, left operand first, N ranks.
 *
 *   direct            ((x0 · x1) · x2) · ...          every element alike
 *   ring              block b begins at one rank and goes round: each rank puts its own operand to the left of what
 *                     comes. all_reduce begins at rank b and ends at b − 1; reduce_scatter begins at b + 1 and ends at
 *                     b, its owner: x_b · (x_{b−1} · (... · x_{b+1}))
 *   binary_tree       T(v) = (x_v · T(2v + 1)) · T(2v + 2), children that exist; every element alike
 *   halving_doubling  P cores, P the largest power of two <= N; the first N − P cores are pairs x_{2c} · x_{2c+1}.
 *                     H(cores) = H(even cores) · H(odd cores), over and over: the tree of the bit-reversed order. It
 *                     does not depend on the block, because at every distance the lower core is on the left
 *   canonical         C(x0 ... x_{n−1}) = C(first h) · C(the rest), h the largest power of two below n; every element alike
 *   reduce            binary_tree: v counts from the root: x_v is rank (root + v) mod N's
 *   all_gather        the leaf of the block's rank, and so for gather; broadcast and scatter: the leaf of the root; a
 *                     message: the leaf of its sender
 *
 * Invariant: a function of (shape, block) alone. */
#include "tree.h"

int gy_tree_blocks(const struct gy_plan_shape *shape)
{
    bool by_rank = shape->collective == GY_REDUCE_SCATTER || shape->collective == GY_ALL_GATHER ||
                   shape->collective == GY_GATHER_TO || shape->collective == GY_SCATTER_FROM;
    return by_rank || (shape->collective == GY_ALL_REDUCE && shape->algorithm == GY_RING) ? shape->size : 1;
}

/* Block b covers [floor(total·b/B), floor(total·(b+1)/B)): b is the smallest with total·(b+1)/B >= element + 1. */
int gy_tree_block(const struct gy_plan_shape *shape, size_t total, size_t element)
{
    size_t blocks = (size_t)gy_tree_blocks(shape);
    return (int)(((element + 1) * blocks + total - 1) / total) - 1;
}

struct tree {
    struct gy_expression *expression;
    size_t element;
    int size, root;
};

static int32_t leaf(const struct tree *tree, int rank)
{
    return gy_expression_leaf(tree->expression, rank, tree->element);
}

static int32_t join(const struct tree *tree, int32_t left, int32_t right)
{
    return gy_expression_join(tree->expression, left, right);
}

static int32_t direct(const struct tree *tree)
{
    int32_t sum = leaf(tree, 0);
    for (int r = 1; r < tree->size; r++)
        sum = join(tree, sum, leaf(tree, r));
    return sum;
}

static int32_t ring(const struct tree *tree, int first)
{
    int32_t sum = leaf(tree, first % tree->size);
    for (int k = 1; k < tree->size; k++)
        sum = join(tree, leaf(tree, (first + k) % tree->size), sum);
    return sum;
}

static int32_t binary(const struct tree *tree, int v)
{
    int32_t sum = leaf(tree, (v + tree->root) % tree->size);
    for (int child = 2 * v + 1; child <= 2 * v + 2 && child < tree->size; child++)
        sum = join(tree, sum, binary(tree, child));
    return sum;
}

/* Cores first, first + stride, first + 2·stride, ... of `cores`. */
static int32_t reversed(const struct tree *tree, int cores, int first, int stride)
{
    if (stride < cores) {
        int32_t even = reversed(tree, cores, first, 2 * stride);
        return join(tree, even, reversed(tree, cores, first + stride, 2 * stride));
    }
    int pairs = tree->size - cores;
    if (first >= pairs)
        return leaf(tree, first + pairs);
    int32_t own = leaf(tree, 2 * first);
    return join(tree, own, leaf(tree, 2 * first + 1));
}

/* Ranks [first, first + n). */
static int32_t canonical(const struct tree *tree, int first, int n)
{
    int half = 1;
    while (2 * half < n)
        half *= 2;
    if (n == 1)
        return leaf(tree, first);
    int32_t left = canonical(tree, first, half);
    return join(tree, left, canonical(tree, first + half, n - half));
}

static int32_t halving_doubling(const struct tree *tree)
{
    int cores = 1;
    while (2 * cores <= tree->size)
        cores *= 2;
    return reversed(tree, cores, 0, 1);
}

int32_t gy_tree_build(const struct gy_plan_shape *shape, int block, size_t element, struct gy_expression *expression)
{
    struct tree tree = {expression, element, shape->size, shape->collective == GY_REDUCE_TO ? shape->root : 0};
    if (shape->collective == GY_ALL_GATHER || shape->collective == GY_GATHER_TO)
        return leaf(&tree, block);
    if (shape->collective == GY_BROADCAST || shape->collective == GY_SCATTER_FROM ||
        shape->collective == GY_RECEIVE_FROM)
        return leaf(&tree, shape->root);
    switch (shape->algorithm) {
    case GY_RING: return ring(&tree, shape->collective == GY_ALL_REDUCE ? block : block + 1);
    case GY_BINARY_TREE: return binary(&tree, 0);
    case GY_HALVING_DOUBLING: return halving_doubling(&tree);
    case GY_CANONICAL: return canonical(&tree, 0, tree.size);
    default: return direct(&tree);
    }
}

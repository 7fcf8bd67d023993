/* The order of each algorithm in closed form; "·" is the reduction, left operand first, N ranks.
 *
 *   over shm          ((x0 · x1) · x2) · ...          every element alike
 *   ring              block b begins at one rank and goes round: each rank puts its own operand to the left of what
 *                     comes. all_reduce begins at rank b and ends at b − 1; reduce_scatter begins at b + 1 and ends at
 *                     b, its owner: x_b · (x_{b−1} · (... · x_{b+1}))
 *   binary_tree       T(v) = (x_v · T(2v + 1)) · T(2v + 2), children that exist; every element alike
 *   halving_doubling  P cores, P the largest power of two <= N; the first N − P cores are pairs x_{2c} · x_{2c+1}.
 *                     H(cores) = H(even cores) · H(odd cores), over and over: the tree of the bit-reversed order. It
 *                     does not depend on the block, because at every distance the lower core is on the left
 *   double_tree       of each half of the vector: (x_top · T(below)) · T(above), in an in-order tree of positions; for
 *                     a root: x_root · T(the others)
 *   canonical, recursive_doubling, binomial
 *                     C(x0 ... x_{n−1}) = C(first h) · C(the rest), h the largest power of two below n; every element
 *                     alike
 *   hierarchical      one of these over the groups: ring (chain), halving_doubling or double_tree, where the operand of
 *                     a group is ((x_s · x_{s+1}) · x_{s+2}) · ... over its members, in the circle from member s on; s
 *                     is the slice of the element: the vector is cut into as many as the smallest group has members. Of
 *                     reduce_scatter the slice of a block is its rank's place in its group, modulo that number
 *   reduce            binary_tree: v counts from the root: x_v is rank (root + v) mod N's
 *   all_gather        the leaf of the block's rank, and so for gather; broadcast and scatter: the leaf of the root; a
 *                     message: the leaf of its sender, to oneself too
 *
 * Invariant: a function of (shape, block) alone. */
#include "tree.h"

static int group_of(const int *groups, int rank)
{
    return groups ? groups[rank] : 0;
}

/* Members of a group among the first n ranks: all, or those before rank n. */
static int members_of(const int *groups, int group, int n)
{
    int members = 0;
    for (int r = 0; r < n; r++)
        members += group_of(groups, r) == group;
    return members;
}

static int groups_of(const struct gy_schedule_shape *shape)
{
    int groups = 1;
    for (int r = 0; r < shape->size; r++)
        groups = group_of(shape->groups, r) >= groups ? group_of(shape->groups, r) + 1 : groups;
    return groups;
}

static int slices_of(const struct gy_schedule_shape *shape)
{
    int least = shape->size;
    for (int g = 0; g < groups_of(shape); g++) {
        int members = members_of(shape->groups, g, shape->size);
        least = members < least ? members : least;
    }
    return least;
}

/* Of one slice, how many parts have trees of their own. */
static int pieces_of(const struct gy_schedule_shape *shape)
{
    int groups = groups_of(shape);
    if (groups == 1 || shape->algorithm == GY_HIERARCHICAL_HALVING)
        return 1;
    if (shape->algorithm == GY_HIERARCHICAL_TREE)
        return 2;
    return shape->collective == GY_ALL_REDUCE ? groups : 1;
}

int gy_tree_blocks(const struct gy_schedule_shape *shape)
{
    bool by_rank = shape->collective == GY_REDUCE_SCATTER || shape->collective == GY_ALL_GATHER ||
                   shape->collective == GY_GATHER_TO || shape->collective == GY_SCATTER_FROM;
    if (shape->algorithm == GY_DOUBLE_TREE)
        return 2;
    if (gy_is_hierarchical(shape->algorithm) && !by_rank)
        return slices_of(shape) * pieces_of(shape);
    return by_rank || (shape->collective == GY_ALL_REDUCE && shape->algorithm == GY_RING) ? shape->size : 1;
}

/* Block b covers [floor(total·b/B), floor(total·(b+1)/B)): b is the smallest with total·(b+1)/B >= element + 1. */
int gy_tree_block(const struct gy_schedule_shape *shape, size_t total, size_t element)
{
    size_t blocks = (size_t)gy_tree_blocks(shape);
    return (int)(((element + 1) * blocks + total - 1) / total) - 1;
}

struct tree {
    struct gy_expression *expression;
    size_t element;
    int size, root;
    bool grouped; /* leaves are the groups of `ranks` ranks, each reduced from member `slice` on */
    const int *groups;
    int ranks, slice;
};

static int32_t join(const struct tree *tree, int32_t left, int32_t right)
{
    return gy_expression_join(tree->expression, left, right);
}

static int32_t group(const struct tree *tree, int number)
{
    int members = members_of(tree->groups, number, tree->ranks);
    int32_t sum = -1;
    for (int i = 0; i < members; i++) {
        int rank = 0;
        while (group_of(tree->groups, rank) != number ||
               members_of(tree->groups, number, rank) != (tree->slice + i) % members)
            rank++;
        int32_t own = gy_expression_leaf(tree->expression, rank, tree->element);
        sum = i == 0 ? own : join(tree, sum, own);
    }
    return sum;
}

static int32_t leaf(const struct tree *tree, int rank)
{
    return tree->grouped ? group(tree, rank) : gy_expression_leaf(tree->expression, rank, tree->element);
}

static int32_t in_rank_order(const struct tree *tree)
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

/* x_root · (x_{root+1} · ( ... )) */
static int32_t chain(const struct tree *tree)
{
    int32_t sum = leaf(tree, (tree->root + tree->size - 1) % tree->size);
    for (int k = tree->size - 2; k >= 0; k--)
        sum = join(tree, leaf(tree, (tree->root + k) % tree->size), sum);
    return sum;
}

/* The in-order tree of positions first ... last, whose members are `member[position]`. */
static int32_t in_order(const struct tree *tree, const int *member, int first, int last)
{
    int top = 1;
    while (2 * top <= last - first + 1)
        top *= 2;
    top += first - 1;
    int32_t sum = leaf(tree, member[top]);
    if (top > first)
        sum = join(tree, sum, in_order(tree, member, first, top - 1));
    if (top < last)
        sum = join(tree, sum, in_order(tree, member, top + 1, last));
    return sum;
}

/* Half 0: members in order; half 1: backwards, or, where their number is odd, the last one first. */
static int32_t double_tree(const struct tree *tree, int half, bool rooted)
{
    int member[GY_EXPRESSION_RANKS + 1] = {0}, n = tree->size - rooted;
    for (int p = 1; p <= n; p++) {
        int m = half == 0 ? p - 1 : n % 2 == 0 ? n - p : (p + n - 2) % n;
        member[p] = rooted ? (tree->root + 1 + m) % tree->size : m;
    }
    if (n == 0)
        return leaf(tree, tree->root);
    int32_t sum = in_order(tree, member, 1, n);
    return rooted ? join(tree, leaf(tree, tree->root), sum) : sum;
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

static int32_t hierarchical(const struct gy_schedule_shape *shape, int block, struct tree *tree)
{
    bool scatters = shape->collective == GY_REDUCE_SCATTER, to_root = shape->collective == GY_REDUCE_TO;
    int own = group_of(shape->groups, block), piece = block % pieces_of(shape);
    tree->grouped = true;
    tree->groups = shape->groups;
    tree->ranks = shape->size;
    tree->size = groups_of(shape);
    tree->root = to_root ? group_of(shape->groups, shape->root) : 0;
    tree->slice = scatters ? members_of(shape->groups, own, block) % slices_of(shape) : block / pieces_of(shape);
    if (scatters)
        return ring(tree, own + 1);
    switch (shape->algorithm) {
    case GY_HIERARCHICAL_HALVING: return halving_doubling(tree);
    case GY_HIERARCHICAL_TREE: return double_tree(tree, piece, to_root);
    case GY_HIERARCHICAL: return to_root ? chain(tree) : ring(tree, piece);
    default: return -1;
    }
}

int32_t gy_tree_build(const struct gy_schedule_shape *shape, int block, size_t element,
                      struct gy_expression *expression)
{
    struct tree tree = {.expression = expression,
                        .element = element,
                        .size = shape->size,
                        .root = shape->collective == GY_REDUCE_TO ? shape->root : 0};
    if (shape->collective == GY_ALL_GATHER || shape->collective == GY_GATHER_TO)
        return leaf(&tree, block);
    if (shape->collective == GY_BROADCAST || shape->collective == GY_SCATTER_FROM ||
        shape->collective == GY_RECEIVE_FROM || shape->collective == GY_SEND_TO)
        return leaf(&tree, shape->root);
    if (gy_is_hierarchical(shape->algorithm))
        return hierarchical(shape, block, &tree);
    switch (shape->algorithm) {
    case GY_RING:
        if (shape->collective == GY_REDUCE_TO)
            return chain(&tree);
        return ring(&tree, shape->collective == GY_ALL_REDUCE ? block : block + 1);
    case GY_DOUBLE_TREE: return double_tree(&tree, block, shape->collective == GY_REDUCE_TO);
    case GY_BINARY_TREE: return binary(&tree, 0);
    case GY_HALVING_DOUBLING: return halving_doubling(&tree);
    case GY_RECURSIVE_DOUBLING:
    case GY_BINOMIAL:
    case GY_CANONICAL: return canonical(&tree, 0, tree.size);
    case GY_SHM_ONE_SHOT:
    case GY_SHM_TWO_SHOT: return in_rank_order(&tree);
    case GY_HIERARCHICAL: /* above */
    case GY_HIERARCHICAL_HALVING:
    case GY_HIERARCHICAL_TREE:
    case GY_LINEAR: /* these reduce nothing */
    case GY_PAIRWISE:
    case GY_BRUCK:
    case GY_ALGORITHMS: break;
    }
    return -1;
}

/* The order in which a reduction combines the ranks' operands.
 *
 *   any         chosen by the algorithm; a function of the call's shape all the same
 *   ranks       x0, x1, x2, ... from left to right, with any bracketing: the minimum for a non-commutative operation
 *   canonical   also one fixed bracketing, for any algorithm, transport, count or topology
 *
 * The canonical tree over ranks [lo, lo + n): the left subtree has the first h ranks, h being the largest power of
 * two below n; the right one has the rest.
 *
 *   n = 6:   ((x0 · x1) · (x2 · x3)) · (x4 · x5)
 *
 * Equivalently: at distances 1, 2, 4, ... every group joins the group that begins at that distance, if there is one.
 * Every group is a run of ranks, and the height is log2 n, rounded up. */
#ifndef GY_COLLECTIVES_SCHEDULE_REDUCTION_ORDER_H
#define GY_COLLECTIVES_SCHEDULE_REDUCTION_ORDER_H

enum gy_operand_order { GY_ORDER_ANY, GY_ORDER_RANKS, GY_ORDER_CANONICAL };

/* Returns the size of the left subtree of n > 1 ranks. */
static inline int gy_tree_split(int n)
{
    int half = 1;
    while (2 * half < n)
        half *= 2;
    return half;
}

#endif

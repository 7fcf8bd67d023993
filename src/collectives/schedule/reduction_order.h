/* In which order a reduction combines the ranks' operands.
 *
 *   any         as the algorithm likes: a function of the call's shape all the same
 *   ranks       x0, x1, x2, ... from left to right, in whatever brackets: what does not commute wants at least this
 *   canonical   one tree of brackets as well, whatever the algorithm, transport, count or topology
 *
 * The canonical tree over ranks [lo, lo + n): the left subtree has the first h ranks, h being the largest power of two
 * below n, the right one the rest.
 *
 *   n = 6:   ((x0 · x1) · (x2 · x3)) · (x4 · x5)
 *
 * Equivalently: at distances 1, 2, 4, ... every rank that begins a group joins with the group that begins at that distance,
 * if there is one. Every group of the tree is a run of ranks, and its height is log2 of n, rounded up. */
#ifndef GY_COLLECTIVES_SCHEDULE_REDUCTION_ORDER_H
#define GY_COLLECTIVES_SCHEDULE_REDUCTION_ORDER_H

enum gy_operand_order { GY_ORDER_ANY, GY_ORDER_RANKS, GY_ORDER_CANONICAL };

/* The left subtree's part of n > 1 ranks. */
static inline int gy_tree_split(int n)
{
    int half = 1;
    while (2 * half < n)
        half *= 2;
    return half;
}

#endif

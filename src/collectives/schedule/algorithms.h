/* The table of algorithms. A row is all that the library knows of an algorithm, apart from its builder:
 *
 *   ROW(constant, name, builder, collectives that it serves, those of which it serves the v-form, flags)
 *
 * The enum, the prototypes of builders, the names, the predicates of schedule.h, the help of gyre-perf and the lists in
 * tests are made of it. The constants are numbered by row, and the numbers travel on the wire (gy_frame.algorithm): a
 * new row is the last one, so that the others keep their numbers. enum gy_algorithm_flag describes the flags. This file
 * has no include, because gyre-perf reads the names without the types.
 *
 * An algorithm serves a v-form if it sends blocks with displacements one by one; the blocks of reduce_scatter are
 * contiguous. In all_to_all no rank knows the longest block, which shared memory needs. */
#ifndef GY_COLLECTIVES_SCHEDULE_ALGORITHMS_H
#define GY_COLLECTIVES_SCHEDULE_ALGORITHMS_H

#define GY_SERVES(collective) (1u << (collective))

#define GY_ALGORITHM_ROWS(ROW)                                                                                         \
    /* all ranks publish and reduce the whole vector */                                                                \
    ROW(GY_SHM_ONE_SHOT, "direct_one_shot", gy_build_shm_one_shot,                                                     \
        GY_SERVES(GY_ALL_REDUCE) | GY_SERVES(GY_BROADCAST) | GY_SERVES(GY_BARRIER) | GY_SERVES(GY_REDUCE_TO), 0,       \
        GY_OVER_SHM | GY_KEEPS_ORDER)                                                                                  \
    /* each rank reduces its slice of all vectors, then all collect */                                                 \
    ROW(GY_SHM_TWO_SHOT, "direct_two_shot", gy_build_shm_two_shot,                                                     \
        GY_SERVES(GY_ALL_REDUCE) | GY_SERVES(GY_REDUCE_SCATTER) | GY_SERVES(GY_ALL_GATHER) | GY_SERVES(GY_REDUCE_TO) | \
            GY_SERVES(GY_GATHER_TO) | GY_SERVES(GY_SCATTER_FROM) | GY_SERVES(GY_ALL_TO_ALL),                           \
        GY_SERVES(GY_REDUCE_SCATTER) | GY_SERVES(GY_ALL_GATHER) | GY_SERVES(GY_GATHER_TO) |                            \
            GY_SERVES(GY_SCATTER_FROM),                                                                                \
        GY_OVER_SHM | GY_KEEPS_ORDER)                                                                                  \
    /* from neighbour to neighbour; of a root: chains */                                                               \
    ROW(GY_RING, "ring", gy_build_ring,                                                                                \
        GY_SERVES(GY_ALL_REDUCE) | GY_SERVES(GY_REDUCE_SCATTER) | GY_SERVES(GY_ALL_GATHER) | GY_SERVES(GY_BROADCAST) | \
            GY_SERVES(GY_REDUCE_TO),                                                                                   \
        GY_SERVES(GY_REDUCE_SCATTER) | GY_SERVES(GY_ALL_GATHER), 0)                                                    \
    /* in pairs, at distances that double */                                                                           \
    ROW(GY_HALVING_DOUBLING, "halving_doubling", gy_build_halving_doubling,                                            \
        GY_SERVES(GY_ALL_REDUCE) | GY_SERVES(GY_REDUCE_SCATTER) | GY_SERVES(GY_ALL_GATHER) | GY_SERVES(GY_BARRIER),    \
        GY_SERVES(GY_REDUCE_SCATTER), 0)                                                                               \
    /* one tree, pipelined by tile */                                                                                  \
    ROW(GY_BINARY_TREE, "binary_tree", gy_build_binary_tree,                                                           \
        GY_SERVES(GY_ALL_REDUCE) | GY_SERVES(GY_BROADCAST) | GY_SERVES(GY_BARRIER) | GY_SERVES(GY_REDUCE_TO), 0,       \
        GY_SHARES_WIRES)                                                                                               \
    /* messages between the root and each rank, four at a time; point to point */                                      \
    ROW(GY_LINEAR, "linear", gy_build_linear,                                                                          \
        GY_SERVES(GY_GATHER_TO) | GY_SERVES(GY_SCATTER_FROM) | GY_SERVES(GY_SEND_TO) | GY_SERVES(GY_RECEIVE_FROM),     \
        GY_SERVES(GY_GATHER_TO) | GY_SERVES(GY_SCATTER_FROM), 0)                                                       \
    /* all pairs, one partner after the other */                                                                       \
    ROW(GY_PAIRWISE, "pairwise", gy_build_pairwise, GY_SERVES(GY_ALL_TO_ALL), GY_SERVES(GY_ALL_TO_ALL), 0)             \
    /* recursive halving with growing distance: canonical order at full bandwidth */                                   \
    ROW(GY_CANONICAL, "canonical", gy_build_canonical,                                                                 \
        GY_SERVES(GY_ALL_REDUCE) | GY_SERVES(GY_REDUCE_SCATTER) | GY_SERVES(GY_REDUCE_TO),                             \
        GY_SERVES(GY_REDUCE_SCATTER), GY_KEEPS_ORDER | GY_SHARES_WIRES)                                                \
    /* whole vectors in pairs, few messages; beyond a power of two ranks share wires */                                \
    ROW(GY_RECURSIVE_DOUBLING, "recursive_doubling", gy_build_recursive_doubling, GY_SERVES(GY_ALL_REDUCE), 0,         \
        GY_KEEPS_ORDER | GY_SHARES_WIRES | GY_SCRATCH_IS_OUTPUT)                                                       \
    /* trees over runs of ranks: few messages to or from a root */                                                     \
    ROW(GY_BINOMIAL, "binomial", gy_build_binomial,                                                                    \
        GY_SERVES(GY_BROADCAST) | GY_SERVES(GY_REDUCE_TO) | GY_SERVES(GY_GATHER_TO) | GY_SERVES(GY_SCATTER_FROM), 0,   \
        GY_KEEPS_ORDER)                                                                                                \
    /* log N messages */                                                                                               \
    ROW(GY_BRUCK, "bruck", gy_build_bruck, GY_SERVES(GY_ALL_GATHER) | GY_SERVES(GY_ALL_TO_ALL), 0, 0)                  \
    /* two binary trees, half of the vector each, pipelined */                                                         \
    ROW(GY_DOUBLE_TREE, "double_tree", gy_build_double_tree,                                                           \
        GY_SERVES(GY_ALL_REDUCE) | GY_SERVES(GY_BROADCAST) | GY_SERVES(GY_REDUCE_TO), 0, GY_SHARES_WIRES)              \
    /* inside groups and between them, by slices: rings or chains between them */                                      \
    ROW(GY_HIERARCHICAL, "hierarchical", gy_build_hierarchical,                                                        \
        GY_SERVES(GY_ALL_REDUCE) | GY_SERVES(GY_REDUCE_SCATTER) | GY_SERVES(GY_ALL_GATHER) | GY_SERVES(GY_BROADCAST) | \
            GY_SERVES(GY_REDUCE_TO) | GY_SERVES(GY_BARRIER),                                                           \
        GY_SERVES(GY_REDUCE_SCATTER) | GY_SERVES(GY_ALL_GATHER), GY_GROUPED)                                           \
    /* the same, halving_doubling between groups */                                                                    \
    ROW(GY_HIERARCHICAL_HALVING, "hierarchical_halving", gy_build_hierarchical_halving, GY_SERVES(GY_ALL_REDUCE), 0,   \
        GY_GROUPED)                                                                                                    \
    /* the same, double trees between groups */                                                                        \
    ROW(GY_HIERARCHICAL_TREE, "hierarchical_tree", gy_build_hierarchical_tree,                                         \
        GY_SERVES(GY_ALL_REDUCE) | GY_SERVES(GY_BROADCAST) | GY_SERVES(GY_REDUCE_TO), 0, GY_GROUPED | GY_SHARES_WIRES)

#endif

/* The algorithms that GYRE_ALGORITHM and an attribute can force: the elements of a list of names. */
#ifndef GYRE_PERF_ALGORITHMS_H
#define GYRE_PERF_ALGORITHMS_H

#define GY_PERF_ALGORITHMS                                                                              \
    "direct_one_shot", "direct_two_shot", "ring", "halving_doubling", "binary_tree", "canonical",       \
        "recursive_doubling", "binomial", "bruck", "double_tree", "linear", "pairwise", "hierarchical", \
        "hierarchical_halving", "hierarchical_tree"

#endif

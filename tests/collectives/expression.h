/* Symbolic values: what an element is made of. A leaf is "element e of rank r's input"; an inner node is left op right.
 * Nodes are never freed one by one, so a value is an index. */
#ifndef GY_TESTS_COLLECTIVES_EXPRESSION_H
#define GY_TESTS_COLLECTIVES_EXPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gyre/gyre.h>

#define GY_EXPRESSION_RANKS 192 /* the largest world that can be checked */
#define GY_EXPRESSION_NONE (-1)

struct gy_expression_node {
    int32_t left, right; /* −1 in a leaf */
    int32_t rank;        /* of a leaf */
    size_t element;
    uint64_t ranks[GY_EXPRESSION_RANKS / 64]; /* whose contributions are in it */
    uint64_t hash;                            /* equal expressions, equal hash */
};

struct gy_expression {
    struct gy_expression_node *node;
    int32_t nodes, capacity;
    int32_t *root; /* per element of the vector: its value; filled by gy_checker_expression */
    size_t total;
};

int32_t gy_expression_leaf(struct gy_expression *expression, int rank, size_t element);
/* GY_EXPRESSION_NONE when the operands are of different elements or a contribution is in both. */
int32_t gy_expression_join(struct gy_expression *expression, int32_t left, int32_t right);
int gy_expression_count(const struct gy_expression *expression, int32_t value);
void gy_expression_free(struct gy_expression *expression);

/* Evaluates a value serially, one scalar operation per node, on the ranks' inputs (each a whole vector), with `element`
 * in every leaf: the trees of a block's elements differ in nothing else. Writes one element. A leaf is copied bit for
 * bit. Shares no code with the library's kernels. */
void gy_expression_evaluate(const struct gy_expression *expression, int32_t value, size_t element,
                            const void *const *inputs, gyre_dtype dtype, gyre_op op, void *result_p);

#endif

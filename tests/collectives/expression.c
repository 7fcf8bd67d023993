/* Symbolic values and their serial evaluation; see expression.h. */
#include "expression.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b * UINT64_C(0x9e3779b97f4a7c15))) + UINT64_C(0x632be59bd9b4e019);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static struct gy_expression_node *add_node(struct gy_expression *expression)
{
    if (expression->nodes == expression->capacity) {
        expression->capacity = expression->capacity == 0 ? 1024 : 2 * expression->capacity;
        expression->node = realloc(expression->node, (size_t)expression->capacity * sizeof(expression->node[0]));
        if (expression->node == NULL)
            abort();
    }
    struct gy_expression_node *node = &expression->node[expression->nodes++];
    memset(node, 0, sizeof(*node));
    node->left = node->right = GY_EXPRESSION_NONE;
    return node;
}

int32_t gy_expression_leaf(struct gy_expression *expression, int rank, size_t element)
{
    struct gy_expression_node *node = add_node(expression);
    node->rank = rank;
    node->element = element;
    node->ranks[rank / 64] = UINT64_C(1) << (rank % 64);
    node->hash = mix((uint64_t)rank + 1, element);
    return expression->nodes - 1;
}

int32_t gy_expression_join(struct gy_expression *expression, int32_t left, int32_t right)
{
    if (left < 0 || right < 0)
        return GY_EXPRESSION_NONE;
    struct gy_expression_node *node = add_node(expression);
    const struct gy_expression_node *a = &expression->node[left], *b = &expression->node[right];
    if (a->element != b->element)
        return GY_EXPRESSION_NONE;
    for (size_t i = 0; i < GY_EXPRESSION_RANKS / 64; i++) {
        if ((a->ranks[i] & b->ranks[i]) != 0)
            return GY_EXPRESSION_NONE;
        node->ranks[i] = a->ranks[i] | b->ranks[i];
    }
    node->left = left;
    node->right = right;
    node->element = a->element;
    node->hash = mix(mix(a->hash, 77), b->hash);
    return expression->nodes - 1;
}

int gy_expression_count(const struct gy_expression *expression, int32_t value)
{
    int count = 0;
    for (size_t i = 0; i < GY_EXPRESSION_RANKS / 64; i++)
        count += __builtin_popcountll(expression->node[value].ranks[i]);
    return count;
}

void gy_expression_free(struct gy_expression *expression)
{
    free(expression->node);
    free(expression->root);
    memset(expression, 0, sizeof(*expression));
}

/* One scalar of any type: the integer or the floating value counts, by dtype. */
union scalar {
    int32_t i;
    float f;
    double d;
};

/* A NaN is the quiet NaN with payload zero, from whichever operand it comes. */
#define SUM(type, a, b) (isnan((a) + (b)) ? (type)__builtin_nan("") : (a) + (b))

/* −0 is less than +0; a NaN gives the quiet NaN with payload zero. */
#define EXTREME(type, a, b, op)                                                                  \
    (isnan(a) || isnan(b)                ? (type)__builtin_nan("")                               \
     : (a) == (b)                        ? (((op) == GYRE_MIN) == (signbit(a) != 0) ? (a) : (b)) \
     : ((a) < (b)) == ((op) == GYRE_MIN) ? (a)                                                   \
                                         : (b))

static union scalar combine(union scalar a, union scalar b, gyre_dtype dtype, gyre_op op)
{
    union scalar r = {0};
    if (dtype == GYRE_INT32 && op == GYRE_SUM)
        r.i = (int32_t)((uint32_t)a.i + (uint32_t)b.i);
    else if (dtype == GYRE_INT32)
        r.i = (a.i < b.i) == (op == GYRE_MIN) ? a.i : b.i;
    else if (dtype == GYRE_FLOAT32 && op == GYRE_SUM)
        r.f = SUM(float, a.f, b.f);
    else if (dtype == GYRE_FLOAT32)
        r.f = EXTREME(float, a.f, b.f, op);
    else if (op == GYRE_SUM)
        r.d = SUM(double, a.d, b.d);
    else
        r.d = EXTREME(double, a.d, b.d, op);
    return r;
}

/* What a value is evaluated on. */
struct operands {
    const struct gy_expression *expression;
    const void *const *inputs;
    size_t element;
    gyre_dtype dtype;
    gyre_op op;
};

static union scalar evaluate(const struct operands *on, int32_t value)
{
    const struct gy_expression_node *node = &on->expression->node[value];
    union scalar r = {0};
    if (node->left < 0) {
        size_t bytes = on->dtype == GYRE_FLOAT64 ? 8 : 4;
        memcpy(&r, (const char *)on->inputs[node->rank] + on->element * bytes, bytes);
        return r;
    }
    union scalar left = evaluate(on, node->left), right = evaluate(on, node->right);
    return combine(left, right, on->dtype, on->op);
}

void gy_expression_evaluate(const struct gy_expression *expression, int32_t value, size_t element,
                            const void *const *inputs, gyre_dtype dtype, gyre_op op, void *result_p)
{
    const struct operands on = {expression, inputs, element, dtype, op};
    union scalar r = evaluate(&on, value);
    memcpy(result_p, &r, dtype == GYRE_FLOAT64 ? 8 : 4);
}

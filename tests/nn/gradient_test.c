/* Gradients of every module against central differences, in fp64: with h = 1e-5 the difference is right to about 1e-10
 * of the cost. */
#include <criterion/criterion.h>
#include <gyre/nn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define ROWS 7
#define INPUTS 5

static const size_t widths[] = {6, 4};

struct problem {
    gyre_nn_model *model;
    double x[ROWS * INPUTS], targets[ROWS * 3];
    int32_t labels[ROWS];
    bool use_targets;
};

static void set_up(struct problem *p, gyre_nn_activation activation, gyre_nn_cost_kind cost, bool use_targets)
{
    uint64_t state = 42;
    gyre_nn_layer *top = gyre_nn_input(INPUTS);
    for (size_t i = 0; i < 2; i++)
        top = gyre_nn_dense(top, widths[i], activation);
    cr_assert_eq(gyre_nn_new(gyre_nn_cost(top, 3, cost), GYRE_FLOAT64, 7, &p->model), GYRE_SUCCESS, "%s",
                 gyre_nn_last_error());
    for (size_t i = 0; i < ROWS * INPUTS; i++)
        p->x[i] = 2 * gy_nn_random_unit(&state) - 1;
    for (size_t i = 0; i < ROWS * 3; i++)
        p->targets[i] = gy_nn_random_unit(&state);
    for (size_t i = 0; i < ROWS; i++)
        p->labels[i] = (int32_t)gy_nn_random_below(&state, 3);
    double *params = gyre_nn_params(p->model);
    for (size_t i = 0; i < gyre_nn_param_count(p->model); i++) /* biases too: a zero would hide a wrong one */
        params[i] += 0.1 * gy_nn_random_unit(&state);
    p->use_targets = use_targets;
}

static double cost_of(struct problem *p)
{
    double cost = NAN;
    cr_assert_eq(gyre_nn_forward(p->model, p->x, ROWS, NULL), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_evaluate(p->model, p->labels, p->use_targets ? p->targets : NULL, &cost, NULL), GYRE_SUCCESS);
    return cost;
}

static size_t passed_edges[8], npassed;

static void on_passed(void *user, size_t lower)
{
    (void)user;
    passed_edges[npassed++] = lower;
}

static void check(gyre_nn_activation activation, gyre_nn_cost_kind cost, bool use_targets)
{
    struct problem p;
    set_up(&p, activation, cost, use_targets);
    gyre_nn_zero_grads(p.model);
    cost_of(&p);
    npassed = 0;
    cr_assert_eq(gyre_nn_backward(p.model, on_passed, NULL), GYRE_SUCCESS);
    cr_assert_eq(npassed, 3);
    cr_assert(passed_edges[0] > passed_edges[1] && passed_edges[1] > passed_edges[2] && passed_edges[2] == 0);
    double *params = gyre_nn_params(p.model), *grads = gyre_nn_grads(p.model), largest = 0;
    for (size_t i = 0; i < gyre_nn_param_count(p.model); i++) {
        double h = 1e-5, kept = params[i];
        params[i] = kept + h;
        double above = cost_of(&p);
        params[i] = kept - h;
        double below = cost_of(&p);
        params[i] = kept;
        double difference = (above - below) / (2 * h);
        cr_assert_float_eq(grads[i], difference, 1e-6, "parameter %zu: %.12g, by differences %.12g", i, grads[i],
                           difference);
        largest = fmax(largest, fabs(difference));
    }
    cr_assert_gt(largest, 0.01, "no gradient to speak of: the check would prove nothing");
    gyre_nn_free(p.model);
}

Test(gradient, linear)
{
    check(GYRE_NN_IDENTITY, GYRE_NN_MEAN_SQUARED_ERROR, true);
}
Test(gradient, relu)
{
    check(GYRE_NN_RELU, GYRE_NN_CROSS_ENTROPY, false);
}
Test(gradient, tanh)
{
    check(GYRE_NN_TANH, GYRE_NN_CROSS_ENTROPY, false);
}
Test(gradient, sigmoid)
{
    check(GYRE_NN_SIGMOID, GYRE_NN_CROSS_ENTROPY, false);
}
Test(gradient, squared_error_of_labels)
{
    check(GYRE_NN_TANH, GYRE_NN_MEAN_SQUARED_ERROR, false);
}

Test(gradient, adds_up_over_pieces)
{
    struct problem p;
    set_up(&p, GYRE_NN_TANH, GYRE_NN_CROSS_ENTROPY, false);
    size_t count = gyre_nn_param_count(p.model);
    double *whole = calloc(count, sizeof(*whole)), *grads = gyre_nn_grads(p.model);
    gyre_nn_zero_grads(p.model);
    cost_of(&p);
    gyre_nn_backward(p.model, NULL, NULL);
    memcpy(whole, grads, count * sizeof(*whole));
    gyre_nn_zero_grads(p.model);
    for (int piece = 0; piece < 3; piece++) {
        size_t first, rows;
        gyre_nn_shard(ROWS, piece, 3, &first, &rows);
        gyre_nn_forward(p.model, p.x + first * INPUTS, rows, NULL);
        gyre_nn_evaluate(p.model, p.labels + first, NULL, NULL, NULL);
        gyre_nn_backward(p.model, NULL, NULL);
    }
    for (size_t i = 0; i < count; i++)
        cr_assert_float_eq(grads[i], whole[i], 1e-12);
    free(whole);
    gyre_nn_free(p.model);
}

Test(gradient, refuses_labels_outside)
{
    struct problem p;
    set_up(&p, GYRE_NN_RELU, GYRE_NN_CROSS_ENTROPY, false);
    p.labels[2] = 3;
    gyre_nn_forward(p.model, p.x, ROWS, NULL);
    cr_assert_eq(gyre_nn_evaluate(p.model, p.labels, NULL, NULL, NULL), GYRE_INVALID_ARGUMENT);
    cr_assert_str_eq(gyre_nn_last_error(), "label 3 of row 2 is outside the model's 3 outputs");
    cr_assert_eq(gyre_nn_backward(p.model, NULL, NULL), GYRE_INVALID_ARGUMENT);
    gyre_nn_free(p.model);
}

Test(gradient, chain_reports_its_first_error)
{
    gyre_nn_model *model = NULL;
    gyre_nn_layer *top = gyre_nn_cost(gyre_nn_dense(gyre_nn_input(4), 0, GYRE_NN_RELU), 2, GYRE_NN_CROSS_ENTROPY);
    cr_assert_null(top);
    cr_assert_neq(gyre_nn_new(top, GYRE_FLOAT32, 1, &model), GYRE_SUCCESS);
    cr_assert_null(model);
    cr_assert(strstr(gyre_nn_last_error(), "0 outputs"));
    cr_assert_eq(gyre_nn_new(gyre_nn_input(4), GYRE_FLOAT32, 1, &model), GYRE_INVALID_ARGUMENT);
}

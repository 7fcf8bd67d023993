/* Every module's gradient, and that of whole models, against central differences, in fp64, with regard to parameters
 * and, through a dense layer below it, to a module's input; fp32 agrees with fp64; dropout can be replayed, and drops
 * the same whatever the pieces; several users of one value add up. */
#include <criterion/criterion.h>
#include <gyre/nn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define SAMPLES 3
#define STEPS 5
#define FEATURES 4
#define SYMBOLS 7

typedef gyre_nn_layer *(*build_func)(gyre_nn_layer *below);

struct problem {
    gyre_nn_model *model;
    size_t inputs, rows;
    double x[SAMPLES * STEPS * FEATURES];
    int32_t labels[SAMPLES * STEPS];
};

/* A dense layer below what is tested, so that its gradient with regard to its input is seen too. */
static gyre_nn_model *make(build_func build, gyre_nn_cost_kind cost, bool symbols, gyre_dtype dtype)
{
    gyre_nn_model *model = NULL;
    gyre_nn_layer *net = gyre_nn_input_sequence(STEPS, symbols ? 1 : FEATURES);
    if (!symbols)
        net = gyre_nn_dense(net, 6, GYRE_NN_IDENTITY);
    net = build(net);
    cr_assert_eq(gyre_nn_new(gyre_nn_cost(net, 3, cost), dtype, 7, &model), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    return model;
}

/* p->model is there. */
static void fill(struct problem *p, bool symbols)
{
    uint64_t state = 42;
    p->inputs = gyre_nn_inputs(p->model);
    p->rows = SAMPLES * gyre_nn_output_steps(p->model);
    for (size_t i = 0; i < SAMPLES * p->inputs; i++)
        p->x[i] = symbols ? (double)gy_nn_random_below(&state, SYMBOLS) : 2 * gy_nn_random_unit(&state) - 1;
    for (size_t i = 0; i < p->rows; i++)
        p->labels[i] = (int32_t)gy_nn_random_below(&state, 3);
    double *params = gyre_nn_params(p->model);
    for (size_t i = 0; i < gyre_nn_param_count(p->model); i++) /* zeros and ones would hide wrong gradients */
        params[i] += 0.2 * (gy_nn_random_unit(&state) - 0.5);
    gyre_nn_train_mode(p->model, 3, 5, 0);
}

static void set_up(struct problem *p, build_func build, bool symbols)
{
    p->model = make(build, GYRE_NN_CROSS_ENTROPY, symbols, GYRE_FLOAT64);
    fill(p, symbols);
}

/* Those that rebuild their input have no labels. */
static const int32_t *labels_of(const struct problem *p)
{
    return gyre_nn_cost_of(p->model) == GYRE_NN_RECONSTRUCTION ? NULL : p->labels;
}

static double cost_of(struct problem *p)
{
    double cost = NAN;
    cr_assert_eq(gyre_nn_forward(p->model, p->x, SAMPLES, NULL), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    cr_assert_eq(gyre_nn_evaluate(p->model, labels_of(p), NULL, &cost, NULL), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    return cost;
}

/* By four values of the cost, for those of two are not enough where a layer norm sees rows that hardly vary: what is
 * left out is of the order of h^4. */
static double difference_at(struct problem *p, double *param)
{
    double kept = *param, h = 1e-5, cost[4];
    for (int i = 0; i < 4; i++) {
        *param = kept + h * (i < 2 ? i - 2 : i - 1);
        cost[i] = cost_of(p);
    }
    *param = kept;
    return (8 * (cost[2] - cost[1]) - (cost[3] - cost[0])) / (12 * h);
}

static void compare_tensor(struct problem *p, const struct gyre_nn_tensor *tensor)
{
    double *params = gyre_nn_params(p->model), *grads = gyre_nn_grads(p->model), largest = 0;
    for (size_t i = tensor->offset; i < tensor->offset + tensor->rows * tensor->cols; i++) {
        double difference = difference_at(p, &params[i]);
        cr_assert_float_eq(grads[i], difference, 1e-7 + 1e-6 * fabs(difference), "%s[%zu]: %.12g, by differences %.12g",
                           tensor->name, i - tensor->offset, grads[i], difference);
        largest = fmax(largest, fabs(difference));
    }
    cr_assert_gt(largest, 1e-4, "%s has no gradient to speak of: the check would prove nothing", tensor->name);
}

static size_t last_edge;
static double *said; /* gradients as they were when backward said that they are final */

static void on_passed(void *user, size_t lower)
{
    gyre_nn_model *model = user;
    cr_assert_lt(lower, last_edge);
    size_t end = last_edge < gyre_nn_param_count(model) ? last_edge : gyre_nn_param_count(model);
    memcpy(said + lower, (const double *)gyre_nn_grads(model) + lower, (end - lower) * sizeof(*said));
    last_edge = lower;
}

/* Gradients that are renewed have the bits of those that began with zeros, whatever was there before, and the next
 * backward adds to them; of no samples they are zeros. */
static void check_renewed(struct problem *p)
{
    size_t count = gyre_nn_param_count(p->model);
    double *grads = gyre_nn_grads(p->model), *zeroed = calloc(2 * count, sizeof(*zeroed)), *added = zeroed + count;
    for (int renew = 0; renew < 2; renew++) {
        for (size_t i = 0; i < count; i++)
            grads[i] = NAN;
        if (renew)
            gyre_nn_renew_grads(p->model);
        else
            gyre_nn_zero_grads(p->model);
        for (int pass = 0; pass < 2; pass++) {
            double *expected = pass ? added : zeroed;
            cost_of(p);
            cr_assert_eq(gyre_nn_backward(p->model, NULL, NULL), GYRE_SUCCESS);
            if (!renew)
                memcpy(expected, grads, count * sizeof(*grads));
            cr_assert_arr_eq(grads, expected, count * sizeof(*grads));
        }
    }
    gyre_nn_renew_grads(p->model);
    cr_assert_eq(gyre_nn_forward(p->model, p->x, 0, NULL), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_evaluate(p->model, labels_of(p), NULL, NULL, NULL), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_backward(p->model, NULL, NULL), GYRE_SUCCESS);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(grads[i], 0);
    free(zeroed);
}

static void check_problem(struct problem *p)
{
    cost_of(p);
    last_edge = SIZE_MAX;
    said = calloc(gyre_nn_param_count(p->model), sizeof(*said));
    cr_assert_eq(gyre_nn_backward(p->model, on_passed, p->model), GYRE_SUCCESS);
    cr_assert_eq(last_edge, 0);
    cr_assert_arr_eq(said, gyre_nn_grads(p->model), gyre_nn_param_count(p->model) * sizeof(*said));
    free(said);
    for (size_t i = 0; i < gyre_nn_tensor_count(p->model); i++)
        if (!gyre_nn_tensor_is_statistic(p->model, i))
            compare_tensor(p, gyre_nn_tensor(p->model, i));
    check_renewed(p);
    gyre_nn_free(p->model);
}

static void check(build_func build, bool symbols)
{
    struct problem p;
    set_up(&p, build, symbols);
    check_problem(&p);
}

static gyre_nn_layer *lstm(gyre_nn_layer *below)
{
    return gyre_nn_lstm(gyre_nn_lstm(below, 5), 4);
}
static gyre_nn_layer *whole_attention(gyre_nn_layer *below)
{
    return gyre_nn_attention(below, 2, false);
}
static gyre_nn_layer *causal_attention(gyre_nn_layer *below)
{
    return gyre_nn_attention(below, 3, true);
}
static gyre_nn_layer *norm(gyre_nn_layer *below)
{
    return gyre_nn_layer_norm(below);
}
static gyre_nn_layer *gelu(gyre_nn_layer *below)
{
    return gyre_nn_activate(below, GYRE_NN_GELU);
}
static gyre_nn_layer *position(gyre_nn_layer *below)
{
    return gyre_nn_position(below);
}
static gyre_nn_layer *dropout(gyre_nn_layer *below)
{
    return gyre_nn_dropout(below, 0.4);
}
static gyre_nn_layer *embedding(gyre_nn_layer *below)
{
    return gyre_nn_dense(gyre_nn_embedding(below, SYMBOLS, 4), 5, GYRE_NN_TANH);
}
static gyre_nn_layer *residual(gyre_nn_layer *below)
{
    gyre_nn_layer *net = gyre_nn_activate(below, GYRE_NN_TANH), *first = net;
    net = gyre_nn_dense(net, 6, GYRE_NN_SIGMOID);
    gyre_nn_layer *second = net;
    net = gyre_nn_residual(gyre_nn_dense(net, 6, GYRE_NN_TANH), first);
    return gyre_nn_residual(gyre_nn_residual(net, second), net); /* overlapping, and one value twice */
}
static gyre_nn_layer *block(gyre_nn_layer *below)
{
    gyre_nn_layer *net = gyre_nn_position(gyre_nn_embedding(below, SYMBOLS, 6)), *from = net;
    net = gyre_nn_dropout(gyre_nn_attention(gyre_nn_layer_norm(net), 2, true), 0.2);
    net = from = gyre_nn_residual(net, from);
    net = gyre_nn_dense(gyre_nn_dense(gyre_nn_layer_norm(net), 8, GYRE_NN_GELU), 6, GYRE_NN_IDENTITY);
    return gyre_nn_layer_norm(gyre_nn_residual(net, from));
}

/* Of images of 5 × 4 pixels; a dense layer below keeps them. */
static gyre_nn_layer *convolution(gyre_nn_layer *below)
{
    return gyre_nn_conv2d(gyre_nn_conv2d(below, 5, 3, 2, 1, true), 3, 2, 1, 1, true);
}
static gyre_nn_layer *pooling(gyre_nn_layer *below)
{
    return gyre_nn_max_pool2d(below, 3, 1); /* windows overlap */
}
static gyre_nn_layer *batch_norm(gyre_nn_layer *below)
{
    return gyre_nn_batch_norm(gyre_nn_activate(below, GYRE_NN_TANH)); /* right above a bias it would take it out */
}
static gyre_nn_layer *convolution_block(gyre_nn_layer *below)
{
    gyre_nn_layer *net = gyre_nn_conv2d(gyre_nn_activate(below, GYRE_NN_TANH), 4, 3, 1, 1, false);
    return gyre_nn_max_pool2d(gyre_nn_activate(gyre_nn_batch_norm(net), GYRE_NN_RELU), 2, 2);
}

static gyre_nn_model *make_image(build_func build, gyre_dtype dtype)
{
    gyre_nn_model *model = NULL;
    gyre_nn_layer *net = gyre_nn_dense(gyre_nn_input_image(5, 4, 1), 2, GYRE_NN_IDENTITY);
    net = gyre_nn_cost(gyre_nn_flatten(build(net)), 3, GYRE_NN_CROSS_ENTROPY);
    cr_assert_eq(gyre_nn_new(net, dtype, 7, &model), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    return model;
}

static void check_image(build_func build)
{
    struct problem p = {.model = make_image(build, GYRE_FLOAT64)};
    fill(&p, false);
    check_problem(&p);
}

/* In test mode the statistics do not depend on the data, and they have no gradient. */
static void check_image_in_test_mode(build_func build)
{
    struct problem p = {.model = make_image(build, GYRE_FLOAT64)};
    fill(&p, false);
    gyre_nn_test_mode(p.model);
    cost_of(&p);
    cr_assert_eq(gyre_nn_backward(p.model, NULL, NULL), GYRE_SUCCESS);
    for (size_t i = 0; i < gyre_nn_tensor_count(p.model); i++) {
        const struct gyre_nn_tensor *tensor = gyre_nn_tensor(p.model, i);
        if (!gyre_nn_tensor_is_statistic(p.model, i))
            compare_tensor(&p, tensor);
        for (size_t c = 0; gyre_nn_tensor_is_statistic(p.model, i) && c < tensor->cols; c++)
            cr_assert_eq(((double *)gyre_nn_grads(p.model))[tensor->offset + c], 0);
    }
    gyre_nn_free(p.model);
}

Test(module, convolution)
{
    check_image(convolution);
}
Test(module, pooling)
{
    check_image(pooling);
}
Test(module, batch_norm)
{
    check(batch_norm, false);
    check_image(batch_norm);
    check_image_in_test_mode(batch_norm);
}
Test(module, convolution_block)
{
    check_image(convolution_block);
    check_image_in_test_mode(convolution_block);
}
Test(module, lstm)
{
    check(lstm, false);
}
Test(module, attention)
{
    check(whole_attention, false);
}
Test(module, causal_attention)
{
    check(causal_attention, false);
}
Test(module, layer_norm)
{
    check(norm, false);
}
Test(module, gelu)
{
    check(gelu, false);
}
Test(module, position)
{
    check(position, false);
}
Test(module, dropout)
{
    check(dropout, false);
}
Test(module, embedding)
{
    check(embedding, true);
}
Test(module, residual)
{
    check(residual, false);
}
Test(module, transformer_block)
{
    check(block, true);
}

/* The models that gyre-train makes, whole; the recommender has a test of its own. */
Test(module, mlp_whole)
{
    struct problem p;
    cr_assert_eq(gyre_nn_mlp(FEATURES, (size_t[]){6, 5}, 2, GYRE_NN_TANH, 3, GYRE_FLOAT64, 7, &p.model), GYRE_SUCCESS);
    fill(&p, false);
    check_problem(&p);
}
Test(module, autoencoder_whole)
{
    struct problem p;
    cr_assert_eq(gyre_nn_autoencoder(FEATURES, (size_t[]){6, 2}, 2, GYRE_NN_SIGMOID, GYRE_FLOAT64, 7, &p.model),
                 GYRE_SUCCESS);
    fill(&p, false);
    check_problem(&p);
}
Test(module, character_lstm_whole)
{
    struct problem p;
    cr_assert_eq(gyre_nn_character_lstm(STEPS, SYMBOLS, 4, (size_t[]){5, 3}, 2, 0.3, GYRE_FLOAT64, 7, &p.model),
                 GYRE_SUCCESS);
    fill(&p, true);
    check_problem(&p);
}
Test(module, transformer_whole)
{
    struct problem p;
    cr_assert_eq(gyre_nn_transformer(STEPS, SYMBOLS, 6, 2, 2, 0.2, GYRE_FLOAT64, 7, &p.model), GYRE_SUCCESS);
    fill(&p, true);
    check_problem(&p);
}

Test(module, cnn_whole)
{
    struct problem p;
    const struct gyre_nn_image image = {.height = 5, .width = 4, .channels = 1};
    cr_assert_eq(gyre_nn_cnn(&image, (size_t[]){3}, 1, (size_t[]){4}, 1, 0.2, 3, GYRE_FLOAT64, 7, &p.model),
                 GYRE_SUCCESS);
    fill(&p, false);
    check_problem(&p);
}

/* The same model and data in both types: equal within fp32's rounding, in the output and in the gradients. */
static void check_agrees(struct problem p, gyre_nn_model *narrow)
{
    size_t count = gyre_nn_param_count(narrow);
    float x[SAMPLES * STEPS * FEATURES], *params = gyre_nn_params(narrow), *grads = gyre_nn_grads(narrow);
    double cost = NAN, *wide = gyre_nn_grads(p.model);
    for (size_t i = 0; i < SAMPLES * p.inputs; i++)
        x[i] = (float)p.x[i];
    for (size_t i = 0; i < count; i++)
        params[i] = (float)((double *)gyre_nn_params(p.model))[i];
    gyre_nn_train_mode(narrow, 3, 5, 0);
    cr_assert_eq(gyre_nn_forward(narrow, x, SAMPLES, NULL), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_evaluate(narrow, p.labels, NULL, &cost, NULL), GYRE_SUCCESS);
    gyre_nn_backward(narrow, NULL, NULL);
    cr_assert_float_eq(cost, cost_of(&p), 1e-4);
    gyre_nn_backward(p.model, NULL, NULL);
    for (size_t i = 0; i < count; i++)
        cr_assert_float_eq((double)grads[i], wide[i], 1e-4, "parameter %zu: %g and %g", i, (double)grads[i], wide[i]);
    gyre_nn_free(narrow);
    gyre_nn_free(p.model);
}

static void check_narrow(build_func build, bool symbols)
{
    struct problem p;
    set_up(&p, build, symbols);
    check_agrees(p, make(build, GYRE_NN_CROSS_ENTROPY, symbols, GYRE_FLOAT32));
}

static void check_narrow_image(build_func build)
{
    struct problem p = {.model = make_image(build, GYRE_FLOAT64)};
    fill(&p, false);
    check_agrees(p, make_image(build, GYRE_FLOAT32));
}

Test(module, float32_agrees)
{
    check_narrow_image(convolution);
    check_narrow_image(convolution_block);
    check_narrow(lstm, false);
    check_narrow(residual, false);
    check_narrow(block, true);
}

static const double *output_of(struct problem *p, size_t first, size_t samples)
{
    const void *y = NULL;
    cr_assert_eq(gyre_nn_forward(p->model, p->x + first * p->inputs, samples, &y), GYRE_SUCCESS);
    return y;
}

Test(module, dropout_is_a_function_of_seed_step_and_place)
{
    struct problem p;
    double whole[SAMPLES * STEPS * 3], largest = 0;
    set_up(&p, dropout, false);
    memcpy(whole, output_of(&p, 0, SAMPLES), sizeof(whole));
    gyre_nn_train_mode(p.model, 3, 5, 1); /* the second and third sample, computed as a piece */
    cr_assert_arr_eq(output_of(&p, 1, 2), whole + STEPS * 3, 2 * STEPS * 3 * sizeof(double));
    gyre_nn_train_mode(p.model, 3, 6, 0);
    cr_assert(memcmp(output_of(&p, 0, SAMPLES), whole, sizeof(whole)) != 0, "the next step drops the same");
    gyre_nn_test_mode(p.model);
    memcpy(whole, output_of(&p, 0, SAMPLES), sizeof(whole));
    /* in test mode nothing is dropped: the mean over many steps comes near */
    double mean[SAMPLES * STEPS * 3] = {0};
    for (uint64_t step = 0; step < 4000; step++) {
        gyre_nn_train_mode(p.model, 3, step, 0);
        const double *y = output_of(&p, 0, SAMPLES);
        for (size_t i = 0; i < SAMPLES * STEPS * 3; i++)
            mean[i] += y[i] / 4000;
    }
    for (size_t i = 0; i < SAMPLES * STEPS * 3; i++)
        largest = fmax(largest, fabs(mean[i] - whole[i]));
    cr_assert_lt(largest, 0.1);
    gyre_nn_free(p.model);
}

Test(module, causal_attention_does_not_look_ahead)
{
    struct problem p;
    double before[STEPS * 3];
    set_up(&p, causal_attention, false);
    memcpy(before, output_of(&p, 0, 1), sizeof(before));
    p.x[(STEPS - 1) * FEATURES] += 1;
    const double *after = output_of(&p, 0, 1);
    cr_assert_arr_eq(after, before, (STEPS - 1) * 3 * sizeof(double));
    cr_assert_neq(after[(STEPS - 1) * 3], before[(STEPS - 1) * 3]);
    gyre_nn_free(p.model);
}

Test(module, wrong_shapes_are_refused)
{
    struct problem p;
    gyre_nn_model *model = NULL;
    gyre_nn_layer *net = gyre_nn_attention(gyre_nn_input_sequence(4, 6), 4, false);
    cr_assert_eq(gyre_nn_new(gyre_nn_cost(net, 2, GYRE_NN_CROSS_ENTROPY), GYRE_FLOAT32, 1, &model),
                 GYRE_INVALID_ARGUMENT);
    cr_assert_str_eq(gyre_nn_last_error(), "4 attention heads do not divide 6 features");
    net = gyre_nn_input(4);
    const gyre_nn_layer *from = net;
    net = gyre_nn_residual(gyre_nn_dense(net, 5, GYRE_NN_TANH), from);
    cr_assert_eq(gyre_nn_new(gyre_nn_cost(net, 2, GYRE_NN_CROSS_ENTROPY), GYRE_FLOAT32, 1, &model),
                 GYRE_INVALID_ARGUMENT);
    cr_assert_str_eq(gyre_nn_last_error(), "a residual of 1 steps of 5 values and 1 steps of 4");
    const double rates[] = {-0.1, 1, NAN};
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        cr_assert_eq(gyre_nn_transformer(4, 5, 8, 2, 1, rates[i], GYRE_FLOAT32, 1, &model), GYRE_INVALID_ARGUMENT);
        cr_assert_eq(gyre_nn_character_lstm(4, 5, 8, (size_t[]){8}, 1, rates[i], GYRE_FLOAT32, 1, &model),
                     GYRE_INVALID_ARGUMENT);
    }
    net = gyre_nn_dropout(gyre_nn_input(4), 1);
    cr_assert_eq(gyre_nn_new(gyre_nn_cost(net, 2, GYRE_NN_CROSS_ENTROPY), GYRE_FLOAT32, 1, &model),
                 GYRE_INVALID_ARGUMENT);
    set_up(&p, embedding, true);
    p.x[STEPS + 2] = SYMBOLS;
    cr_assert_eq(gyre_nn_forward(p.model, p.x, SAMPLES, NULL), GYRE_INVALID_ARGUMENT);
    cr_assert_str_eq(gyre_nn_last_error(), "step 2 of sample 1 is none of the 7 symbols of an embedding");
    cr_assert_eq(gyre_nn_evaluate(p.model, p.labels, NULL, NULL, NULL), GYRE_INVALID_ARGUMENT);
    gyre_nn_free(p.model);
    cr_assert_null(model);
}

/* The gates of an lstm are gradients after backward: a second one would take them for gates. */
Test(module, a_forward_is_good_for_one_backward)
{
    gyre_nn_model *model = NULL;
    gyre_nn_tape *tape = NULL;
    double x[2 * 4 * 3], dy[2 * 4 * 5] = {0};
    int32_t labels[2 * 4] = {0, 1, 2, 0, 1, 2, 0, 1};
    for (size_t i = 0; i < sizeof(x) / sizeof(x[0]); i++)
        x[i] = sin(1.3 * (double)i);
    gyre_nn_layer *top = gyre_nn_lstm(gyre_nn_input_sequence(4, 3), 5);
    cr_assert_eq(gyre_nn_new(gyre_nn_cost(top, 3, GYRE_NN_CROSS_ENTROPY), GYRE_FLOAT64, 1, &model), GYRE_SUCCESS);
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(gyre_nn_forward(model, x, 2, NULL), GYRE_SUCCESS);
        for (int cost = 0; cost < 2; cost++) /* as often as wanted before backward */
            cr_assert_eq(gyre_nn_evaluate(model, labels, NULL, NULL, NULL), GYRE_SUCCESS);
        cr_assert_eq(gyre_nn_backward(model, NULL, NULL), GYRE_SUCCESS);
        cr_assert_eq(gyre_nn_evaluate(model, labels, NULL, NULL, NULL), GYRE_INVALID_ARGUMENT);
        cr_assert(strstr(gyre_nn_last_error(), "gyre_nn_evaluate after a backward"), "%s", gyre_nn_last_error());
        cr_assert_eq(gyre_nn_backward(model, NULL, NULL), GYRE_INVALID_ARGUMENT);
    }
    cr_assert_eq(gyre_nn_tape_create(model, 0, 1, &tape), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(gyre_nn_tape_forward(tape, x, 2, NULL), GYRE_SUCCESS);
        cr_assert_eq(gyre_nn_tape_backward(tape, dy, NULL), GYRE_SUCCESS);
        cr_assert_eq(gyre_nn_tape_backward(tape, dy, NULL), GYRE_INVALID_ARGUMENT);
        cr_assert(strstr(gyre_nn_last_error(), "gyre_nn_backward after a backward"), "%s", gyre_nn_last_error());
    }
    gyre_nn_tape_free(tape);
    gyre_nn_free(model);
}

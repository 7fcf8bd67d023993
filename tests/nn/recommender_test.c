/* The compound recommender: its gradients (two branches, two costs, attention) equal central differences in fp64; it
 * learns the planted structure, and what attention says that an answer rests on is the item that was planted; a model
 * without the right features cannot know it. Slices, joins and reconstructions that do not fit are refused. */
#include <criterion/criterion.h>
#include <gyre/nn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

static gyre_nn_model *make(const struct gyre_nn_sessions *how, gyre_dtype dtype)
{
    gyre_nn_model *model = NULL;
    cr_assert_eq(gyre_nn_recommender(how->steps, how->items, how->features, 32, 32, 2, dtype, 1, &model), GYRE_SUCCESS,
                 "%s", gyre_nn_last_error());
    return model;
}

#define SAMPLES 5

static double cost_of(gyre_nn_model *model, const double *x, const int32_t *labels)
{
    double cost = NAN;
    cr_assert_eq(gyre_nn_forward(model, x, SAMPLES, NULL), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_evaluate(model, labels, NULL, &cost, NULL), GYRE_SUCCESS);
    return cost;
}

Test(recommender, gradients)
{
    struct gyre_nn_sessions how = {.samples = 20, .steps = 4, .items = 8, .features = 6, .seed = 5};
    gyre_nn_dataset *data;
    uint64_t state = 9;
    double x[SAMPLES * 10];
    int32_t labels[SAMPLES];
    cr_assert_eq(gyre_nn_sessions_open(&how, &data), GYRE_SUCCESS);
    gyre_nn_model *model = make(&how, GYRE_FLOAT64);
    double *params = gyre_nn_params(model), *grads = gyre_nn_grads(model);
    for (size_t i = 0; i < gyre_nn_param_count(model); i++)
        params[i] += 0.2 * (gy_nn_random_unit(&state) - 0.5);
    gyre_nn_dataset_gather(data, data->train, SAMPLES, GYRE_FLOAT64, x, labels);
    for (int pass = 0; pass < 2; pass++) { /* what the first backward left must not reach the second */
        gyre_nn_zero_grads(model);
        cost_of(model, x, labels);
        cr_assert_eq(gyre_nn_backward(model, NULL, NULL), GYRE_SUCCESS);
    }
    for (size_t t = 0; t < gyre_nn_tensor_count(model); t++) {
        const struct gyre_nn_tensor *tensor = gyre_nn_tensor(model, t);
        double largest = 0;
        for (size_t k = 0; k < tensor->rows * tensor->cols; k++) {
            size_t i = tensor->offset + k;
            double kept = params[i], h = 1e-5;
            params[i] = kept + h;
            double above = cost_of(model, x, labels);
            params[i] = kept - h;
            double below = cost_of(model, x, labels);
            params[i] = kept;
            double difference = (above - below) / (2 * h);
            cr_assert_float_eq(grads[i], difference, 1e-7 + 1e-6 * fabs(difference), "%s[%zu]: %.12g, not %.12g",
                               tensor->name, k, grads[i], difference);
            largest = fmax(largest, fabs(difference));
        }
        cr_assert_gt(largest, 1e-4, "%s has no gradient to speak of", tensor->name);
    }
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
}

/* Of the test samples whose answer is right: the share in which attention is strongest at the item that was planted. */
static double explained(gyre_nn_model *model, const gyre_nn_dataset *data, const struct gyre_nn_sessions *how)
{
    size_t right = 0, found = 0;
    float x[64];
    int32_t label;
    gyre_nn_test_mode(model);
    for (size_t i = 0; i < data->ntest; i++) {
        const void *outputs;
        size_t correct, n, best = 1;
        double weights[32], sum = 0;
        gyre_nn_dataset_gather(data, data->test + i, 1, GYRE_FLOAT32, x, &label);
        cr_assert_eq(gyre_nn_forward(model, x, 1, &outputs), GYRE_SUCCESS);
        cr_assert_eq(gyre_nn_evaluate(model, &label, NULL, NULL, &correct), GYRE_SUCCESS);
        cr_assert_eq(gyre_nn_attention_weights(model, 0, 0, weights, 32, &n), GYRE_SUCCESS);
        cr_assert_eq(n, how->steps + 1);
        for (size_t t = 0; t < n; t++) {
            sum += weights[t];
            best = t > 1 && weights[t] > weights[best] ? t : best;
        }
        cr_assert_float_eq(sum, 1, 1e-5);
        right += correct;
        found += correct && best - 1 == gyre_nn_sessions_cause(how, x);
    }
    return (double)found / (double)right;
}

Test(recommender, learns_and_explains)
{
    struct gyre_nn_sessions how = gyre_nn_sessions_defaults();
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_train_result result;
    gyre_nn_dataset *data;
    cr_assert_eq(gyre_nn_dataset_open("sessions", &data), GYRE_SUCCESS);
    gyre_nn_model *model = make(&how, GYRE_FLOAT32);
    options.epochs = 9;
    options.schedule.rate = 1e-2;
    cr_assert_eq(gyre_nn_train(model, data, NULL, &options, &result), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    double share = explained(model, data, &how);
    printf("accuracy %.3f, explained %.3f\n", result.accuracy, share);
    cr_assert_gt(result.accuracy, 0.9);
    cr_assert_gt(share, 0.8);
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
}

Test(recommender, sessions_are_a_function_of_their_seed)
{
    gyre_nn_dataset *a, *b, *c;
    cr_assert_eq(gyre_nn_dataset_open("sessions", &a), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_dataset_open("sessions:1", &b), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_dataset_open("sessions:2", &c), GYRE_SUCCESS);
    size_t bytes = a->samples * a->features * sizeof(float);
    cr_assert_eq(memcmp(a->x, b->x, bytes), 0);
    cr_assert_neq(memcmp(a->x, c->x, bytes), 0);
    cr_assert_eq(a->ntrain, 3200);
    cr_assert_eq(a->ntest, 800);
    gyre_nn_dataset_free(a);
    gyre_nn_dataset_free(b);
    gyre_nn_dataset_free(c);
    cr_assert_eq(gyre_nn_dataset_open("sessions:x", &a), GYRE_INVALID_ARGUMENT);
    struct gyre_nn_sessions odd = gyre_nn_sessions_defaults();
    odd.items = 30;
    cr_assert_eq(gyre_nn_sessions_open(&odd, &a), GYRE_INVALID_ARGUMENT);
}

static void refused(gyre_nn_layer *net, const char *text)
{
    gyre_nn_model *model = NULL;
    cr_assert_eq(gyre_nn_new(gyre_nn_cost(net, 3, GYRE_NN_CROSS_ENTROPY), GYRE_FLOAT32, 1, &model),
                 GYRE_INVALID_ARGUMENT);
    cr_assert(strstr(gyre_nn_last_error(), text), "%s", gyre_nn_last_error());
}

Test(recommender, refuses_what_does_not_fit)
{
    gyre_nn_layer *input = gyre_nn_input(10), *stranger = gyre_nn_input(4);
    refused(gyre_nn_slice(input, input, 8, 3, 1), "a slice of 3 steps of 1 values from place 8, of 10 values");
    input = gyre_nn_input(10);
    refused(gyre_nn_slice(input, stranger, 0, 1, 1), "a branch starts at a layer of the same chain");
    gyre_nn_layer_free(stranger);
    input = gyre_nn_input(10);
    refused(gyre_nn_join(gyre_nn_dense(input, 4, GYRE_NN_RELU), input), "a join of steps of 4 values and steps of 10");
    input = gyre_nn_input(10);
    refused(gyre_nn_reconstruct(gyre_nn_dense(input, 4, GYRE_NN_RELU), input, input), "a reconstruction of");
    input = gyre_nn_input(10); /* a branch that ends nowhere */
    refused(gyre_nn_slice(gyre_nn_dense(input, 4, GYRE_NN_IDENTITY), input, 0, 1, 2), "nothing uses the output");
}

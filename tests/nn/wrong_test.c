/* Wrong values in the arguments of each function of gyre/nn.h: sizes of 0 or too large, unknown numbers of enums,
 * batches and data that do not fit the model, numbers that are not finite, calls before those they follow. Each call
 * has to be refused with an error message. NULL is tried in misuse_test.c, and here in chains of layers alone. An
 * exported function that is neither called here nor known to be wrong with NULL alone fails the test. Usage: wrong_test
 * exports-nn.txt */
#include <gyre/nn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 4096

static const char *called[MOST];
static size_t ncalled;
static int failures;

static void note(const char *name)
{
    called[ncalled++ % MOST] = name;
}

static void clear(void)
{
    gyre_nn_fail(GYRE_SUCCESS, NULL, "nothing");
}

static void expect(bool ok, const char *name, const char *arguments, const char *what)
{
    if (ok)
        return;
    printf("FAILED: %s%s: %s; the sentence is \"%s\"\n", name, arguments, what, gyre_nn_last_error());
    failures++;
}

static bool told(void)
{
    return strcmp(gyre_nn_last_error(), "nothing") != 0 && *gyre_nn_last_error();
}

#define STATUS(name, arguments)                                                                            \
    do {                                                                                                   \
        note(#name);                                                                                       \
        clear();                                                                                           \
        expect(name arguments == GYRE_INVALID_ARGUMENT && told(), #name, #arguments, "it is not refused"); \
    } while (0)
#define VALUE(value, name, arguments)                                                                     \
    do {                                                                                                  \
        note(#name);                                                                                      \
        clear();                                                                                          \
        expect(name arguments == (value) && told(), #name, #arguments, "it is not refused with " #value); \
    } while (0)
#define NOTHING(name, arguments)                                \
    do {                                                        \
        note(#name);                                            \
        clear();                                                \
        name arguments;                                         \
        expect(told(), #name, #arguments, "it is not refused"); \
    } while (0)
/* Wrong arguments that are allowed, or none to be wrong. */
#define ALLOWED(name, arguments) \
    do {                         \
        note(#name);             \
        (void)(name arguments);  \
    } while (0)
/* A chain that failed gives NULL, and gyre_nn_new refuses it with the error message of the layer. */
#define CHAIN(name, arguments)                                                                              \
    do {                                                                                                    \
        note(#name);                                                                                        \
        clear();                                                                                            \
        gyre_nn_model *none = NULL;                                                                         \
        gyre_nn_layer *top = gyre_nn_cost(name arguments, 2, GYRE_NN_CROSS_ENTROPY);                        \
        gyre_status status = gyre_nn_new(top, GYRE_FLOAT32, 1, &none);                                      \
        expect(status == GYRE_INVALID_ARGUMENT && !none && told(), #name, #arguments, "it is not refused"); \
    } while (0)

static gyre_nn_model *model, *other;
static gyre_nn_dataset *data;
static gyre_nn_optimizer *optimizer;
static const struct gyre_nn_optimizer_config *config;
static gyre_nn_layer *below(void)
{
    return gyre_nn_input(4);
}

static void layers(void)
{
    gyre_nn_layer *stranger = gyre_nn_input(4);
    CHAIN(gyre_nn_input, (0));
    CHAIN(gyre_nn_input, (SIZE_MAX));
    CHAIN(gyre_nn_input_sequence, (0, 1));
    CHAIN(gyre_nn_input_sequence, (SIZE_MAX, 1));
    CHAIN(gyre_nn_input_sequence, (1, 0));
    CHAIN(gyre_nn_activate, (NULL, GYRE_NN_RELU));
    CHAIN(gyre_nn_activate, (below(), (gyre_nn_activation)77));
    CHAIN(gyre_nn_activate, (below(), (gyre_nn_activation)-1));
    CHAIN(gyre_nn_dense, (NULL, 3, GYRE_NN_RELU));
    CHAIN(gyre_nn_dense, (below(), 0, GYRE_NN_RELU));
    CHAIN(gyre_nn_dense, (below(), SIZE_MAX, GYRE_NN_RELU));
    CHAIN(gyre_nn_dense, (below(), 3, (gyre_nn_activation)77));
    CHAIN(gyre_nn_embedding, (NULL, 3, 3));
    CHAIN(gyre_nn_embedding, (below(), 0, 3));
    CHAIN(gyre_nn_embedding, (below(), 3, SIZE_MAX));
    CHAIN(gyre_nn_position, (NULL));
    CHAIN(gyre_nn_layer_norm, (NULL));
    CHAIN(gyre_nn_input_image, (0, 1, 1));
    CHAIN(gyre_nn_input_image, (1, SIZE_MAX, 1));
    CHAIN(gyre_nn_input_image, (1 << 16, 1 << 16, 1));
    CHAIN(gyre_nn_input_image, (1, 1, 0));
    CHAIN(gyre_nn_conv2d, (NULL, 1, 1, 1, 0, true));
    CHAIN(gyre_nn_conv2d, (below(), 1, 1, 1, 0, true)); /* no image */
    CHAIN(gyre_nn_conv2d, (gyre_nn_input_image(4, 4, 1), 0, 1, 1, 0, true));
    CHAIN(gyre_nn_conv2d, (gyre_nn_input_image(4, 4, 1), 1, SIZE_MAX, 1, 0, true));
    CHAIN(gyre_nn_conv2d, (gyre_nn_input_image(4, 4, 1), 1, 1, SIZE_MAX, 0, true));
    CHAIN(gyre_nn_conv2d, (gyre_nn_input_image(4, 4, 1), 1, 1, 1, SIZE_MAX, true));
    CHAIN(gyre_nn_max_pool2d, (NULL, 1, 1));
    CHAIN(gyre_nn_max_pool2d, (gyre_nn_input_image(4, 4, 1), 5, 1));
    CHAIN(gyre_nn_max_pool2d, (gyre_nn_input_image(4, 4, 1), 2, 0));
    CHAIN(gyre_nn_batch_norm, (NULL));
    CHAIN(gyre_nn_flatten, (NULL));
    CHAIN(gyre_nn_dropout, (NULL, 0.5));
    CHAIN(gyre_nn_dropout, (below(), NAN));
    CHAIN(gyre_nn_dropout, (below(), -0.1));
    CHAIN(gyre_nn_dropout, (below(), 1));
    CHAIN(gyre_nn_lstm, (NULL, 3));
    CHAIN(gyre_nn_lstm, (below(), 0));
    CHAIN(gyre_nn_lstm, (below(), SIZE_MAX));
    CHAIN(gyre_nn_attention, (NULL, 1, true));
    CHAIN(gyre_nn_attention, (below(), 0, true));
    CHAIN(gyre_nn_attention, (below(), 3, true));
    CHAIN(gyre_nn_attention, (below(), SIZE_MAX, true));
    CHAIN(gyre_nn_residual, (NULL, stranger));
    CHAIN(gyre_nn_residual, (below(), NULL));
    CHAIN(gyre_nn_residual, (below(), stranger));
    gyre_nn_layer *net = below();
    CHAIN(gyre_nn_residual, (gyre_nn_dense(net, 3, GYRE_NN_RELU), net)); /* another shape */
    CHAIN(gyre_nn_slice, (NULL, stranger, 0, 1, 1));
    CHAIN(gyre_nn_slice, (below(), NULL, 0, 1, 1));
    CHAIN(gyre_nn_slice, (below(), stranger, 0, 1, 1));
    net = below();
    CHAIN(gyre_nn_slice, (net, net, 4, 1, 1));
    net = below();
    CHAIN(gyre_nn_slice, (net, net, SIZE_MAX, 1, 1));
    net = below();
    CHAIN(gyre_nn_slice, (net, net, 0, 0, 1));
    net = below();
    CHAIN(gyre_nn_slice, (net, net, 0, 65536, 1 << 24));
    CHAIN(gyre_nn_join, (NULL, stranger));
    CHAIN(gyre_nn_join, (below(), NULL));
    CHAIN(gyre_nn_join, (below(), stranger));
    CHAIN(gyre_nn_reconstruct, (NULL, stranger, stranger));
    CHAIN(gyre_nn_reconstruct, (below(), NULL, stranger));
    net = below();
    CHAIN(gyre_nn_reconstruct, (net, net, NULL));
    CHAIN(gyre_nn_cost, (NULL, 2, GYRE_NN_CROSS_ENTROPY));
    CHAIN(gyre_nn_cost, (below(), 0, GYRE_NN_CROSS_ENTROPY));
    CHAIN(gyre_nn_cost, (below(), 2, (gyre_nn_cost_kind)77));
    CHAIN(gyre_nn_cost, (below(), 2, GYRE_NN_CROSS_ENTROPY)); /* a cost above a cost */
    ALLOWED(gyre_nn_layer_free, (NULL));
    gyre_nn_layer_free(stranger);
}

static gyre_nn_layer *whole(void)
{
    return gyre_nn_cost(below(), 2, GYRE_NN_CROSS_ENTROPY);
}

static void models(void)
{
    gyre_nn_model *m = NULL;
    const size_t hidden[] = {3}, zero[] = {0};
    STATUS(gyre_nn_new, (NULL, GYRE_FLOAT32, 1, &m)); /* no chain */
    STATUS(gyre_nn_new, (whole(), (gyre_dtype)777, 1, &m));
    STATUS(gyre_nn_new, (whole(), GYRE_INT32, 1, &m));
    STATUS(gyre_nn_new, (below(), GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_mlp, (0, hidden, 1, GYRE_NN_RELU, 2, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_mlp, (4, zero, 1, GYRE_NN_RELU, 2, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_mlp, (4, hidden, 1, (gyre_nn_activation)9, 2, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_mlp, (4, hidden, 1, GYRE_NN_RELU, 0, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_mlp, (4, hidden, 1, GYRE_NN_RELU, 2, (gyre_dtype)-1, 1, &m));
    STATUS(gyre_nn_autoencoder, (0, hidden, 1, GYRE_NN_RELU, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_character_lstm, (0, 5, 3, hidden, 1, 0, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_character_lstm, (4, 5, 3, hidden, 1, NAN, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_transformer, (0, 5, 4, 2, 1, 0, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_transformer, (4, 5, 4, 0, 1, 0, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_transformer, (4, 5, 4, 3, 1, 0, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_transformer, (4, 5, 4, 2, 1, INFINITY, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_transformer, (4, 5, 4, 2, (size_t)1 << 40, 0, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_transformer, (4, 5, SIZE_MAX, 2, 1, 0, GYRE_FLOAT32, 1, &m));
    const struct gyre_nn_image image = {.height = 4, .width = 4, .channels = 1}, no_image = {0};
    STATUS(gyre_nn_cnn, (&no_image, hidden, 1, hidden, 1, 0, 2, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_cnn, (&image, zero, 1, hidden, 1, 0, 2, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_cnn, (&image, hidden, SIZE_MAX, hidden, 1, 0, 2, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_cnn, (&image, hidden, 1, zero, 1, 0, 2, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_cnn, (&image, hidden, 1, hidden, 1, NAN, 2, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_cnn, (&image, hidden, 1, hidden, 1, 0, 0, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_recommender, (0, 8, 4, 4, 4, 2, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_recommender, (4, 8, SIZE_MAX, 4, 4, 2, GYRE_FLOAT32, 1, &m));
    STATUS(gyre_nn_recommender, (4, 8, 4, 4, 4, 0, GYRE_FLOAT32, 1, &m));
    ALLOWED(gyre_nn_free, (NULL));
    expect(m == NULL, "models", "", "a failed call wrote its output");
}

static void queries(void)
{
    ALLOWED(gyre_nn_tensor, (model, SIZE_MAX));
    ALLOWED(gyre_nn_tensor_is_statistic, (model, SIZE_MAX));
    ALLOWED(gyre_nn_cut_values, (model, SIZE_MAX));
    ALLOWED(gyre_nn_cut_offset, (model, SIZE_MAX));
    ALLOWED(gyre_nn_cut_work, (model, SIZE_MAX));
    ALLOWED(gyre_nn_cut_memory, (model, SIZE_MAX));
    ALLOWED(gyre_nn_value_size, (model, SIZE_MAX));
    ALLOWED(gyre_nn_value_used, (model, SIZE_MAX, SIZE_MAX, SIZE_MAX));
}

static void passes(void)
{
    const void *outputs;
    double cost, weights[4];
    size_t count;
    const float x[4] = {0};
    const int32_t right[] = {1}, low[] = {-1}, high[] = {2};
    STATUS(gyre_nn_backward, (model, NULL, NULL)); /* before any forward */
    STATUS(gyre_nn_evaluate, (model, right, NULL, &cost, NULL));
    STATUS(gyre_nn_forward, (model, x, SIZE_MAX, &outputs));
    STATUS(gyre_nn_forward, (model, x, (size_t)1 << 31, &outputs));
    ALLOWED(gyre_nn_forward, (model, NULL, 0, NULL));
    expect(gyre_nn_forward(model, x, 1, &outputs) == GYRE_SUCCESS, "gyre_nn_forward", "", "a good call fails");
    STATUS(gyre_nn_evaluate, (model, NULL, NULL, &cost, NULL));
    STATUS(gyre_nn_evaluate, (model, low, NULL, &cost, NULL));
    STATUS(gyre_nn_evaluate, (model, high, NULL, &cost, NULL));
    STATUS(gyre_nn_backward, (model, NULL, NULL));                        /* before evaluate */
    STATUS(gyre_nn_attention_weights, (model, 0, 0, weights, 4, &count)); /* no attention layer */
}

static void tapes(void)
{
    gyre_nn_tape *tape = NULL;
    const void *y;
    double cost;
    const float x[4] = {0};
    const int32_t label[] = {1};
    STATUS(gyre_nn_tape_create, (model, 1, 1, &tape));
    STATUS(gyre_nn_tape_create, (model, 0, SIZE_MAX, &tape));
    STATUS(gyre_nn_tape_create, (model, SIZE_MAX - 1, SIZE_MAX, &tape));
    expect(gyre_nn_tape_create(model, 0, gyre_nn_module_count(model), &tape) == GYRE_SUCCESS, "gyre_nn_tape_create", "",
           "a good call fails");
    STATUS(gyre_nn_tape_evaluate, (tape, label, NULL, &cost)); /* before forward */
    STATUS(gyre_nn_tape_backward, (tape, x, &y));
    VALUE(NULL, gyre_nn_tape_output, (tape, 1));
    VALUE(NULL, gyre_nn_tape_input_gradient, (tape, 0));
    NOTHING(gyre_nn_tape_add_gradient, (tape, 1, x));
    ALLOWED(gyre_nn_tape_side_cost, (tape));
    STATUS(gyre_nn_tape_forward, (tape, NULL, 1, &y));
    STATUS(gyre_nn_tape_forward, (tape, x, SIZE_MAX, &y));
    ALLOWED(gyre_nn_tape_forward, (tape, x, 1, NULL));
    STATUS(gyre_nn_tape_evaluate, (tape, NULL, NULL, &cost));
    STATUS(gyre_nn_tape_backward, (tape, NULL, &y)); /* before evaluate */
    NOTHING(gyre_nn_tape_set_input, (tape, 1, x));
    NOTHING(gyre_nn_tape_set_input, (tape, SIZE_MAX, x));
    ALLOWED(gyre_nn_tape_output, (tape, SIZE_MAX));
    NOTHING(gyre_nn_tape_add_gradient, (tape, 0, x));
    NOTHING(gyre_nn_tape_add_gradient, (tape, SIZE_MAX, x));
    ALLOWED(gyre_nn_tape_input_gradient, (tape, SIZE_MAX));
    ALLOWED(gyre_nn_tape_free, (NULL));
    gyre_nn_tape_free(tape);
}

static void samples(void)
{
    gyre_nn_dataset *d = NULL;
    float x[8];
    int32_t labels[2];
    uint32_t rows[] = {0}, beyond[] = {UINT32_MAX}, order[2];
    size_t first, count;
    struct gyre_nn_sessions how = gyre_nn_sessions_defaults(), odd = how, none = how, huge = how;
    odd.items = 5;
    none.samples = 0;
    huge.features = SIZE_MAX;
    note("gyre_nn_sessions_defaults");
    STATUS(gyre_nn_dataset_open, ("", &d));
    STATUS(gyre_nn_text_open, ("/dev/null", 0, &d));
    STATUS(gyre_nn_text_open, ("/dev/null", SIZE_MAX, &d));
    STATUS(gyre_nn_sessions_open, (&odd, &d));
    STATUS(gyre_nn_sessions_open, (&none, &d));
    STATUS(gyre_nn_sessions_open, (&huge, &d));
    ALLOWED(gyre_nn_dataset_free, (NULL));
    NOTHING(gyre_nn_dataset_gather, (data, beyond, 1, GYRE_FLOAT32, x, labels));
    NOTHING(gyre_nn_dataset_gather, (data, rows, 1, GYRE_INT32, x, labels));
    NOTHING(gyre_nn_shuffle, (1, 1, order, SIZE_MAX));
    NOTHING(gyre_nn_shard, (8, 0, 0, &first, &count));
    NOTHING(gyre_nn_shard, (8, -1, 2, &first, &count));
    NOTHING(gyre_nn_shard, (8, 2, 2, &first, &count));
    expect(first == 0 && count == 0, "gyre_nn_shard", "", "a wrong rank has a part");
    expect(d == NULL, "data", "", "a failed call wrote its output");
}

static void optimizers(void)
{
    gyre_nn_optimizer *o = NULL;
    struct gyre_nn_optimizer_config wrong = *config, kind = *config, decay = *config, small = *config;
    wrong.momentum = wrong.beta1 = 1;
    kind.kind = (gyre_nn_optimizer_kind)77;
    decay.weight_decay = INFINITY;
    small.epsilon = NAN;
    const struct gyre_nn_optimizer_config *bad[] = {&wrong, &kind, &decay, &small};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        STATUS(gyre_nn_optimizer_create, (model, bad[i], &o));
        STATUS(gyre_nn_optimizer_create_part, (model, bad[i], 0, 1, &o));
    }
    ALLOWED(gyre_nn_optimizer_defaults, ((gyre_nn_optimizer_kind)77));
    STATUS(gyre_nn_optimizer_create_part, (model, config, 0, SIZE_MAX, &o));
    STATUS(gyre_nn_optimizer_create_part, (model, config, SIZE_MAX, 1, &o));
    ALLOWED(gyre_nn_optimizer_free, (NULL));
    NOTHING(gyre_nn_optimizer_update, (optimizer, 0, SIZE_MAX, 0.1, 1));
    NOTHING(gyre_nn_optimizer_update, (optimizer, SIZE_MAX, 1, 0.1, 1));
    NOTHING(gyre_nn_optimizer_update, (optimizer, 0, 1, NAN, 1));
    NOTHING(gyre_nn_optimizer_update, (optimizer, 0, 1, 0.1, INFINITY));
    ALLOWED(gyre_nn_optimizer_state, (optimizer, -1));
    ALLOWED(gyre_nn_optimizer_state, (optimizer, 2));
    const struct gyre_nn_schedule empty = {.kind = (gyre_nn_schedule_kind)77};
    ALLOWED(gyre_nn_schedule_rate, (&empty, UINT64_MAX));
}

static void syncs(void)
{
    gyre_nn_sync *sync = NULL, *bare = NULL;
    size_t first = 1, count = 1;
    STATUS(gyre_nn_sync_attach, (other, optimizer, NULL, 0, &sync));
    expect(gyre_nn_sync_attach(model, optimizer, NULL, 0, &sync) == GYRE_SUCCESS &&
               gyre_nn_sync_attach(model, NULL, NULL, SIZE_MAX, &bare) == GYRE_SUCCESS,
           "gyre_nn_sync_attach", "", "a good call fails");
    ALLOWED(gyre_nn_sync_detach, (NULL));
    STATUS(gyre_nn_sync_finish, (bare, 0.1, 1, 0)); /* no optimiser */
    STATUS(gyre_nn_sync_finish, (sync, NAN, 1, 0));
    STATUS(gyre_nn_sync_finish, (sync, INFINITY, 1, 0));
    STATUS(gyre_nn_sync_finish, (sync, 0.1, 1, NAN));
    STATUS(gyre_nn_sync_finish, (sync, 0.1, 1, -1));
    NOTHING(gyre_nn_sync_bucket, (sync, SIZE_MAX, &first, &count));
    expect(first == 0 && count == 0, "gyre_nn_sync_bucket", "", "a bucket that is not there has a part");
    gyre_nn_sync_detach(sync);
    gyre_nn_sync_detach(bare);
}

static void traces(void)
{
    gyre_nn_trace *trace = NULL;
    expect(gyre_nn_trace_create(1, &trace) == GYRE_SUCCESS, "gyre_nn_trace_create", "", "a good call fails");
    ALLOWED(gyre_nn_trace_free, (NULL));
    gyre_nn_trace_free(trace);
}

static void strategies(void)
{
    double values[GYRE_NN_MOST_SETTINGS];
    const gyre_nn_strategy *sync = gyre_nn_strategy_find("sync");
    ALLOWED(gyre_nn_strategy_at, (SIZE_MAX));
    STATUS(gyre_nn_strategy_parse, (sync, "=", values));
    STATUS(gyre_nn_strategy_parse, (sync, "none=1", values));
}

static void runs(void)
{
    struct gyre_nn_run run = {0}, closed = {0};
    struct gyre_nn_position at = {0};
    gyre_nn_strategy wrong = {.size = 1};
    STATUS(gyre_nn_run_open, (model, NULL, config, &wrong, NULL, 0, 0, &run));
    STATUS(gyre_nn_run_open, (model, NULL, config, NULL, "none=1", 0, 0, &run));
    STATUS(gyre_nn_run_open, (model, NULL, config, NULL, NULL, 0, NAN, &run));
    expect(gyre_nn_run_open(model, NULL, config, NULL, NULL, 0, 0, &run) == GYRE_SUCCESS, "gyre_nn_run_open", "",
           "a good call fails");
    STATUS(gyre_nn_run_save, (&closed, "/dev/null", &at));
    STATUS(gyre_nn_run_resume, (&closed, "/dev/null", &at));
    STATUS(gyre_nn_run_show, (&closed));
    STATUS(gyre_nn_run_compare, (&closed));
    ALLOWED(gyre_nn_run_hide, (&closed));
    ALLOWED(gyre_nn_run_close, (&closed));
    gyre_nn_run_close(&run);
}

static void checkpoints(void)
{
    struct gyre_nn_position at = {0};
    struct gyre_nn_array empty = {.name = "a", .count = 1, .dtype = GYRE_FLOAT32}, type = empty;
    float value = 0;
    type.data = &value;
    type.dtype = GYRE_INT32;
    STATUS(gyre_nn_checkpoint_write_arrays, ("/dev/null", model, optimizer, &at, "s", 0, NULL, 0));
    STATUS(gyre_nn_checkpoint_write_arrays, ("/dev/null", model, optimizer, &at, "s", 1, &empty, 1));
    STATUS(gyre_nn_checkpoint_write_arrays, ("/dev/null", model, optimizer, &at, "s", 1, &type, 1));
    STATUS(gyre_nn_checkpoint_write_arrays, ("/dev/null", model, optimizer, &at, "s", 1, &type, SIZE_MAX));
    STATUS(gyre_nn_checkpoint_read_arrays, ("/dev/null", model, optimizer, &at, "s", -1, NULL, 0));
    STATUS(gyre_nn_checkpoint_read_arrays, ("/dev/null", model, optimizer, &at, "s", 1, &empty, 1));
}

static void training(void)
{
    const struct gyre_nn_train_options good = gyre_nn_train_defaults();
    struct gyre_nn_train_options wrong[12];
    struct gyre_nn_elastic elastic = {.size = sizeof(elastic)}, size = {0}, replay = elastic;
    struct gyre_nn_overlap overlap;
    gyre_comm *comm = NULL;
    size_t n = sizeof(wrong) / sizeof(wrong[0]);
    note("gyre_nn_train_defaults");
    for (size_t i = 0; i < n; i++)
        wrong[i] = good;
    wrong[0].size = 0;
    wrong[1].batch = 0;
    wrong[2].epochs = 0;
    wrong[3].accumulate = 0;
    wrong[4].accumulate = SIZE_MAX;
    wrong[5].optimizer.kind = (gyre_nn_optimizer_kind)77;
    wrong[6].optimizer.beta2 = NAN;
    wrong[7].schedule.kind = (gyre_nn_schedule_kind)77;
    wrong[8].schedule.rate = NAN;
    wrong[9].schedule.floor = -1;
    wrong[10].clip_norm = -1;
    wrong[11].settings = "none=1";
    for (size_t i = 0; i < n; i++) {
        STATUS(gyre_nn_train, (model, data, NULL, &wrong[i], NULL));
        STATUS(gyre_nn_train_elastic, (model, data, &comm, &wrong[i], &elastic, NULL));
    }
    replay.replays = 1;
    STATUS(gyre_nn_train, (other, data, NULL, &good, NULL)); /* another number of inputs */
    STATUS(gyre_nn_train_elastic, (model, data, &comm, &good, &size, NULL));
    STATUS(gyre_nn_train_elastic, (model, data, &comm, &good, &replay, NULL));
    STATUS(gyre_nn_measure_overlap, (model, data, NULL, &good, 0, &overlap));
    STATUS(gyre_nn_measure_overlap, (model, data, NULL, &wrong[1], 1, &overlap));
    STATUS(gyre_nn_measure_overlap, (other, data, NULL, &good, 1, &overlap));
}

static void testing(void)
{
    double loss, accuracy;
    uint32_t rows[] = {0}, beyond[] = {UINT32_MAX};
    gyre_nn_dataset empty = {0};
    STATUS(gyre_nn_test, (model, &empty, rows, 1, NULL, &loss, &accuracy));
    STATUS(gyre_nn_test, (model, data, beyond, 1, NULL, &loss, &accuracy));
    STATUS(gyre_nn_test, (other, data, rows, 1, NULL, &loss, &accuracy));
}

static void rest(void)
{
    ALLOWED(gyre_nn_last_error, ());
    ALLOWED(gyre_nn_fail, (GYRE_SUCCESS, NULL, NULL));
    NOTHING(gyre_nn_set_blas_threads, (0));
    NOTHING(gyre_nn_set_blas_threads, (-1));
    ALLOWED(gyre_nn_share_cores, (NULL));
    STATUS(gyre_nn_set_threads, (0, 1));
    STATUS(gyre_nn_set_threads, (1, 0));
    STATUS(gyre_nn_set_threads, (SIZE_MAX, 2));
}

/* A data set of 8 samples of 4 features and 2 classes. */
static gyre_nn_dataset make_data(void)
{
    static float x[32];
    static int32_t labels[8] = {0, 1, 0, 1, 0, 1, 0, 1};
    static uint32_t train[6] = {0, 1, 2, 3, 4, 5}, test[2] = {6, 7};
    return (gyre_nn_dataset){.samples = 8,
                             .features = 4,
                             .classes = 2,
                             .steps = 1,
                             .x = x,
                             .labels = labels,
                             .train = train,
                             .test = test,
                             .ntrain = 6,
                             .ntest = 2};
}

/* Their arguments can be wrong only by NULL. */
static const char pointers_only[] =
    ",gyre_nn_checkpoint_read,gyre_nn_checkpoint_write,gyre_nn_clone,gyre_nn_cost_of,gyre_nn_dtype,gyre_nn_grads"
    ",gyre_nn_inputs,gyre_nn_module_count,gyre_nn_optimizer_begin,gyre_nn_optimizer_get_kind"
    ",gyre_nn_optimizer_set_steps,gyre_nn_optimizer_steps,gyre_nn_output_steps,gyre_nn_outputs"
    ",gyre_nn_param_count,gyre_nn_params,gyre_nn_params_hash,gyre_nn_place_grads,gyre_nn_renew_grads"
    ",gyre_nn_sessions_cause,gyre_nn_settle,gyre_nn_strategy_find,gyre_nn_sync_ahead,gyre_nn_sync_begin"
    ",gyre_nn_sync_bucket_count,gyre_nn_sync_passed,gyre_nn_sync_reduce,gyre_nn_tensor_count,gyre_nn_test_mode"
    ",gyre_nn_trace_attach,gyre_nn_trace_create,gyre_nn_trace_write,gyre_nn_train_mode,gyre_nn_zero_grads,";

static void compare_with_exports(const char *path)
{
    char name[128];
    size_t count = 0;
    FILE *file = fopen(path, "re");
    for (; file && fscanf(file, "%127s", name) == 1; count++) {
        char entry[136];
        snprintf(entry, sizeof(entry), ",%s,", name);
        bool found = strstr(pointers_only, entry) != NULL;
        for (size_t i = 0; i < ncalled && !found; i++)
            found = strcmp(called[i], name) == 0;
        if (!found) {
            printf("FAILED: %s is exported, and this test does not call it wrongly\n", name);
            failures++;
        }
    }
    if (file)
        fclose(file);
    expect(count >= 119, path, "", "the list of exported symbols is not whole");
}

int main(int argc, char **argv)
{
    const size_t hidden[] = {3};
    gyre_nn_dataset eight = make_data();
    struct gyre_nn_optimizer_config defaults = gyre_nn_optimizer_defaults(GYRE_NN_ADAM);
    setvbuf(stdout, NULL, _IOLBF, 0);
    alarm(60);
    data = &eight;
    config = &defaults;
    if (argc != 2 || gyre_nn_mlp(4, hidden, 1, GYRE_NN_TANH, 2, GYRE_FLOAT32, 1, &model) != GYRE_SUCCESS ||
        gyre_nn_mlp(5, hidden, 1, GYRE_NN_TANH, 2, GYRE_FLOAT32, 1, &other) != GYRE_SUCCESS ||
        gyre_nn_optimizer_create(model, config, &optimizer) != GYRE_SUCCESS) {
        printf("FAILED: %s\n", gyre_nn_last_error());
        return 1;
    }
    void (*const groups[])(void) = {layers, models,     queries, passes,      tapes,    samples, optimizers, syncs,
                                    traces, strategies, runs,    checkpoints, training, testing, rest};
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        groups[i]();
    compare_with_exports(argv[1]);
    gyre_nn_optimizer_free(optimizer);
    gyre_nn_free(model);
    gyre_nn_free(other);
    printf("%zu wrong calls, %d failures\n", ncalled, failures);
    return failures != 0;
}

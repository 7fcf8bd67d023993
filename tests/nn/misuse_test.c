/* Every public function of gyre/nn.h with each of its required pointers NULL: a status or a value that stands for none,
 * and an error message that names the function and the argument. The argument is tests/install/exports-nn.txt: a
 * function that is exported and neither tried here nor known to take no required pointer is a failure.
 *
 * Output arguments are written only on success, so what they pointed to stays. */
#include <gyre/nn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
static char tried[16384] = ",";

static gyre_nn_model *model, *none_model;
static gyre_nn_dataset *data;
static gyre_nn_optimizer *optimizer;
static gyre_nn_sync *sync;
static gyre_nn_trace *trace;
static gyre_nn_tape *tape;
static struct gyre_nn_run run;
static struct gyre_nn_optimizer_config config;
static struct gyre_nn_train_options options;
static struct gyre_nn_position position;
static struct gyre_nn_overlap overlap;
static struct gyre_nn_sessions sessions;
static const gyre_nn_strategy *strategy;
static double number[GYRE_NN_MOST_SETTINGS];
static size_t count;
static float values[64 * 8];
static int32_t labels[8];
static uint32_t rows[8];

/* Returns the function's name in a call. */
static const char *name_of(const char *call, char *name_p, size_t bytes)
{
    snprintf(name_p, bytes, "%.*s", (int)strcspn(call, "("), call);
    return name_p;
}

static void note(const char *name)
{
    char entry[80];
    snprintf(entry, sizeof entry, ",%s,", name);
    if (!strstr(tried, entry))
        strncat(tried, entry + 1, sizeof tried - strlen(tried) - 1);
}

static void expect_sentence(const char *call, const char *argument, bool refused)
{
    char name[64], wanted[160];
    name_of(call, name, sizeof name);
    note(name);
    snprintf(wanted, sizeof wanted, "%s: %s is NULL", name, argument);
    if (refused && strcmp(gyre_nn_last_error(), wanted) == 0)
        return;
    failures++;
    printf("%s: %s; the sentence is '%s'\n", call, refused ? "refused" : "not refused", gyre_nn_last_error());
}

static void forget(void)
{
    (void)gyre_nn_fail(GYRE_SUCCESS, NULL, "nothing");
}

/* ARGUMENT is NULL in CALL, which gives a status, a value that stands for none, or nothing. */
#define REFUSES(argument, call) (forget(), expect_sentence(#call, argument, (call) == GYRE_INVALID_ARGUMENT))
#define GIVES(value, argument, call) (forget(), expect_sentence(#call, argument, (call) == (value)))
#define GIVES_NAN(argument, call) (forget(), expect_sentence(#call, argument, isnan(call)))
#define RETURNS(argument, call) (forget(), (call), expect_sentence(#call, argument, true))

static void try_models(void)
{
    REFUSES("model_p", gyre_nn_new(NULL, GYRE_FLOAT32, 1, NULL));
    REFUSES("hidden", gyre_nn_mlp(64, NULL, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &none_model));
    REFUSES("model_p", gyre_nn_mlp(64, &count, 0, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, NULL));
    REFUSES("hidden", gyre_nn_autoencoder(64, NULL, 1, GYRE_NN_RELU, GYRE_FLOAT32, 1, &none_model));
    REFUSES("model_p", gyre_nn_autoencoder(64, &count, 0, GYRE_NN_RELU, GYRE_FLOAT32, 1, NULL));
    REFUSES("hidden", gyre_nn_character_lstm(4, 8, 8, NULL, 1, 0, GYRE_FLOAT32, 1, &none_model));
    REFUSES("model_p", gyre_nn_character_lstm(4, 8, 8, &count, 0, 0, GYRE_FLOAT32, 1, NULL));
    REFUSES("model_p", gyre_nn_transformer(4, 8, 8, 2, 1, 0, GYRE_FLOAT32, 1, NULL));
    const struct gyre_nn_image image = {.height = 8, .width = 8, .channels = 1};
    REFUSES("image", gyre_nn_cnn(NULL, &count, 1, &count, 1, 0, 10, GYRE_FLOAT32, 1, &none_model));
    REFUSES("channels", gyre_nn_cnn(&image, NULL, 1, &count, 1, 0, 10, GYRE_FLOAT32, 1, &none_model));
    REFUSES("hidden", gyre_nn_cnn(&image, &count, 1, NULL, 1, 0, 10, GYRE_FLOAT32, 1, &none_model));
    REFUSES("model_p", gyre_nn_cnn(&image, &count, 1, &count, 1, 0, 10, GYRE_FLOAT32, 1, NULL));
    REFUSES("model_p", gyre_nn_recommender(4, 8, 8, 8, 8, 2, GYRE_FLOAT32, 1, NULL));
    REFUSES("model", gyre_nn_attention_weights(NULL, 0, 0, number, 1, &count));
    REFUSES("weights", gyre_nn_attention_weights(model, 0, 0, NULL, 1, &count));
    REFUSES("count_p", gyre_nn_attention_weights(model, 0, 0, number, 1, NULL));
    REFUSES("model", gyre_nn_clone(NULL, &none_model));
    REFUSES("model_p", gyre_nn_clone(model, NULL));
    GIVES(GYRE_FLOAT32, "model", gyre_nn_dtype(NULL));
    GIVES(0, "model", gyre_nn_inputs(NULL));
    GIVES(0, "model", gyre_nn_outputs(NULL));
    GIVES(0, "model", gyre_nn_output_steps(NULL));
    GIVES(GYRE_NN_CROSS_ENTROPY, "model", gyre_nn_cost_of(NULL));
    GIVES(0, "model", gyre_nn_param_count(NULL));
    GIVES(NULL, "model", gyre_nn_params(NULL));
    GIVES(NULL, "model", gyre_nn_grads(NULL));
    GIVES(0, "model", gyre_nn_tensor_count(NULL));
    GIVES(NULL, "model", gyre_nn_tensor(NULL, 0));
    GIVES(false, "model", gyre_nn_tensor_is_statistic(NULL, 0));
    GIVES(0, "model", gyre_nn_params_hash(NULL));
    RETURNS("model", gyre_nn_place_grads(NULL, values));
}

static void try_steps(void)
{
    const void *out = NULL;
    REFUSES("model", gyre_nn_forward(NULL, values, 1, &out));
    REFUSES("x", gyre_nn_forward(model, NULL, 1, &out));
    REFUSES("model", gyre_nn_evaluate(NULL, labels, NULL, number, NULL));
    REFUSES("model", gyre_nn_backward(NULL, NULL, NULL));
    RETURNS("model", gyre_nn_train_mode(NULL, 1, 1, 0));
    RETURNS("model", gyre_nn_test_mode(NULL));
    RETURNS("model", gyre_nn_zero_grads(NULL));
    RETURNS("model", gyre_nn_renew_grads(NULL));
    GIVES(0, "model", gyre_nn_module_count(NULL));
    GIVES(0, "model", gyre_nn_cut_values(NULL, 0));
    GIVES(0, "model", gyre_nn_cut_offset(NULL, 0));
    GIVES_NAN("model", gyre_nn_cut_work(NULL, 0));
    GIVES_NAN("model", gyre_nn_cut_memory(NULL, 0));
    GIVES(0, "model", gyre_nn_value_size(NULL, 0));
    GIVES(false, "model", gyre_nn_value_used(NULL, 0, 0, 1));
    REFUSES("model", gyre_nn_tape_create(NULL, 0, 1, &tape));
    REFUSES("tape_p", gyre_nn_tape_create(model, 0, 1, NULL));
    REFUSES("tape", gyre_nn_tape_forward(NULL, values, 1, &out));
    REFUSES("tape", gyre_nn_tape_evaluate(NULL, labels, NULL, number));
    REFUSES("tape", gyre_nn_tape_backward(NULL, NULL, &out));
    RETURNS("tape", gyre_nn_tape_set_input(NULL, 0, values));
    GIVES(NULL, "tape", gyre_nn_tape_output(NULL, 0));
    RETURNS("tape", gyre_nn_tape_add_gradient(NULL, 0, values));
    RETURNS("dy", gyre_nn_tape_add_gradient(tape, 0, NULL));
    GIVES(NULL, "tape", gyre_nn_tape_input_gradient(NULL, 0));
    GIVES_NAN("tape", gyre_nn_tape_side_cost(NULL));
}

static void try_data(void)
{
    gyre_nn_dataset *other = NULL;
    REFUSES("name", gyre_nn_dataset_open(NULL, &other));
    REFUSES("data_p", gyre_nn_dataset_open("digits", NULL));
    REFUSES("path", gyre_nn_text_open(NULL, 64, &other));
    REFUSES("data_p", gyre_nn_text_open("/dev/null", 64, NULL));
    REFUSES("how", gyre_nn_sessions_open(NULL, &other));
    REFUSES("data_p", gyre_nn_sessions_open(&sessions, NULL));
    GIVES(0, "how", gyre_nn_sessions_cause(NULL, values));
    GIVES(0, "x", gyre_nn_sessions_cause(&sessions, NULL));
    RETURNS("data", gyre_nn_dataset_gather(NULL, rows, 1, GYRE_FLOAT32, values, labels));
    RETURNS("rows", gyre_nn_dataset_gather(data, NULL, 1, GYRE_FLOAT32, values, labels));
    RETURNS("x", gyre_nn_dataset_gather(data, rows, 1, GYRE_FLOAT32, NULL, labels));
    RETURNS("labels", gyre_nn_dataset_gather(data, rows, 1, GYRE_FLOAT32, values, NULL));
    RETURNS("order", gyre_nn_shuffle(1, 1, NULL, 1));
    RETURNS("first_p", gyre_nn_shard(1, 0, 1, NULL, &count));
    RETURNS("count_p", gyre_nn_shard(1, 0, 1, &count, NULL));
}

static void try_optimizers(void)
{
    gyre_nn_optimizer *other = NULL;
    REFUSES("model", gyre_nn_optimizer_create(NULL, &config, &other));
    REFUSES("config", gyre_nn_optimizer_create(model, NULL, &other));
    REFUSES("optimizer_p", gyre_nn_optimizer_create(model, &config, NULL));
    REFUSES("model", gyre_nn_optimizer_create_part(NULL, &config, 0, 1, &other));
    REFUSES("config", gyre_nn_optimizer_create_part(model, NULL, 0, 1, &other));
    REFUSES("optimizer_p", gyre_nn_optimizer_create_part(model, &config, 0, 1, NULL));
    RETURNS("optimizer", gyre_nn_optimizer_begin(NULL));
    RETURNS("optimizer", gyre_nn_optimizer_update(NULL, 0, 1, 0.1, 1));
    GIVES(NULL, "optimizer", gyre_nn_optimizer_state(NULL, 0));
    GIVES(0, "optimizer", gyre_nn_optimizer_steps(NULL));
    RETURNS("optimizer", gyre_nn_optimizer_set_steps(NULL, 1));
    GIVES(GYRE_NN_SGD, "optimizer", gyre_nn_optimizer_get_kind(NULL));
    GIVES_NAN("schedule", gyre_nn_schedule_rate(NULL, 1));
    gyre_nn_sync *another = NULL;
    REFUSES("model", gyre_nn_sync_attach(NULL, optimizer, NULL, 0, &another));
    REFUSES("sync_p", gyre_nn_sync_attach(model, optimizer, NULL, 0, NULL));
    RETURNS("sync", gyre_nn_sync_begin(NULL));
    RETURNS("user", gyre_nn_sync_passed(NULL, 0));
    REFUSES("sync", gyre_nn_sync_finish(NULL, 0.1, 1, 0));
    REFUSES("sync", gyre_nn_sync_reduce(NULL));
    RETURNS("sync", gyre_nn_sync_ahead(NULL, true));
    REFUSES("model", gyre_nn_settle(NULL));
    GIVES(0, "sync", gyre_nn_sync_bucket_count(NULL));
    RETURNS("sync", gyre_nn_sync_bucket(NULL, 0, &count, &count));
    RETURNS("first_p", gyre_nn_sync_bucket(sync, 0, NULL, &count));
    RETURNS("count_p", gyre_nn_sync_bucket(sync, 0, &count, NULL));
    REFUSES("trace_p", gyre_nn_trace_create(10, NULL));
    RETURNS("model", gyre_nn_trace_attach(NULL, trace));
    REFUSES("trace", gyre_nn_trace_write(NULL, NULL, "/dev/null"));
    REFUSES("path", gyre_nn_trace_write(trace, NULL, NULL));
}

static void try_checkpoints(void)
{
    static const char path[] = "/nonexistent/file";
    REFUSES("path", gyre_nn_checkpoint_write(NULL, model, NULL, &position));
    REFUSES("model", gyre_nn_checkpoint_write(path, NULL, NULL, &position));
    REFUSES("position", gyre_nn_checkpoint_write(path, model, NULL, NULL));
    REFUSES("path", gyre_nn_checkpoint_read(NULL, model, NULL, &position));
    REFUSES("model", gyre_nn_checkpoint_read(path, NULL, NULL, &position));
    REFUSES("position_p", gyre_nn_checkpoint_read(path, model, NULL, NULL));
    REFUSES("path", gyre_nn_checkpoint_write_arrays(NULL, model, NULL, &position, "sync", 1, NULL, 0));
    REFUSES("model", gyre_nn_checkpoint_write_arrays(path, NULL, NULL, &position, "sync", 1, NULL, 0));
    REFUSES("position", gyre_nn_checkpoint_write_arrays(path, model, NULL, NULL, "sync", 1, NULL, 0));
    REFUSES("strategy", gyre_nn_checkpoint_write_arrays(path, model, NULL, &position, NULL, 1, NULL, 0));
    REFUSES("arrays", gyre_nn_checkpoint_write_arrays(path, model, NULL, &position, "sync", 1, NULL, 1));
    REFUSES("path", gyre_nn_checkpoint_read_arrays(NULL, model, NULL, &position, "sync", 1, NULL, 0));
    REFUSES("model", gyre_nn_checkpoint_read_arrays(path, NULL, NULL, &position, "sync", 1, NULL, 0));
    REFUSES("position_p", gyre_nn_checkpoint_read_arrays(path, model, NULL, NULL, "sync", 1, NULL, 0));
    REFUSES("strategy", gyre_nn_checkpoint_read_arrays(path, model, NULL, &position, NULL, 1, NULL, 0));
    REFUSES("arrays", gyre_nn_checkpoint_read_arrays(path, model, NULL, &position, "sync", 1, NULL, 1));
}

static void try_runs(void)
{
    gyre_comm *comm = NULL;
    struct gyre_nn_elastic elastic = {.size = sizeof elastic};
    struct gyre_nn_train_result result;
    GIVES(NULL, "name", gyre_nn_strategy_find(NULL));
    REFUSES("strategy", gyre_nn_strategy_parse(NULL, NULL, number));
    REFUSES("values", gyre_nn_strategy_parse(strategy, NULL, NULL));
    REFUSES("model", gyre_nn_run_open(NULL, NULL, &config, strategy, NULL, 0, 0, &run));
    REFUSES("optimizer", gyre_nn_run_open(model, NULL, NULL, strategy, NULL, 0, 0, &run));
    REFUSES("run", gyre_nn_run_open(model, NULL, &config, strategy, NULL, 0, 0, NULL));
    RETURNS("run", gyre_nn_run_close(NULL));
    REFUSES("run", gyre_nn_run_save(NULL, "/dev/null", &position));
    REFUSES("path", gyre_nn_run_save(&run, NULL, &position));
    REFUSES("position", gyre_nn_run_save(&run, "/dev/null", NULL));
    REFUSES("run", gyre_nn_run_resume(NULL, "/dev/null", &position));
    REFUSES("path", gyre_nn_run_resume(&run, NULL, &position));
    REFUSES("position_p", gyre_nn_run_resume(&run, "/dev/null", NULL));
    REFUSES("run", gyre_nn_run_show(NULL));
    RETURNS("run", gyre_nn_run_hide(NULL));
    REFUSES("run", gyre_nn_run_compare(NULL));
    REFUSES("model", gyre_nn_train(NULL, data, NULL, &options, &result));
    REFUSES("data", gyre_nn_train(model, NULL, NULL, &options, &result));
    REFUSES("options", gyre_nn_train(model, data, NULL, NULL, &result));
    REFUSES("model", gyre_nn_train_elastic(NULL, data, &comm, &options, &elastic, &result));
    REFUSES("data", gyre_nn_train_elastic(model, NULL, &comm, &options, &elastic, &result));
    REFUSES("comm", gyre_nn_train_elastic(model, data, NULL, &options, &elastic, &result));
    REFUSES("options", gyre_nn_train_elastic(model, data, &comm, NULL, &elastic, &result));
    REFUSES("elastic", gyre_nn_train_elastic(model, data, &comm, &options, NULL, &result));
    REFUSES("model", gyre_nn_test(NULL, data, rows, 1, NULL, number, number));
    REFUSES("data", gyre_nn_test(model, NULL, rows, 1, NULL, number, number));
    REFUSES("rows", gyre_nn_test(model, data, NULL, 1, NULL, number, number));
    REFUSES("loss_p", gyre_nn_test(model, data, rows, 1, NULL, NULL, number));
    REFUSES("accuracy_p", gyre_nn_test(model, data, rows, 1, NULL, number, NULL));
    REFUSES("model", gyre_nn_measure_overlap(NULL, data, NULL, &options, 1, &overlap));
    REFUSES("data", gyre_nn_measure_overlap(model, NULL, NULL, &options, 1, &overlap));
    REFUSES("options", gyre_nn_measure_overlap(model, data, NULL, NULL, 1, &overlap));
    REFUSES("overlap_p", gyre_nn_measure_overlap(model, data, NULL, &options, 1, NULL));
}

/* A chain of layers passes a failure on to gyre_nn_new (wrong_test.c); these and the rest take no pointer that is
 * required. */
static const char others[] =
    ",gyre_nn_last_error,gyre_nn_fail,gyre_nn_layer_free,gyre_nn_input,gyre_nn_input_sequence,gyre_nn_activate,"
    "gyre_nn_input_image,gyre_nn_conv2d,gyre_nn_max_pool2d,gyre_nn_batch_norm,gyre_nn_flatten,"
    "gyre_nn_dense,gyre_nn_embedding,gyre_nn_position,gyre_nn_layer_norm,gyre_nn_dropout,gyre_nn_lstm,"
    "gyre_nn_attention,gyre_nn_residual,gyre_nn_slice,gyre_nn_join,gyre_nn_reconstruct,gyre_nn_cost,gyre_nn_free,"
    "gyre_nn_tape_free,gyre_nn_set_blas_threads,gyre_nn_share_cores,gyre_nn_set_threads,gyre_nn_sessions_defaults,"
    "gyre_nn_dataset_free,gyre_nn_optimizer_defaults,gyre_nn_optimizer_free,gyre_nn_sync_detach,gyre_nn_trace_free,"
    "gyre_nn_strategy_at,gyre_nn_train_defaults,";

/* What frees takes NULL; so does what goes on without a communicator. */
static void try_none(void)
{
    gyre_nn_layer_free(NULL);
    gyre_nn_free(NULL);
    gyre_nn_tape_free(NULL);
    gyre_nn_dataset_free(NULL);
    gyre_nn_optimizer_free(NULL);
    gyre_nn_sync_detach(NULL);
    gyre_nn_trace_free(NULL);
    gyre_nn_share_cores(NULL);
}

static void check_exports(const char *path)
{
    char line[128], entry[136];
    FILE *file = fopen(path, "re");
    int functions = 0;
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "@ \n")] = '\0';
        snprintf(entry, sizeof entry, ",%s,", line);
        if (strncmp(line, "gyre_nn_", 8) != 0)
            continue;
        functions++;
        if (!strstr(tried, entry) && !strstr(others, entry)) {
            failures++;
            printf("%s is exported and has no row in this test\n", line);
        }
    }
    if (file)
        fclose(file);
    if (functions < 100) {
        failures++;
        printf("%s lists %d functions\n", path, functions);
    }
}

static void make(void)
{
    size_t hidden[] = {4};
    config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    options = gyre_nn_train_defaults();
    sessions = gyre_nn_sessions_defaults();
    strategy = gyre_nn_strategy_find("sync");
    if (gyre_nn_dataset_open("digits", &data) ||
        gyre_nn_mlp(64, hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model) ||
        gyre_nn_optimizer_create(model, &config, &optimizer) || gyre_nn_sync_attach(model, optimizer, NULL, 0, &sync) ||
        gyre_nn_trace_create(10, &trace) || gyre_nn_tape_create(model, 0, gyre_nn_module_count(model), &tape)) {
        printf("%s\n", gyre_nn_last_error());
        exit(1);
    }
}

int main(int argc, char **argv)
{
    make();
    try_models();
    try_steps();
    try_data();
    try_optimizers();
    try_checkpoints();
    try_runs();
    try_none();
    if (argc > 1)
        check_exports(argv[1]);
    gyre_nn_tape_free(tape);
    gyre_nn_trace_free(trace);
    gyre_nn_sync_detach(sync);
    gyre_nn_optimizer_free(optimizer);
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
    printf("%d failures\n", failures);
    return failures > 0;
}

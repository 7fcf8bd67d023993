/* A pipeline trains what one rank trains that computes as many pieces, bit for bit: an MLP, an autoencoder and a
 * transformer with residual connections and dropout, clipped, on 1 to 4 stages, by both schedules, with recomputation and
 * without, with batches that the micro-batches do not divide. The micro-batches in flight are at most what the schedule
 * says. Two pipelines of two stages train it within rounding. A model that cannot be cut so often is refused. */
#include <gyre/nn.h>
#include <math.h>

#include "support/launcher.h"

#define MICRO 4

enum { MLP, AUTOENCODER, TRANSFORMER, MODELS };

static const char *const schedules[] = {"1f1b", "gpipe"};

static struct {
    uint64_t hash[MODELS];
    double loss[MODELS], params[1 << 14];
} * alone;

static char text_file[64];
static gyre_nn_dataset *digits, *text;
static double last_loss;

static void on_report(void *user, const struct gyre_nn_report *report)
{
    (void)user;
    last_loss = report->loss;
}

static const gyre_nn_dataset *data_of(int kind)
{
    return kind == TRANSFORMER ? text : digits;
}

static gyre_nn_model *make(int kind, gyre_dtype dtype)
{
    static const size_t hidden[] = {40, 24, 16};
    gyre_nn_model *model = NULL;
    if (kind == MLP)
        OK(NULL, gyre_nn_mlp(64, hidden, 3, GYRE_NN_RELU, 10, dtype, 1, &model));
    else if (kind == AUTOENCODER)
        OK(NULL, gyre_nn_autoencoder(64, hidden, 2, GYRE_NN_TANH, dtype, 1, &model));
    else
        OK(NULL, gyre_nn_transformer(16, text->classes, 16, 2, 2, 0.1, dtype, 1, &model));
    return model;
}

static gyre_status train(gyre_comm *comm, int kind, gyre_dtype dtype, const char *strategy, const char *settings,
                         struct gyre_nn_train_result *result_p, double *params)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    gyre_nn_model *model = make(kind, dtype);
    options.strategy = gyre_nn_strategy_find(strategy);
    options.settings = settings;
    options.batch = 53;
    options.accumulate = comm ? 1 : MICRO;
    options.clip_norm = 0.5;
    options.stop_after = 30;
    options.report = on_report;
    gyre_status status = gyre_nn_train(model, data_of(kind), comm, &options, result_p);
    if (status == GYRE_SUCCESS && params)
        memcpy(params, gyre_nn_params(model), gyre_nn_param_count(model) * sizeof(double));
    gyre_nn_free(model);
    return status;
}

static void open_data(void)
{
    OK(NULL, gyre_nn_dataset_open("digits", &digits));
    OK(NULL, gyre_nn_text_open(text_file, 16, &text));
}

static void close_data(void)
{
    gyre_nn_dataset_free(digits);
    gyre_nn_dataset_free(text);
}

static void train_alone(int rank)
{
    struct gyre_nn_train_result result;
    (void)rank;
    alarm(100);
    open_data();
    for (int kind = 0; kind < MODELS; kind++) {
        OK(NULL, train(NULL, kind, GYRE_FLOAT32, "sync", NULL, &result, NULL));
        alone->hash[kind] = result.params_xxh3;
        alone->loss[kind] = last_loss;
    }
    OK(NULL, train(NULL, MLP, GYRE_FLOAT64, "sync", NULL, &result, alone->params));
    close_data();
}

static void expect_same(gyre_comm *comm, int kind, const char *settings)
{
    struct gyre_nn_train_result result;
    if (train(comm, kind, GYRE_FLOAT32, "pipeline", settings, &result, NULL) != GYRE_SUCCESS)
        rank_fail("model %d, pipeline:%s: %s", kind, settings, gyre_nn_last_error());
    if (result.params_xxh3 != alone->hash[kind] || !(last_loss == alone->loss[kind]))
        rank_fail("model %d, pipeline:%s has other bits: %016llx and %016llx, loss %a and %a", kind, settings,
                  (unsigned long long)result.params_xxh3, (unsigned long long)alone->hash[kind], last_loss,
                  alone->loss[kind]);
}

/* Some steps by hand, and then the most micro-batches that were in flight on this stage. */
static void expect_peak(gyre_comm *comm, const char *settings, double most)
{
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    struct gyre_nn_array arrays[GYRE_NN_MOST_ARRAYS];
    struct gyre_nn_run run;
    gyre_nn_model *model = make(MLP, GYRE_FLOAT32);
    size_t n = 0;
    OK(comm, gyre_nn_run_open(model, comm, &config, gyre_nn_strategy_find("pipeline"), settings, 0, 0, &run));
    for (uint64_t step = 0; step < 3; step++) {
        struct gyre_nn_batch batch = {.data = digits, .rows = digits->train, .samples = 50, .seed = 1};
        struct gyre_nn_step now = {.number = step, .rate = 0.01, .global_rows = 50};
        gyre_nn_zero_grads(model);
        OK(comm, run.strategy->compute(run.self, &now, &batch));
        OK(comm, run.strategy->update(run.self, &now));
    }
    OK(comm, run.strategy->arrays(run.self, arrays, &n));
    CHECK(n == 1 && strcmp(arrays[0].name, "pipeline.peak") == 0);
    double peak = *(const double *)arrays[0].data;
    if (peak != most)
        rank_fail("pipeline:%s has %g micro-batches in flight, not %g", settings, peak, most);
    gyre_nn_run_close(&run);
    gyre_nn_free(model);
}

static void two_pipelines(gyre_comm *comm)
{
    static double params[1 << 14];
    struct gyre_nn_train_result result;
    OK(comm, train(comm, MLP, GYRE_FLOAT64, "pipeline", "stages=2", &result, params));
    double largest = 0;
    for (size_t i = 0; i < sizeof params / sizeof params[0]; i++)
        largest = fmax(largest, fabs(params[i] - alone->params[i]));
    if (!(largest < 1e-12) || params[0] == 0)
        rank_fail("two pipelines differ by %g", largest);
    if (train(NULL, MLP, GYRE_FLOAT64, "pipeline", NULL, &result, NULL) != GYRE_INVALID_ARGUMENT)
        rank_fail("pieces of micro-batches");
    if (train(comm, MLP, GYRE_FLOAT64, "pipeline", "stages=3", &result, NULL) != GYRE_INVALID_ARGUMENT)
        rank_fail("4 ranks in pipelines of 3 stages");
}

static void body(int rank)
{
    gyre_comm *comm = rank_begin(100);
    char settings[64];
    int ranks = gyre_comm_size(comm);
    open_data();
    for (int i = 0; i < 4; i++) {
        snprintf(settings, sizeof settings, "stages=%d,schedule=%s,recompute=%s", ranks, schedules[i % 2],
                 i / 2 ? "yes" : "no");
        for (int kind = 0; kind < MODELS; kind++)
            expect_same(comm, kind, settings);
        snprintf(settings, sizeof settings, "stages=%d,micro=7,schedule=%s", ranks, schedules[i % 2]);
        expect_peak(comm, settings, i % 2 ? 7 : ranks - rank);
    }
    if (ranks == 4)
        two_pipelines(comm);
    close_data();
    OK(comm, gyre_comm_destroy(comm));
}

static void write_text(void)
{
    FILE *file = fopen(text_file, "we");
    CHECK(file != NULL);
    for (int i = 0; i < 900; i++)
        fprintf(file, "%d ", i * i);
    CHECK(fclose(file) == 0);
}

int main(void)
{
    char folder[] = "/tmp/gyre-pipeline-XXXXXX";
    alone = launch_share(sizeof *alone);
    CHECK(mkdtemp(folder));
    snprintf(text_file, sizeof text_file, "%s/text", folder);
    write_text();
    bool good = launch(1, train_alone, 100, "one rank");
    for (int ranks = 1; ranks <= 4; ranks++)
        good = launch(ranks, body, 100, "a pipeline") && good;
    unlink(text_file);
    rmdir(folder);
    return good ? 0 : 1;
}

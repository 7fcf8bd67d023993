/* A pipeline trains what one rank trains that computes as many pieces, bit for bit: an MLP, an autoencoder and a
 * transformer with residual connections and dropout, clipped, on 1 to 4 stages, by both schedules, with recomputation
 * and without, with batches that the micro-batches do not divide. The micro-batches in flight are at most what the
 * schedule says. Two pipelines of two stages train it within rounding. A model that cannot be cut so often is refused.
 * The branches of the recommender are stages side by side: neither is more micro-batches ahead than the other. A bound
 * on memory moves the stages or refuses them; and a run that is resumed under another bound keeps the stages that its
 * state belongs to. */
#include <gyre/nn.h>
#include <math.h>

#include "support/launcher.h"

#define MICRO 4

enum { MLP, AUTOENCODER, TRANSFORMER, RECOMMENDER, MODELS };

static const char *const schedules[] = {"1f1b", "gpipe"};

static struct {
    uint64_t hash[MODELS];
    double loss[MODELS], params[1 << 14];
} * alone;

static char text_file[64];
static char file[80];
static gyre_nn_dataset *digits, *text, *sessions;
static double last_loss;

static void on_report(void *user, const struct gyre_nn_report *report)
{
    (void)user;
    last_loss = report->loss;
}

static const gyre_nn_dataset *data_of(int kind)
{
    return kind == TRANSFORMER ? text : kind == RECOMMENDER ? sessions : digits;
}

static gyre_nn_model *make(int kind, gyre_dtype dtype)
{
    static const size_t hidden[] = {40, 24, 16};
    gyre_nn_model *model = NULL;
    if (kind == MLP)
        OK(NULL, gyre_nn_mlp(64, hidden, 3, GYRE_NN_RELU, 10, dtype, 1, &model));
    else if (kind == AUTOENCODER)
        OK(NULL, gyre_nn_autoencoder(64, hidden, 2, GYRE_NN_TANH, dtype, 1, &model));
    else if (kind == RECOMMENDER)
        OK(NULL, gyre_nn_recommender(10, 32, 32, 16, 200, 2, dtype, 1, &model));
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
    OK(NULL, gyre_nn_dataset_open("sessions", &sessions));
}

static void close_data(void)
{
    gyre_nn_dataset_free(digits);
    gyre_nn_dataset_free(text);
    gyre_nn_dataset_free(sessions);
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
    /* the recommender's two costs are rounded apart */
    bool same_loss = kind == RECOMMENDER ? fabs(last_loss - alone->loss[kind]) < 1e-5 : last_loss == alone->loss[kind];
    if (result.params_xxh3 != alone->hash[kind] || !same_loss)
        rank_fail("model %d, pipeline:%s has other bits: %016llx and %016llx, loss %a and %a", kind, settings,
                  (unsigned long long)result.params_xxh3, (unsigned long long)alone->hash[kind], last_loss,
                  alone->loss[kind]);
}

/* Some steps by hand; then the most micro-batches that were in flight on this stage, and the modules of each stage. */
static double peak_of(gyre_comm *comm, int kind, const char *settings, double *places)
{
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    struct gyre_nn_array arrays[GYRE_NN_MOST_ARRAYS];
    struct gyre_nn_run run;
    const gyre_nn_dataset *data = data_of(kind);
    gyre_nn_model *model = make(kind, GYRE_FLOAT32);
    size_t n = 0;
    OK(comm, gyre_nn_run_open(model, comm, &config, gyre_nn_strategy_find("pipeline"), settings, 0, 0, &run));
    for (uint64_t step = 0; step < 3; step++) {
        struct gyre_nn_batch batch = {.data = data, .rows = data->train, .samples = 50, .seed = 1};
        struct gyre_nn_step now = {.number = step, .rate = 0.01, .global_rows = 50};
        gyre_nn_zero_grads(model);
        OK(comm, run.strategy->compute(run.self, &now, &batch));
        OK(comm, run.strategy->update(run.self, &now));
    }
    OK(comm, run.strategy->arrays(run.self, arrays, &n));
    CHECK(n == 2 && strcmp(arrays[0].name, "pipeline.peak") == 0 && strcmp(arrays[1].name, "pipeline.places") == 0);
    double peak = *(const double *)arrays[0].data;
    memcpy(places, arrays[1].data, arrays[1].count * sizeof *places);
    gyre_nn_run_close(&run);
    gyre_nn_free(model);
    return peak;
}

static void expect_peak(gyre_comm *comm, const char *settings, double most)
{
    double places[8], peak = peak_of(comm, MLP, settings, places);
    if (peak != most)
        rank_fail("pipeline:%s has %g micro-batches in flight, not %g", settings, peak, most);
}

/* Three stages: the session's branch, the features' branch, what joins them. */
static void side_by_side(gyre_comm *comm)
{
    static const double most[] = {2, 2, 1};
    double places[8], peak = peak_of(comm, RECOMMENDER, "micro=7,balance=estimate", places);
    int rank = gyre_comm_rank(comm);
    if (rank == 0)
        printf("the recommender's stages begin at modules %g, %g, %g\n", places[0], places[1], places[2]);
    CHECK((places[1] == 4 || places[1] == 5) && places[2] == 12);

    if (peak != most[rank])
        rank_fail("%g micro-batches in flight, not %g", peak, most[rank]);
}

static struct gyre_nn_train_result cut(gyre_comm *comm, const char *settings, uint64_t stop, bool save, bool resume)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_train_result result;
    gyre_nn_model *model = make(AUTOENCODER, GYRE_FLOAT32);
    options.strategy = gyre_nn_strategy_find("pipeline");
    options.settings = settings;
    options.stop_after = stop;
    options.checkpoint = save ? file : NULL;
    options.resume = resume ? file : NULL;
    if (gyre_nn_train(model, digits, comm, &options, &result) != GYRE_SUCCESS)
        rank_fail("pipeline:%s: %s", settings, gyre_nn_last_error());
    gyre_nn_free(model);
    OK(comm, gyre_barrier(comm));
    return result;
}

/* Bytes of the largest of two stages, as docs/training.md has it: 4 arrays of parameters; the activations of two
 * micro-batches in the lower stage, of one in the upper. */
static double largest_stage(const double *places, double samples)
{
    gyre_nn_model *model = make(AUTOENCODER, GYRE_FLOAT32);
    double largest = 0;
    for (int s = 0; s < 2; s++) {
        size_t first = (size_t)places[s], last = (size_t)places[s + 1];
        double params = (double)(gyre_nn_cut_offset(model, last) - gyre_nn_cut_offset(model, first));
        double kept = gyre_nn_cut_memory(model, last) - gyre_nn_cut_memory(model, first);
        largest = fmax(largest, 4 * (4 * params + samples * (2 - s) * kept));
    }
    gyre_nn_free(model);
    return largest;
}

/* The places that a bound excludes are those that would be best without it. */
static void within_memory(gyre_comm *comm)
{
    static const char free_text[] = "stages=2,balance=estimate",
                      bound_text[] = "stages=2,balance=estimate,samples=200,memory=215000";
    struct gyre_nn_train_result result;
    double places[8], moved[8];
    peak_of(comm, AUTOENCODER, free_text, places);
    peak_of(comm, AUTOENCODER, bound_text, moved);
    if (gyre_comm_rank(comm) == 0)
        printf("a bound of 215000 bytes moves the cut from place %g (%g bytes) to %g (%g)\n", places[1],
               largest_stage(places, 200), moved[1], largest_stage(moved, 200));
    CHECK(largest_stage(places, 200) > 215000 && largest_stage(moved, 200) <= 215000);
    CHECK(train(comm, AUTOENCODER, GYRE_FLOAT32, "pipeline", "stages=2,samples=200,memory=1e5", &result, NULL) ==
          GYRE_INVALID_ARGUMENT);
    char enough[64] = "stages=2,samples=200,";
    const char *told = strstr(gyre_nn_last_error(), "each within its memory of 100000 bytes; memory=");
    CHECK(told && sscanf(strstr(told, "; ") + 2, "%30[^,]", enough + strlen(enough)) == 1);
    CHECK(train(comm, AUTOENCODER, GYRE_FLOAT32, "pipeline", enough, &result, NULL) == GYRE_SUCCESS);
    uint64_t whole = cut(comm, free_text, 30, false, false).params_xxh3;
    cut(comm, bound_text, 17, true, false);
    CHECK(cut(comm, free_text, 30, false, true).params_xxh3 == whole);
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
    if (train(comm, MLP, GYRE_FLOAT64, "pipeline", "stages=3", &result, NULL) != GYRE_INVALID_ARGUMENT ||
        !strstr(gyre_nn_last_error(), "3 stages do not divide 4 ranks"))
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
            if (kind != RECOMMENDER || i == 0 || i == 3)
                expect_same(comm, kind, settings);
        snprintf(settings, sizeof settings, "stages=%d,micro=7,schedule=%s", ranks, schedules[i % 2]);
        expect_peak(comm, settings, i % 2 ? 7 : ranks - rank);
    }
    if (ranks == 2)
        within_memory(comm);
    if (ranks == 3)
        side_by_side(comm);
    if (ranks == 4)
        two_pipelines(comm);
    close_data();
    OK(comm, gyre_comm_destroy(comm));
}

static void write_text(void)
{
    FILE *out = fopen(text_file, "we");
    CHECK(out != NULL);
    for (int i = 0; i < 900; i++)
        fprintf(out, "%d ", i * i);
    CHECK(fclose(out) == 0);
}

int main(void)
{
    char folder[] = "/tmp/gyre-pipeline-XXXXXX";
    setvbuf(stdout, NULL, _IOLBF, 0);
    alone = launch_share(sizeof *alone);
    CHECK(mkdtemp(folder));
    snprintf(text_file, sizeof text_file, "%s/text", folder);
    snprintf(file, sizeof file, "%s/checkpoint", folder);
    write_text();
    bool good = launch(1, train_alone, 100, "one rank");
    for (int ranks = 1; ranks <= 4; ranks++)
        good = launch(ranks, body, 100, "a pipeline") && good;
    unlink(text_file);
    unlink(file);
    rmdir(folder);
    return good ? 0 : 1;
}

/* Every strategy of the library, on 4 ranks: with its defaults it trains the digits to 95 %; and a run that is cut, in
 * the middle of a period and with an exchange under way, goes on to the same bits, those of the loss included. The
 * state of a strategy that a checkpoint forgets would show: the cut run and the whole one differ then. */
#include <gyre/nn.h>
#include <math.h>

#include "support/launcher.h"

#define RANKS 4

static char file[64];
static gyre_nn_dataset *data;
static size_t hidden = 32;

/* Settings that a run is cut with, beside the defaults; async by its defaults mixes what time brings, and is cut with
 * ranks that keep step (its state is looked at in async_test). */
static const struct {
    const char *strategy, *settings;
} cuts[] = {
    {"average", "every=6"},
    {"average", "every=7,delay=4"},
    {"average", "every=0"},
    {"average", "every=9,adaptive=yes,delay=1"},
    {"average", "every=5,from=17"},
    {"bmuf", "every=6,delay=2"},
    {"bmuf", "every=6,momentum=classic"},
    {"easgd", "every=3,delay=2"},
    {"easgd", "every=0"},
    {"easgd", "every=20,delay=6"},
    {"admm", "every=6,delay=3"},
    {"admm", "every=0"},
    {"slowmo", "every=6,delay=2"},
    {"diloco", "every=6,delay=3"},
    {"pipeline", "stages=2,recompute=yes"},
    {"stale", "steps=3"},
    {"async", "wait=yes,every=3,graph=ring"},
};

static double last_loss;

static void on_report(void *user, const struct gyre_nn_report *report)
{
    (void)user;
    last_loss = report->loss;
}

static struct gyre_nn_train_result train(gyre_comm *comm, const struct gyre_nn_train_options *options)
{
    struct gyre_nn_train_result result;
    gyre_nn_model *model = NULL;
    OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model));
    gyre_status status = gyre_nn_train(model, data, comm, options, &result);
    if (status != GYRE_SUCCESS)
        rank_fail("%s:%s: %s", options->strategy->name, options->settings ? options->settings : "",
                  gyre_nn_last_error());
    uint64_t first = result.params_xxh3;
    OK(comm, gyre_broadcast(comm, &first, &first, 1, GYRE_UINT64, 0));
    if (first != result.params_xxh3)
        rank_fail("%s: other bits than on rank 0", options->strategy->name);
    gyre_nn_free(model);
    return result;
}

static void cut(gyre_comm *comm, const gyre_nn_strategy *strategy, const char *settings, uint64_t at)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    options.strategy = strategy;
    options.settings = settings;
    options.epochs = 2;
    options.batch = 61; /* 24 steps per epoch, the last one smaller */
    options.bucket_bytes = 1024;
    options.clip_norm = 2;
    options.report = on_report;
    uint64_t whole = train(comm, &options).params_xxh3;
    double loss = last_loss;
    options.stop_after = at;
    options.checkpoint = file;
    uint64_t half = train(comm, &options).params_xxh3;
    options.stop_after = 0;
    options.checkpoint = NULL;
    options.resume = file;
    uint64_t rest = train(comm, &options).params_xxh3;
    if (whole != rest || half == whole || !(loss == last_loss))
        rank_fail("%s:%s cut at step %d: %016llx, and not %016llx; loss %a and %a", strategy->name,
                  settings ? settings : "", (int)at, (unsigned long long)rest, (unsigned long long)whole, last_loss,
                  loss);
    OK(comm, gyre_barrier(comm)); /* the file is for all ranks */
}

static void resume(int rank)
{
    const gyre_nn_strategy *strategy;
    (void)rank;
    gyre_comm *comm = rank_begin(100);
    OK(comm, gyre_nn_dataset_open("digits", &data));
    for (size_t i = 0; (strategy = gyre_nn_strategy_at(i)); i++)
        for (uint64_t at = 18; at < 38; at += 19)
            cut(comm, strategy, strcmp(strategy->name, "async") == 0 ? "wait=yes" : NULL, at);
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++)
        for (uint64_t at = 13; at < 38; at += 4)
            cut(comm, gyre_nn_strategy_find(cuts[i].strategy), cuts[i].settings, at);
    gyre_nn_dataset_free(data);
    OK(comm, gyre_comm_destroy(comm));
}

static void accuracy(int rank)
{
    const gyre_nn_strategy *strategy;
    gyre_comm *comm = rank_begin(100);
    hidden = 128; /* gyre-train's */
    OK(comm, gyre_nn_dataset_open("digits", &data));
    for (size_t i = 0; (strategy = gyre_nn_strategy_at(i)); i++) {
        struct gyre_nn_train_options options = gyre_nn_train_defaults();
        options.strategy = strategy;
        struct gyre_nn_train_result result = train(comm, &options);
        if (rank == 0)
            printf("%s: %.2f %%\n", strategy->name, 100 * result.accuracy);
        if (!(result.accuracy >= 0.95))
            rank_fail("%s: an accuracy of %g", strategy->name, result.accuracy);
    }
    gyre_nn_dataset_free(data);
    OK(comm, gyre_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/gyre-strategies-XXXXXX";
    bool first = argc < 2 || strcmp(argv[1], "accuracy") != 0, second = argc < 2 || !first;
    setvbuf(stdout, NULL, _IOLBF, 0);
    CHECK(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/checkpoint", folder);
    bool good = !first || launch(RANKS, resume, 100, "runs that are cut");
    good = (!second || launch(RANKS, accuracy, 100, "defaults")) && good;
    unlink(file);
    rmdir(folder);
    return good ? 0 : 1;
}

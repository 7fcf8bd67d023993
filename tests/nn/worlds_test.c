/* The strategy deterministic trains the same model, bit for bit, on 1, 2, 4 and 8 ranks, and on 3, which do not divide
 * its tree: an MLP and a transformer with dropout, with clipping, batches that the shards do not divide. To show that
 * this is something, sync on 1 and on 4 ranks must not have the same bits. And zero has the bits of sync, while each
 * rank has the optimiser's state of a part of the parameters. */
#include <gyre/nn.h>

#include "support/launcher.h"

enum { MLP, TRANSFORMER, MODELS };

static struct {
    uint64_t deterministic[MODELS], sync, zero;
    double loss[MODELS];
} * worlds; /* by their number of ranks */

static char text_file[64];
static double last_loss;

static void on_report(void *user, const struct gyre_nn_report *report)
{
    (void)user;
    last_loss = report->loss;
}

static uint64_t train(gyre_comm *comm, const char *strategy, int kind)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_train_result result;
    gyre_nn_dataset *data = NULL;
    gyre_nn_model *model = NULL;
    size_t hidden = 40;
    options.strategy = gyre_nn_strategy_find(strategy);
    options.epochs = 2;
    options.batch = 53;
    options.clip_norm = 1;
    options.bucket_bytes = 4096;
    options.check_every = 5;
    options.report = on_report;
    if (kind == MLP) {
        OK(comm, gyre_nn_dataset_open("digits", &data));
        OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model));
    } else {
        OK(comm, gyre_nn_text_open(text_file, 16, &data));
        OK(comm, gyre_nn_transformer(16, data->classes, 24, 2, 2, 0.1, GYRE_FLOAT32, 1, &model));
    }
    gyre_status status = gyre_nn_train(model, data, comm, &options, &result);
    if (status != GYRE_SUCCESS)
        rank_fail("%s: %s", strategy, gyre_nn_last_error());
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
    return result.params_xxh3;
}

static void body(int rank)
{
    gyre_comm *comm = rank_begin(100);
    int ranks = gyre_comm_size(comm);
    for (int kind = MLP; kind < MODELS; kind++) {
        uint64_t hash = train(comm, "deterministic", kind);
        if (rank == 0) {
            worlds[ranks].deterministic[kind] = hash;
            worlds[ranks].loss[kind] = last_loss;
        }
    }
    uint64_t sync = train(comm, "sync", MLP), zero = train(comm, "zero", MLP);
    if (rank == 0) {
        worlds[ranks].sync = sync;
        worlds[ranks].zero = zero;
    }
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
    static const int sizes[] = {1, 2, 3, 4, 8};
    char folder[] = "/tmp/gyre-worlds-XXXXXX";
    bool good = true;
    worlds = launch_share(9 * sizeof *worlds);
    CHECK(mkdtemp(folder));
    snprintf(text_file, sizeof text_file, "%s/text", folder);
    write_text();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int n = sizes[i];
        good = launch(n, body, 100, "a world") && good;
        printf("%d ranks: deterministic %016llx %016llx, losses %.9f %.9f; sync %016llx, zero %016llx\n", n,
               (unsigned long long)worlds[n].deterministic[MLP],
               (unsigned long long)worlds[n].deterministic[TRANSFORMER], worlds[n].loss[MLP],
               worlds[n].loss[TRANSFORMER], (unsigned long long)worlds[n].sync, (unsigned long long)worlds[n].zero);
        good = good && memcmp(worlds[n].deterministic, worlds[1].deterministic, sizeof worlds[n].deterministic) == 0 &&
               memcmp(worlds[n].loss, worlds[1].loss, sizeof worlds[n].loss) == 0 && worlds[n].sync == worlds[n].zero;
    }
    good = good && worlds[4].sync != worlds[1].sync && worlds[1].sync != 0;
    unlink(text_file);
    rmdir(folder);
    return good ? 0 : 1;
}

/* Error feedback loses nothing: over many steps, what was applied and what the ranks still keep make up the gradients,
 * for every way of compressing, in fp64 within rounding; and with each, training reaches 95 % and a run that is cut
 * goes on to the same bits. That something is left to keep at all, and that what is applied tends to the gradients,
 * shows that the compression is one. */
#include <gyre/nn.h>
#include <math.h>

#include "support/launcher.h"

#define STEPS 12
#define ROWS 40 /* per step, of all ranks */

static const char *const ways[] = {"by=bf16", "by=int8", "by=topk,share=0.02", "by=powersgd,rank=2"};
static char file[64];

static double noise(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int32_t)(*state >> 32) * 0x1p-31;
}

static void keep(gyre_comm *comm, const char *settings)
{
    const gyre_nn_strategy *strategy = gyre_nn_strategy_find("compressed");
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    struct gyre_nn_array arrays[GYRE_NN_MOST_ARRAYS];
    struct gyre_nn_run run;
    gyre_nn_model *model = NULL;
    size_t hidden = 37, n = 0;
    OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT64, 1, &model));
    OK(comm, gyre_nn_run_open(model, comm, &config, strategy, settings, 0, 0, &run));
    size_t count = gyre_nn_param_count(model);
    double *given = calloc(count, sizeof *given), *applied = calloc(count, sizeof *applied);
    double *grads = gyre_nn_grads(model), left = 0, largest = 0, size = 0;
    uint64_t state = (uint64_t)gyre_comm_rank(comm) + 7;
    for (int step = 0; step < STEPS; step++) {
        struct gyre_nn_step now = {.number = (uint64_t)step, .rate = 0.01, .rows = 10, .global_rows = ROWS};
        for (size_t i = 0; i < count; i++) {
            grads[i] = noise(&state) * exp(3 * noise(&state));
            given[i] += grads[i] / ROWS;
        }
        OK(comm, strategy->update(run.self, &now));
        for (size_t i = 0; i < count; i++)
            applied[i] += grads[i];
    }
    OK(comm, strategy->arrays(run.self, arrays, &n));
    CHECK(strcmp(arrays[0].name, "compressed.residual") == 0 && arrays[0].count == count);
    for (size_t i = 0; i < count; i++)
        given[i] -= ((const double *)arrays[0].data)[i];
    OK(comm, gyre_all_reduce(comm, given, given, count, GYRE_FLOAT64, GYRE_SUM));
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(given[i] - applied[i]));
        left += fabs(((const double *)arrays[0].data)[i]);
        size += fabs(applied[i]);
    }
    if (gyre_comm_rank(comm) == 0)
        printf("%s on %d ranks: sent and kept differ from the gradients by %.3g; kept %.3g of %.3g\n", settings,
               gyre_comm_size(comm), largest, left, size);
    if (!(largest < 1e-12) || !(left > 1e-6 * size) || !(size > 0))
        rank_fail("%s: a difference of %g, %g kept of %g", settings, largest, left, size);
    OK(comm, gyre_nn_run_compare(&run));
    gyre_nn_run_close(&run);
    gyre_nn_free(model);
    free(given);
    free(applied);
}

static struct gyre_nn_train_result train(gyre_comm *comm, const gyre_nn_dataset *data,
                                         const struct gyre_nn_train_options *options)
{
    struct gyre_nn_train_result result;
    gyre_nn_model *model = NULL;
    size_t hidden = 128;
    OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model));
    gyre_status status = gyre_nn_train(model, data, comm, options, &result);
    if (status != GYRE_SUCCESS)
        rank_fail("%s: %s", options->settings, gyre_nn_last_error());
    gyre_nn_free(model);
    return result;
}

static void learn(gyre_comm *comm, const char *settings)
{
    gyre_nn_dataset *data = NULL;
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    OK(comm, gyre_nn_dataset_open("digits", &data));
    options.strategy = gyre_nn_strategy_find("compressed");
    options.settings = settings;
    options.epochs = 20;
    options.check_every = 50;
    struct gyre_nn_train_result whole = train(comm, data, &options);
    if (gyre_comm_rank(comm) == 0)
        printf("%s: %.2f %%\n", settings, 100 * whole.accuracy);
    if (!(whole.accuracy >= 0.95))
        rank_fail("%s: an accuracy of %g", settings, whole.accuracy);
    options.stop_after = 31;
    options.checkpoint = file;
    train(comm, data, &options);
    options.stop_after = 0;
    options.checkpoint = NULL;
    options.resume = file;
    if (train(comm, data, &options).params_xxh3 != whole.params_xxh3)
        rank_fail("%s: a run that was cut has other bits", settings);
    OK(comm, gyre_barrier(comm));
    gyre_nn_dataset_free(data);
}

static void body(int rank)
{
    (void)rank;
    gyre_comm *comm = rank_begin(100);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        keep(comm, ways[i]);
        if (gyre_comm_size(comm) == 4)
            learn(comm, ways[i]);
    }
    OK(comm, gyre_comm_destroy(comm));
}

int main(void)
{
    char folder[] = "/tmp/gyre-compressed-XXXXXX";
    setvbuf(stdout, NULL, _IOLBF, 0);
    CHECK(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/checkpoint", folder);
    bool good = launch(4, body, 100, "4 ranks");
    good = launch(3, body, 100, "3 ranks") && launch(1, body, 100, "1 rank") && good;
    unlink(file);
    rmdir(folder);
    return good ? 0 : 1;
}

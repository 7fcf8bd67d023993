/* The cost of one slow rank for the others: gyre-run -n 2 --bind perf-train-straggle TIMES [OPTIONS of gyre-train]
 *
 * Trains by the strategy of the options for --steps steps. The last rank takes TIMES times as long as it needs for the
 * computation of every step: it sleeps before the step, outside gyre, so that it takes nothing from the others' cores.
 * A rank's computation is the time between the beginning of a step and its update; no strategy waits in it for others.
 * Rank 0 prints one JSON object: for each rank the seconds at which its steps began, from its first one on. */
#include "train/arguments.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const gyre_nn_strategy *inner;
static gyre_nn_strategy outer;
static double *begun, computing, times = 1; /* times: of this rank */

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static gyre_status before_step(void *self, const struct gyre_nn_step *step)
{
    double pause = (times - 1) * computing;
    struct timespec rest = {.tv_sec = (time_t)pause, .tv_nsec = (long)(1e9 * (pause - floor(pause)))};
    if (pause > 0)
        nanosleep(&rest, NULL);
    begun[step->number] = now();
    return inner->before_step ? inner->before_step(self, step) : GYRE_SUCCESS;
}

static gyre_status update(void *self, const struct gyre_nn_step *step)
{
    computing = now() - begun[step->number];
    return inner->update(self, step);
}

static int complain(const char *text)
{
    fprintf(stderr, "perf-train-straggle: %s\n", text);
    return 1;
}

static void print(const double *all, size_t ranks, size_t steps)
{
    printf("[");
    for (size_t rank = 0; rank < ranks; rank++) {
        printf("%s[", rank ? ", " : "");
        for (size_t i = 0; i < steps; i++)
            printf("%s%.6f", i ? ", " : "", all[rank * steps + i] - all[rank * steps]);
        printf("]");
    }
    printf("]\n");
}

static int run(struct arguments *how, gyre_comm *comm)
{
    gyre_nn_dataset *data = NULL;
    gyre_nn_model *model = NULL;
    size_t steps = (size_t)how->train.stop_after, ranks = (size_t)gyre_comm_size(comm);
    double *all = calloc(ranks * steps, sizeof(*all));
    int rc = 0;
    begun = calloc(steps, sizeof(*begun));
    if (!all || !begun) {
        free(all);
        free(begun);
        return complain("no memory");
    }
    inner = how->train.strategy ? how->train.strategy : gyre_nn_strategy_find("sync");
    outer = *inner;
    outer.before_step = before_step;
    outer.update = update;
    how->train.strategy = &outer;
    how->train.check_every = 0; /* to compare ranks is to meet */
    gyre_status status = model_open_data(&how->model, how->data, &data);
    status = status ? status : model_make(&how->model, data, how->train.seed, &model);
    status = status ? status : gyre_nn_train(model, data, comm, &how->train, NULL);
    if (status != GYRE_SUCCESS)
        rc = complain(gyre_nn_last_error());
    else if (gyre_all_gather(comm, begun, all, steps, GYRE_FLOAT64) != GYRE_SUCCESS)
        rc = complain(gyre_last_error(comm));
    else if (gyre_comm_rank(comm) == 0)
        print(all, ranks, steps);
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
    free(begun);
    free(all);
    return rc;
}

int main(int argc, char **argv)
{
    static struct arguments how;
    gyre_comm *comm = NULL;
    char *stop = NULL;
    double slow = argc > 1 ? strtod(argv[1], &stop) : 0;
    if (argc < 2 || *stop || !(slow >= 1 && slow <= 1000))
        return complain("usage: gyre-run -n N perf-train-straggle TIMES [OPTIONS of gyre-train, with --steps]") + 1;
    argv[1] = argv[0];
    arguments_parse(argc - 1, argv + 1, &how);
    if (how.train.stop_after == 0)
        return complain("how many --steps?") + 1;
    if (how.progress_thread)
        setenv("GYRE_PROGRESS_THREAD", "1", 1);
    if (gyre_comm_create(NULL, &comm) != GYRE_SUCCESS)
        return complain(gyre_last_error(NULL));
    gyre_nn_set_blas_threads(1);
    if (gyre_comm_rank(comm) == gyre_comm_size(comm) - 1)
        times = slow;
    int rc = run(&how, comm);
    gyre_comm_destroy(comm);
    return rc;
}

/* Measures how much of the communication hides behind computation. Four kinds of step run on a copy of the model. They
 * are interleaved, so that a slow moment of the machine affects all of them. Each begins at a barrier:
 *
 *     compute        forward, backward
 *     communication  all buckets, blocking
 *     serial         forward, backward, all buckets, update
 *     overlapped     per step of STEPS consecutive steps, as in training: forward, where each module's parameters move
 *                    before it as soon as their buckets have arrived; backward, where buckets leave. Timed between the
 *                    ends of two backwards, so that each step hides what the one before has left, and leaves as much
 *
 *     hidden = (serial − overlapped) / communication
 *
 * The time of a step is the slowest rank's. Nothing is clamped: noise may show a value below 0 or above 1. */
#include "base/error.h"
#include "base/ready.h"
#include "base/require.h"
#include "io/trace.h"
#include "model/evaluate.h"
#include "strategies/strategies.h"

#include <math.h>
#include <stdlib.h>

#define STEPS 4

enum { COMPUTE, COMMUNICATION, SERIAL, OVERLAPPED, BACKWARD, KINDS };

struct bench {
    gyre_nn_model *model;
    gyre_nn_optimizer *optimizer;
    gyre_nn_sync *sync;
    gyre_comm *comm;
    void *x;
    int32_t *labels; /* NULL where the cost needs none */
    size_t rows, global;
    double rate;
    bool ahead;
};

static gyre_status pass(struct bench *bench, gyre_nn_passed_func passed, double *backward_p)
{
    gyre_nn_renew_grads(bench->model);
    gyre_nn_train_mode(bench->model, 1, 0, 0);
    gyre_status status = gyre_nn_forward(bench->model, bench->x, bench->rows, NULL);
    status = status ? status : gyre_nn_evaluate(bench->model, bench->labels, NULL, NULL, NULL);
    int64_t start = gy_nn_now();
    status = status ? status : gyre_nn_backward(bench->model, passed, bench->sync);
    if (backward_p)
        *backward_p = (double)(gy_nn_now() - start) / 1e9;
    return status;
}

static gyre_status finish(struct bench *bench)
{
    return gyre_nn_sync_finish(bench->sync, bench->rate, bench->global * gyre_nn_output_steps(bench->model), 0);
}

static gyre_status run_steps(struct bench *bench, double *seconds_p)
{
    int64_t start = 0;
    gyre_status status = GYRE_SUCCESS;
    gyre_nn_sync_ahead(bench->sync, bench->ahead);
    for (int i = 0; i <= STEPS && status == GYRE_SUCCESS; i++) {
        gyre_nn_sync_begin(bench->sync);
        status = pass(bench, gyre_nn_sync_passed, NULL);
        status = status ? status : finish(bench);
        start = i == 0 ? gy_nn_now() : start;
    }
    *seconds_p = (double)(gy_nn_now() - start) / 1e9 / STEPS;
    status = status ? status : gyre_nn_settle(bench->model);
    gyre_nn_sync_ahead(bench->sync, false);
    return status;
}

static gyre_status run_kind(struct bench *bench, int kind, double times[KINDS])
{
    gyre_status status = gyre_barrier(bench->comm);
    if (status != GYRE_SUCCESS)
        return gy_nn_fail_comm(status, bench->comm, "the barrier before a measured step");
    if (kind == OVERLAPPED)
        return run_steps(bench, &times[kind]);
    int64_t start = gy_nn_now();
    gyre_nn_sync_begin(bench->sync);
    if (kind != COMMUNICATION)
        status = pass(bench, NULL, kind == COMPUTE ? &times[BACKWARD] : NULL);
    if (status == GYRE_SUCCESS && (kind == COMMUNICATION || kind == SERIAL))
        status = gyre_nn_sync_reduce(bench->sync);
    if (status == GYRE_SUCCESS && kind == SERIAL)
        status = finish(bench);
    times[kind] = (double)(gy_nn_now() - start) / 1e9;
    return status;
}

static gyre_status measure_round(struct bench *bench, size_t round, double times[KINDS])
{
    gyre_status status = GYRE_SUCCESS;
    for (size_t i = 0; i < BACKWARD && status == GYRE_SUCCESS; i++)
        status = run_kind(bench, (int)((round + i) % BACKWARD), times);
    if (status != GYRE_SUCCESS)
        return status;
    status = gyre_all_reduce(bench->comm, times, times, KINDS, GYRE_FLOAT64, GYRE_MAX);
    return status ? gy_nn_fail_comm(status, bench->comm, "comparing the times of the ranks") : status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Quantile q of a column of the table; `column` is scratch. */
static double quantile(const double (*table)[KINDS], size_t rounds, int kind, double q, double *column)
{
    for (size_t i = 0; i < rounds; i++) {
        const double *t = table[i];
        column[i] = kind < KINDS ? t[kind] : (t[SERIAL] - t[OVERLAPPED]) / t[COMMUNICATION];
    }
    qsort(column, rounds, sizeof(*column), compare);
    double at = q * (double)(rounds - 1);
    size_t low = (size_t)at, high = low + 1 < rounds ? low + 1 : low;
    return column[low] + (at - (double)low) * (column[high] - column[low]);
}

static gyre_status measure(struct bench *bench, size_t rounds, struct gyre_nn_overlap *overlap_p)
{
    double(*table)[KINDS] = calloc(rounds, sizeof(*table)), *column = calloc(rounds, sizeof(*column));
    gyre_status status = GYRE_SUCCESS;
    if (!table || !column) {
        status = gy_nn_fail(GYRE_NO_MEMORY, "no memory for %zu rounds", rounds);
        goto free_columns;
    }
    for (size_t i = 0; i < 3 && status == GYRE_SUCCESS; i++) /* warm-up */
        status = measure_round(bench, i, table[0]);
    for (size_t i = 0; i < rounds && status == GYRE_SUCCESS; i++)
        status = measure_round(bench, i, table[i]);
    if (status == GYRE_SUCCESS) {
        const double(*t)[KINDS] = (const double(*)[KINDS])table;
        *overlap_p = (struct gyre_nn_overlap){
            .hidden = quantile(t, rounds, KINDS, 0.5, column),
            .hidden_low = quantile(t, rounds, KINDS, 0.25, column),
            .hidden_high = quantile(t, rounds, KINDS, 0.75, column),
            .compute = quantile(t, rounds, COMPUTE, 0.5, column),
            .backward = quantile(t, rounds, BACKWARD, 0.5, column),
            .communication = quantile(t, rounds, COMMUNICATION, 0.5, column),
            .serial = quantile(t, rounds, SERIAL, 0.5, column),
            .overlapped = quantile(t, rounds, OVERLAPPED, 0.5, column),
            .rounds = rounds,
            .buckets = gyre_nn_sync_bucket_count(bench->sync),
        };
    }
free_columns:
    free(table);
    free(column);
    return status;
}

/* As sync is set, whatever the run's strategy. */
static gyre_status read_settings(struct bench *bench, const struct gyre_nn_train_options *options)
{
    double values[GYRE_NN_MOST_SETTINGS];
    bool of_sync = !options->strategy || options->strategy == &gy_nn_sync;
    gyre_status status = gyre_nn_strategy_parse(&gy_nn_sync, of_sync ? options->settings : NULL, values);
    if (status == GYRE_SUCCESS)
        bench->ahead = gy_nn_sync_goes_ahead(values[GY_NN_SYNC_AHEAD], options->clip_norm, bench->comm);
    return status;
}

/* My shard of the first global batch of the training samples. */
static gyre_status load(struct bench *bench, const gyre_nn_dataset *data, size_t batch)
{
    size_t first;
    bench->global = batch < data->ntrain ? batch : data->ntrain;
    gyre_nn_shard(bench->global, gyre_comm_rank(bench->comm), gyre_comm_size(bench->comm), &first, &bench->rows);
    bench->x = calloc((bench->rows + 1) * data->features, gyre_dtype_size(gyre_nn_dtype(bench->model)));
    bench->labels = calloc((bench->rows + 1) * data->steps, sizeof(*bench->labels));
    if (!bench->x || !bench->labels)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for a batch of %zu samples", bench->rows);
    gyre_nn_dataset_gather(data, data->train + first, bench->rows, gyre_nn_dtype(bench->model), bench->x,
                           bench->labels);
    if (gyre_nn_cost_of(bench->model) == GYRE_NN_RECONSTRUCTION) {
        free(bench->labels);
        bench->labels = NULL;
    }
    return GYRE_SUCCESS;
}

gyre_status gyre_nn_measure_overlap(const gyre_nn_model *model, const gyre_nn_dataset *data, gyre_comm *comm,
                                    const struct gyre_nn_train_options *options, size_t rounds,
                                    struct gyre_nn_overlap *overlap_p)
{
    GY_NN_REQUIRE(model, data, options, overlap_p);
    if (options->size != sizeof(*options))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "options.size is %zu, not %zu: start from gyre_nn_train_defaults()",
                          options->size, sizeof(*options));
    if (options->batch == 0)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "options.batch is 0: it is at least 1");
    if (gy_nn_check_data(model, data) != GYRE_SUCCESS)
        return GYRE_INVALID_ARGUMENT;
    if (rounds == 0)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "at least one round is needed to measure");
    if (!comm || gyre_comm_size(comm) == 1) {
        *overlap_p = (struct gyre_nn_overlap){.hidden = NAN, .hidden_low = NAN, .hidden_high = NAN};
        return GYRE_SUCCESS;
    }
    struct bench bench = {.comm = comm, .rate = options->schedule.rate};
    gyre_status status = read_settings(&bench, options);
    status = status ? status : gyre_nn_clone(model, &bench.model);
    status = status ? status : gyre_nn_optimizer_create(bench.model, &options->optimizer, &bench.optimizer);
    status = status ? status : load(&bench, data, options->batch);
    status = gy_nn_agree_ready(comm, status);
    status = status ? status
                    : gyre_nn_sync_attach(bench.model, bench.optimizer, comm, options->bucket_bytes, &bench.sync);
    status = status ? status : measure(&bench, rounds, overlap_p);
    gyre_nn_sync_detach(bench.sync);
    gyre_nn_optimizer_free(bench.optimizer);
    gyre_nn_free(bench.model);
    free(bench.x);
    free(bench.labels);
    return status;
}

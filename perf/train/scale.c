/* Two ranks against one: gyre-run -n 2 --bind perf-train-scale [OPTIONS of gyre-train]
 *
 * Each turn has six kinds of some steps each, of which the first is not counted. So a change of a machine's speed over
 * seconds affects all of them alike:
 *
 *     one, other    rank 0 alone has the whole batch; rank 1 has it
 *     apart         each rank by itself has half of the batch, at the same time; nothing is exchanged
 *     two           the ranks share the batch: a step of training
 *     apart_wide    each rank by itself has the whole batch
 *     wide          the ranks share two batches
 *
 * Rank 0 prints one JSON object. For each kind: the samples per second of all ranks, by turns (for one and other
 * their mean, as "one"). apart_in_step and apart_wide_in_step: the samples per second of the independent ranks if
 * neither had begun a step before both had ended the one before. reduce: the share of a step that its all_reduce
 * takes. */
#include "train/arguments.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TURN 0.2 /* seconds, about, of a kind */
#define RANKS 2
#define MOST_STEPS 64

enum { ONE, OTHER, APART, TWO, APART_WIDE, WIDE, KINDS };

static const char *const names[KINDS] = {"one", "other", "apart", "two", "apart_wide", "wide"};

/* A model with what trains it: one that ranks share, and one for each. */
struct learner {
    gyre_nn_model *model;
    struct gyre_nn_run run;
};

struct bench {
    struct arguments how;
    gyre_comm *comm;
    int rank;
    gyre_nn_dataset *data;
    struct learner own, shared;
    void *x;
    int32_t *labels;
    uint64_t taken; /* steps, for the choice of samples */
    size_t steps[KINDS];
    double *speeds[KINDS], *in_step[KINDS]; /* by turns */
};

static void must(gyre_status status)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "perf-train-scale: %s\n", gyre_nn_last_error());
    exit(1);
}

static void must_meet(gyre_status status, const gyre_comm *comm)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "perf-train-scale: %s\n", gyre_last_error(comm));
    exit(1);
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void open_learner(struct bench *bench, struct learner *learner, gyre_comm *comm)
{
    const struct gyre_nn_train_options *train = &bench->how.train;
    must(model_make(&bench->how.model, bench->data, train->seed, &learner->model));
    must(gyre_nn_run_open(learner->model, comm, &train->optimizer, train->strategy, train->settings,
                          train->bucket_bytes, train->clip_norm, &learner->run));
    if (learner->run.strategy->compute || learner->run.strategy->piece) {
        fprintf(stderr, "perf-train-scale: strategy %s does not share batches by rows\n", learner->run.strategy->name);
        exit(2);
    }
}

static void close_learner(struct learner *learner)
{
    gyre_nn_run_close(&learner->run);
    gyre_nn_free(learner->model);
}

/* One step of training, as in gyre_nn_train, of `count` samples by this rank and `global` by all ranks that take
 * part. */
static void take_step(struct bench *bench, struct learner *learner, size_t count, size_t global)
{
    const gyre_nn_strategy *strategy = learner->run.strategy;
    gyre_nn_model *model = learner->model;
    size_t room = bench->data->ntrain - count + 1, first = (size_t)(bench->taken * count) % room;
    struct gyre_nn_step step = {.number = bench->taken++,
                                .rate = bench->how.train.schedule.rate,
                                .rows = count * gyre_nn_output_steps(model),
                                .global_rows = global * gyre_nn_output_steps(model)};
    bool own_input = gyre_nn_cost_of(model) == GYRE_NN_RECONSTRUCTION;
    gyre_nn_renew_grads(model);
    if (strategy->before_step)
        must(strategy->before_step(learner->run.self, &step));
    gyre_nn_dataset_gather(bench->data, bench->data->train + first, count, gyre_nn_dtype(model), bench->x,
                           bench->labels);
    gyre_nn_train_mode(model, bench->how.train.seed, step.number, 0);
    must(gyre_nn_forward(model, bench->x, count, NULL));
    must(gyre_nn_evaluate(model, own_input ? NULL : bench->labels, NULL, &step.cost, NULL));
    must(gyre_nn_backward(model, strategy->passed, learner->run.self));
    if (strategy->after_backward)
        must(strategy->after_backward(learner->run.self, 0));
    must(strategy->update(learner->run.self, &step));
}

/* Samples of this rank and of all ranks in a step of this kind. */
static void shares(const struct bench *bench, int kind, size_t *mine_p, size_t *global_p)
{
    size_t batch = bench->how.train.batch, half = batch / RANKS;
    bool wide = kind == APART_WIDE || kind == WIDE;
    *mine_p = kind == ONE || kind == OTHER || wide ? batch : half;
    if ((kind == ONE && bench->rank != 0) || (kind == OTHER && bench->rank != 1))
        *mine_p = 0;
    *global_p = kind == TWO ? batch : kind == WIDE ? RANKS * batch : *mine_p;
}

/* Seconds of each counted step of this rank; 0 where it has none. */
static void take(struct bench *bench, int kind, size_t steps, double *seconds)
{
    struct learner *learner = kind == TWO || kind == WIDE ? &bench->shared : &bench->own;
    size_t mine, global;
    shares(bench, kind, &mine, &global);
    must_meet(gyre_barrier(bench->comm), bench->comm);
    for (size_t i = 0; i <= steps; i++) {
        double start = now();
        if (mine > 0)
            take_step(bench, learner, mine, global);
        if (i > 0)
            seconds[i - 1] = mine > 0 ? now() - start : 0;
    }
}

/* Samples per second of all ranks, and what they would make in step. */
static void count_samples(const struct bench *bench, int kind, const double *seconds, double *speed_p,
                          double *in_step_p)
{
    double all[RANKS * MOST_STEPS], slower = 0;
    size_t steps = bench->steps[kind], batch = bench->how.train.batch;
    must_meet(gyre_all_gather(bench->comm, seconds, all, steps, GYRE_FLOAT64), bench->comm);
    size_t rows = kind == APART || kind == TWO ? batch / RANKS : batch;
    double each = (double)rows, speed = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        double sum = 0;
        for (size_t i = 0; i < steps; i++)
            sum += all[(size_t)rank * steps + i];
        speed += sum > 0 ? each * (double)steps / sum : 0;
    }
    for (size_t i = 0; i < steps; i++)
        slower += fmax(all[i], all[steps + i]);
    *speed_p = speed;
    *in_step_p = RANKS * each * (double)steps / slower;
}

/* As many steps of each kind as fill a turn, the same on all ranks. */
static void choose_steps(struct bench *bench)
{
    for (int kind = 0; kind < KINDS; kind++) {
        double seconds[2] = {0, 0}, slowest;
        take(bench, kind, 2, seconds);
        must_meet(gyre_all_reduce(bench->comm, &seconds[1], &slowest, 1, GYRE_FLOAT64, GYRE_MAX), bench->comm);
        double steps = ceil(TURN / slowest);
        bench->steps[kind] = steps < 2 ? 2 : steps > MOST_STEPS ? MOST_STEPS : (size_t)steps;
    }
}

static void take_turns(struct bench *bench)
{
    double seconds[MOST_STEPS];
    choose_steps(bench);
    for (size_t turn = 0; turn < bench->how.rounds; turn++)
        for (int i = 0; i < KINDS; i++) {
            int kind = (int)((turn + (size_t)i) % KINDS);
            take(bench, kind, bench->steps[kind], seconds);
            count_samples(bench, kind, seconds, &bench->speeds[kind][turn], &bench->in_step[kind][turn]);
        }
}

static void print_list(const char *name, const double *values, size_t count)
{
    printf("\"%s\": [", name);
    for (size_t i = 0; i < count; i++)
        printf("%s%.3f", i ? ", " : "", values[i]);
    printf("], ");
}

/* Collective. */
static void report(struct bench *bench)
{
    struct gyre_nn_overlap overlap;
    size_t turns = bench->how.rounds;
    must(gyre_nn_measure_overlap(bench->shared.model, bench->data, bench->comm, &bench->how.train, turns, &overlap));
    if (bench->rank != 0)
        return;
    for (size_t turn = 0; turn < turns; turn++)
        bench->speeds[ONE][turn] = (bench->speeds[ONE][turn] + bench->speeds[OTHER][turn]) / RANKS;
    printf("{");
    for (int kind = 0; kind < KINDS; kind++)
        if (kind != OTHER)
            print_list(names[kind], bench->speeds[kind], turns);
    print_list("apart_in_step", bench->in_step[APART], turns);
    print_list("apart_wide_in_step", bench->in_step[APART_WIDE], turns);
    printf("\"reduce\": %.6f}\n", overlap.communication / overlap.serial);
}

static void open_bench(struct bench *bench)
{
    size_t batch = bench->how.train.batch;
    bench->rank = gyre_comm_rank(bench->comm);
    must(model_open_data(&bench->how.model, bench->how.data, &bench->data));
    gyre_nn_set_blas_threads(1);
    open_learner(bench, &bench->own, NULL);
    open_learner(bench, &bench->shared, bench->comm);
    bench->x = calloc(batch * bench->data->features, sizeof(double));
    bench->labels = calloc(batch * bench->data->steps, sizeof(*bench->labels));
    bool room = bench->x && bench->labels;
    for (int kind = 0; kind < KINDS; kind++) {
        bench->speeds[kind] = calloc(bench->how.rounds, sizeof(double));
        bench->in_step[kind] = calloc(bench->how.rounds, sizeof(double));
        room = room && bench->speeds[kind] && bench->in_step[kind];
    }
    if (!room || bench->data->ntrain < batch) {
        fprintf(stderr, "perf-train-scale: no memory, or fewer samples than a batch has\n");
        exit(1);
    }
}

static void close_bench(struct bench *bench)
{
    close_learner(&bench->own);
    close_learner(&bench->shared);
    gyre_nn_dataset_free(bench->data);
    free(bench->x);
    free(bench->labels);
    for (int kind = 0; kind < KINDS; kind++) {
        free(bench->speeds[kind]);
        free(bench->in_step[kind]);
    }
}

int main(int argc, char **argv)
{
    static struct bench bench;
    arguments_parse(argc, argv, &bench.how);
    must_meet(gyre_comm_create(NULL, &bench.comm), NULL);
    if (gyre_comm_size(bench.comm) != RANKS || bench.how.train.batch < RANKS || bench.how.rounds == 0) {
        fprintf(stderr, "perf-train-scale: needs 2 ranks, a sample for each and a round\n");
        return 2;
    }
    open_bench(&bench);
    take_turns(&bench);
    report(&bench);
    close_bench(&bench);
    gyre_comm_destroy(bench.comm);
    return 0;
}

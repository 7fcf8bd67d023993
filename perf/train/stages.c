/* Compares a pipeline with the formula of its schedule:
 * gyre-run -n S perf-train-stages WIDTH,WIDTH,... BATCH MICRO STEPS [SCHEDULE]
 *
 * Each rank trains an MLP of these widths on the digits for some steps with strategy pipeline, S stages. In turns with
 * a few steps, tapes of public calls time the layers: forward and backward of a micro-batch, for the modules between
 * each two places at which the model may be cut. They are timed once by rank 0 while the others wait, and once by all
 * ranks at the same time, as in a step. Cores share memory, caches and power, so a layer takes longer beside another
 * one. Turns are needed because a machine's speed changes over seconds.
 * Rank 0 prints one JSON object of medians. `parts`: [end, seconds] of rank 0 alone. `beside`: for each rank the
 * seconds of the same parts beside the others. Then the places that the strategy chose, and the seconds of a step.
 * The reader computes the formula. */
#include <gyre/nn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 64
#define TURNS 10 /* of all three */
#define PASSES 4 /* of a turn, alone and beside */
#define ROUNDS (TURNS * PASSES)

static void must(gyre_status status)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "perf-train-stages: %s\n", gyre_nn_last_error());
    exit(1);
}

static void communicate(const gyre_comm *comm, gyre_status status)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "perf-train-stages: %s\n", gyre_last_error(comm));
    exit(1);
}

static void *need(void *memory)
{
    if (memory)
        return memory;
    fprintf(stderr, "perf-train-stages: out of memory\n");
    exit(1);
}

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static size_t parse_widths(const char *text, size_t *widths)
{
    size_t count = 0;
    for (char *stop; *text && count < MOST; text = *stop ? stop + 1 : stop) {
        widths[count++] = strtoul(text, &stop, 10);
        if (stop == text) {
            fprintf(stderr, "perf-train-stages: '%s' is no list of widths, such as 512,512\n", text);
            exit(2);
        }
    }
    return count;
}

struct part {
    size_t last; /* its modules end before this one */
    gyre_nn_tape *tape;
    double alone[ROUNDS], beside[ROUNDS];
};

struct bench {
    struct gyre_nn_run run;
    gyre_nn_model *model; /* which is timed: the run's stays as it is */
    const gyre_nn_dataset *data;
    size_t batch, micro, steps;
    struct part parts[MOST * 2];
    size_t count;
    float *x, *down;
    int32_t *labels;
    double *seconds; /* of each step */
};

static size_t micro_samples(const struct bench *bench)
{
    return (bench->batch + bench->micro - 1) / bench->micro;
}

/* All ranks go on at about the same time. */
static void meet(const struct bench *bench)
{
    if (bench->run.comm)
        communicate(bench->run.comm, gyre_barrier(bench->run.comm));
}

/* One micro-batch up and down through all parts, as one rank would compute it: with the data and the caches of
 * training. */
static void pass(struct bench *bench, bool beside, size_t round)
{
    const void *up = bench->x, *dx = NULL;
    struct part *parts = bench->parts;
    size_t samples = micro_samples(bench);
    for (size_t i = 0; i < bench->count; i++) {
        double start = now();
        must(gyre_nn_tape_forward(parts[i].tape, up, samples, &up));
        (beside ? parts[i].beside : parts[i].alone)[round] = now() - start;
    }
    for (size_t i = bench->count; i-- > 0;) {
        if (dx)
            memcpy(bench->down, dx, samples * gyre_nn_value_size(bench->model, parts[i].last) * sizeof(*bench->down));
        double start = now();
        if (i + 1 == bench->count)
            must(gyre_nn_tape_evaluate(parts[i].tape, bench->labels, NULL, NULL));
        must(gyre_nn_tape_backward(parts[i].tape, dx ? bench->down : NULL, &dx));
        (beside ? parts[i].beside : parts[i].alone)[round] += now() - start;
    }
}

static void take_steps(struct bench *bench, size_t first, size_t last)
{
    struct gyre_nn_run *run = &bench->run;
    for (size_t s = first; s < last; s++) {
        struct gyre_nn_batch rows = {
            .data = bench->data, .rows = bench->data->train, .samples = bench->batch, .seed = 1};
        struct gyre_nn_step step = {.number = s, .rate = 1e-3, .global_rows = bench->batch};
        gyre_nn_zero_grads(run->model);
        meet(bench);
        double start = now();
        must(run->strategy->compute(run->self, &step, &rows));
        meet(bench);
        bench->seconds[s] = now() - start;
        must(run->strategy->update(run->self, &step));
    }
}

static void take_turns(struct bench *bench)
{
    take_steps(bench, 0, 2); /* not counted: overwritten by the first turn's */
    for (size_t turn = 0; turn < TURNS; turn++) {
        meet(bench);
        for (size_t i = 0; i < PASSES && bench->run.rank == 0; i++)
            pass(bench, false, turn * PASSES + i);
        meet(bench);
        for (size_t i = 0; i < PASSES; i++)
            pass(bench, true, turn * PASSES + i);
        take_steps(bench, turn * bench->steps / TURNS, (turn + 1) * bench->steps / TURNS);
    }
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), ascending);
    return values[count / 2];
}

/* Collective. */
static void report(struct bench *bench)
{
    struct gyre_nn_run *run = &bench->run;
    struct gyre_nn_array arrays[GYRE_NN_MOST_ARRAYS];
    size_t n = 0, count = bench->count, ranks = (size_t)run->ranks;
    double *all = need(calloc(ranks * count, sizeof(*all))), mine[MOST * 2];
    for (size_t i = 0; i < count; i++)
        mine[i] = median(bench->parts[i].beside, ROUNDS);
    memcpy(all, mine, count * sizeof(*all));
    if (run->comm)
        communicate(run->comm, gyre_all_gather(run->comm, mine, all, count, GYRE_FLOAT64));
    must(run->strategy->arrays(run->self, arrays, &n));
    if (run->rank == 0) {
        printf("{\"parts\": [");
        for (size_t i = 0; i < count; i++)
            printf("%s[%zu, %.9f]", i ? ", " : "", bench->parts[i].last, median(bench->parts[i].alone, ROUNDS));
        printf("], \"beside\": [");
        for (size_t rank = 0; rank < ranks; rank++) {
            for (size_t i = 0; i < count; i++)
                printf("%s%.9f", i ? ", " : rank ? ", [" : "[", all[rank * count + i]);
            printf("]");
        }
        printf("], \"places\": [");
        for (size_t i = 0; i < arrays[1].count; i++)
            printf("%s%.0f", i ? ", " : "", ((const double *)arrays[1].data)[i]);
        printf("], \"step\": %.9f}\n", median(bench->seconds, bench->steps));
    }
    free(all);
}

static void make_parts(struct bench *bench)
{
    size_t n = gyre_nn_module_count(bench->model), largest = bench->data->features, first = 0;
    size_t samples = micro_samples(bench);
    for (size_t v = 0; v <= n; v++)
        largest = gyre_nn_value_size(bench->model, v) > largest ? gyre_nn_value_size(bench->model, v) : largest;
    bench->x = need(calloc(samples * largest, sizeof(*bench->x)));
    bench->down = need(calloc(samples * largest, sizeof(*bench->down)));
    bench->labels = need(calloc(samples, sizeof(*bench->labels)));
    bench->seconds = need(calloc(bench->steps + 2, sizeof(*bench->seconds)));
    gyre_nn_dataset_gather(bench->data, bench->data->train, samples, GYRE_FLOAT32, bench->x, bench->labels);
    for (size_t i = 1; i <= n; i++)
        if (gyre_nn_cut_values(bench->model, i) > 0) {
            must(gyre_nn_tape_create(bench->model, first, i, &bench->parts[bench->count].tape));
            bench->parts[bench->count++].last = first = i;
        }
}

static void free_bench(struct bench *bench)
{
    for (size_t i = 0; i < bench->count; i++)
        gyre_nn_tape_free(bench->parts[i].tape);
    gyre_nn_free(bench->model);
    free(bench->x);
    free(bench->down);
    free(bench->labels);
    free(bench->seconds);
}

int main(int argc, char **argv)
{
    size_t widths[MOST], count = argc >= 5 ? parse_widths(argv[1], widths) : 0;
    static struct bench bench;
    bench.batch = argc >= 5 ? strtoul(argv[2], NULL, 10) : 0;
    bench.micro = argc >= 5 ? strtoul(argv[3], NULL, 10) : 0;
    bench.steps = argc >= 5 ? strtoul(argv[4], NULL, 10) : 0;
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    gyre_comm *comm = NULL;
    gyre_nn_model *model = NULL;
    gyre_nn_dataset *data = NULL;
    char settings[96];
    if (count == 0 || argc > 6 || bench.batch == 0 || bench.micro == 0 || bench.steps == 0) {
        fprintf(stderr, "usage: gyre-run -n S perf-train-stages WIDTH,... BATCH MICRO STEPS [1f1b|gpipe]\n");
        return 2;
    }
    communicate(NULL, gyre_comm_create(NULL, &comm));
    must(gyre_nn_dataset_open("digits", &data));
    must(gyre_nn_mlp(64, widths, count, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model));
    must(gyre_nn_clone(model, &bench.model));
    gyre_nn_set_blas_threads(1);
    bench.data = data;
    bench.batch = bench.batch < data->ntrain ? bench.batch : data->ntrain;
    snprintf(settings, sizeof(settings), "micro=%zu,samples=%zu,schedule=%s", bench.micro, micro_samples(&bench),
             argc == 6 ? argv[5] : "1f1b");
    must(gyre_nn_run_open(model, comm, &config, gyre_nn_strategy_find("pipeline"), settings, 0, 0, &bench.run));
    make_parts(&bench);
    take_turns(&bench);
    report(&bench);
    gyre_nn_run_close(&bench.run);
    free_bench(&bench);
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
    gyre_comm_destroy(comm);
    return 0;
}

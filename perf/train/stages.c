/* A pipeline against its schedule's formula: gyre-run -n S perf-train-stages WIDTH,WIDTH,... BATCH MICRO STEPS
 *
 * Each rank trains an MLP of these widths on the digits for some steps with strategy pipeline, 1F1B, S stages. Before
 * that rank 0 measures, by tapes of public calls, forward and backward of a micro-batch for the modules between each two
 * places at which the model may be cut, the median of some passes through all of them. Rank 0 prints one JSON object:
 * seconds of these parts, the places that the strategy chose, and the median seconds of a step. What the formula gives is the reader's to say. */
#include <gyre/nn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MOST 64
#define ROUNDS 31
#define WARM 5

static void must(gyre_status status)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "perf-train-stages: %s\n", gyre_nn_last_error());
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
        if (stop == text)
            exit(2);
    }
    return count;
}

struct part {
    size_t last; /* its modules end before this one */
    gyre_nn_tape *tape;
    double seconds[ROUNDS];
};

/* One micro-batch up and down through all parts, as one rank would compute it: with the data, and the caches, of training. */
static void pass(const gyre_nn_model *model, struct part *parts, size_t count, const void *x, const int32_t *labels,
                 size_t samples, float *down, int round)
{
    const void *up = x, *dx = NULL;
    for (size_t i = 0; i < count; i++) {
        double start = now();
        must(gyre_nn_tape_forward(parts[i].tape, up, samples, &up));
        parts[i].seconds[round] = now() - start;
    }
    for (size_t i = count; i-- > 0;) {
        if (dx)
            memcpy(down, dx, samples * gyre_nn_value_size(model, parts[i].last) * sizeof(*down));
        double start = now();
        if (i + 1 == count)
            must(gyre_nn_tape_evaluate(parts[i].tape, labels, NULL, NULL));
        must(gyre_nn_tape_backward(parts[i].tape, dx ? down : NULL, &dx));
        parts[i].seconds[round] += now() - start;
    }
}

static void print_parts(gyre_nn_model *model, const gyre_nn_dataset *data, size_t samples)
{
    size_t n = gyre_nn_module_count(model), largest = data->features, count = 0, first = 0;
    struct part *parts = calloc(n, sizeof(*parts));
    for (size_t v = 0; v <= n; v++)
        largest = gyre_nn_value_size(model, v) > largest ? gyre_nn_value_size(model, v) : largest;
    float *x = calloc(samples * largest, sizeof(*x)), *down = calloc(samples * largest, sizeof(*down));
    int32_t *labels = calloc(samples, sizeof(*labels));
    if (!parts || !x || !down || !labels)
        exit(1);
    gyre_nn_dataset_gather(data, data->train, samples, GYRE_FLOAT32, x, labels);
    for (size_t i = 1; i <= n; i++)
        if (gyre_nn_cut_values(model, i) > 0) {
            must(gyre_nn_tape_create(model, first, i, &parts[count].tape));
            parts[count++].last = first = i;
        }
    for (int round = -WARM; round < ROUNDS; round++)
        pass(model, parts, count, x, labels, samples, down, round < 0 ? 0 : round);
    printf("\"parts\": [");
    for (size_t i = 0; i < count; i++) {
        qsort(parts[i].seconds, ROUNDS, sizeof(double), ascending);
        printf("%s[%zu, %.9f]", i ? ", " : "", parts[i].last, parts[i].seconds[ROUNDS / 2]);
        gyre_nn_tape_free(parts[i].tape);
    }
    printf("], ");
    free(parts);
    free(x);
    free(down);
    free(labels);
}

static void print_steps(struct gyre_nn_run *run, const gyre_nn_dataset *data, size_t batch, size_t steps)
{
    struct gyre_nn_array arrays[GYRE_NN_MOST_ARRAYS];
    double *seconds = calloc(steps, sizeof(*seconds));
    size_t n = 0;
    for (size_t s = 0; s < steps && seconds; s++) {
        struct gyre_nn_batch rows = {.data = data, .rows = data->train, .samples = batch, .seed = 1};
        struct gyre_nn_step step = {.number = s, .rate = 1e-3, .global_rows = batch};
        gyre_nn_zero_grads(run->model);
        if (run->comm && gyre_barrier(run->comm) != GYRE_SUCCESS)
            exit(1);
        double start = now();
        must(run->strategy->compute(run->self, &step, &rows));
        if (run->comm && gyre_barrier(run->comm) != GYRE_SUCCESS)
            exit(1);
        seconds[s] = now() - start;
        must(run->strategy->update(run->self, &step));
    }
    must(run->strategy->arrays(run->self, arrays, &n));
    if (run->rank == 0 && seconds) {
        qsort(seconds, steps, sizeof(*seconds), ascending);
        printf("\"places\": [");
        for (size_t i = 0; i < arrays[1].count; i++)
            printf("%s%.0f", i ? ", " : "", ((const double *)arrays[1].data)[i]);
        printf("], \"step\": %.9f}\n", seconds[steps / 2]);
    }
    free(seconds);
}

int main(int argc, char **argv)
{
    size_t widths[MOST], count = argc == 5 ? parse_widths(argv[1], widths) : 0;
    size_t batch = argc == 5 ? strtoul(argv[2], NULL, 10) : 0, micro = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
    size_t steps = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    gyre_comm *comm = NULL;
    gyre_nn_model *model = NULL;
    gyre_nn_dataset *data = NULL;
    struct gyre_nn_run run;
    char settings[64];
    if (count == 0 || batch == 0 || micro == 0 || steps == 0 || gyre_comm_create(NULL, &comm) != GYRE_SUCCESS) {
        fprintf(stderr, "usage: gyre-run -n S perf-train-stages WIDTH,... BATCH MICRO STEPS\n");
        return 2;
    }
    must(gyre_nn_dataset_open("digits", &data));
    must(gyre_nn_mlp(64, widths, count, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model));
    gyre_nn_set_blas_threads(1);
    if (gyre_comm_rank(comm) == 0) {
        printf("{");
        print_parts(model, data, (batch + micro - 1) / micro);
    }
    snprintf(settings, sizeof(settings), "micro=%zu,samples=%zu", micro, (batch + micro - 1) / micro);
    must(gyre_nn_run_open(model, comm, &config, gyre_nn_strategy_find("pipeline"), settings, 0, 0, &run));
    print_steps(&run, data, batch < data->ntrain ? batch : data->ntrain, steps);
    gyre_nn_run_close(&run);
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
    gyre_comm_destroy(comm);
    return 0;
}

/* Times of a model's parts, on inputs of zeros: matrix products take as long with them as with anything else. */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "strategies/partition.h"

#define ROUNDS 5

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static gyre_status once(const gyre_nn_model *model, gyre_nn_tape *tape, size_t last, size_t samples, const void *zeros)
{
    bool top = last == gyre_nn_module_count(model), itself = gyre_nn_cost_of(model) == GYRE_NN_RECONSTRUCTION;
    gyre_status status = gyre_nn_tape_forward(tape, NULL, samples, NULL);
    if (top && status == GYRE_SUCCESS)
        status = gyre_nn_tape_evaluate(tape, itself ? NULL : zeros, itself ? zeros : NULL, NULL);
    return status ? status : gyre_nn_tape_backward(tape, top ? NULL : zeros, NULL);
}

static gyre_status measure(gyre_nn_model *model, size_t first, size_t last, size_t samples, const void *zeros,
                           double *seconds_p)
{
    gyre_nn_tape *tape = NULL;
    double least = 0;
    gyre_status status = gyre_nn_tape_create(model, first, last, &tape);
    for (size_t v = 0; v <= first && status == GYRE_SUCCESS; v++)
        gyre_nn_tape_set_input(tape, v, zeros);
    for (int round = 0; round <= ROUNDS && status == GYRE_SUCCESS; round++) { /* the first one warms */
        double start = now();
        status = once(model, tape, last, samples, zeros);
        double took = now() - start;
        least = round <= 1 || took < least ? took : least;
    }
    gyre_nn_tape_free(tape);
    *seconds_p = least;
    return status;
}

gyre_status gy_nn_measure(gyre_nn_model *model, size_t samples, double *times)
{
    size_t n = gyre_nn_module_count(model), largest = gyre_nn_output_steps(model), first = 0;
    for (size_t v = 0; v <= n; v++)
        largest = gyre_nn_value_size(model, v) > largest ? gyre_nn_value_size(model, v) : largest;
    void *zeros = samples < SIZE_MAX / 16 / largest ? calloc(samples * largest, sizeof(double)) : NULL;
    gyre_status status = zeros ? GYRE_SUCCESS : gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory to measure layers");
    times[0] = 0;
    for (size_t i = 1; i <= n && status == GYRE_SUCCESS; i++) {
        double seconds = 0;
        times[i] = times[first];
        if (gyre_nn_cut_values(model, i) == 0)
            continue;
        status = measure(model, first, i, samples, zeros, &seconds);
        times[i] = times[first] + seconds;
        first = i;
    }
    gyre_nn_zero_grads(model);
    free(zeros);
    return status;
}

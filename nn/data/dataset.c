/* A data set in memory: rows of floats, labels, and the lists of training and test samples. */
#include "data/dataset.h"

#include "base/error.h"
#include "base/random.h"
#include "base/require.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPLIT_SEED UINT64_C(0x67797265) /* "gyre": the split never changes */

gyre_status gy_nn_dataset_alloc(size_t samples, size_t features, size_t steps, gyre_nn_dataset **data_p)
{
    size_t values, labels;
    gyre_nn_dataset *data = calloc(1, sizeof(*data));
    bool ok = data && samples > 0 && samples <= UINT32_MAX && features > 0;
    if (ok && !__builtin_mul_overflow(samples, features, &values) && !__builtin_mul_overflow(samples, steps, &labels)) {
        data->x = calloc(values, sizeof(*data->x));
        data->labels = calloc(labels, sizeof(*data->labels));
        data->train = calloc(samples, sizeof(*data->train));
        data->test = calloc(samples, sizeof(*data->test));
        data->samples = samples;
        data->features = features;
        data->steps = steps;
        if (data->x && data->labels && data->train && data->test) {
            *data_p = data;
            return GYRE_SUCCESS;
        }
    }
    gyre_nn_dataset_free(data);
    return gy_nn_fail(GYRE_NO_MEMORY, "no memory for %zu samples of %zu features", samples, features);
}

void gyre_nn_dataset_free(gyre_nn_dataset *data)
{
    if (!data)
        return;
    free(data->x);
    free(data->labels);
    free(data->alphabet);
    for (size_t i = 0; data->names && data->names[i]; i++)
        free(data->names[i]);
    free(data->names);
    free(data->train);
    free(data->test);
    free(data);
}

gyre_status gy_nn_dataset_name(gyre_nn_dataset *data, char *const *names, size_t count)
{
    data->names = calloc(count + 1, sizeof(*data->names)); /* NULL at the end */
    bool ok = data->names != NULL;
    for (size_t i = 0; ok && i < count; i++)
        ok = (data->names[i] = strdup(names[i])) != NULL;
    return ok ? GYRE_SUCCESS : gy_nn_fail(GYRE_NO_MEMORY, "no memory for the names of %zu classes", count);
}

static void count_classes(gyre_nn_dataset *data)
{
    int32_t last = 0;
    for (size_t i = 0; i < data->samples * data->steps; i++)
        last = data->labels[i] > last ? data->labels[i] : last;
    data->classes = (size_t)last + 1;
}

static int compare_samples(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

gyre_status gy_nn_dataset_split(gyre_nn_dataset *data, const char *name)
{
    count_classes(data);
    uint32_t *members = calloc(data->samples, sizeof(*members));
    if (!members)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory to split %zu samples", data->samples);
    for (size_t c = 0; c < data->classes; c++) {
        size_t count = 0;
        for (size_t i = 0; i < data->samples; i++)
            if ((size_t)data->labels[i] == c)
                members[count++] = (uint32_t)i;
        uint64_t state = SPLIT_SEED + c;
        for (size_t i = count; i > 1; i--) {
            size_t j = (size_t)gy_nn_random_below(&state, i);
            uint32_t held = members[i - 1];
            members[i - 1] = members[j];
            members[j] = held;
        }
        size_t ntest = (count * 2 + 5) / 10;
        for (size_t i = 0; i < count; i++)
            if (i < ntest)
                data->test[data->ntest++] = members[i];
            else
                data->train[data->ntrain++] = members[i];
    }
    free(members);
    qsort(data->train, data->ntrain, sizeof(*data->train), compare_samples);
    qsort(data->test, data->ntest, sizeof(*data->test), compare_samples);
    if (data->ntest == 0 || data->ntrain == 0)
        return gy_nn_fail(
            GYRE_INVALID_ARGUMENT,
            "%s is too small to split: %zu samples in %zu classes; a fifth of each class is for testing, so "
            "one of them at least needs 3",
            name, data->samples, data->classes);
    return GYRE_SUCCESS;
}

gyre_status gy_nn_dataset_split_at(gyre_nn_dataset *data, size_t ntrain)
{
    count_classes(data);
    for (size_t i = 0; i < data->samples; i++)
        if (i < ntrain)
            data->train[data->ntrain++] = (uint32_t)i;
        else
            data->test[data->ntest++] = (uint32_t)i;
    return GYRE_SUCCESS;
}

void gy_nn_dataset_standardize(gyre_nn_dataset *data)
{
    for (size_t f = 0; f < data->features; f++) {
        double sum = 0, squares = 0, n = (double)data->ntrain;
        for (size_t i = 0; i < data->ntrain; i++)
            sum += (double)data->x[(size_t)data->train[i] * data->features + f];
        double mean = sum / n;
        for (size_t i = 0; i < data->ntrain; i++) {
            double off = (double)data->x[(size_t)data->train[i] * data->features + f] - mean;
            squares += off * off;
        }
        double deviation = sqrt(squares / n);
        for (size_t i = 0; i < data->samples; i++) {
            float *x = &data->x[i * data->features + f];
            *x = deviation > 0 ? (float)(((double)*x - mean) / deviation) : 0;
        }
    }
}

gyre_status gy_nn_dataset_finish(gyre_nn_dataset *data, const char *name, gyre_nn_dataset **data_p)
{
    gyre_status status = gy_nn_dataset_split(data, name);
    if (status != GYRE_SUCCESS) {
        gyre_nn_dataset_free(data);
        return status;
    }
    gy_nn_dataset_standardize(data);
    *data_p = data;
    return GYRE_SUCCESS;
}

void gyre_nn_dataset_gather(const gyre_nn_dataset *data, const uint32_t *rows, size_t count, gyre_dtype dtype, void *x,
                            int32_t *labels)
{
    if (count == 0)
        return;
    GY_NN_REQUIRE_VOID(data, rows, x, labels);
    if (dtype != GYRE_FLOAT32 && dtype != GYRE_FLOAT64) {
        (void)gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_dataset_gather: the type %d is neither float32 nor float64",
                         (int)dtype);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (rows[i] >= data->samples) {
            (void)gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_dataset_gather: there is no sample %u of %zu",
                             (unsigned)rows[i], data->samples);
            return;
        }
    for (size_t i = 0; i < count; i++) {
        const float *from = data->x + (size_t)rows[i] * data->features;
        memcpy(labels + i * data->steps, data->labels + rows[i] * data->steps, data->steps * sizeof(*labels));
        if (dtype == GYRE_FLOAT32) {
            memcpy((float *)x + i * data->features, from, data->features * sizeof(float));
            continue;
        }
        double *to = (double *)x + i * data->features;
        for (size_t f = 0; f < data->features; f++)
            to[f] = (double)from[f];
    }
}

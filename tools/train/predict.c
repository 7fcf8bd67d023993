/* One sample at a time: what is written here is read by people, or by other programs, and not timed. */
#include "train/predict.h"

#include "base/aside.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sample {
    void *x;
    int32_t *labels;
    double *outputs; /* probabilities; of a reconstruction, values */
    size_t rows, cols;
    double error; /* the model's cost per row */
};

static double value_at(const gyre_nn_model *model, const void *array, size_t index)
{
    return gyre_nn_dtype(model) == GYRE_FLOAT64 ? ((const double *)array)[index]
                                                : (double)((const float *)array)[index];
}

static bool reconstructs(const gyre_nn_model *model)
{
    return gyre_nn_cost_of(model) == GYRE_NN_RECONSTRUCTION;
}

static void softmax(double *row, size_t cols)
{
    double top = row[0], sum = 0;
    for (size_t c = 1; c < cols; c++)
        top = fmax(top, row[c]);
    for (size_t c = 0; c < cols; c++)
        sum += row[c] = exp(row[c] - top);
    for (size_t c = 0; c < cols; c++)
        row[c] /= sum;
}

static void sample_free(struct sample *sample)
{
    free(sample->x);
    free(sample->labels);
    free(sample->outputs);
}

static bool sample_make(const gyre_nn_model *model, const gyre_nn_dataset *data, struct sample *sample)
{
    sample->rows = gyre_nn_output_steps(model);
    sample->cols = gyre_nn_outputs(model);
    sample->x = calloc(data->features, gyre_dtype_size(gyre_nn_dtype(model)));
    sample->labels = calloc(data->steps, sizeof(*sample->labels));
    sample->outputs = calloc(sample->rows * sample->cols, sizeof(*sample->outputs));
    return sample->x && sample->labels && sample->outputs;
}

static gyre_status answer(gyre_nn_model *model, const gyre_nn_dataset *data, uint32_t number, struct sample *sample)
{
    const void *outputs;
    gyre_nn_dataset_gather(data, &number, 1, gyre_nn_dtype(model), sample->x, sample->labels);
    gyre_status status = gyre_nn_forward(model, sample->x, 1, &outputs);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_evaluate(model, reconstructs(model) ? NULL : sample->labels, NULL, &sample->error, NULL);
    for (size_t i = 0; i < sample->rows * sample->cols && status == GYRE_SUCCESS; i++)
        sample->outputs[i] = value_at(model, outputs, i);
    for (size_t r = 0; r < sample->rows && status == GYRE_SUCCESS && !reconstructs(model); r++)
        softmax(sample->outputs + r * sample->cols, sample->cols);
    return status;
}

static size_t largest(const double *row, size_t cols)
{
    size_t best = 0;
    for (size_t c = 1; c < cols; c++)
        best = row[c] > row[best] ? c : best;
    return best;
}

static void write_sample(FILE *file, const gyre_nn_model *model, uint32_t number, const struct sample *sample)
{
    if (reconstructs(model)) {
        fprintf(file, "%u,%.9g\n", number, sample->error);
        return;
    }
    for (size_t r = 0; r < sample->rows; r++) {
        const double *row = sample->outputs + r * sample->cols;
        size_t best = largest(row, sample->cols);
        fprintf(file, "%u,%zu,%d,%zu,%.6f\n", number, r, (int)sample->labels[r], best, row[best]);
    }
}

const char *answers_predict(gyre_nn_model *model, const gyre_nn_dataset *data, const char *path)
{
    static char text[512];
    struct sample sample = {0};
    gyre_status status = GYRE_SUCCESS;
    struct gy_aside aside;
    bool opened = gy_aside_open(&aside, path), ok = opened && sample_make(model, data, &sample);
    FILE *file = aside.stream;
    gyre_nn_test_mode(model);
    if (ok)
        fprintf(file, reconstructs(model) ? "sample,error\n" : "sample,row,label,answer,probability\n");
    for (size_t i = 0; i < data->ntest && ok && status == GYRE_SUCCESS; i++) {
        status = answer(model, data, data->test[i], &sample);
        if (status == GYRE_SUCCESS)
            write_sample(file, model, data->test[i], &sample);
    }
    sample_free(&sample);
    bool whole = ok && status == GYRE_SUCCESS;
    if (opened && !gy_aside_close(&aside, whole))
        ok = false;
    snprintf(text, sizeof(text), "cannot write %s: %s", path, strerror(errno));
    return status ? gyre_nn_last_error() : ok ? NULL : text;
}

static void print_weights(const gyre_nn_dataset *data, uint32_t number, double *weights, size_t count)
{
    printf("  rests on ");
    for (size_t shown = 0; shown < 4 && shown < count; shown++) {
        size_t best = 0;
        for (size_t t = 1; t < count; t++)
            if (weights[t] > weights[best])
                best = t;
        if (best == 0)
            printf("%sthe profile %.0f %%", shown ? ", " : "", 100 * weights[0]);
        else
            printf("%sitem %.0f at place %zu %.0f %%", shown ? ", " : "",
                   (double)data->x[(size_t)number * data->features + best - 1], best, 100 * weights[best]);
        weights[best] = -1;
    }
    printf("\n");
}

const char *answers_explain(gyre_nn_model *model, const gyre_nn_dataset *data, size_t count)
{
    struct sample sample = {0};
    double weights[4097];
    size_t n = 0;
    gyre_status status = sample_make(model, data, &sample) ? GYRE_SUCCESS : GYRE_NO_MEMORY;
    gyre_nn_test_mode(model);
    for (size_t i = 0; i < count && i < data->ntest && status == GYRE_SUCCESS; i++) {
        status = answer(model, data, data->test[i], &sample);
        if (status == GYRE_SUCCESS)
            status = gyre_nn_attention_weights(model, 0, 0, weights, sizeof(weights) / sizeof(weights[0]), &n);
        if (status != GYRE_SUCCESS)
            break;
        printf("sample %u recommends", data->test[i]);
        for (int k = 0; k < 3; k++) {
            size_t best = largest(sample.outputs, sample.cols);
            printf("%s item %zu (%.0f %%)", k ? "," : "", best, 100 * sample.outputs[best]);
            sample.outputs[best] = -1;
        }
        printf("; next was %d\n", (int)sample.labels[0]);
        print_weights(data, data->test[i], weights, n);
    }
    sample_free(&sample);
    return status == GYRE_NO_MEMORY ? "no memory to explain" : status ? gyre_nn_last_error() : NULL;
}

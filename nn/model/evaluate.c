/* Evaluation: the mean cost and the share of right answers, on samples that the ranks divide. */
#include "model/evaluate.h"

#include "base/error.h"
#include "base/require.h"

#include <math.h>
#include <stdlib.h>

bool gy_nn_labelled(const gyre_nn_model *model)
{
    return gyre_nn_cost_of(model) != GYRE_NN_RECONSTRUCTION;
}

/* A program may fill a data set itself. */
static gyre_status check_lists(const gyre_nn_dataset *data)
{
    if (!data->x || !data->labels || data->samples == 0 || data->features == 0 || data->steps == 0 ||
        (data->ntrain > 0 && !data->train) || (data->ntest > 0 && !data->test))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "the data set lacks samples, features, labels or lists of samples");
    return GYRE_SUCCESS;
}

gyre_status gy_nn_check_data(const gyre_nn_model *model, const gyre_nn_dataset *data)
{
    if (check_lists(data) != GYRE_SUCCESS)
        return GYRE_INVALID_ARGUMENT;
    if (gyre_nn_inputs(model) != data->features || (gy_nn_labelled(model) && gyre_nn_outputs(model) < data->classes))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                          "the model maps %zu inputs to %zu outputs, the data have %zu features and %zu classes",
                          gyre_nn_inputs(model), gyre_nn_outputs(model), data->features, data->classes);
    if (gy_nn_labelled(model) && gyre_nn_output_steps(model) != data->steps)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "the model gives %zu rows for a sample, the data have %zu labels",
                          gyre_nn_output_steps(model), data->steps);
    return GYRE_SUCCESS;
}

#define TEST_SAMPLES ((size_t)128)

/* Cost and right answers of the samples numbered in `rows`, on this rank. */
static gyre_status test_part(gyre_nn_model *model, const gyre_nn_dataset *data, const uint32_t *rows, size_t count,
                             double sums[2])
{
    size_t most = count < TEST_SAMPLES ? count : TEST_SAMPLES;
    gyre_status status = GYRE_SUCCESS;
    if (count == 0)
        return status;
    void *x = calloc(most * data->features, gyre_dtype_size(gyre_nn_dtype(model)));
    int32_t *labels = calloc(most * data->steps, sizeof(*labels));
    bool answers = gy_nn_labelled(model);
    if (!x || !labels)
        status = gy_nn_fail(GYRE_NO_MEMORY, "no memory to test %zu samples", most);
    gyre_nn_test_mode(model);
    for (size_t at = 0; at < count && status == GYRE_SUCCESS; at += TEST_SAMPLES) {
        size_t many = count - at < TEST_SAMPLES ? count - at : TEST_SAMPLES, correct = 0;
        double cost = 0;
        gyre_nn_dataset_gather(data, rows + at, many, gyre_nn_dtype(model), x, labels);
        status = gyre_nn_forward(model, x, many, NULL);
        status = status ? status
                        : gyre_nn_evaluate(model, answers ? labels : NULL, NULL, &cost, answers ? &correct : NULL);
        sums[0] += cost;
        sums[1] += (double)correct;
    }
    free(x);
    free(labels);
    return status;
}

/* All of them, on every rank alike: so none waits for another that has turned back. */
static gyre_status check_rows(const gyre_nn_dataset *data, const uint32_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i] >= data->samples)
            return gy_nn_fail(GYRE_INVALID_ARGUMENT, "there is no sample %u to test: there are %zu", rows[i],
                              data->samples);
    return GYRE_SUCCESS;
}

gyre_status gyre_nn_test(gyre_nn_model *model, const gyre_nn_dataset *data, const uint32_t *rows, size_t count,
                         gyre_comm *comm, double *loss_p, double *accuracy_p)
{
    GY_NN_REQUIRE(model, data, loss_p, accuracy_p);
    if (count > 0)
        GY_NN_REQUIRE(rows);
    int rank = comm ? gyre_comm_rank(comm) : 0, ranks = comm ? gyre_comm_size(comm) : 1;
    size_t first, mine, answers = count * gyre_nn_output_steps(model);
    double sums[2] = {0, 0}; /* cost, right answers */
    gyre_status status = gy_nn_check_data(model, data);
    status = status ? status : check_rows(data, rows, count);
    if (status != GYRE_SUCCESS)
        return status;
    gyre_nn_shard(count, rank, ranks, &first, &mine);
    status = test_part(model, data, rows + first, mine, sums);
    if (status == GYRE_SUCCESS && ranks > 1) {
        status = gyre_all_reduce(comm, sums, sums, 2, GYRE_FLOAT64, GYRE_SUM);
        if (status != GYRE_SUCCESS)
            gy_nn_fail_comm(status, comm, "summing the test results");
    }
    if (status != GYRE_SUCCESS)
        return status;
    *loss_p = count ? sums[0] / (double)answers : 0;
    *accuracy_p = !gy_nn_labelled(model) ? NAN : count ? sums[1] / (double)answers : 0;
    return GYRE_SUCCESS;
}

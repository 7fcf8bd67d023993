/* mean squared error: the cost of a row is the mean over its outputs of (y − target)²; its gradient is 2·(y − target) /
 * outputs. Without targets, labels are one-hot targets. */
#include "model/modules/module.h"

static double evaluate(const struct gyre_nn_backend *backend, size_t rows, size_t outputs, const void *y,
                       const int32_t *labels, const void *targets, void *dy)
{
    return backend->squared_error(rows, outputs, y, labels, targets, dy);
}

const struct gy_nn_cost_ops gy_nn_mean_squared_error = {
    .name = "mean squared error",
    .kind = GYRE_NN_MEAN_SQUARED_ERROR,
    .evaluate = evaluate,
};

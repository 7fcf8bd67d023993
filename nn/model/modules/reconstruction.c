/* reconstruction: the mean squared error of the output against the model's own input, the cost of an autoencoder. */
#include "model/modules/module.h"

static double evaluate(const struct gyre_nn_backend *backend, size_t rows, size_t outputs, const void *y,
                       const int32_t *labels, const void *targets, void *dy)
{
    (void)labels;
    return backend->squared_error(rows, outputs, y, NULL, targets, dy);
}

const struct gy_nn_cost_ops gy_nn_reconstruction = {
    .name = "reconstruction",
    .kind = GYRE_NN_RECONSTRUCTION,
    .of_input = true,
    .evaluate = evaluate,
};

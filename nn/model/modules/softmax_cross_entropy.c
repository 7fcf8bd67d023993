/* softmax cross entropy: the cost of a row is −log softmax(y)[label]; its gradient is softmax(y) − onehot(label). */
#include "model/modules/module.h"

static double evaluate(const struct gyre_nn_backend *backend, size_t rows, size_t outputs, const void *y,
                       const int32_t *labels, const void *targets, void *dy)
{
    (void)targets;
    return backend->cross_entropy(rows, outputs, y, labels, dy);
}

const struct gy_nn_cost_ops gy_nn_softmax_cross_entropy = {
    .name = "softmax cross entropy",
    .kind = GYRE_NN_CROSS_ENTROPY,
    .needs_labels = true,
    .evaluate = evaluate,
};

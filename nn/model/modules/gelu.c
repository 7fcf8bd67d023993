/* gelu: y = x·Φ(x), with Φ the distribution function of the standard normal (Hendrycks and Gimpel, 2016), by erf and
 * not by the approximation with tanh. Backward: dx = dy·(Φ(x) + x·φ(x)). */
#include "model/modules/module.h"

static void forward(const struct gy_nn_call *call)
{
    call->backend->gelu(gy_nn_size(call), call->x[0], call->y);
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->gelu_backward(gy_nn_size(call), call->x[0], call->dy, call->dx[0]);
}

const struct gy_nn_module_ops gy_nn_gelu = {
    .name = "gelu",
    .plan = gy_nn_plan_same,
    .forward = forward,
    .backward_input = backward_input,
};

/* relu: y = max(x, 0), element by element. Backward: dx = dy where y > 0, else 0. */
#include "model/modules/module.h"

static void forward(const struct gy_nn_call *call)
{
    call->backend->relu(gy_nn_size(call), call->x[0], call->y);
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->relu_backward(gy_nn_size(call), call->y, call->dy, call->dx[0]);
}

const struct gy_nn_module_ops gy_nn_relu = {
    .name = "relu",
    .plan = gy_nn_plan_same,
    .forward = forward,
    .backward_input = backward_input,
};

/* sigmoid: y = 1 / (1 + exp −x), element by element. Backward: dx = dy·y·(1 − y). */
#include "model/modules/module.h"

static void forward(const struct gy_nn_call *call)
{
    call->backend->sigmoid(gy_nn_size(call), call->x[0], call->y);
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->sigmoid_backward(gy_nn_size(call), call->y, call->dy, call->dx[0]);
}

const struct gy_nn_module_ops gy_nn_sigmoid = {
    .name = "sigmoid",
    .plan = gy_nn_plan_same,
    .forward = forward,
    .backward_input = backward_input,
};

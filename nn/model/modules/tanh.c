/* tanh: y = tanh x, element by element. Backward: dx = dy·(1 − y²). */
#include "model/modules/module.h"

static void forward(const struct gy_nn_call *call)
{
    call->backend->tanh(gy_nn_size(call), call->x[0], call->y);
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->tanh_backward(gy_nn_size(call), call->y, call->dy, call->dx[0]);
}

const struct gy_nn_module_ops gy_nn_tanh = {
    .name = "tanh",
    .plan = gy_nn_plan_same,
    .forward = forward,
    .backward_input = backward_input,
};

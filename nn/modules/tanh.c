/* tanh: y = tanh x, element by element. Backward: dx = dy·(1 − y²). */
#include "modules/module.h"

static void forward(const struct gy_nn_call *call)
{
    call->backend->tanh(call->rows * call->outputs, call->x, call->y);
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->tanh_backward(call->rows * call->outputs, call->y, call->dy, call->dx);
}

const struct gy_nn_module_ops gy_nn_tanh = {
    .name = "tanh",
    .forward = forward,
    .backward_input = backward_input,
};

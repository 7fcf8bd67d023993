/* sigmoid: y = 1 / (1 + exp −x), element by element. Backward: dx = dy·y·(1 − y). */
#include "modules/module.h"

static void forward(const struct gy_nn_call *call)
{
    call->backend->sigmoid(call->rows * call->outputs, call->x, call->y);
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->sigmoid_backward(call->rows * call->outputs, call->y, call->dy, call->dx);
}

const struct gy_nn_module_ops gy_nn_sigmoid = {
    .name = "sigmoid",
    .forward = forward,
    .backward_input = backward_input,
};

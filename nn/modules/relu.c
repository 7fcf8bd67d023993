/* relu: y = max(x, 0), element by element. Backward: dx = dy where y > 0, else 0. */
#include "modules/module.h"

static void forward(const struct gy_nn_call *call)
{
    call->backend->relu(call->rows * call->outputs, call->x, call->y);
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->relu_backward(call->rows * call->outputs, call->y, call->dy, call->dx);
}

const struct gy_nn_module_ops gy_nn_relu = {
    .name = "relu",
    .forward = forward,
    .backward_input = backward_input,
};

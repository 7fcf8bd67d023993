/* linear: y = x·Wᵀ + b, with W[outputs × inputs] followed by b[outputs] in the arena.
 * Backward: dW += dyᵀ·x, db += column sums of dy; dx = dy·W. */
#include "modules/module.h"

static const void *bias_of(const struct gy_nn_call *call, const void *arena)
{
    return (const char *)arena + call->inputs * call->outputs * call->backend->element;
}

static size_t param_count(size_t inputs, size_t outputs)
{
    return outputs * inputs + outputs;
}

static void forward(const struct gy_nn_call *call)
{
    call->backend->gemm(false, true, call->rows, call->outputs, call->inputs, call->x, call->params, 0, call->y);
    call->backend->add_bias(call->rows, call->outputs, bias_of(call, call->params), call->y);
}

static void backward_params(const struct gy_nn_call *call)
{
    char *bias = (char *)call->grads + call->inputs * call->outputs * call->backend->element;
    call->backend->gemm(true, false, call->outputs, call->inputs, call->rows, call->dy, call->x, 1, call->grads);
    call->backend->add_column_sums(call->rows, call->outputs, call->dy, bias);
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->gemm(false, false, call->rows, call->inputs, call->outputs, call->dy, call->params, 0, call->dx);
}

const struct gy_nn_module_ops gy_nn_linear = {
    .name = "linear",
    .param_count = param_count,
    .forward = forward,
    .backward_params = backward_params,
    .backward_input = backward_input,
};

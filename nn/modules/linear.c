/* linear: y = x·Wᵀ + b, row by row, with W[outputs × inputs] followed by b[outputs] in the arena.
 * Backward: dW += dyᵀ·x, db += column sums of dy; dx = dy·W.
 * Weights begin as He (2015) where a relu follows, as Glorot and Bengio (2010) elsewhere. */
#include "modules/module.h"

#include <math.h>

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    double in = (double)module->in.features, out = (double)module->config.outputs;
    module->out = (struct gy_nn_shape){module->in.time, module->config.outputs};
    gy_nn_layout_tensor(layout, "weight", module->out.features, module->in.features,
                        sqrt(6 / (module->config.relu ? in : in + out)), 0);
    gy_nn_layout_tensor(layout, "bias", 0, module->out.features, 0, 0);
    return GYRE_SUCCESS;
}

static void *bias_of(const struct gy_nn_call *call, const void *arena)
{
    return gy_nn_step(call, arena, call->module->in.features * call->module->out.features);
}

static void forward(const struct gy_nn_call *call)
{
    size_t in = call->module->in.features, out = call->module->out.features;
    gy_nn_product(call->backend, false, true, call->rows, out, in, call->x[0], call->params, 0, call->y);
    call->backend->add_bias(call->rows, out, bias_of(call, call->params), call->y);
}

static void backward_params(const struct gy_nn_call *call)
{
    size_t in = call->module->in.features, out = call->module->out.features;
    gy_nn_product(call->backend, true, false, out, in, call->rows, call->dy, call->x[0], 1, call->grads);
    call->backend->add_column_sums(call->rows, out, call->dy, bias_of(call, call->grads));
}

static void backward_input(const struct gy_nn_call *call)
{
    gy_nn_product(call->backend, false, false, call->rows, call->module->in.features, call->module->out.features,
                  call->dy, call->params, 0, call->dx[0]);
}

const struct gy_nn_module_ops gy_nn_linear = {
    .name = "linear",
    .plan = plan,
    .forward = forward,
    .backward_params = backward_params,
    .backward_input = backward_input,
};

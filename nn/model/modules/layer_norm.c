/* layer norm (Ba, Kiros and Hinton, 2016): each row is brought to mean 0 and deviation 1, n = (x − μ) / √(σ² + 1e-5);
 * then y = g·n + b, with g and b per feature.
 * Kept: μ and 1/√(σ² + 1e-5) of each row. Backward, with h = dy·g: dg += dy·n, db += dy;
 * dx = (h − mean h − n·mean(h·n)) / √(σ² + 1e-5). */
#include "model/modules/module.h"

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    module->out = module->in;
    module->state = 2 * module->in.time;
    gy_nn_layout_tensor(layout, "weight", 0, module->in.features, 0, 1);
    gy_nn_layout_tensor(layout, "bias", 0, module->in.features, 0, 0);
    return GYRE_SUCCESS;
}

static void forward(const struct gy_nn_call *call)
{
    call->backend->layer_norm(call->rows, call->module->in.features, call->x[0], call->params, call->state, call->y);
}

static void backward_params(const struct gy_nn_call *call)
{
    call->backend->layer_norm_backward_params(call->rows, call->module->in.features, call->x[0], call->state, call->dy,
                                              call->grads);
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->layer_norm_backward_input(call->rows, call->module->in.features, call->x[0], call->params,
                                             call->state, call->dy, call->dx[0]);
}

const struct gy_nn_module_ops gy_nn_layer_norm = {
    .name = "layer norm",
    .plan = plan,
    .forward = forward,
    .backward_params = backward_params,
    .backward_input = backward_input,
};

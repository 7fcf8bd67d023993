/* position: y[t] = x[t] + P[t], with a learnt vector P[time × features] for each place in the sequence.
 * Backward: dP += dy summed over the samples; dx = dy. */
#include "model/modules/module.h"

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    module->out = module->in;
    gy_nn_layout_tensor(layout, "weight", module->in.time, module->in.features, 0.02, 0);
    return GYRE_SUCCESS;
}

static void forward(const struct gy_nn_call *call)
{
    call->backend->copy(call->y, call->x[0], gy_nn_size(call) * call->backend->element);
    call->backend->add_bias(call->samples, call->module->in.time * call->module->in.features, call->params, call->y);
}

static void backward_params(const struct gy_nn_call *call)
{
    call->backend->add_column_sums(call->samples, call->module->in.time * call->module->in.features, call->dy,
                                   call->grads);
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->copy(call->dx[0], call->dy, gy_nn_size(call) * call->backend->element);
}

const struct gy_nn_module_ops gy_nn_position = {
    .name = "position",
    .plan = plan,
    .forward = forward,
    .backward_params = backward_params,
    .backward_input = backward_input,
};

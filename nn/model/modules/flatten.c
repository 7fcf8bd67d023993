/* flatten: all steps of a sample as one, with the values in the same order. Backward: dx is dy. */
#include "model/modules/module.h"

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    (void)layout;
    module->out = (struct gy_nn_shape){.time = 1, .features = module->in.time * module->in.features};
    return GYRE_SUCCESS;
}

static void forward(const struct gy_nn_call *call)
{
    call->backend->copy(call->y, call->x[0], gy_nn_size(call) * call->backend->element);
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->copy(call->dx[0], call->dy, gy_nn_size(call) * call->backend->element);
}

const struct gy_nn_module_ops gy_nn_flatten = {
    .name = "flatten",
    .plan = plan,
    .forward = forward,
    .backward_input = backward_input,
};

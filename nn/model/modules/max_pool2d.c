/* max_pool2d: y[place] = the largest value of each channel in the window at that place. Windows that do not fit in the
 * image are left out. Backward: dx is dy where the largest value was, at the first of equal ones, and 0 elsewhere; it
 * is found again in x, so nothing is kept. NaN counts as the largest value. */
#include "model/modules/module.h"

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    (void)layout;
    return gy_nn_plan_window(module, module->in.features) ? GYRE_SUCCESS : GYRE_INVALID_ARGUMENT;
}

static void forward(const struct gy_nn_call *call)
{
    struct gy_nn_window window = gy_nn_window_of(call->module);
    call->backend->max_pool(&window, call->samples, call->x[0], call->y);
}

static void backward_input(const struct gy_nn_call *call)
{
    struct gy_nn_window window = gy_nn_window_of(call->module);
    call->backend->max_pool_backward(&window, call->samples, call->x[0], call->dy, call->dx[0]);
}

const struct gy_nn_module_ops gy_nn_max_pool2d = {
    .name = "pooling",
    .plan = plan,
    .forward = forward,
    .backward_input = backward_input,
};

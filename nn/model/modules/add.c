/* add: y = x0 + x1, the end of a residual branch (He et al., 2016). Backward: dx0 = dx1 = dy. */
#include "model/modules/module.h"

static void forward(const struct gy_nn_call *call)
{
    call->backend->copy(call->y, call->x[0], gy_nn_size(call) * call->backend->element);
    call->backend->add(gy_nn_size(call), call->x[1], call->y);
}

static void backward_input(const struct gy_nn_call *call)
{
    for (int i = 0; i < 2; i++)
        if (call->dx[i])
            call->backend->copy(call->dx[i], call->dy, gy_nn_size(call) * call->backend->element);
}

const struct gy_nn_module_ops gy_nn_add = {
    .name = "residual",
    .plan = gy_nn_plan_same,
    .forward = forward,
    .backward_input = backward_input,
};

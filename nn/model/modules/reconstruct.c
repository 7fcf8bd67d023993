/* reconstruct: passes its first input on, and adds to the cost the mean squared error of its second against its third,
 * which counts as data: no gradient goes there. What an autoencoder inside a larger model learns by.
 *
 *     y = x0        cost += Σ over features (x1 − x2)² / features
 *
 * Kept per sample: the gradient of that cost with regard to x1. */
#include "base/error.h"
#include "model/modules/module.h"

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    const struct gy_nn_shape *of = module->others;
    (void)layout;
    if (of[1].time != of[2].time || of[1].features != of[2].features)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "a reconstruction of %zu steps of %zu values as %zu steps of %zu",
                          of[2].time, of[2].features, of[1].time, of[1].features);
    module->out = module->in;
    module->state = of[1].time * of[1].features;
    return GYRE_SUCCESS;
}

/* squared_error divides by the columns: a row for each sample. */
static double cost(const struct gy_nn_call *call)
{
    return call->backend->squared_error(call->samples, call->module->state, call->x[1], NULL, call->x[2], call->state);
}

static void forward(const struct gy_nn_call *call)
{
    call->backend->copy(call->y, call->x[0], gy_nn_size(call) * call->backend->element);
    cost(call);
}

static void backward_input(const struct gy_nn_call *call)
{
    size_t bytes = call->samples * call->module->state * call->backend->element;
    if (call->dx[0])
        call->backend->copy(call->dx[0], call->dy, gy_nn_size(call) * call->backend->element);
    if (call->dx[1])
        call->backend->copy(call->dx[1], call->state, bytes);
    if (call->dx[2])
        call->backend->zero(call->dx[2], bytes);
}

const struct gy_nn_module_ops gy_nn_reconstruct = {
    .name = "reconstruction",
    .plan = plan,
    .forward = forward,
    .backward_input = backward_input,
    .cost = cost,
    .mixed = true,
};

/* slice: a part of each sample, [first, first + time·features) of its values, as a sequence of a shape of its own.
 * Backward: dx is dy in that part and 0 elsewhere. */
#include "base/error.h"
#include "model/modules/module.h"

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    size_t whole = module->in.time * module->in.features;
    struct gy_nn_shape shape = module->config.shape;
    (void)layout;
    if (module->config.first > whole || shape.time * shape.features > whole - module->config.first)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "a slice of %zu steps of %zu values from place %zu, of %zu values",
                          shape.time, shape.features, module->config.first, whole);
    module->out = shape;
    return GYRE_SUCCESS;
}

static size_t part_bytes(const struct gy_nn_call *call)
{
    return call->module->out.time * call->module->out.features * call->backend->element;
}

static size_t whole_values(const struct gy_nn_call *call)
{
    return call->module->in.time * call->module->in.features;
}

static void forward(const struct gy_nn_call *call)
{
    size_t first = call->module->config.first, part = part_bytes(call);
    for (size_t s = 0; s < call->samples; s++)
        call->backend->copy((char *)call->y + s * part, gy_nn_step(call, call->x[0], s * whole_values(call) + first),
                            part);
}

static void backward_input(const struct gy_nn_call *call)
{
    size_t first = call->module->config.first, part = part_bytes(call);
    if (!call->dx[0])
        return;
    call->backend->zero(call->dx[0], call->samples * whole_values(call) * call->backend->element);
    for (size_t s = 0; s < call->samples; s++)
        call->backend->copy(gy_nn_step(call, call->dx[0], s * whole_values(call) + first),
                            (const char *)call->dy + s * part, part);
}

const struct gy_nn_module_ops gy_nn_slice = {
    .name = "slice",
    .plan = plan,
    .forward = forward,
    .backward_input = backward_input,
};

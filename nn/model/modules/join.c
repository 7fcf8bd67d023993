/* join: the steps of one value followed by those of another, which has as many features.
 * Backward: dy falls apart into the two. */
#include "base/error.h"
#include "model/modules/module.h"

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    const struct gy_nn_shape *of = module->others;
    (void)layout;
    if (of[0].features != of[1].features)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "a join of steps of %zu values and steps of %zu", of[0].features,
                          of[1].features);
    module->out = (struct gy_nn_shape){.time = of[0].time + of[1].time, .features = of[0].features};
    return GYRE_SUCCESS;
}

static size_t bytes_of(const struct gy_nn_call *call, int k)
{
    return call->module->others[k].time * call->module->others[k].features * call->backend->element;
}

static void forward(const struct gy_nn_call *call)
{
    size_t a = bytes_of(call, 0), b = bytes_of(call, 1);
    for (size_t s = 0; s < call->samples; s++) {
        char *y = (char *)call->y + s * (a + b);
        call->backend->copy(y, (const char *)call->x[0] + s * a, a);
        call->backend->copy(y + a, (const char *)call->x[1] + s * b, b);
    }
}

static void backward_input(const struct gy_nn_call *call)
{
    size_t a = bytes_of(call, 0), b = bytes_of(call, 1);
    for (size_t s = 0; s < call->samples; s++) {
        const char *dy = (const char *)call->dy + s * (a + b);
        if (call->dx[0])
            call->backend->copy((char *)call->dx[0] + s * a, dy, a);
        if (call->dx[1])
            call->backend->copy((char *)call->dx[1] + s * b, dy + a, b);
    }
}

const struct gy_nn_module_ops gy_nn_join = {
    .name = "join",
    .plan = plan,
    .forward = forward,
    .backward_input = backward_input,
    .mixed = true,
};

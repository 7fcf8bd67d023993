/* dropout (Srivastava et al., 2014): in training each element is 0 with probability `rate`, and else divided by 1 −
 * rate, so that its mean stays. Which ones is a pure function of (seed, step, module, place in the global batch):
 * nothing is kept for backward, which draws the same again, and as many ranks as there may be drop the same elements.
 * */
#include "base/error.h"
#include "base/random.h"
#include "model/modules/module.h"

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    if (!(module->config.rate >= 0 && module->config.rate < 1))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "a dropout rate of %g; from 0 to below 1 is possible",
                          module->config.rate);
    return gy_nn_plan_same(module, layout);
}

/* One mixing per coordinate, so that neighbouring steps and modules share nothing. */
static uint64_t key_of(const struct gy_nn_call *call)
{
    uint64_t state = call->draw.seed;
    state = gy_nn_random(&state) ^ call->draw.step;
    state = gy_nn_random(&state) ^ (uint64_t)call->index;
    return gy_nn_random(&state);
}

static void drop(const struct gy_nn_call *call, const void *from, void *to)
{
    size_t size = gy_nn_size(call);
    if (!call->draw.training || call->module->config.rate == 0) {
        call->backend->copy(to, from, size * call->backend->element);
        return;
    }
    uint64_t first = call->draw.first * call->module->out.time * call->module->out.features;
    call->backend->drop(size, call->module->config.rate, key_of(call), first, from, to);
}

static void forward(const struct gy_nn_call *call)
{
    drop(call, call->x[0], call->y);
}

static void backward_input(const struct gy_nn_call *call)
{
    drop(call, call->dy, call->dx[0]);
}

const struct gy_nn_module_ops gy_nn_dropout = {
    .name = "dropout",
    .plan = plan,
    .forward = forward,
    .backward_input = backward_input,
};

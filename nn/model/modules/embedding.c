/* embedding: each input is the number of a symbol, and y its row of a table E[symbols × outputs].
 * Backward: dE[symbol] += dy. There is no gradient with regard to a number, so dx is 0. */
#include "base/error.h"
#include "model/modules/module.h"

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    if (module->in.features != 1)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "an embedding takes one symbol per step, not %zu values",
                          module->in.features);
    module->out = (struct gy_nn_shape){.time = module->in.time, .features = module->config.outputs};
    gy_nn_layout_tensor(layout, "weight", module->config.symbols, module->config.outputs, 0.1, 0);
    return GYRE_SUCCESS;
}

static gyre_status check(const struct gy_nn_call *call)
{
    size_t bad = call->backend->find_bad_symbol(call->rows, call->module->config.symbols, call->x[0]);
    if (bad == call->rows)
        return GYRE_SUCCESS;
    return gy_nn_fail(GYRE_INVALID_ARGUMENT, "step %zu of sample %zu is none of the %zu symbols of an embedding",
                      bad % call->module->in.time, bad / call->module->in.time, call->module->config.symbols);
}

static void forward(const struct gy_nn_call *call)
{
    call->backend->embed(call->rows, call->module->out.features, call->params, call->x[0], call->y);
}

static void backward_params(const struct gy_nn_call *call)
{
    call->backend->embed_backward(call->rows, call->module->out.features, call->x[0], call->dy, call->grads);
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->zero(call->dx[0], call->rows * call->backend->element);
}

const struct gy_nn_module_ops gy_nn_embedding = {
    .name = "embedding",
    .plan = plan,
    .check = check,
    .forward = forward,
    .backward_params = backward_params,
    .backward_input = backward_input,
};

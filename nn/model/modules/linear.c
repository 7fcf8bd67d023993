/* linear: y = x·Wᵀ + b, row by row, with W[outputs × inputs] followed by b[outputs] in the arena.
 * Backward: dW += dyᵀ·x, db += column sums of dy; dx = dy·W.
 * dW of a large layer is computed in blocks of rows, from the last to the first, so that finished blocks can leave
 * while the rest is computed: dW is half of such a layer's backward. The blocks depend on the shape alone, and so do
 * the bits.
 * Weights begin as He (2015) where a relu follows, as Glorot and Bengio (2010) elsewhere. */
#include "model/modules/module.h"

#include <math.h>

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    double in = (double)module->in.features, out = (double)module->config.outputs;
    module->out = module->in; /* an image stays one */
    module->out.features = module->config.outputs;
    gy_nn_layout_tensor(layout, "weight", module->out.features, module->in.features,
                        sqrt(6 / (module->config.relu ? in : in + out)), 0);
    gy_nn_layout_tensor(layout, "bias", 0, module->out.features, 0, 0);
    return GYRE_SUCCESS;
}

static void *bias_of(const struct gy_nn_call *call, const void *arena)
{
    return gy_nn_step(call, arena, call->module->in.features * call->module->out.features);
}

static void forward(const struct gy_nn_call *call)
{
    size_t in = call->module->in.features, out = call->module->out.features;
    gy_nn_product(call->backend, false, true, call->rows, out, in, call->x[0], call->params, 0, call->y);
    call->backend->add_bias(call->rows, out, bias_of(call, call->params), call->y);
}

/* Rows of a block: at least 128, and 256 KiB of float; at most 8 blocks. */
static size_t block_rows(size_t in, size_t out)
{
    size_t rows = (out + 7) / 8, least = (((size_t)1 << 16) + in - 1) / in;
    rows = rows < least ? least : rows;
    return rows < 128 ? 128 : rows;
}

static void backward_params(const struct gy_nn_call *call)
{
    size_t in = call->module->in.features, out = call->module->out.features, rows = block_rows(in, out);
    gy_nn_bias_gradient(call, call->rows, out, call->dy, bias_of(call, call->grads));
    for (size_t end = out, first; end > 0; end = first) {
        first = end > rows ? end - rows : 0;
        call->backend->gemm(true, false, end - first, in, call->rows, 1, gy_nn_step(call, call->dy, first), out,
                            call->x[0], in, call->keep, gy_nn_step(call, call->grads, first * in), in);
        if (call->passed && first > 0)
            call->passed(call->passed_user, call->module->offset + first * in);
    }
}

static void backward_input(const struct gy_nn_call *call)
{
    gy_nn_product(call->backend, false, false, call->rows, call->module->in.features, call->module->out.features,
                  call->dy, call->params, 0, call->dx[0]);
}

const struct gy_nn_module_ops gy_nn_linear = {
    .name = "linear",
    .plan = plan,
    .forward = forward,
    .backward_params = backward_params,
    .backward_input = backward_input,
    .overwrites = true,
};

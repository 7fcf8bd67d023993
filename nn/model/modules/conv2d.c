/* conv2d: y[place] = W · (the window of x at that place) + b, for each place of a square window over an image, with
 * W[outputs × kernel·kernel·channels] followed by b[outputs] in the arena. The values of a window, and the columns of
 * W, are in the order row, column, channel.
 *
 *     forward   columns = im2col(x)           y  = columns · Wᵀ + b
 *     backward  dW += dyᵀ · columns           dx = col2im(dy · W)         db += column sums of dy
 *
 * One image at a time, in order, and by products with a packed matrix. Each of their elements is one sum in order, so
 * bits depend neither on the number of threads nor, but for dW and db, on the other images of the batch. The columns
 * are made again in backward, as they are kernel² times the image. Weights begin as He (2015). */
#include "base/error.h"
#include "model/modules/module.h"

#include <math.h>

#define MOST_WEIGHTS ((size_t)1 << 24) /* of one output */
#define MOST_COLUMNS ((size_t)1 << 32) /* values of the windows of an image */

static size_t window_size(const struct gy_nn_module *module)
{
    return module->config.kernel * module->config.kernel * module->in.features;
}

/* Room for the larger of what forward and the two halves of backward pack, for the columns, and for dyᵀ. */
static void plan_memory(struct gy_nn_module *module, const struct gy_nn_layout *layout, size_t size)
{
    size_t places = module->out.time, outputs = module->out.features;
    size_t packed[] = {layout->backend->packed_size(outputs, size), layout->backend->packed_size(size, places),
                       layout->backend->packed_size(size, outputs)};
    for (size_t i = 0; i < sizeof(packed) / sizeof(packed[0]); i++)
        if (packed[i] > module->packed)
            module->packed = packed[i];
    module->packed += places * size + places * outputs;
}

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    size_t size = window_size(module), outputs = module->config.outputs;
    if (!gy_nn_plan_window(module, outputs))
        return GYRE_INVALID_ARGUMENT;
    if (size > MOST_WEIGHTS || module->out.time > MOST_COLUMNS / size)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "a convolution of %zu places with %zu weights each is too large",
                          module->out.time, size);
    plan_memory(module, layout, size);
    gy_nn_layout_tensor(layout, "weight", outputs, size, sqrt(6 / (double)size), 0);
    if (module->config.bias)
        gy_nn_layout_tensor(layout, "bias", 0, outputs, 0, 0);
    return GYRE_SUCCESS;
}

/* Memory of a call, behind the packed matrix. */
struct parts {
    struct gy_nn_window window;
    size_t size, places, outputs, image;
    void *columns, *turned; /* turned: dyᵀ */
};

static struct parts parts_of(const struct gy_nn_call *call)
{
    const struct gy_nn_module *module = call->module;
    struct parts p = {
        .window = gy_nn_window_of(module),
        .size = window_size(module),
        .places = module->out.time,
        .outputs = module->out.features,
        .image = module->in.time * module->in.features,
    };
    size_t packed = module->packed - p.places * (p.size + p.outputs);
    p.columns = gy_nn_step(call, call->packed, packed);
    p.turned = gy_nn_step(call, p.columns, p.places * p.size);
    return p;
}

static void *bias_of(const struct gy_nn_call *call, const struct parts *p, const void *arena)
{
    return gy_nn_step(call, arena, p->outputs * p->size);
}

static void forward(const struct gy_nn_call *call)
{
    struct parts p = parts_of(call);
    call->backend->pack(true, p.outputs, p.size, call->params, p.size, call->packed);
    for (size_t s = 0; s < call->samples; s++) {
        call->backend->im2col(&p.window, gy_nn_step(call, call->x[0], s * p.image), p.columns);
        call->backend->gemm_packed(p.places, p.outputs, p.size, p.columns, p.size, call->packed, 0,
                                   gy_nn_step(call, call->y, s * p.places * p.outputs), p.outputs);
    }
    if (call->module->config.bias)
        call->backend->add_bias(call->samples * p.places, p.outputs, bias_of(call, &p, call->params), call->y);
}

static void backward_params(const struct gy_nn_call *call)
{
    struct parts p = parts_of(call);
    for (size_t s = 0; s < call->samples; s++) {
        call->backend->im2col(&p.window, gy_nn_step(call, call->x[0], s * p.image), p.columns);
        call->backend->pack(false, p.size, p.places, p.columns, p.size, call->packed);
        call->backend->transpose(p.places, p.outputs, gy_nn_step(call, call->dy, s * p.places * p.outputs), p.turned);
        call->backend->gemm_packed(p.outputs, p.size, p.places, p.turned, p.places, call->packed, 1, call->grads,
                                   p.size);
    }
    if (call->module->config.bias)
        call->backend->add_column_sums(call->samples * p.places, p.outputs, call->dy, bias_of(call, &p, call->grads));
}

static void backward_input(const struct gy_nn_call *call)
{
    struct parts p = parts_of(call);
    call->backend->zero(call->dx[0], call->samples * p.image * call->backend->element);
    call->backend->pack(false, p.size, p.outputs, call->params, p.size, call->packed);
    for (size_t s = 0; s < call->samples; s++) {
        call->backend->gemm_packed(p.places, p.size, p.outputs, gy_nn_step(call, call->dy, s * p.places * p.outputs),
                                   p.outputs, call->packed, 0, p.columns, p.size);
        call->backend->col2im(&p.window, p.columns, gy_nn_step(call, call->dx[0], s * p.image));
    }
}

const struct gy_nn_module_ops gy_nn_conv2d = {
    .name = "convolution",
    .plan = plan,
    .forward = forward,
    .backward_params = backward_params,
    .backward_input = backward_input,
};

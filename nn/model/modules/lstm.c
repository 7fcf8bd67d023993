/* lstm (Hochreiter and Schmidhuber, 1997; forget gate of Gers et al., 2000), batched and unrolled through time:
 *
 *     [i f g o] = x[t]·Wxᵀ + h[t−1]·Whᵀ + b         i, f, o through sigmoid, g through tanh
 *     c[t] = f·c[t−1] + i·g                         h[t] = o·tanh c[t] = y[t]
 *
 * with Wx[4H × I], Wh[4H × H], b[4H] and zeros before the first step. The part of x is one product over all steps; the
 * part of h is one product per step over all samples, on every time-th row, with Wh packed once for all steps.
 * Kept per step: the four gates, which backward replaces by the gradients before their activations, and c. The bias of
 * the forget gate begins at 0, as the others. */
#include "model/modules/module.h"

#include <math.h>

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    size_t hidden = module->config.outputs;
    double limit = 1 / sqrt((double)hidden);
    module->out = (struct gy_nn_shape){.time = module->in.time, .features = hidden};
    module->state = module->in.time * 5 * hidden;
    module->scratch = (module->in.time + 2) * hidden; /* h of the step before; gradients of h and c */
    gy_nn_layout_packed(layout, 4 * hidden, hidden);
    gy_nn_layout_packed(layout, hidden, 4 * hidden);
    gy_nn_layout_tensor(layout, "weight_input", 4 * hidden, module->in.features, limit, 0);
    gy_nn_layout_tensor(layout, "weight_hidden", 4 * hidden, hidden, limit, 0);
    gy_nn_layout_tensor(layout, "bias", 0, 4 * hidden, 0, 0);
    return GYRE_SUCCESS;
}

struct parts {
    size_t hidden, inputs, time;
    char *gates, *cells; /* of step 0; a sample's next step is 4H, or H, further */
    char *wx, *wh, *bias;
};

static struct parts parts_of(const struct gy_nn_call *call, const void *arena)
{
    size_t hidden = call->module->config.outputs, inputs = call->module->in.features, time = call->module->in.time;
    return (struct parts){
        .hidden = hidden,
        .inputs = inputs,
        .time = time,
        .gates = call->state,
        .cells = gy_nn_step(call, call->state, call->rows * 4 * hidden),
        .wx = gy_nn_step(call, arena, 0),
        .wh = gy_nn_step(call, arena, 4 * hidden * inputs),
        .bias = gy_nn_step(call, arena, 4 * hidden * (inputs + hidden)),
    };
}

static void forward(const struct gy_nn_call *call)
{
    struct parts p = parts_of(call, call->params);
    size_t h = p.hidden;
    gy_nn_product(call->backend, false, true, call->rows, 4 * h, p.inputs, call->x[0], p.wx, 0, p.gates);
    call->backend->add_bias(call->rows, 4 * h, p.bias, p.gates);
    call->backend->pack(true, 4 * h, h, p.wh, h, call->packed);
    for (size_t t = 0; t < p.time; t++) {
        void *gates = gy_nn_step(call, p.gates, t * 4 * h), *cells = gy_nn_step(call, p.cells, t * h);
        const void *before = t ? gy_nn_step(call, p.cells, (t - 1) * h) : NULL;
        if (t > 0)
            call->backend->gemm_packed(call->samples, 4 * h, h, gy_nn_step(call, call->y, (t - 1) * h), p.time * h,
                                       call->packed, 1, gates, p.time * 4 * h);
        call->backend->lstm(call->samples, h, p.time, gates, before, cells, gy_nn_step(call, call->y, t * h));
    }
}

/* h of the step before, 0 for the first: shifted by one step inside each sample. */
static void shift(const struct gy_nn_call *call, const struct parts *p, void *to)
{
    size_t step = p->hidden * call->backend->element;
    for (size_t s = 0; s < call->samples; s++) {
        char *at = (char *)to + s * p->time * step;
        call->backend->zero(at, step);
        call->backend->copy(at + step, (const char *)call->y + s * p->time * step, (p->time - 1) * step);
    }
}

static void backward_input(const struct gy_nn_call *call)
{
    struct parts p = parts_of(call, call->params), g = parts_of(call, call->grads);
    size_t h = p.hidden;
    void *dh = gy_nn_step(call, call->scratch, call->rows * h), *dc = gy_nn_step(call, dh, call->samples * h);
    call->backend->zero(dh, 2 * call->samples * h * call->backend->element);
    call->backend->pack(false, h, 4 * h, p.wh, h, call->packed);
    for (size_t t = p.time; t-- > 0;) {
        void *gates = gy_nn_step(call, p.gates, t * 4 * h);
        const void *before = t ? gy_nn_step(call, p.cells, (t - 1) * h) : NULL;
        call->backend->lstm_backward(call->samples, h, p.time, gy_nn_step(call, call->dy, t * h), dh, dc, before,
                                     gy_nn_step(call, p.cells, t * h), gates);
        if (t > 0)
            call->backend->gemm_packed(call->samples, h, 4 * h, gates, p.time * 4 * h, call->packed, 0, dh, h);
    }
    shift(call, &p, call->scratch);
    gy_nn_product(call->backend, true, false, 4 * h, p.inputs, call->rows, p.gates, call->x[0], call->keep, g.wx);
    gy_nn_product(call->backend, true, false, 4 * h, h, call->rows, p.gates, call->scratch, call->keep, g.wh);
    gy_nn_bias_gradient(call, call->rows, 4 * h, p.gates, g.bias);
    if (call->dx[0])
        gy_nn_product(call->backend, false, false, call->rows, p.inputs, 4 * h, p.gates, p.wx, 0, call->dx[0]);
}

const struct gy_nn_module_ops gy_nn_lstm = {
    .name = "lstm",
    .plan = plan,
    .forward = forward,
    .backward_input = backward_input,
    .overwrites = true,
};

/* multi-head self-attention (Vaswani et al., 2017), over the steps of each sample:
 *
 *     [Q K V] = x·Wᵀ + b                    W[3D × D]; head h has columns h·D/heads … of each
 *     P = softmax(Q·Kᵀ / √(D/heads))        causal: 0 above the diagonal
 *     y = (P·V of all heads)·Uᵀ + u         U[D × D]
 *
 * Kept per sample: Q, K, V [time × 3D], P [heads × time × time], P·V [time × D].
 * Backward finishes its gradients from the end of the arena: U and u first, b, then W in three blocks, of V, K and
 * Q. So finished gradients can leave while the rest is computed. The blocks are always the same, and so are the
 * bits. */
#include "base/error.h"
#include "model/modules/module.h"

#include <math.h>

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    size_t width = module->in.features, time = module->in.time, heads = module->config.heads;
    if (heads == 0 || width % heads != 0)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%zu attention heads do not divide %zu features", heads, width);
    module->out = module->in;
    module->state = time * 4 * width + heads * time * time;
    module->scratch = time * 4 * width + time * time; /* gradients of Q, K, V, of P·V, and of P of one head */
    gy_nn_layout_tensor(layout, "weight", 3 * width, width, sqrt(6 / (4 * (double)width)), 0);
    gy_nn_layout_tensor(layout, "bias", 0, 3 * width, 0, 0);
    gy_nn_layout_tensor(layout, "weight_out", width, width, sqrt(6 / (2 * (double)width)), 0);
    gy_nn_layout_tensor(layout, "bias_out", 0, width, 0, 0);
    return GYRE_SUCCESS;
}

struct parts {
    size_t width, time, heads, head; /* head: features of one */
    char *qkv, *p, *mixed;
    char *w, *b, *u, *c;
};

static struct parts parts_of(const struct gy_nn_call *call, const void *arena)
{
    const struct gy_nn_module *module = call->module;
    size_t d = module->in.features, rows = call->rows;
    return (struct parts){
        .width = d,
        .time = module->in.time,
        .heads = module->config.heads,
        .head = d / module->config.heads,
        .qkv = call->state,
        .mixed = gy_nn_step(call, call->state, rows * 3 * d),
        .p = gy_nn_step(call, call->state, rows * 4 * d),
        .w = gy_nn_step(call, arena, 0),
        .b = gy_nn_step(call, arena, 3 * d * d),
        .u = gy_nn_step(call, arena, 3 * d * d + 3 * d),
        .c = gy_nn_step(call, arena, 4 * d * d + 3 * d),
    };
}

/* One head of one sample: its columns of Q, K, V (0, 1, 2) in an array like qkv, and of an array like P·V. */
static void *columns(const struct gy_nn_call *call, const struct parts *p, const void *qkv, size_t sample, size_t head,
                     size_t which)
{
    return gy_nn_step(call, qkv, sample * p->time * 3 * p->width + which * p->width + head * p->head);
}

static void *mixed_columns(const struct gy_nn_call *call, const struct parts *p, const void *mixed, size_t sample,
                           size_t head)
{
    return gy_nn_step(call, mixed, sample * p->time * p->width + head * p->head);
}

static void attend(const struct gy_nn_call *call, const struct parts *p, size_t s, size_t h)
{
    size_t t = p->time, wide = 3 * p->width;
    void *weights = gy_nn_step(call, p->p, (s * p->heads + h) * t * t);
    call->backend->gemm(false, true, t, t, p->head, 1 / sqrt((double)p->head), columns(call, p, p->qkv, s, h, 0), wide,
                        columns(call, p, p->qkv, s, h, 1), wide, 0, weights, t);
    call->backend->softmax(t, t, call->module->config.causal, weights);
    call->backend->gemm(false, false, t, p->head, t, 1, weights, t, columns(call, p, p->qkv, s, h, 2), wide, 0,
                        mixed_columns(call, p, p->mixed, s, h), p->width);
}

static void forward(const struct gy_nn_call *call)
{
    struct parts p = parts_of(call, call->params);
    gy_nn_product(call->backend, false, true, call->rows, 3 * p.width, p.width, call->x[0], p.w, 0, p.qkv);
    call->backend->add_bias(call->rows, 3 * p.width, p.b, p.qkv);
    for (size_t s = 0; s < call->samples; s++)
        for (size_t h = 0; h < p.heads; h++)
            attend(call, &p, s, h);
    gy_nn_product(call->backend, false, true, call->rows, p.width, p.width, p.mixed, p.u, 0, call->y);
    call->backend->add_bias(call->rows, p.width, p.c, call->y);
}

/* dqkv and dmixed are like qkv and P·V; dp has room for one head. */
static void attend_backward(const struct gy_nn_call *call, const struct parts *p, size_t s, size_t h, void *dqkv,
                            const void *dmixed, void *dp)
{
    size_t t = p->time, wide = 3 * p->width;
    double scale = 1 / sqrt((double)p->head);
    const void *weights = gy_nn_step(call, p->p, (s * p->heads + h) * t * t);
    const void *d = mixed_columns(call, p, dmixed, s, h);
    call->backend->gemm(false, true, t, t, p->head, 1, d, p->width, columns(call, p, p->qkv, s, h, 2), wide, 0, dp, t);
    call->backend->gemm(true, false, t, p->head, t, 1, weights, t, d, p->width, 0, columns(call, p, dqkv, s, h, 2),
                        wide);
    call->backend->softmax_backward(t, t, weights, dp);
    call->backend->gemm(false, false, t, p->head, t, scale, dp, t, columns(call, p, p->qkv, s, h, 1), wide, 0,
                        columns(call, p, dqkv, s, h, 0), wide);
    call->backend->gemm(true, false, t, p->head, t, scale, dp, t, columns(call, p, p->qkv, s, h, 0), wide, 0,
                        columns(call, p, dqkv, s, h, 1), wide);
}

/* Gradients from element `first` of the module's are final. */
static void say_passed(const struct gy_nn_call *call, size_t first)
{
    if (call->passed)
        call->passed(call->passed_user, call->module->offset + first);
}

static void backward_projection(const struct gy_nn_call *call, const struct parts *p, const struct parts *g,
                                const void *dqkv)
{
    size_t d = p->width;
    gy_nn_bias_gradient(call, call->rows, 3 * d, dqkv, g->b);
    for (size_t block = 3; block-- > 0;) {
        call->backend->gemm(true, false, d, d, call->rows, 1, gy_nn_step(call, dqkv, block * d), 3 * d, call->x[0], d,
                            call->keep, gy_nn_step(call, g->w, block * d * d), d);
        if (block > 0) /* of the last one the caller says it */
            say_passed(call, block * d * d);
    }
}

/* Leaves the gradients of Q, K and V at the beginning of scratch. */
static void backward_params(const struct gy_nn_call *call)
{
    struct parts p = parts_of(call, call->params), g = parts_of(call, call->grads);
    void *dqkv = call->scratch, *dmixed = gy_nn_step(call, dqkv, call->rows * 3 * p.width);
    void *dp = gy_nn_step(call, dmixed, call->rows * p.width);
    gy_nn_product(call->backend, true, false, p.width, p.width, call->rows, call->dy, p.mixed, call->keep, g.u);
    gy_nn_bias_gradient(call, call->rows, p.width, call->dy, g.c);
    say_passed(call, 3 * p.width * p.width + 3 * p.width);
    gy_nn_product(call->backend, false, false, call->rows, p.width, p.width, call->dy, p.u, 0, dmixed);
    for (size_t s = 0; s < call->samples; s++)
        for (size_t h = 0; h < p.heads; h++)
            attend_backward(call, &p, s, h, dqkv, dmixed, dp);
    backward_projection(call, &p, &g, dqkv);
}

static void backward_input(const struct gy_nn_call *call)
{
    struct parts p = parts_of(call, call->params);
    gy_nn_product(call->backend, false, false, call->rows, p.width, 3 * p.width, call->scratch, p.w, 0, call->dx[0]);
}

void gy_nn_attention_row(const struct gy_nn_call *call, size_t sample, size_t step, double *weights, size_t count)
{
    struct parts p = parts_of(call, call->params);
    for (size_t t = 0; t < count; t++)
        weights[t] = 0;
    for (size_t h = 0; h < p.heads; h++) {
        const void *row = gy_nn_step(call, p.p, ((sample * p.heads + h) * p.time + step) * p.time);
        for (size_t t = 0; t < count; t++)
            weights[t] += (call->backend->dtype == GYRE_FLOAT64 ? ((const double *)row)[t]
                                                                : (double)((const float *)row)[t]) /
                          (double)p.heads;
    }
}

const struct gy_nn_module_ops gy_nn_attention = {
    .name = "attention",
    .plan = plan,
    .forward = forward,
    .backward_params = backward_params,
    .backward_input = backward_input,
    .overwrites = true,
};

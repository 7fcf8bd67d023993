/* batch norm (Ioffe and Szegedy, 2015): each feature (of an image: each channel) is brought to mean 0 and deviation 1
 * over all samples of the batch and all their steps, n = (x − μ) / √(σ² + 1e-5); then y = g·n + b per feature.
 *
 *     training   μ, σ² of the batch of all ranks: moments of each sample → gathered → combined in the samples' order
 *     testing    μ, σ² that run along: m ← m + 0.1·(μ − m), v ← v + 0.1·(s² − v), s² the unbiased variance
 *
 * Kept: μ, 1/√(σ² + 1e-5) and s² of each feature. Backward, with N rows in the batch: dg += Σ dy·n, db += Σ dy;
 * dx = g·(dy − (Σ dy)/N − n·(Σ dy·n)/N) / √(σ² + 1e-5), where the sums in dx are those of all ranks.
 * Each rank combines all samples itself and in the same order. So statistics are equal on all ranks and do not depend
 * on how the ranks divide the batch, bit for bit. Of a batch of one row s² is 0.
 * m and v are statistics of the arena: their gradients are Σ over rows of (m − μ) and (v − s²), so that they move with
 * the parameters, and are in checkpoints with them. */
#include "model/modules/module.h"

static gyre_status plan(struct gy_nn_module *module, struct gy_nn_layout *layout)
{
    size_t features = module->in.features;
    module->out = module->in;
    module->state = 3 * features;
    gy_nn_layout_tensor(layout, "weight", 0, features, 0, 1);
    gy_nn_layout_tensor(layout, "bias", 0, features, 0, 0);
    gy_nn_layout_statistic(layout, "running_mean", features, 0);
    gy_nn_layout_statistic(layout, "running_var", features, 1);
    return GYRE_SUCCESS;
}

/* Of an arena: what lies behind weight and bias. */
static void *running_of(const struct gy_nn_call *call, const void *arena)
{
    return gy_nn_step(call, arena, 2 * call->module->in.features);
}

/* Two numbers of each sample and feature, from all ranks. */
static gyre_status exchange(const struct gy_nn_call *call,
                            void (*fill)(const struct gy_nn_call *call, size_t steps, size_t features, double *mine))
{
    size_t features = call->module->in.features;
    double *mine;
    gyre_status status = gy_nn_gathering_reserve(call->gathering, 2 * features, &mine);
    if (status != GYRE_SUCCESS)
        return status;
    fill(call, call->module->in.time, features, mine);
    return gy_nn_gathering_run(call->gathering, 2 * features);
}

static void fill_moments(const struct gy_nn_call *call, size_t steps, size_t features, double *mine)
{
    call->backend->batch_norm_moments(call->samples, steps, features, call->x[0], mine);
}

static gyre_status gather(const struct gy_nn_call *call)
{
    const struct gy_nn_gathering *batch = call->gathering;
    gyre_status status = exchange(call, fill_moments);
    if (status == GYRE_SUCCESS && batch->samples > 0)
        call->backend->batch_norm_stats(batch->samples, call->module->in.time, call->module->in.features, batch->values,
                                        call->state);
    return status;
}

static void forward(const struct gy_nn_call *call)
{
    size_t features = call->module->in.features;
    if (!call->draw.training)
        call->backend->batch_norm_running(features, running_of(call, call->params), call->state);
    call->backend->batch_norm(call->rows, features, call->x[0], call->params, call->state, call->y);
}

/* The means over the batch, behind the numbers of its samples. In testing μ and σ² do not depend on x. */
static double *means_of(const struct gy_nn_call *call)
{
    return call->gathering->values + call->gathering->samples * 2 * call->module->in.features;
}

static void fill_sums(const struct gy_nn_call *call, size_t steps, size_t features, double *mine)
{
    call->backend->batch_norm_sums(call->samples, steps, features, call->x[0], call->state, call->dy, mine);
}

static gyre_status gather_backward(const struct gy_nn_call *call)
{
    const struct gy_nn_gathering *batch = call->gathering;
    size_t width = 2 * call->module->in.features, rows = batch->samples * call->module->in.time;
    gyre_status status = exchange(call, fill_sums);
    for (size_t c = 0; c < width && status == GYRE_SUCCESS; c++) {
        double sum = 0;
        for (size_t s = 0; s < batch->samples && call->draw.training; s++)
            sum += batch->values[s * width + c];
        means_of(call)[c] = rows > 0 ? sum / (double)rows : 0;
    }
    return status;
}

static void backward_params(const struct gy_nn_call *call)
{
    size_t features = call->module->in.features;
    const double *mine = call->gathering->values + call->gathering->first * 2 * features;
    call->backend->batch_norm_backward_params(call->samples, features, mine, call->grads);
    if (call->draw.training)
        call->backend->batch_norm_track(features, (double)call->answers, running_of(call, call->params), call->state,
                                        running_of(call, call->grads));
}

static void backward_input(const struct gy_nn_call *call)
{
    call->backend->batch_norm_backward_input(call->rows, call->module->in.features, call->x[0], call->params,
                                             call->state, means_of(call), call->dy, call->dx[0]);
}

const struct gy_nn_module_ops gy_nn_batch_norm = {
    .name = "batch norm",
    .plan = plan,
    .gather = gather,
    .gather_backward = gather_backward,
    .forward = forward,
    .backward_params = backward_params,
    .backward_input = backward_input,
};

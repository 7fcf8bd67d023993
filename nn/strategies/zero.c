/* zero: sync, with the optimiser's state divided over the ranks (ZeRO, stage 1; Rajbhandari et al., 2020). Gradients
 * are summed as in sync, in buckets during backward. Each rank updates the part of the parameters whose state it holds,
 * and the parts are gathered. Every element sees the arithmetic of sync, so the parameters have the bits of sync.
 * A rank sends once more what a reduce-scatter would save: that one's order of operands, and so its bits, is not
 * promised to be all-reduce's. */
#include "strategies/strategies.h"
#include "strategies/vector.h"

#include <stdlib.h>

struct zero {
    struct gyre_nn_run run;
    gyre_nn_sync *buckets;
    size_t first, count, *counts; /* this rank's part; the sizes of all ranks */
};

static void close(void *self)
{
    struct zero *zero = self;
    gyre_nn_sync_detach(zero->buckets);
    free(zero->counts);
    free(zero);
}

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    struct zero *zero = calloc(1, sizeof(*zero));
    size_t total = gyre_nn_param_count(run->model), first;
    if (zero)
        zero->counts = calloc((size_t)run->ranks, sizeof(*zero->counts));
    if (!zero || !zero->counts) {
        free(zero);
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the strategy zero");
    }
    zero->run = *run;
    for (int r = 0; r < run->ranks; r++)
        gyre_nn_shard(total, r, run->ranks, &first, &zero->counts[r]);
    gyre_nn_shard(total, run->rank, run->ranks, &zero->first, &zero->count);
    gyre_status status = gyre_nn_sync_attach(run->model, NULL, run->comm, run->bucket_bytes, &zero->buckets);
    if (status != GYRE_SUCCESS) {
        close(zero);
        return status;
    }
    *self_p = zero;
    return GYRE_SUCCESS;
}

static gyre_status before_step(void *self, const struct gyre_nn_step *step)
{
    struct zero *zero = self;
    (void)step;
    gyre_nn_sync_begin(zero->buckets);
    return GYRE_SUCCESS;
}

static void passed(void *self, size_t lower)
{
    struct zero *zero = self;
    gyre_nn_sync_passed(zero->buckets, lower);
}

static gyre_status update(void *self, const struct gyre_nn_step *step)
{
    struct zero *zero = self;
    const struct gyre_nn_run *run = &zero->run;
    gyre_status status = gyre_nn_sync_reduce(zero->buckets);
    if (status != GYRE_SUCCESS)
        return status;
    gyre_dtype dtype = gyre_nn_dtype(run->model);
    struct gy_vector params = {dtype, gyre_nn_params(run->model)}, grads = {dtype, gyre_nn_grads(run->model)};
    double scale = gy_vector_clip(run->model, grads, 1 / (double)step->global_rows, run->clip_norm);
    gyre_nn_optimizer_begin(run->optimizer);
    gyre_nn_optimizer_update(run->optimizer, zero->first, zero->count, step->rate, scale);
    if (!run->comm)
        return GYRE_SUCCESS;
    status = gyre_all_gatherv(run->comm, gy_vector_at(params, zero->first), params.data, zero->counts, NULL, dtype);
    return status ? gyre_nn_fail(status, run->comm, "gathering the parts of the parameters") : status;
}

const gyre_nn_strategy gy_nn_zero = {
    .size = sizeof(gyre_nn_strategy),
    .name = "zero",
    .help = "sync with the optimiser's state divided over the ranks",
    .optimizer = GYRE_NN_SHARDED,
    .open = open,
    .close = close,
    .before_step = before_step,
    .passed = passed,
    .update = update,
};

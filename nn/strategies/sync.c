/* sync: every rank has the whole model and a part of each batch; gradients are summed, in buckets that leave while
 * backward runs; every rank makes the same update. With the same global batch it is the algorithm of one machine. */
#include "strategies/strategies.h"

#include <stdlib.h>

struct sync {
    gyre_nn_sync *buckets;
    double clip_norm;
};

static void close(void *self)
{
    struct sync *sync = self;
    gyre_nn_sync_detach(sync->buckets);
    free(sync);
}

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    struct sync *sync = calloc(1, sizeof(*sync));
    if (!sync)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the strategy sync");
    sync->clip_norm = run->clip_norm;
    gyre_status status = gyre_nn_sync_attach(run->model, run->optimizer, run->comm, run->bucket_bytes, &sync->buckets);
    if (status != GYRE_SUCCESS) {
        close(sync);
        return status;
    }
    *self_p = sync;
    return GYRE_SUCCESS;
}

static gyre_status before_step(void *self, const struct gyre_nn_step *step)
{
    struct sync *sync = self;
    (void)step;
    gyre_nn_sync_begin(sync->buckets);
    return GYRE_SUCCESS;
}

static void passed(void *self, size_t lower)
{
    struct sync *sync = self;
    gyre_nn_sync_passed(sync->buckets, lower);
}

static gyre_status update(void *self, const struct gyre_nn_step *step)
{
    struct sync *sync = self;
    return gyre_nn_sync_finish(sync->buckets, step->rate, step->global_rows, sync->clip_norm);
}

const gyre_nn_strategy gy_nn_sync = {
    .size = sizeof(gyre_nn_strategy),
    .name = "sync",
    .help = "gradients summed in buckets during backward",
    .open = open,
    .close = close,
    .before_step = before_step,
    .passed = passed,
    .update = update,
};

/* sync: every rank has the whole model and a part of each batch; gradients are summed, in buckets that leave while
 * backward runs; every rank makes the same update. With the same global batch it is the algorithm of one machine.
 * ahead: parameters move when the next forward needs them. A norm to clip by is of all gradients, and waits for
 * them. On one host communication is work of the cores that compute. There it does not overlap a forward, which
 * would only make the ranks meet more often. So ahead is for several hosts. */
#include "strategies/strategies.h"

#include <stdlib.h>

enum { NO, YES, AUTO };

static const char *const answers[] = {[NO] = "no", [YES] = "yes", [AUTO] = "auto", NULL};

static const struct gyre_nn_setting settings[] = {
    [GY_NN_SYNC_AHEAD] =
        {.name = "ahead",
         .help = "parameters move when the next forward needs them, not before it; without --clip; auto: between hosts",
         .value = AUTO,
         .choices = answers},
    {0},
};

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

bool gy_nn_sync_goes_ahead(double value, double clip_norm, gyre_comm *comm)
{
    gyre_rank_place place = {.size = sizeof(place)};
    if (clip_norm > 0)
        return false;
    if (value != AUTO || !comm)
        return value == YES;
    return gyre_comm_topology(comm, 0, &place) == GYRE_SUCCESS && place.hosts > 1;
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
    gyre_nn_sync_ahead(sync->buckets,
                       gy_nn_sync_goes_ahead(run->settings[GY_NN_SYNC_AHEAD], run->clip_norm, run->comm));
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
    .settings = settings,
    .open = open,
    .close = close,
    .before_step = before_step,
    .passed = passed,
    .update = update,
};

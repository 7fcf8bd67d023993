/* average: every H steps the parameters become their mean, x ← Σ w·x (local SGD; McMahan et al., 2017: FedAvg;
 * Stich, 2019). H = 0 averages once, at the end (Zinkevich et al., 2010). from: steps before that are averaged one by
 * one, as in post-local SGD (Lin et al., 2020). adaptive: H shrinks with the root of the loss (Wang and Joshi, 2019).
 * With H = 1 and plain SGD it is `sync` and one rank, for Σ w·(x − r·g/rows) = x − r·Σg/Σrows. */
#include "strategies/periodic.h"
#include "strategies/strategies.h"

enum { FROM = GY_NN_OWN, ADAPTIVE };

static const char *const answers[] = {"no", "yes", NULL};

static const struct gyre_nn_setting settings[] = {
    GY_NN_PERIOD_SETTINGS(8),
    {.name = "from", .most = 1e15, .choices = gy_nn_whole, .help = "steps before this one are averaged one by one"},
    {.name = "adaptive", .most = 1, .choices = answers, .help = "shorter periods as the loss falls"},
    {0},
};

static void combine(struct gy_nn_periodic *self, size_t first, size_t count)
{
    gy_nn_periodic_restart(self, first, count, self->mean);
}

static const struct gy_nn_outer outer = {.combine = combine};

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    void *self = NULL;
    gyre_status status = gy_nn_periodic_open(run, &outer, &self);
    if (status != GYRE_SUCCESS)
        return status;
    struct gy_nn_periodic *periodic = self;
    periodic->sync_until = run->settings[FROM];
    periodic->adaptive = run->settings[ADAPTIVE] > 0 && run->settings[GY_NN_EVERY] > 0;
    *self_p = self;
    return GYRE_SUCCESS;
}

const gyre_nn_strategy gy_nn_average = {
    .size = sizeof(gyre_nn_strategy),
    .name = "average",
    .help = "parameters averaged every H steps: local SGD, post-local, one-shot, adaptive",
    .settings = settings,
    GY_NN_PERIODIC_HOOKS,
};

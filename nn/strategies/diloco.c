/* diloco: an outer optimiser, SGD with Nesterov momentum, over H inner steps (Douillard et al., 2023; the inner
 * optimiser of the paper is AdamW: --optimizer adamw). With x' where the inner steps began:
 *
 *     g = x' − mean,   m ← μ·m + g,   x ← x' − lr·(g + μ·m)
 *
 * lr = 1, μ = 0 and plain SGD inside make it `average`. `delay` lets the exchange go on beside inner steps, as in
 * Streaming DiLoCo (Douillard et al., 2025). */
#include "strategies/periodic.h"
#include "strategies/strategies.h"

enum { RATE = GY_NN_OWN, MU };
enum { START, MOMENTUM };

static const struct gyre_nn_setting settings[] = {
    GY_NN_PERIOD_SETTINGS(16),
    {.name = "lr", .value = 0.7, .most = 10, .help = "outer learning rate"},
    {.name = "mu", .value = 0.9, .most = 0.999, .help = "outer momentum"},
    {0},
};

static void combine(struct gy_nn_periodic *self, size_t first, size_t count)
{
    struct gy_vector start = self->arrays[START], m = self->arrays[MOMENTUM];
    double rate = self->run.settings[RATE], mu = self->run.settings[MU];
    gy_vector_blend(first, count, 1, start, -1, self->mean);
    gy_vector_blend(first, count, 1, self->mean, mu, m);
    gy_vector_add(first, count, -rate, self->mean, start);
    gy_vector_add(first, count, -rate * mu, m, start);
    gy_nn_periodic_restart(self, first, count, start);
}

static const struct gy_nn_outer outer = {
    .arrays = {{"diloco.start", GYRE_NN_REPLICATED, true}, {"diloco.momentum", GYRE_NN_REPLICATED, false}},
    .combine = combine,
};

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    return gy_nn_periodic_open(run, &outer, self_p);
}

const gyre_nn_strategy gy_nn_diloco = {
    .size = sizeof(gyre_nn_strategy),
    .name = "diloco",
    .help = "an outer Nesterov optimiser over local steps, AdamW by preference",
    .settings = settings,
    GY_NN_PERIODIC_HOOKS,
};

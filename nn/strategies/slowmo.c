/* slowmo: slow momentum over local steps (Wang, Tantia, Ballas and Rabbat, 2020). With x' where the H steps began and γ
 * the learning rate:
 *
 *     u ← β·u + (x' − mean)/γ,   x ← x' − α·γ·u
 *
 * β = 0 and α = 1 make it `average`. */
#include "strategies/periodic.h"
#include "strategies/strategies.h"

enum { ALPHA = GY_NN_OWN, BETA };
enum { START, MOMENTUM };

static const struct gyre_nn_setting settings[] = {
    GY_NN_PERIOD_SETTINGS(8),
    {.name = "alpha", .value = 1, .most = 10, .help = "slow learning rate"},
    {.name = "beta", .value = 0.5, .most = 0.999, .help = "slow momentum"},
    {0},
};

static void combine(struct gy_nn_periodic *self, size_t first, size_t count)
{
    struct gy_vector start = self->arrays[START], u = self->arrays[MOMENTUM];
    double rate = self->counts[GY_NN_RATE] > 0 ? self->counts[GY_NN_RATE] : 1; /* at 0 nothing has moved */
    gy_vector_blend(first, count, 1, start, -1, self->mean);
    gy_vector_blend(first, count, 1 / rate, self->mean, self->run.settings[BETA], u);
    gy_vector_add(first, count, -self->run.settings[ALPHA] * rate, u, start);
    gy_nn_periodic_restart(self, first, count, start);
}

static const struct gy_nn_outer outer = {
    .arrays = {{"slowmo.start", GYRE_NN_REPLICATED, true}, {"slowmo.momentum", GYRE_NN_REPLICATED, false}},
    .combine = combine,
};

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    return gy_nn_periodic_open(run, &outer, self_p);
}

const gyre_nn_strategy gy_nn_slowmo = {
    .size = sizeof(gyre_nn_strategy),
    .name = "slowmo",
    .help = "averaging with a slow momentum",
    .settings = settings,
    GY_NN_PERIODIC_HOOKS,
};

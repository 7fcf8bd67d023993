/* bmuf: blockwise model-update filtering (Chen and Huo, 2016). With W the model and W' where a block of H steps began:
 *
 *     Δ ← η·Δ + ζ·(mean − W'),   W ← W + Δ,   the next block begins at W' = W          (classic)
 *                                                                  or at W' = W + η·Δ  (Nesterov)
 *
 * η = 0 and ζ = 1 make it `average`. The default η is the paper's 1 − 1/ranks. */
#include "strategies/periodic.h"
#include "strategies/strategies.h"

enum { ETA = GY_NN_OWN, ZETA, NESTEROV };
enum { START, DELTA };

static const char *const kinds[] = {"classic", "nesterov", NULL};

static const struct gyre_nn_setting settings[] = {
    GY_NN_PERIOD_SETTINGS(8),
    {.name = "eta", .value = -1, .least = -1, .most = 0.999, .help = "block momentum; -1: 1 - 1/ranks"},
    {.name = "zeta", .value = 1, .most = 10, .help = "block learning rate"},
    {.name = "momentum", .value = 1, .most = 1, .choices = kinds, .help = "kind of block momentum"},
    {0},
};

static double eta_of(const struct gy_nn_periodic *self)
{
    double eta = self->run.settings[ETA];
    return eta < 0 ? 1 - 1.0 / self->run.ranks : eta;
}

/* START moves by W' − W' = −η·Δ(before) + (1 + η)·Δ(after) with Nesterov, by Δ(after) without. */
static void combine(struct gy_nn_periodic *self, size_t first, size_t count)
{
    struct gy_vector start = self->arrays[START], delta = self->arrays[DELTA];
    double eta = eta_of(self), ahead = self->run.settings[NESTEROV] > 0 ? eta : 0;
    gy_vector_add(first, count, -1, start, self->mean);
    gy_vector_add(first, count, -ahead, delta, start);
    gy_vector_blend(first, count, self->run.settings[ZETA], self->mean, eta, delta);
    gy_vector_add(first, count, 1 + ahead, delta, start);
    gy_nn_periodic_restart(self, first, count, start);
}

static void model(struct gy_nn_periodic *self, struct gy_vector out)
{
    gy_vector_copy(0, self->count, self->arrays[START], out);
    if (self->run.settings[NESTEROV] > 0)
        gy_vector_add(0, self->count, -eta_of(self), self->arrays[DELTA], out);
}

static const struct gy_nn_outer outer = {
    .arrays = {{"bmuf.start", GYRE_NN_REPLICATED, true}, {"bmuf.delta", GYRE_NN_REPLICATED, false}},
    .combine = combine,
    .model = model,
};

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    return gy_nn_periodic_open(run, &outer, self_p);
}

const gyre_nn_strategy gy_nn_bmuf = {
    .size = sizeof(gyre_nn_strategy),
    .name = "bmuf",
    .help = "averaging with block momentum, classic or Nesterov",
    .settings = settings,
    GY_NN_PERIODIC_HOOKS,
};

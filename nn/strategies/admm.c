/* admm: consensus by the alternating direction method of multipliers (Boyd et al., 2011, chapter 7, scaled form). Each
 * rank minimises its own mean cost f under a pull to the consensus z, inexactly, by H steps of its optimiser:
 *
 *     gradient of f(x) + ρ/2·‖x − z + u‖²  is  ∇f + ρ·(x − z + u)
 *     every H steps:  z ← weighted mean of x + u,   u ← u + x − z
 *
 * u is each rank's own. It is 0 before the first exchange, so until then the mean of x + u is that of x. z is the
 * model. */
#include "strategies/periodic.h"
#include "strategies/strategies.h"

enum { RHO = GY_NN_OWN };
enum { CONSENSUS, DUAL };

static const struct gyre_nn_setting settings[] = {
    GY_NN_PERIOD_SETTINGS(8),
    {.name = "rho", .value = 0.1, .most = 1e6, .help = "pull of the consensus on a rank"},
    {0},
};

/* The gradients are sums over rows, of which the optimiser takes the mean. */
static void pull(struct gy_nn_periodic *self, size_t rows)
{
    double rho = self->run.settings[RHO] * (double)rows;
    gy_vector_add(0, self->count, rho, self->params, self->grads);
    gy_vector_add(0, self->count, -rho, self->arrays[CONSENSUS], self->grads);
    gy_vector_add(0, self->count, rho, self->arrays[DUAL], self->grads);
}

static void contribute(struct gy_nn_periodic *self, size_t first, size_t count, double weight)
{
    gy_vector_scale(first, count, weight, self->params, self->mean);
    gy_vector_add(first, count, weight, self->arrays[DUAL], self->mean);
}

static void combine(struct gy_nn_periodic *self, size_t first, size_t count)
{
    gy_vector_add(first, count, 1, self->sent, self->arrays[DUAL]);
    gy_vector_add(first, count, -1, self->mean, self->arrays[DUAL]);
    gy_vector_copy(first, count, self->mean, self->arrays[CONSENSUS]);
}

static void model(struct gy_nn_periodic *self, struct gy_vector out)
{
    gy_vector_copy(0, self->count, self->arrays[CONSENSUS], out);
}

static const struct gy_nn_outer outer = {
    .arrays = {{"admm.consensus", GYRE_NN_REPLICATED, true}, {"admm.dual", GYRE_NN_LOCAL, false}},
    .pull = pull,
    .contribute = contribute,
    .combine = combine,
    .model = model,
    .between = true,
};

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    return gy_nn_periodic_open(run, &outer, self_p);
}

const gyre_nn_strategy gy_nn_admm = {
    .size = sizeof(gyre_nn_strategy),
    .name = "admm",
    .help = "consensus by multipliers: each rank minimises its own cost, pulled to a common model",
    .settings = settings,
    GY_NN_PERIODIC_HOOKS,
};

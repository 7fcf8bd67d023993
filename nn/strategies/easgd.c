/* easgd: elastic averaging, synchronous (Zhang, Choromanska and LeCun, 2015). The ranks explore around a centre c, of
 * which every rank has a copy; every H steps
 *
 *     x ← x − α·(x − c),   c ← (1 − β)·c + β·mean,   both from the values before
 *
 * The model is c. With the optimisers momentum or nesterov it is the paper's EAMSGD. alpha 0: β/ranks, the paper's
 * choice; β = 1 with it: c is the mean of before. */
#include "strategies/periodic.h"
#include "strategies/strategies.h"

enum { ALPHA = GY_NN_OWN, BETA };

static const struct gyre_nn_setting settings[] = {
    GY_NN_PERIOD_SETTINGS(4),
    {.name = "alpha", .most = 1, .help = "pull of the centre on a rank; 0: beta/ranks"},
    {.name = "beta", .value = 0.9, .most = 1, .help = "pull of the mean on the centre"},
    {0},
};

static void combine(struct gy_nn_periodic *self, size_t first, size_t count)
{
    struct gy_vector centre = self->arrays[0];
    double beta = self->run.settings[BETA], alpha = self->run.settings[ALPHA];
    alpha = alpha > 0 ? alpha : beta / self->run.ranks;
    if (self->sent.data == self->params.data) {
        gy_vector_blend(first, count, alpha, centre, 1 - alpha, self->params);
    } else {
        gy_vector_add(first, count, alpha, centre, self->params);
        gy_vector_add(first, count, -alpha, self->sent, self->params);
    }
    gy_vector_blend(first, count, beta, self->mean, 1 - beta, centre);
}

static void model(struct gy_nn_periodic *self, struct gy_vector out)
{
    gy_vector_copy(0, self->count, self->arrays[0], out);
}

/* The centre is still where all ranks began, and by the paper's equation 1 − β of it stays. beta=1 gives the mean
 * alone. */
static void first_model(struct gy_nn_periodic *self, struct gy_vector out)
{
    double beta = self->run.settings[BETA];
    gy_vector_blend(0, self->count, 1 - beta, self->arrays[0], beta, out);
}

static const struct gy_nn_outer outer = {
    .arrays = {{"easgd.centre", GYRE_NN_REPLICATED, true}},
    .combine = combine,
    .model = model,
    .between = true,
    .first_model = first_model,
};

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    return gy_nn_periodic_open(run, &outer, self_p);
}

const gyre_nn_strategy gy_nn_easgd = {
    .size = sizeof(gyre_nn_strategy),
    .name = "easgd",
    .help = "elastic averaging around a common centre",
    .settings = settings,
    GY_NN_PERIODIC_HOOKS,
};

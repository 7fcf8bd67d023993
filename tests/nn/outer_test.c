/* The outer steps against their papers' equations. Every rank is fed gradients that are known; each rank then computes
 * by itself, in the plainest way, what all of them should have become after several periods: with unequal shards, for
 * each of the methods that average every H steps, with settings that hide nothing. Without delay; fp64, 1e-12. */
#include <gyre/nn.h>
#include <math.h>

#include "support/launcher.h"

#define RANKS 3
#define STEPS 7 /* three exchanges and a step more */
#define EVERY 2
#define MOST 512

static const double RATE = 0.05;

struct world {
    size_t count;
    double x[RANKS][MOST], mean[MOST];     /* the ranks' parameters; their weighted mean at an exchange */
    double start[MOST], momentum[MOST];    /* what an outer step remembers */
    double dual[RANKS][MOST], model[MOST]; /* admm; what the run would give */
};

/* Rows of a rank in a step, and the mean gradient of these. */
static size_t rows_of(int rank, int step)
{
    return (size_t)(2 + 3 * rank + step % 2);
}

static double gradient(int rank, int step, size_t i)
{
    return sin(1.0 + rank + 2.3 * step + 0.7 * (double)i);
}

static double weight_of(int rank, int last)
{
    double mine = 0, all = 0;
    for (int step = last + 1 - EVERY; step <= last; step++)
        for (int r = 0; r < RANKS; r++) {
            all += (double)rows_of(r, step);
            mine += r == rank ? (double)rows_of(r, step) : 0;
        }
    return mine / all;
}

typedef void (*outer_func)(struct world *w, size_t i);

static void all_become(struct world *w, size_t i, double value)
{
    for (int r = 0; r < RANKS; r++)
        w->x[r][i] = value;
}

static void average(struct world *w, size_t i)
{
    w->model[i] = w->mean[i];
    all_become(w, i, w->mean[i]);
}

/* model is W, start where the block began; η = 0.6, ζ = 0.8. */
static void bmuf(struct world *w, size_t i)
{
    w->momentum[i] = 0.6 * w->momentum[i] + 0.8 * (w->mean[i] - w->start[i]);
    w->model[i] += w->momentum[i];
    w->start[i] = w->model[i];
    all_become(w, i, w->start[i]);
}

static void bmuf_nesterov(struct world *w, size_t i)
{
    bmuf(w, i);
    w->start[i] = w->model[i] + 0.6 * w->momentum[i];
    all_become(w, i, w->start[i]);
}

static void slowmo(struct world *w, size_t i)
{
    w->momentum[i] = 0.7 * w->momentum[i] + (w->start[i] - w->mean[i]) / RATE;
    w->model[i] = w->start[i] = w->start[i] - 0.9 * RATE * w->momentum[i];
    all_become(w, i, w->start[i]);
}

static void diloco(struct world *w, size_t i)
{
    double d = w->start[i] - w->mean[i];
    w->momentum[i] = 0.8 * w->momentum[i] + d;
    w->model[i] = w->start[i] = w->start[i] - 0.6 * (d + 0.8 * w->momentum[i]);
    all_become(w, i, w->start[i]);
}

static void easgd(struct world *w, size_t i)
{
    for (int r = 0; r < RANKS; r++)
        w->x[r][i] -= 0.2 * (w->x[r][i] - w->model[i]);
    w->model[i] = (1 - 0.7) * w->model[i] + 0.7 * w->mean[i];
}

static void admm(struct world *w, size_t i)
{
    w->model[i] = w->mean[i]; /* of x + u */
    for (int r = 0; r < RANKS; r++)
        w->dual[r][i] += w->x[r][i] - w->model[i];
}

static const struct method {
    const char *strategy, *settings;
    outer_func outer;
    double rho;   /* of admm */
    bool between; /* the model is the same between exchanges */
} methods[] = {
    {"average", "every=2", average, 0, false},
    {"bmuf", "every=2,eta=0.6,zeta=0.8,momentum=classic", bmuf, 0, false},
    {"bmuf", "every=2,eta=0.6,zeta=0.8", bmuf_nesterov, 0, false},
    {"slowmo", "every=2,alpha=0.9,beta=0.7", slowmo, 0, false},
    {"diloco", "every=2,lr=0.6,mu=0.8", diloco, 0, false},
    {"easgd", "every=2,alpha=0.2,beta=0.7", easgd, 0, true},
    {"admm", "every=2,rho=0.3", admm, 0.3, true},
};

static void reference_step(struct world *w, const struct method *m, int step)
{
    for (size_t i = 0; i < w->count; i++) {
        for (int r = 0; r < RANKS; r++)
            w->x[r][i] -= RATE * (gradient(r, step, i) + m->rho * (w->x[r][i] - w->model[i] + w->dual[r][i]));
        if ((step + 1) % EVERY != 0)
            continue;
        w->mean[i] = 0;
        for (int r = 0; r < RANKS; r++)
            w->mean[i] += weight_of(r, step) * (w->x[r][i] + w->dual[r][i]);
        m->outer(w, i);
    }
}

/* Between exchanges: the mean of the ranks by the rows since, which is one step here. */
static void reference_model(struct world *w, const struct method *m)
{
    double all = 0;
    for (int r = 0; r < RANKS; r++)
        all += (double)rows_of(r, STEPS - 1);
    for (size_t i = 0; i < w->count && !m->between; i++) {
        w->model[i] = 0;
        for (int r = 0; r < RANKS; r++)
            w->model[i] += (double)rows_of(r, STEPS - 1) / all * w->x[r][i];
    }
}

static void expect(const struct method *m, const char *what, const double *got, const double *wanted, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(got[i] - wanted[i]));
    if (!(largest < 1e-12))
        rank_fail("%s:%s: %s differs by %g", m->strategy, m->settings, what, largest);
}

static void step_here(struct gyre_nn_run *run, int step)
{
    double *grads = gyre_nn_grads(run->model);
    size_t rows = rows_of(run->rank, step), all = 0;
    for (int r = 0; r < RANKS; r++)
        all += rows_of(r, step);
    struct gyre_nn_step now = {.number = (uint64_t)step, .rate = RATE, .rows = rows, .global_rows = all};
    for (size_t i = 0; i < gyre_nn_param_count(run->model); i++)
        grads[i] = (double)rows * gradient(run->rank, step, i);
    OK(run->comm, run->strategy->update(run->self, &now));
}

static void check(gyre_comm *comm, const struct method *m)
{
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    struct world *w = calloc(1, sizeof *w);
    struct gyre_nn_run run;
    gyre_nn_model *model = NULL;
    size_t hidden = 5;
    OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT64, 1, &model));
    OK(comm, gyre_nn_run_open(model, comm, &config, gyre_nn_strategy_find(m->strategy), m->settings, 256, 0, &run));
    w->count = gyre_nn_param_count(model);
    CHECK(w->count <= MOST);
    const double *params = gyre_nn_params(model);
    for (size_t i = 0; i < w->count; i++) {
        all_become(w, i, params[i]);
        w->start[i] = w->model[i] = params[i];
    }
    double *consensus = calloc(w->count, sizeof *consensus);
    for (int step = 0; step < STEPS; step++) {
        step_here(&run, step);
        reference_step(w, m, step);
        expect(m, "a rank", params, w->x[run.rank], w->count);
        if ((step + 1) % EVERY == 0) {
            OK(comm, run.strategy->consensus(run.self, consensus));
            expect(m, "the model", consensus, w->model, w->count);
        }
    }
    reference_model(w, m);
    OK(comm, gyre_nn_run_show(&run));
    expect(m, "the model between exchanges", params, w->model, w->count);
    gyre_nn_run_hide(&run);
    expect(m, "a rank after it was hidden", params, w->x[run.rank], w->count);
    gyre_nn_run_close(&run);
    gyre_nn_free(model);
    free(consensus);
    free(w);
}

static void body(int rank)
{
    (void)rank;
    gyre_comm *comm = rank_begin(60);
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        check(comm, &methods[i]);
    OK(comm, gyre_comm_destroy(comm));
}

int main(void)
{
    return launch(RANKS, body, 60, "outer steps") ? 0 : 1;
}

/* Strategies that do not wait at every step.
 *
 * - stale:steps=0 has the bits of sync, with Adam and clipping too
 * - stale:steps=k on f = λx²/2 converges for rλ at 0.95 of 2·cos(kπ/(2k + 1)), and diverges at 1.05 of it
 * - async keeps Σ w·x, so that gossip alone leaves the mean where it was, in step (a doubly stochastic graph) and, with
 *   fade=0, whatever the timing; and it brings the ranks to it
 * - one step of async with plain SGD, on unequal shards, has sync's as its mean
 * - a rank that makes each step only when the others have made ten does not hold up async; sync follows it step by
 *   step, and stale:steps=s goes s steps further and no more (counted, not timed)
 * - a checkpoint of async has every rank's state: a run that goes on from it by no step gives the same model
 * - the state of stale has the sums that were under way when it was asked for
 * - the histogram of staleness counts what was mixed in */
#include <gyre/nn.h>
#include <math.h>
#include <stdatomic.h>

#include "support/launcher.h"

#define RANKS 4
#define SLOW 3
#define STEPS 60

static struct {
    atomic_int begun[RANKS]; /* steps */
    atomic_int asked;        /* for the state of stale */
    atomic_int lead;         /* the most steps that a rank was ahead of the slow one */
} * shared;

static char file[64];
static gyre_nn_dataset *data;

static gyre_nn_model *make(gyre_dtype dtype)
{
    gyre_nn_model *model = NULL;
    size_t hidden = 12;
    OK(NULL, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_TANH, 10, dtype, 1, &model));
    return model;
}

static struct gyre_nn_train_options options_of(const gyre_nn_strategy *strategy, const char *settings)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    options.strategy = strategy;
    options.settings = settings;
    options.batch = 61;
    options.clip_norm = 1;
    options.bucket_bytes = 1024;
    options.stop_after = STEPS;
    return options;
}

static struct gyre_nn_train_result train(gyre_comm *comm, const struct gyre_nn_train_options *options)
{
    struct gyre_nn_train_result result;
    gyre_nn_model *model = make(GYRE_FLOAT32);
    if (gyre_nn_train(model, data, comm, options, &result) != GYRE_SUCCESS)
        rank_fail("%s:%s: %s", options->strategy->name, options->settings ? options->settings : "",
                  gyre_nn_last_error());
    gyre_nn_free(model);
    return result;
}

static void no_staleness_is_sync(gyre_comm *comm)
{
    struct gyre_nn_train_options a = options_of(gyre_nn_strategy_find("sync"), NULL);
    struct gyre_nn_train_options b = options_of(gyre_nn_strategy_find("stale"), "steps=0");
    struct gyre_nn_train_options c = options_of(gyre_nn_strategy_find("stale"), "steps=1");
    uint64_t wanted = train(comm, &a).params_xxh3;
    CHECK(train(comm, &b).params_xxh3 == wanted);
    CHECK(train(comm, &c).params_xxh3 != wanted); /* the comparison can fail */
}

/* |x| after some steps, of which x begins at 1. Every rank has the gradient λx of one row. */
static double descend(gyre_comm *comm, int delay, double share)
{
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    double lambda = 3, bound = 2 * cos(delay * M_PI / (2 * delay + 1)), *params, largest = 0;
    struct gyre_nn_run run;
    char settings[24];
    gyre_nn_model *model = NULL;
    OK(comm, gyre_nn_mlp(1, NULL, 0, GYRE_NN_TANH, 1, GYRE_FLOAT64, 1, &model));
    size_t count = gyre_nn_param_count(model);
    params = gyre_nn_params(model);
    params[0] = 1;
    snprintf(settings, sizeof settings, "steps=%d", delay);
    OK(comm, gyre_nn_run_open(model, comm, &config, gyre_nn_strategy_find("stale"), settings, 0, 0, &run));
    for (uint64_t step = 0; step < 1500; step++) {
        struct gyre_nn_step now = {
            .number = step, .rate = share * bound / lambda, .rows = 1, .global_rows = (size_t)run.ranks};
        gyre_nn_zero_grads(model);
        OK(comm, run.strategy->before_step(run.self, &now));
        for (size_t i = 0; i < count; i++)
            ((double *)gyre_nn_grads(model))[i] = lambda * params[i];
        run.strategy->passed(run.self, 0);
        OK(comm, run.strategy->update(run.self, &now));
        largest = step < 1480 ? 0 : fmax(largest, fabs(params[0]));
        if (!(fabs(params[0]) < 1e30))
            break;
    }
    largest = fmax(largest, fabs(params[0]));
    gyre_nn_run_close(&run);
    gyre_nn_free(model);
    return largest;
}

static void delays(gyre_comm *comm)
{
    static const int tried[] = {0, 1, 2, 5};
    for (size_t i = 0; i < sizeof tried / sizeof tried[0]; i++) {
        double below = descend(comm, tried[i], 0.95), above = descend(comm, tried[i], 1.05);
        if (gyre_comm_rank(comm) == 0)
            printf("delay %d: |x| from 1 to %.3g below the bound, to %.3g above it\n", tried[i], below, above);
        if (!(below < 1e-2) || !(above > 1e2))
            rank_fail("delay %d: %g below the bound, %g above it", tried[i], below, above);
    }
}

/* Ranks begin apart and gossip at their own pace; no rank trains. */
static void mean_stays(gyre_comm *comm, const char *settings, int rounds, bool pauses)
{
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    struct gyre_nn_run run;
    gyre_nn_model *model = make(GYRE_FLOAT64);
    size_t count = gyre_nn_param_count(model);
    double *params = gyre_nn_params(model), *after = calloc(count, sizeof *after), *mean = calloc(count, sizeof *mean);
    int rank = gyre_comm_rank(comm);
    CHECK(after && mean);
    OK(comm, gyre_nn_run_open(model, comm, &config, gyre_nn_strategy_find("async"), settings, 0, 0, &run));
    for (size_t i = 0; i < count; i++)
        params[i] = sin(1.0 + 7.0 * rank + 0.3 * (double)i);
    OK(comm, gyre_all_reduce(comm, params, mean, count, GYRE_FLOAT64, GYRE_AVERAGE));
    for (int round = 0; round < rounds; round++) {
        struct gyre_nn_step now = {.number = (uint64_t)round, .rate = 1, .global_rows = 1};
        OK(comm, run.strategy->update(run.self, &now));
        if (pauses && (round * 7 + rank * 3) % 5 == 0)
            usleep((useconds_t)(100 * rank));
    }
    double apart = 0, moved = 0;
    OK(comm, run.strategy->consensus(run.self, after));
    for (size_t i = 0; i < count; i++) {
        apart = fmax(apart, fabs(params[i] - mean[i]));
        moved = fmax(moved, fabs(after[i] - mean[i]));
    }
    if (rank == 0)
        printf("gossip %s: the mean moved by %.3g, rank 0 is %.3g from it\n", settings, moved, apart);
    if (!(moved < 1e-12))
        rank_fail("gossip %s moved the mean by %g", settings, moved);
    if (!pauses && !(apart < 1e-9))
        rank_fail("gossip %s: rank %d is still %g from the mean", settings, rank, apart);
    gyre_nn_run_close(&run);
    gyre_nn_free(model);
    free(after);
    free(mean);
}

/* Rank 0 asks for the state of stale while its sum of gradients cannot have been made yet: the others send theirs only
 * when it has asked. It gets the sum, not what was there. */
static void state_is_waited_for(gyre_comm *comm)
{
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    struct gyre_nn_array arrays[GYRE_NN_MOST_ARRAYS];
    struct gyre_nn_step now = {.number = 0, .rate = 1, .rows = 1, .global_rows = 1};
    struct gyre_nn_run run;
    gyre_nn_model *model = make(GYRE_FLOAT64);
    size_t n = 0;
    int rank = gyre_comm_rank(comm), ranks = gyre_comm_size(comm);
    atomic_store(&shared->asked, 0);
    OK(comm, gyre_nn_run_open(model, comm, &config, gyre_nn_strategy_find("stale"), "steps=1", 0, 0, &run));
    OK(comm, gyre_barrier(comm));
    while (rank > 0 && atomic_load(&shared->asked) == 0)
        usleep(50);
    OK(comm, run.strategy->before_step(run.self, &now));
    for (size_t i = 0; i < gyre_nn_param_count(model); i++)
        ((double *)gyre_nn_grads(model))[i] = rank + 1;
    run.strategy->passed(run.self, 0);
    OK(comm, run.strategy->update(run.self, &now));
    atomic_store(&shared->asked, 1);
    OK(comm, run.strategy->arrays(run.self, arrays, &n));
    const double *sum = arrays[0].data;
    CHECK(strcmp(arrays[0].name, "stale.0") == 0);
    for (size_t i = 0; i < arrays[0].count; i++)
        if (sum[i] != ranks * (ranks + 1) / 2.0)
            rank_fail("element %zu of the gradients that are saved is %g, no sum", i, sum[i]);
    gyre_nn_run_close(&run);
    gyre_nn_free(model);
}

/* ---- a slow rank ---- */

static const gyre_nn_strategy *inner;
static gyre_comm *world;
static int ahead; /* the slow rank begins step k when all others have begun `ahead` more, or `times` as many, steps */
static bool tenfold;

static void wait_for_others(int step)
{
    int wanted = tenfold ? 10 * step : step + ahead;
    wanted = wanted < STEPS ? wanted : STEPS;
    for (int r = 0; r < RANKS; r++)
        while (r != SLOW && atomic_load(&shared->begun[r]) < wanted) {
            if (!tenfold)
                OK(world, gyre_progress(world)); /* as between layers; tenfold, the rank does not even call gyre */
            usleep(50);
        }
}

static gyre_status slow_before_step(void *self, const struct gyre_nn_step *step)
{
    int rank = gyre_comm_rank(world), mine = (int)step->number + 1;
    if (rank == SLOW)
        wait_for_others((int)step->number);
    atomic_store(&shared->begun[rank], mine);
    int lead = mine - atomic_load(&shared->begun[SLOW]), most = atomic_load(&shared->lead);
    while (lead > most && !atomic_compare_exchange_weak(&shared->lead, &most, lead))
        ;
    return inner->before_step ? inner->before_step(self, step) : GYRE_SUCCESS;
}

/* The most steps that a rank was ahead of the slow one. */
static int lead_of(gyre_comm *comm, const char *name, const char *settings, bool times_ten, int more, double *staleness)
{
    inner = gyre_nn_strategy_find(name);
    world = comm;
    tenfold = times_ten;
    ahead = more;
    atomic_store(&shared->begun[gyre_comm_rank(comm)], 0);
    if (gyre_comm_rank(comm) == 0)
        atomic_store(&shared->lead, 0);
    OK(comm, gyre_barrier(comm));
    struct gyre_nn_strategy slow = *inner;
    slow.before_step = slow_before_step;
    struct gyre_nn_train_options options = options_of(&slow, settings);
    options.check_every = strcmp(name, "async") == 0 ? 10 : 0; /* which is no meeting there */
    options.staleness = staleness;
    train(comm, &options);
    OK(comm, gyre_barrier(comm));
    int lead = atomic_load(&shared->lead);
    OK(comm, gyre_barrier(comm)); /* all ranks have read it */
    return lead;
}

static void a_slow_rank(gyre_comm *comm)
{
    double counts[GYRE_NN_STALENESS_BINS], mixed = 0;
    int lead = lead_of(comm, "async", NULL, true, 0, counts);
    for (int i = 0; i < GYRE_NN_STALENESS_BINS; i++)
        mixed += counts[i];
    if (gyre_comm_rank(comm) == 0)
        printf("async: up to %d steps ahead of the slow rank; %g messages, %g of them 15 steps old or more\n", lead,
               mixed, counts[GYRE_NN_STALENESS_BINS - 1]);
    CHECK(lead >= 9 * STEPS / 10 - 1 && mixed > 0);
    lead = lead_of(comm, "sync", NULL, false, 1, NULL);
    if (lead != 1)
        rank_fail("sync is %d steps ahead of the slow rank, not 1", lead);
    lead = lead_of(comm, "stale", "steps=4", false, 5, counts);
    if (lead != 5 || counts[4] != STEPS - 4)
        rank_fail("stale:steps=4 is %d steps ahead of the slow rank, not 5; %g updates of 4 steps", lead, counts[4]);
}

/* From equal parameters, one step of plain SGD on unequal shards: the consensus of async is what sync's update
 * gives. */
static void one_step_is_sync(gyre_comm *comm)
{
    static const char *const names[] = {"sync", "async"};
    double *params[2], largest = 0;
    size_t count = 0;
    for (int i = 0; i < 2; i++) {
        struct gyre_nn_train_options options = options_of(gyre_nn_strategy_find(names[i]), i ? "wait=yes" : NULL);
        gyre_nn_model *model = make(GYRE_FLOAT64);
        options.optimizer = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
        options.schedule.rate = 0.3;
        options.clip_norm = 0;
        options.stop_after = 1;
        OK(comm, gyre_nn_train(model, data, comm, &options, NULL));
        count = gyre_nn_param_count(model);
        params[i] = malloc(count * sizeof(double));
        memcpy(params[i], gyre_nn_params(model), count * sizeof(double));
        gyre_nn_free(model);
    }
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(params[0][i] - params[1][i]));
    if (!(largest < 1e-14))
        rank_fail("one step of async differs from sync's by %g", largest);
    free(params[0]);
    free(params[1]);
}

static void state_is_kept(gyre_comm *comm)
{
    struct gyre_nn_train_options options = options_of(gyre_nn_strategy_find("async"), NULL);
    options.stop_after = 33;
    options.checkpoint = file;
    uint64_t hash = train(comm, &options).params_xxh3;
    options.checkpoint = NULL;
    options.resume = file;
    CHECK(train(comm, &options).params_xxh3 == hash);
    options.stop_after = 50;
    CHECK(train(comm, &options).params_xxh3 != hash);
    OK(comm, gyre_barrier(comm)); /* the file is for all ranks */
}

static void body(int rank)
{
    (void)rank;
    gyre_comm *comm = rank_begin(100);
    OK(comm, gyre_nn_dataset_open("digits", &data));
    no_staleness_is_sync(comm);
    delays(comm);
    mean_stays(comm, "wait=yes", 80, false);
    mean_stays(comm, "wait=yes,graph=ring", 400, false);
    mean_stays(comm, "fade=0", 300, true);
    mean_stays(comm, "every=2,graph=ring,fade=0", 300, true);
    one_step_is_sync(comm);
    state_is_kept(comm);
    state_is_waited_for(comm);
    if (gyre_comm_size(comm) == RANKS)
        a_slow_rank(comm);
    gyre_nn_dataset_free(data);
    OK(comm, gyre_comm_destroy(comm));
}

int main(void)
{
    char folder[] = "/tmp/gyre-async-XXXXXX";
    setvbuf(stdout, NULL, _IOLBF, 0);
    shared = launch_share(sizeof *shared);
    CHECK(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/checkpoint", folder);
    bool good = launch(RANKS, body, 100, "four ranks");
    good = launch(3, body, 100, "three ranks") && good;
    setenv("GYRE_TRANSPORT", "tcp", 1);
    setenv("GYRE_PROGRESS_THREAD", "1", 1);
    good = launch(2, body, 100, "two ranks over TCP") && good;
    unlink(file);
    rmdir(folder);
    return good ? 0 : 1;
}

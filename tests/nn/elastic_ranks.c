/* The hooks stand around those of the library's strategy: what the test does to a rank happens where that would
 * compute. */
#include "elastic_ranks.h"

#include <sys/resource.h>

struct page *page;
struct plan plan;

static const gyre_nn_strategy *inner;
static gyre_nn_strategy outer;
static uint64_t now_step;
static int own, ranks_now;
static double last_loss, least_loss, latest_loss;

static void perhaps_die(enum place place)
{
    for (size_t i = 0; i < plan.nkills; i++)
        if (plan.kills[i].rank == own && plan.kills[i].step == now_step && plan.kills[i].place == place)
            raise(SIGKILL);
}

/* The first time as the run is made, the second on rank 0 alone, or on the rank that replaces it: before the others
 * have the state. */
static gyre_status open_strategy(const struct gyre_nn_run *run, void **self_p)
{
    static int opened;
    if (opened++ == 1)
        perhaps_die(BEGINNING);
    return inner->open(run, self_p);
}

/* From step 10 to step 40 nothing more can be opened. */
static void fill_up(uint64_t number)
{
    static struct rlimit before;
    if (!plan.full || own != 1 || (number != 10 && number != 40))
        return;
    if (number == 10)
        CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    struct rlimit now = {.rlim_cur = number == 10 ? 3 : before.rlim_cur, .rlim_max = before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &now) == 0);
}

/* Nine times as long as since the last time. */
static void lag(bool begins)
{
    static int64_t since;
    int64_t ns = since ? 9 * (rank_now_ns() - since) : 0;
    if (!plan.slow || own != 1)
        return;
    if (begins && (now_step == 3 || now_step == 7 || now_step == 31))
        ns = 2500000000;
    else if (ns > 50000000) /* where it was not slow itself, but waited for a machine that is */
        ns = 50000000;
    usleep((useconds_t)(ns / 1000));
    since = rank_now_ns();
}

static gyre_status before_step(void *self, const struct gyre_nn_step *step)
{
    fill_up(step->number);
    now_step = step->number;
    atomic_store(&page->step[own], now_step);
    page->ranks_then[now_step][own] = ranks_now;
    memset(page->rows[now_step][own], 0, BATCH);
    lag(true);
    perhaps_die(BEFORE);
    while (now_step > LAST_DEATH && atomic_load(&page->deaths) > 0)
        usleep(1000);
    if (ranks_now < plan.awaited && now_step < 60)
        usleep(200000);
    return inner->before_step ? inner->before_step(self, step) : GYRE_SUCCESS;
}

static void passed(void *self, size_t lower)
{
    lag(false);
    perhaps_die(BACKWARD);
    if (inner->passed)
        inner->passed(self, lower);
}

static gyre_status update(void *self, const struct gyre_nn_step *step)
{
    gyre_status status = inner->update(self, step);
    if (status == GYRE_SUCCESS)
        perhaps_die(UPDATED);
    return status;
}

/* As the training loop divides where a strategy does not, and written down. */
static int rank_now;
static bool piece(void *self, size_t rows, size_t index, size_t *first_p, size_t *count_p)
{
    if (inner->piece) {
        if (!inner->piece(self, rows, index, first_p, count_p))
            return false;
    } else {
        if (index > 0)
            return false;
        gyre_nn_shard(rows, rank_now, ranks_now, first_p, count_p);
    }
    for (size_t i = 0; i < *count_p; i++)
        page->rows[now_step][own][*first_p + i]++;
    return true;
}

static void on_change(void *user, const gyre_comm *comm, const struct gyre_nn_membership *now)
{
    (void)user;
    ranks_now = now->ranks;
    rank_now = comm ? gyre_comm_rank(comm) : 0;
    if (rank_now != 0 || plan.replays)
        return;
    while (page->logs > 0 && page->log[page->logs - 1].step >= now->step)
        page->logs--;
    if (page->logs < LOG_MOST)
        page->log[page->logs++] = *now;
}

static void on_report(void *user, const struct gyre_nn_report *report)
{
    (void)user;
    last_loss = report->loss;
    latest_loss = report->test_loss;
    least_loss = least_loss == 0 || latest_loss < least_loss ? latest_loss : least_loss;
}

void elastic_rank(int rank)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_elastic elastic = {.size = sizeof elastic,
                                      .least = plan.least,
                                      .changed = on_change,
                                      .grow = plan.joiners || plan.full ? 0.01 : 0,
                                      .replay = plan.replay,
                                      .replays = plan.replays};
    struct gyre_nn_train_result result = {0};
    gyre_nn_dataset *data = NULL;
    gyre_nn_model *model = NULL;
    size_t hidden = 40;
    gyre_comm *comm = rank_begin(100);
    own = rank;
    ranks_now = gyre_comm_size(comm);
    inner = gyre_nn_strategy_find(plan.strategy);
    outer = *inner;
    outer.open = open_strategy;
    outer.before_step = before_step;
    outer.passed = passed;
    outer.update = update;
    outer.piece = piece;
    options.strategy = &outer;
    options.settings = plan.settings;
    options.checkpoint = plan.checkpoint;
    options.resume = plan.resume;
    options.stop_after = plan.stop_after;
    options.epochs = 4;
    options.batch = BATCH;
    options.optimizer = gyre_nn_optimizer_defaults(plan.optimizer);
    options.bucket_bytes = 4096;
    options.check_every = 5;
    options.report = on_report;
    if (plan.worse) {
        options.patience = 9;
        options.schedule = (struct gyre_nn_schedule){.kind = GYRE_NN_STEP, .rate = 3e-3, .factor = 10, .every = 23};
    }
    OK(comm, gyre_nn_dataset_open("digits", &data));
    OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, plan.dtype, 1, &model));
    struct end *end = &page->end[rank];
    end->status = gyre_nn_train_elastic(model, data, &comm, &options, &elastic, &result);
    snprintf(end->sentence, sizeof end->sentence, "%s", end->status ? gyre_nn_last_error() : "");
    end->hash = result.params_xxh3;
    end->ranks = result.ranks;
    end->loss = last_loss;
    end->least = least_loss;
    end->latest = latest_loss;
    end->given = result.loss;
    CHECK(gyre_nn_param_count(model) <= PARAMS_MOST);
    if (end->status == GYRE_SUCCESS && gyre_comm_rank(comm) == 0 && plan.dtype == GYRE_FLOAT64)
        memcpy(page->params, gyre_nn_params(model), gyre_nn_param_count(model) * sizeof(double));
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
    OK(comm, gyre_comm_destroy(comm));
}

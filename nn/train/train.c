/* The training loop, written with public calls only: copy it and change it.
 *
 *     for each epoch: shuffle          the same order on every rank
 *       for each global batch: my shard → forward, evaluate, backward → update; report, checkpoint
 *
 * The strategy decides what ranks exchange, and when.
 * A resumed run needs the model, the optimiser, the strategy's state and a position. Everything else is a pure
 * function of these. Costs are summed in multiples of 2^-20. So their sum is exact, and depends neither on the order
 * nor on how often a checkpoint gathered it. The loss that a resumed run reports is that of the uninterrupted run,
 * bit for bit. */
#include "base/error.h"
#include "base/ready.h"
#include "base/require.h"
#include "elastic/elastic.h"
#include "io/trace.h"
#include "model/evaluate.h"
#include "run/config_agreement.h"
#include "run/run_state.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct run {
    gyre_nn_model *model;
    const gyre_nn_dataset *data;
    gyre_comm *comm; /* the caller's, for the beginning: part.comm is what counts later */
    struct gyre_nn_train_options options;
    struct gyre_nn_run part;       /* with the optimiser, the strategy, and the ranks that there are now */
    struct gy_nn_elastic *elastic; /* NULL: a failure ends the run */
    struct gyre_nn_position position;
    struct gy_nn_best best; /* where there is patience */
    bool zeros;             /* gradients are 0 from a step's beginning on, not only once backward has written them */
    uint32_t *order;
    void *x;
    int32_t *labels;
    double cost;      /* of this rank's samples of this epoch; rank 0's has those from before a resume as well. In an
                       * elastic run of all ranks' samples, on every rank */
    uint64_t trained; /* global samples in this run */
    int64_t busy;     /* ns of training */
    struct gyre_nn_train_result result;
};

struct gyre_nn_train_options gyre_nn_train_defaults(void)
{
    return (struct gyre_nn_train_options){
        .size = sizeof(struct gyre_nn_train_options),
        .batch = 64,
        .epochs = 30,
        .accumulate = 1,
        .seed = 1,
        .optimizer = gyre_nn_optimizer_defaults(GYRE_NN_ADAM),
        .schedule = {.kind = GYRE_NN_COSINE, .rate = 3e-3, .factor = 0.1, .every = 1000},
        .bucket_bytes = 256 << 10,
        .check_every = 100,
    };
}

static bool is_rate(double rate)
{
    return rate >= 0 && isfinite(rate);
}

static gyre_status check_numbers(const struct gyre_nn_train_options *o)
{
    const struct gyre_nn_schedule *s = &o->schedule;
    if (o->batch == 0 || o->epochs == 0 || o->accumulate == 0)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "batch, epochs and accumulate are at least 1");
    if (o->accumulate > INT_MAX)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "accumulate: a batch is computed in at most %d pieces, not %zu",
                          INT_MAX, o->accumulate);
    if (!(o->clip_norm >= 0))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "clip_norm is %g: it is a norm, or 0", o->clip_norm);
    if ((unsigned)s->kind > GYRE_NN_COSINE)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "there is no schedule number %d", (int)s->kind);
    if (!is_rate(s->rate) || !is_rate(s->floor) || !is_rate(s->factor))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                          "a schedule's rate, floor and factor are numbers of at least 0, not %g, %g and %g", s->rate,
                          s->floor, s->factor);
    return GYRE_SUCCESS;
}

static gyre_status check(const gyre_nn_model *model, const gyre_nn_dataset *data,
                         const struct gyre_nn_train_options *options)
{
    if (options->size != sizeof(*options))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "options.size is %zu, not %zu: start from gyre_nn_train_defaults()",
                          options->size, sizeof(*options));
    gyre_status status = check_numbers(options);
    if (status != GYRE_SUCCESS)
        return status;
    if (options->accumulate > 1 && options->strategy && (options->strategy->piece || options->strategy->compute))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "strategy %s cuts batches by itself: accumulate has to be 1",
                          options->strategy->name);
    return gy_nn_check_data(model, data);
}

static gyre_status resume(struct run *run)
{
    if (!run->options.resume)
        return GYRE_SUCCESS;
    gyre_status status = gy_nn_run_resume(&run->part, run->options.resume, &run->best, &run->position);
    run->cost = run->part.rank == 0 ? run->position.cost : 0;
    return status;
}

/* Each rank may be left with the whole batch. */
static gyre_status open_elastic(struct run *run)
{
    run->elastic->resume = run->options.resume;
    run->elastic->best = run->best.params;
    gyre_status status = gy_nn_elastic_open(run->elastic, &run->part, &run->position);
    run->cost = run->position.cost;
    return status;
}

static bool of_library(const gyre_nn_strategy *strategy)
{
    const gyre_nn_strategy *known = NULL;
    for (size_t i = 0; (known = gyre_nn_strategy_at(i)) && known != strategy; i++)
        ;
    return known != NULL;
}

/* Of this library's strategies, only those need zeros whose ranks may have no piece, or a part of the model: no
 * before_step of this library reads gradients. A user's may, and may add to them. */
static bool needs_zeros(const gyre_nn_strategy *strategy)
{
    return strategy->piece || strategy->compute || (strategy->before_step && !of_library(strategy));
}

static gyre_status open_run(struct run *run)
{
    const struct gyre_nn_train_options *o = &run->options;
    gyre_status status = gyre_nn_run_open(run->model, run->elastic ? NULL : run->comm, &o->optimizer, o->strategy,
                                          o->settings, o->bucket_bytes, o->clip_norm, &run->part);
    if (status != GYRE_SUCCESS || !run->part.strategy) /* a run that is open has one */
        return status;
    run->zeros = needs_zeros(run->part.strategy);
    size_t ranks = run->elastic || !run->comm ? 1 : (size_t)gyre_comm_size(run->comm);
    size_t rows = o->batch / ranks + (o->batch % ranks != 0);
    rows = run->part.strategy->piece ? o->batch : rows / o->accumulate + (rows % o->accumulate != 0);
    rows = rows > run->data->ntrain ? run->data->ntrain : rows;
    run->order = calloc(run->data->ntrain, sizeof(*run->order));
    run->labels = calloc(rows * run->data->steps, sizeof(*run->labels));
    run->x = calloc(rows * run->data->features, gyre_dtype_size(gyre_nn_dtype(run->model)));
    bool keeps = o->patience > 0;
    if (keeps)
        run->best.params = calloc(gyre_nn_param_count(run->model), gyre_dtype_size(gyre_nn_dtype(run->model)));
    if (!run->order || !run->labels || !run->x || (keeps && !run->best.params))
        status = gy_nn_fail(GYRE_NO_MEMORY, "no memory for a batch of %zu samples", rows);
    if (!run->elastic)
        status = gy_nn_agree_ready(run->comm, status);
    if (status != GYRE_SUCCESS)
        return status;
    return run->elastic ? open_elastic(run) : resume(run);
}

static void close_run(struct run *run)
{
    gyre_nn_trace_attach(run->model, NULL);
    if (run->part.strategy)
        gyre_nn_run_close(&run->part);
    free(run->order);
    free(run->labels);
    free(run->x);
    free(run->best.params);
}

/* One piece of the global batch, which begins at place `first` of it; only the last of the rank's shard lets its
 * gradients leave. */
static gyre_status compute(struct run *run, const uint32_t *picks, size_t first, size_t count, bool last,
                           struct gyre_nn_step *now)
{
    uint32_t *rows = malloc((count ? count : 1) * sizeof(*rows));
    if (!rows)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for %zu samples", count);
    for (size_t i = 0; i < count; i++)
        rows[i] = run->data->train[picks[first + i]];
    gyre_nn_dataset_gather(run->data, rows, count, gyre_nn_dtype(run->model), run->x, run->labels);
    free(rows);
    double cost = 0;
    gyre_nn_train_mode(run->model, run->position.seed, run->position.step, first);
    gyre_status status = gyre_nn_forward(run->model, run->x, count, NULL);
    status = status ? status
                    : gyre_nn_evaluate(run->model, gy_nn_labelled(run->model) ? run->labels : NULL, NULL, &cost, NULL);
    status = status ? status : gyre_nn_backward(run->model, last ? run->part.strategy->passed : NULL, run->part.self);
    now->cost += rint(cost * 0x1p20) * 0x1p-20;
    now->rows += count * gyre_nn_output_steps(run->model);
    return status;
}

/* The index-th piece that this rank computes of a batch of `rows`. */
static bool next_piece(const struct run *run, size_t rows, size_t index, size_t *first_p, size_t *count_p)
{
    size_t first, count, from;
    if (run->part.strategy->piece)
        return run->part.strategy->piece(run->part.self, rows, index, first_p, count_p);
    if (index == run->options.accumulate)
        return false;
    gyre_nn_shard(rows, run->part.rank, run->part.ranks, &first, &count);
    gyre_nn_shard(count, (int)index, (int)run->options.accumulate, &from, count_p);
    *first_p = first + from;
    return true;
}

/* A strategy that computes by itself has the samples' numbers, and gathers what it needs. */
static gyre_status compute_whole(struct run *run, const uint32_t *picks, size_t count, struct gyre_nn_step *now)
{
    uint32_t *rows = malloc(count * sizeof(*rows));
    if (!rows)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for %zu samples", count);
    for (size_t i = 0; i < count; i++)
        rows[i] = run->data->train[picks[i]];
    struct gyre_nn_batch batch = {.data = run->data, .rows = rows, .samples = count, .seed = run->position.seed};
    gyre_status status = run->part.strategy->compute(run->part.self, now, &batch);
    free(rows);
    now->cost = rint(now->cost * 0x1p20) * 0x1p-20;
    return status;
}

static gyre_status compute_pieces(struct run *run, const uint32_t *picks, size_t rows, struct gyre_nn_step *now)
{
    const gyre_nn_strategy *strategy = run->part.strategy;
    gyre_status status = GYRE_SUCCESS;
    size_t first, count;
    for (size_t i = 0; status == GYRE_SUCCESS && next_piece(run, rows, i, &first, &count); i++) {
        status = compute(run, picks, first, count, strategy->piece || i + 1 == run->options.accumulate, now);
        if (status == GYRE_SUCCESS && strategy->after_backward)
            status = strategy->after_backward(run->part.self, i);
    }
    return status;
}

static gyre_status step(struct run *run, double *rate_p)
{
    const gyre_nn_strategy *strategy = run->part.strategy;
    size_t left = run->data->ntrain - (size_t)run->position.sample;
    size_t rows = left < run->options.batch ? left : run->options.batch;
    const uint32_t *batch = run->order + run->position.sample;
    struct gyre_nn_step now = {
        .number = run->position.step,
        .rate = gyre_nn_schedule_rate(&run->options.schedule, run->position.step),
        .global_rows = rows * gyre_nn_output_steps(run->model),
    };
    if (run->zeros)
        gyre_nn_zero_grads(run->model);
    else
        gyre_nn_renew_grads(run->model);
    gyre_status status = strategy->before_step ? strategy->before_step(run->part.self, &now) : GYRE_SUCCESS;
    if (status == GYRE_SUCCESS)
        status = strategy->compute ? compute_whole(run, batch, rows, &now) : compute_pieces(run, batch, rows, &now);
    status = status ? status : strategy->update(run->part.self, &now);
    if (status == GYRE_SUCCESS && run->elastic) /* a step counts when its parameters have moved */
        status = gyre_nn_settle(run->model);
    if (status == GYRE_SUCCESS && run->elastic)
        status = gy_nn_elastic_count(run->elastic, &now);
    if (status != GYRE_SUCCESS)
        return status;
    *rate_p = now.rate;
    run->cost += now.cost;
    run->position.sample += rows;
    run->position.step++;
    run->trained += rows;
    if (run->elastic && run->elastic->complete) {
        run->position.cost = run->cost;
        status = gy_nn_elastic_save(run->elastic, &run->position);
    }
    if (status == GYRE_SUCCESS && run->options.check_every > 0 && run->position.step % run->options.check_every == 0)
        status = gyre_nn_run_compare(&run->part);
    return status;
}

/* Collective: the cost of this epoch's samples, of all ranks. */
static gyre_status gather_cost(struct run *run, double *cost_p)
{
    double cost = run->cost, more = 0;
    gyre_status status = GYRE_SUCCESS;
    if (run->elastic) {
        status = gy_nn_elastic_gather(run->elastic, &more);
        *cost_p = run->cost += more;
        return status;
    }
    if (run->part.comm)
        status = gyre_all_reduce(run->part.comm, &cost, &cost, 1, GYRE_FLOAT64, GYRE_SUM);
    if (status != GYRE_SUCCESS)
        return gy_nn_fail_comm(status, run->part.comm, "summing the loss");
    *cost_p = cost;
    return GYRE_SUCCESS;
}

/* A run that has diverged ends, on all ranks; but one with patience that has seen a good model will come to it. */
static gyre_status check_loss(const struct run *run, double loss)
{
    bool good = run->best.params && run->position.best > 0;
    if (isfinite(loss) || good)
        return GYRE_SUCCESS;
    return gy_nn_fail(
        GYRE_INVALID_ARGUMENT,
        "after step %llu the loss is no finite number any more: take a smaller learning rate, or clip gradients",
        (unsigned long long)run->position.step);
}

/* Every rank learns whether rank 0 could write: a run whose checkpoints fail should end, on all ranks. */
static gyre_status checkpoint(struct run *run)
{
    gyre_status status = GYRE_SUCCESS;
    if (!run->options.checkpoint)
        return status;
    status = gather_cost(run, &run->position.cost);
    if (status == GYRE_SUCCESS && run->elastic)
        return gy_nn_elastic_checkpoint(run->elastic, run->options.checkpoint, &run->position, &run->best);
    return status ? status : gy_nn_run_save(&run->part, run->options.checkpoint, &run->position, &run->best);
}

static size_t param_bytes(const struct run *run)
{
    return gyre_nn_param_count(run->model) * gyre_dtype_size(gyre_nn_dtype(run->model));
}

/* Early stop: every rank has the same loss, and so stops at the same epoch. The model is the consensus here. A loss
 * of 0, the lowest possible, counts as the smallest number above it: in a position, and so in files, 0 means no loss
 * yet. */
static void watch(struct run *run, double loss)
{
    struct gyre_nn_position *position = &run->position;
    loss = loss == 0 ? DBL_MIN : loss;
    bool better = position->best == 0 || isnan(position->best) || loss < position->best;
    position->waited = better ? 0 : position->waited + 1;
    position->best = better ? loss : position->best;
    if (better && run->best.params)
        memcpy(run->best.params, gyre_nn_params(run->model), param_bytes(run));
}

/* `samples`: of this epoch, already used; over: all. */
static gyre_status report(struct run *run, uint64_t samples, bool over, double rate)
{
    double cost = 0, loss = 0, accuracy = 0;
    if (!run->options.report && !(run->options.patience && over))
        return GYRE_SUCCESS;
    gyre_status status = gather_cost(run, &cost);
    status = status ? status : gyre_nn_run_show(&run->part);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_test(run->model, run->data, run->data->test, run->data->ntest, run->part.comm, &loss,
                              &accuracy);
    if (status != GYRE_SUCCESS)
        return status;
    struct gyre_nn_report line = {
        .epoch = run->position.epoch,
        .epochs = run->options.epochs,
        .step = run->position.step,
        .loss = samples ? cost / (double)(samples * gyre_nn_output_steps(run->model)) : 0,
        .test_loss = loss,
        .accuracy = accuracy,
        .rate = rate,
        .seconds = (double)run->busy / 1e9,
    };
    if (run->options.report)
        run->options.report(run->options.report_user, &line);
    if (over)
        status = check_loss(run, cost + loss);
    if (over && run->options.patience)
        watch(run, loss);
    gyre_nn_run_hide(&run->part);
    return status;
}

static bool stopped(const struct run *run)
{
    return (run->options.stop_after > 0 && run->position.step >= run->options.stop_after) ||
           (run->options.patience > 0 && run->position.waited >= run->options.patience);
}

/* Not where it is cut, to go on later. */
static bool best_stands(const struct run *run)
{
    return run->best.params && run->position.best > 0 &&
           (run->position.waited >= run->options.patience || run->position.epoch >= run->options.epochs);
}

/* Other ranks take part from this step on, and this run is to repeat that. */
static bool paused(const struct run *run)
{
    return run->elastic && gy_nn_replay_due(run->elastic, &run->position);
}

static gyre_status epoch(struct run *run)
{
    gyre_status status = GYRE_SUCCESS;
    double rate = 0;
    uint64_t every = run->options.checkpoint_every;
    gyre_nn_shuffle(run->position.seed, run->position.epoch, run->order, run->data->ntrain);
    while (run->position.sample < run->data->ntrain && !stopped(run) && !paused(run) && status == GYRE_SUCCESS) {
        int64_t start = gy_nn_now();
        status = step(run, &rate);
        bool due = every > 0 && run->position.step % every == 0;
        if (status == GYRE_SUCCESS && due && run->options.checkpoint)
            status = gyre_nn_settle(run->model);
        run->busy += gy_nn_now() - start;
        if (status == GYRE_SUCCESS && due)
            status = checkpoint(run);
        if (status == GYRE_SUCCESS && run->elastic) /* last: a joiner begins with the next step */
            status = gy_nn_elastic_grow(run->elastic);
    }
    int64_t start = gy_nn_now();
    status = status ? status : gyre_nn_settle(run->model); /* what follows is no training, and reads the parameters */
    run->busy += gy_nn_now() - start;
    uint64_t samples = run->position.sample;
    bool over = samples >= run->data->ntrain;
    if (status != GYRE_SUCCESS || (!over && !stopped(run)))
        return status;
    run->position.epoch += over;
    double cost;
    if (run->elastic) /* what is not counted yet is this epoch's */
        status = gather_cost(run, &cost);
    status = status ? status : report(run, samples, over, rate);
    if (over) {
        run->position.sample = 0;
        run->position.cost = run->cost = 0;
    }
    bool last = stopped(run) || run->position.epoch >= run->options.epochs;
    run->best.stands = best_stands(run);
    return status == GYRE_SUCCESS && (every == 0 || last) ? checkpoint(run) : status;
}

/* Collective: the counts of all ranks. */
static gyre_status gather_staleness(const struct run *run)
{
    struct gyre_nn_array arrays[GYRE_NN_MOST_ARRAYS];
    const gyre_nn_strategy *strategy = run->part.strategy;
    double *counts = run->options.staleness;
    bool local = false;
    size_t n = 0;
    if (!counts)
        return GYRE_SUCCESS;
    gyre_status status = strategy->arrays ? strategy->arrays(run->part.self, arrays, &n) : GYRE_SUCCESS;
    memset(counts, 0, GYRE_NN_STALENESS_BINS * sizeof(*counts));
    for (size_t i = 0; i < n && status == GYRE_SUCCESS; i++)
        if (strcmp(arrays[i].name, "staleness") == 0 && arrays[i].count == GYRE_NN_STALENESS_BINS) {
            memcpy(counts, arrays[i].data, GYRE_NN_STALENESS_BINS * sizeof(*counts));
            local = arrays[i].placement == GYRE_NN_LOCAL;
        }
    if (status == GYRE_SUCCESS && local && run->part.comm) {
        status = gyre_all_reduce(run->part.comm, counts, counts, GYRE_NN_STALENESS_BINS, GYRE_FLOAT64, GYRE_SUM);
        if (status != GYRE_SUCCESS)
            return gy_nn_fail_comm(status, run->part.comm, "adding up the staleness");
    }
    return status;
}

/* The consensus, or the best one there was, is what training was for: it stays in the model. */
static gyre_status conclude(struct run *run)
{
    struct gyre_nn_train_result *result = &run->result;
    gyre_status status = gather_staleness(run);
    if (status == GYRE_SUCCESS && run->options.check_every > 0) /* the steps since the last comparison */
        status = gyre_nn_run_compare(&run->part);
    status = status ? status : gyre_nn_run_show(&run->part);
    if (status == GYRE_SUCCESS && best_stands(run))
        memcpy(gyre_nn_params(run->model), run->best.params, param_bytes(run));
    if (status == GYRE_SUCCESS)
        status = gyre_nn_test(run->model, run->data, run->data->test, run->data->ntest, run->part.comm, &result->loss,
                              &result->accuracy);
    status = status ? status : check_loss(run, result->loss);
    if (status != GYRE_SUCCESS)
        return status;
    result->ranks = run->part.ranks;
    result->steps = run->position.step;
    result->seconds = (double)run->busy / 1e9;
    result->samples_per_second = run->busy ? (double)run->trained / result->seconds : 0;
    result->params_xxh3 = gyre_nn_params_hash(run->model);
    return GYRE_SUCCESS;
}

static gyre_status finish(struct run *run)
{
    bool idle = run->elastic && run->elastic->idle;
    gyre_status status = idle ? GYRE_SUCCESS : conclude(run);
    if (status == GYRE_SUCCESS && run->elastic && run->elastic->how.replays)
        status = gy_nn_replay_end(run->elastic, &run->result);
    return status;
}

static void keep_shown(struct gyre_nn_run *part)
{
    free(part->shown);
    part->shown = NULL;
}

/* Epoch by epoch, and then the end. An elastic run repeats each where a rank failed in it. */
static gyre_status go(struct run *run)
{
    gyre_status status = GYRE_SUCCESS;
    for (bool over = false, done = true; status == GYRE_SUCCESS && !over; over = over && done) {
        if (paused(run))
            status = gy_nn_replay_turn(run->elastic, &run->position);
        over = (run->elastic && run->elastic->idle) || run->position.epoch >= run->options.epochs || stopped(run);
        if (status == GYRE_SUCCESS)
            status = over ? finish(run) : epoch(run);
        if (run->elastic) {
            status = gy_nn_elastic_settle(run->elastic, status, &run->position, &done);
            run->cost = run->position.cost;
        }
    }
    return status;
}

static gyre_status train(struct run *run, struct gyre_nn_train_result *result_p)
{
    const struct gyre_nn_train_options *options = &run->options;
    gyre_status status = check(run->model, run->data, options);
    if (!run->elastic)
        status = gy_nn_agree_ready(run->comm, status);
    if (status != GYRE_SUCCESS)
        return status;
    gy_nn_note_alphabet(run->model, run->data);
    run->position.seed = options->seed;
    if (options->schedule.total == 0)
        run->options.schedule.total = (uint64_t)options->epochs *
                                      ((run->data->ntrain + options->batch - 1) / options->batch);
    if (!run->elastic) /* where a rank may fail, and another come in, at any time */
        status = gy_nn_agree(run->comm, run->model, run->data, &run->options);
    if (status != GYRE_SUCCESS)
        return status;
    status = open_run(run);
    gyre_nn_trace_attach(run->model, options->trace);
    status = status ? status : go(run);
    if (status == GYRE_SUCCESS) {
        keep_shown(&run->part);
        if (result_p)
            *result_p = run->result;
    }
    close_run(run);
    return status;
}

gyre_status gyre_nn_train(gyre_nn_model *model, const gyre_nn_dataset *data, gyre_comm *comm,
                          const struct gyre_nn_train_options *options, struct gyre_nn_train_result *result_p)
{
    GY_NN_REQUIRE(model, data, options);
    struct run run = {.model = model, .data = data, .comm = comm, .options = *options};
    return train(&run, result_p);
}

gyre_status gyre_nn_train_elastic(gyre_nn_model *model, const gyre_nn_dataset *data, gyre_comm **comm,
                                  const struct gyre_nn_train_options *options, const struct gyre_nn_elastic *elastic,
                                  struct gyre_nn_train_result *result_p)
{
    GY_NN_REQUIRE(model, data, comm, options, elastic);
    if (elastic->size != sizeof(*elastic))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "elastic.size is %zu, not %zu", elastic->size, sizeof(*elastic));
    if (elastic->replays > 0 && !elastic->replay)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "elastic.replay is NULL, and %zu memberships are to be there",
                          elastic->replays);
    struct gy_nn_elastic state = {.how = *elastic, .comm = comm};
    struct run run = {.model = model, .data = data, .comm = *comm, .options = *options, .elastic = &state};
    gyre_status status = train(&run, result_p);
    gy_nn_elastic_close(&state);
    return status;
}

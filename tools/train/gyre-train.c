/* gyre-train: data, model, communicator, gyre_nn_train. Then the further results that were asked for: how much
 * communication was hidden, and whether one rank alone would have trained the same model. Rank 0 prints. On an error
 * every rank that has one prints its own. */
#include "common/options.h"
#include "common/output.h"
#include "run/launch.h"
#include "run/rendezvous_env.h"
#include "train/arguments.h"
#include "train/blas_info.h"
#include "train/classes.h"
#include "train/membership.h"
#include "train/metrics.h"
#include "train/output_paths.h"
#include "train/overlap.h"
#include "train/predict.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROW_SECONDS 0.5
#define TRACE_SPANS ((size_t)20000)

struct job {
    struct arguments arguments;
    gyre_nn_dataset *data;
    gyre_nn_model *model;
    gyre_comm *comm; /* NULL: one rank */
    int rank, ranks;
    struct metrics *metrics;
    struct gyre_nn_train_result result;
    double hidden;
    double staleness[GYRE_NN_STALENESS_BINS];
    bool began; /* an elastic run has told its first membership */
    bool lost;  /* a membership or the metrics could not be written: the exit status says so */
};

static bool say(const struct job *job)
{
    return job->rank == 0 && !job->arguments.quiet;
}

static char said[FILES_TEXT]; /* the last complaint, for the other ranks */

static int complain(const struct job *job, const char *text)
{
    fflush(stdout);
    snprintf(said, sizeof(said), "%s", text);
    fprintf(stderr, "gyre-train[rank %d]: %s\n", job->rank, text);
    return 1;
}

/* ", test accuracy 97.1 %", or nothing where the model does not answer right or wrong. */
static const char *accuracy_text(double accuracy, char text[48])
{
    *text = 0;
    if (!isnan(accuracy))
        snprintf(text, 48, "  test accuracy %.2f %%", 100 * accuracy);
    return text;
}

static void on_report(void *user, const struct gyre_nn_report *report)
{
    struct job *job = user;
    char accuracy[48];
    metrics_epoch(job->metrics, report);
    if (!say(job))
        return;
    bool terminal = isatty(STDOUT_FILENO), last = report->epoch == report->epochs;
    printf("%sepoch %" PRIu64 "/%" PRIu64 "  step %" PRIu64 "  loss %.4f, test %.4f%s  lr %.2g  %.1f s%s",
           terminal ? "\r" : "", report->epoch, report->epochs, report->step, report->loss, report->test_loss,
           accuracy_text(report->accuracy, accuracy), report->rate, report->seconds, terminal && !last ? "   " : "\n");
    fflush(stdout);
}

static bool joins(void)
{
    const char *join = getenv("GYRE_JOIN");
    return join && strcmp(join, "1") == 0;
}

/* Several ranks where a launcher says so; alone otherwise. */
static int meet(struct job *job)
{
    if (!joins() && gy_launch_alone())
        return 0;
    const gyre_nn_strategy *strategy = job->arguments.train.strategy;
    bool apart = strategy && strategy->apart; /* then messages should move while ranks compute */
    if (job->arguments.progress_thread)
        setenv("GYRE_PROGRESS_THREAD", "1", 1);
    else if (apart)
        setenv("GYRE_PROGRESS_THREAD", "1", 0);
    if (gyre_comm_create(NULL, &job->comm) != GYRE_SUCCESS)
        return complain(job, gyre_last_error(NULL));
    job->rank = gyre_comm_rank(job->comm);
    job->ranks = gyre_comm_size(job->comm);
    return 0;
}

/* The first rank of the current communicator writes the metrics. */
static int open_metrics(struct job *job)
{
    char text[512];
    if (job->rank != 0 || !job->arguments.metrics || job->metrics)
        return 0;
    job->metrics = metrics_open(job->arguments.metrics, job->began);
    snprintf(text, sizeof(text), "cannot create %s: %s", job->arguments.metrics, strerror(errno));
    return job->metrics ? 0 : complain(job, text);
}

/* An elastic run has other ranks from now on. */
static void on_change(void *user, const gyre_comm *comm, const struct gyre_nn_membership *now)
{
    struct job *job = user;
    const char *path = job->arguments.membership;
    char text[512];
    job->rank = comm ? gyre_comm_rank(comm) : 0;
    job->ranks = now->ranks;
    bool first = !job->began;
    job->began = true;
    if (job->rank != 0)
        return;
    job->lost |= open_metrics(job) != 0;
    metrics_membership(job->metrics, now);
    if (path && !membership_write(path, now, first)) {
        snprintf(text, sizeof(text), "cannot write the membership to %.400s: %s", path, strerror(errno));
        job->lost |= complain(job, text) != 0;
    }
    if (say(job) && !first)
        printf("step %" PRIu64 ": %d rank%s\n", now->step, now->ranks, now->ranks == 1 ? "" : "s");
    fflush(stdout);
}

static gyre_status make_model(const struct job *job, gyre_nn_model **model_p)
{
    return model_make(&job->arguments.model, job->data, job->arguments.train.seed, model_p);
}

static int load(struct job *job)
{
    if (model_open_data(&job->arguments.model, job->arguments.data, &job->data) != GYRE_SUCCESS ||
        make_model(job, &job->model) != GYRE_SUCCESS)
        return complain(job, gyre_nn_last_error());
    return 0;
}

static int prepare(struct job *job)
{
    char text[FILES_TEXT];
    if (open_metrics(job))
        return 1;
    if (job->rank == 0)
        classes_warn(job->data);
    if (job->rank == 0 && !files_can_be_written(&job->arguments, text))
        return complain(job, text);
    if (say(job))
        printf("%s on %s: %zu training and %zu test samples, %zu features, %zu classes; %zu parameters on %d rank%s\n",
               model_names[job->arguments.model.kind], job->arguments.data, job->data->ntrain, job->data->ntest,
               job->data->features, job->data->classes, gyre_nn_param_count(job->model), job->ranks,
               job->ranks == 1 ? "" : "s");
    fflush(stdout);
    return 0;
}

/* Collective. True if a rank has failed. If it is another rank, this one prints its rank and its message. */
static gyre_status share_failure(struct job *job, bool failed, bool *other_p)
{
    int32_t first = failed ? job->rank : job->ranks;
    char theirs[FILES_TEXT] = "", text[FILES_TEXT + 16];
    if (failed)
        memcpy(theirs, said, sizeof(theirs));
    gyre_status status = gyre_all_reduce(job->comm, &first, &first, 1, GYRE_INT32, GYRE_MIN);
    if (status == GYRE_SUCCESS && first < job->ranks)
        status = gyre_broadcast(job->comm, theirs, theirs, sizeof(theirs), GYRE_UINT8, first);
    *other_p = status == GYRE_SUCCESS && !failed && first < job->ranks;
    snprintf(text, sizeof(text), "rank %d: %.*s", (int)first, FILES_TEXT - 1, theirs);
    if (*other_p)
        complain(job, text);
    return status;
}

/* Checks before training that every rank has its data, its model and its files. Otherwise no rank begins. An elastic
 * run begins without the ranks that failed. Ranks that join a run do not take part. */
static int agree_to_begin(struct job *job, int rc)
{
    bool other = false, elastic = job->arguments.elastic || job->arguments.replay_membership;
    if (!job->comm || joins())
        return rc;
    gyre_status status = share_failure(job, rc != 0, &other);
    if (rc || elastic)
        return rc;
    return status == GYRE_SUCCESS ? other : complain(job, gyre_last_error(job->comm));
}

/* At the end of an elastic run, where a launcher tolerates that one rank fails: a loss on one rank is a failure of
 * all. */
static void agree_on_loss(struct job *job)
{
    bool other = false;
    if (job->comm && job->ranks > 1 && job->arguments.elastic)
        (void)share_failure(job, job->lost, &other);
    job->lost |= other;
}

static void print_result(const struct gyre_nn_train_result *r)
{
    if (isnan(r->accuracy))
        printf("test loss %.4f", r->loss);
    else
        printf("test accuracy %.2f %%, loss %.4f", 100 * r->accuracy, r->loss);
    printf("; %" PRIu64 " steps in %.2f s, %.0f samples/s on %d rank%s; parameters %016" PRIx64 "\n", r->steps,
           r->seconds, r->samples_per_second, r->ranks, r->ranks == 1 ? "" : "s", r->params_xxh3);
}

/* "staleness (steps: times)  0: 120  1: 33 ...", of strategies that count it. */
static void print_staleness(const double *counts)
{
    double sum = 0;
    for (int i = 0; i < GYRE_NN_STALENESS_BINS; i++)
        sum += counts[i];
    if (sum == 0)
        return;
    printf("staleness (steps: times)");
    for (int i = 0; i < GYRE_NN_STALENESS_BINS; i++)
        if (counts[i] > 0)
            printf("  %d%s: %.0f", i, i + 1 < GYRE_NN_STALENESS_BINS ? "" : " and more", counts[i]);
    printf("\n");
}

static gyre_status run_elastic(struct job *job, const struct gyre_nn_train_options *options)
{
    struct gyre_nn_elastic elastic = {.size = sizeof(elastic),
                                      .least = job->arguments.least,
                                      .grow = GROW_SECONDS,
                                      .changed = on_change,
                                      .user = job};
    struct gyre_nn_membership *replay = NULL;
    const char *problem = NULL;
    if (job->arguments.replay_membership)
        problem = membership_read(job->arguments.replay_membership, &replay, &elastic.replays);
    if (problem)
        return gyre_nn_fail(GYRE_INVALID_ARGUMENT, NULL, problem);
    elastic.replay = replay;
    gyre_status status = gyre_nn_train_elastic(job->model, job->data, &job->comm, options, &elastic, &job->result);
    free(replay);
    return status;
}

static int train(struct job *job)
{
    bool elastic = job->arguments.elastic || job->arguments.replay_membership;
    struct gyre_nn_train_options options = job->arguments.train;
    gyre_status status = GYRE_SUCCESS;
    options.staleness = job->staleness;
    if (job->arguments.trace)
        status = gyre_nn_trace_create(TRACE_SPANS, &options.trace);
    if (!job->arguments.quiet || job->arguments.metrics) { /* the same on every rank: a report is collective */
        options.report = on_report;
        options.report_user = job;
    }
    if (status == GYRE_SUCCESS)
        status = elastic ? run_elastic(job, &options)
                         : gyre_nn_train(job->model, job->data, job->comm, &options, &job->result);
    if (status == GYRE_SUCCESS && options.trace)
        status = gyre_nn_trace_write(options.trace, job->comm, job->arguments.trace);
    gyre_nn_trace_free(options.trace);
    if (status != GYRE_SUCCESS)
        return complain(job, gyre_nn_last_error());
    agree_on_loss(job);
    const struct gyre_nn_train_result *r = &job->result;
    if (job->rank == 0) {
        print_result(r);
        classes_print(job->data);
        print_staleness(job->staleness);
    }
    return 0;
}

/* For the metrics as well, except where a death during the measurement would spoil the result of an elastic run. */
static int measure_overlap(struct job *job)
{
    struct gyre_nn_overlap o;
    const gyre_nn_strategy *strategy = job->arguments.train.strategy;
    bool asked = job->arguments.measure_overlap || (job->arguments.metrics && !job->arguments.elastic);
    if (!asked)
        return 0;
    if (strategy && strcmp(strategy->name, "sync") != 0) {
        if (job->arguments.measure_overlap && job->rank == 0)
            printf("overlap: measured for --strategy sync alone\n");
        return 0;
    }
    if (job->ranks == 1) {
        if (job->arguments.measure_overlap)
            printf("overlap: one rank has no communication to hide\n");
        return 0;
    }
    if (gyre_nn_measure_overlap(job->model, job->data, job->comm, &job->arguments.train, job->arguments.rounds, &o) !=
        GYRE_SUCCESS)
        return complain(job, gyre_nn_last_error());
    job->hidden = o.hidden;
    metrics_overlap(job->metrics, &o);
    if (job->rank == 0)
        overlap_print(&o);
    return 0;
}

static double largest_difference(const gyre_nn_model *a, const gyre_nn_model *b)
{
    double largest = 0;
    const void *x = gyre_nn_params(a), *y = gyre_nn_params(b);
    bool wide = gyre_nn_dtype(a) == GYRE_FLOAT64;
    for (size_t i = 0; i < gyre_nn_param_count(a); i++) {
        double d = wide ? ((const double *)x)[i] - ((const double *)y)[i]
                        : (double)((const float *)x)[i] - (double)((const float *)y)[i];
        if (!(fabs(d) <= largest)) /* a NaN stays */
            largest = fabs(d);
    }
    return largest;
}

/* Rank 0 alone trains the model that all ranks trained together; the others wait at the barrier. */
static int verify_single(struct job *job)
{
    gyre_nn_model *model = NULL;
    struct gyre_nn_train_result alone;
    int rc = 0;
    if (!job->arguments.verify_single)
        return 0;
    if (job->rank == 0) {
        struct gyre_nn_train_options options = job->arguments.train;
        options.checkpoint = NULL;
        if (arguments_divide_layers(&options)) /* one rank cannot divide the layers */
            options.strategy = NULL, options.settings = NULL;
        gyre_status status = make_model(job, &model);
        status = status ? status : gyre_nn_train(model, job->data, NULL, &options, &alone);
        if (status != GYRE_SUCCESS) {
            rc = complain(job, gyre_nn_last_error());
        } else {
            double difference = largest_difference(job->model, model);
            metrics_verify(job->metrics, difference, job->result.loss, alone.loss);
            printf(
                "verified against one rank: largest parameter difference %.3g; test loss %.6f on %d ranks, %.6f on 1",
                difference, job->result.loss, job->ranks, alone.loss);
            if (!isnan(alone.accuracy))
                printf("; accuracy %.2f %% and %.2f %%", 100 * job->result.accuracy, 100 * alone.accuracy);
            printf("\n");
        }
        gyre_nn_free(model);
    }
    if (job->comm && gyre_barrier(job->comm) != GYRE_SUCCESS)
        rc = complain(job, gyre_last_error(job->comm));
    return rc;
}

static int sample(struct job *job)
{
    size_t count = job->arguments.sample;
    if (count == 0 || job->rank != 0)
        return 0;
    gyre_status status = model_write_text(job->model, job->data, count, job->arguments.train.seed);
    const char *text = gyre_nn_last_error();
    return status == GYRE_SUCCESS ? 0 : complain(job, *text ? text : gyre_status_text(status));
}

/* Rank 0 alone: every rank's model is the same. */
static int tell(struct job *job)
{
    const struct arguments *a = &job->arguments;
    const char *problem = NULL;
    if (job->rank != 0)
        return 0;
    if (a->predict)
        problem = answers_predict(job->model, job->data, a->predict);
    if (a->explain && !problem)
        problem = answers_explain(job->model, job->data, a->explain);
    return problem ? complain(job, problem) : 0;
}

int main(int argc, char **argv)
{
    struct job job = {.ranks = 1, .hidden = NAN};
    kernels_choose(argv);
    arguments_parse(argc, argv, &job.arguments);
    files_refuse_shared(&job.arguments);
    gy_options_check_environment();
    bool early = joins(); /* once it is let in, all the others wait for it */
    int rc = early ? load(&job) : 0;
    rc = rc ? rc : meet(&job);
    rc = rc || early ? rc : load(&job);
    rc = rc ? rc : prepare(&job);
    rc = agree_to_begin(&job, rc);
    rc = rc ? rc : train(&job);
    rc = rc ? rc : measure_overlap(&job);
    rc = rc ? rc : verify_single(&job);
    rc = rc ? rc : sample(&job);
    rc = rc ? rc : tell(&job);
    if (rc == 0)
        metrics_final(job.metrics, &job.result, job.hidden, job.staleness);
    if (!metrics_close(job.metrics) && rc == 0) {
        char text[512];
        snprintf(text, sizeof(text), "cannot write the metrics to %.400s: %s", job.arguments.metrics, strerror(errno));
        rc = complain(&job, text);
    }
    rc = rc || job.lost;
    if (!gy_output_arrived("gyre-train", stdout, "the output") && rc == 0)
        rc = 1;
    gyre_nn_free(job.model);
    gyre_nn_dataset_free(job.data);
    gyre_comm_destroy(job.comm);
    return rc;
}

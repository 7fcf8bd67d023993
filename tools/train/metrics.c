/* Lines are flushed one by one, so that a plot can follow a run. */
#include "train/metrics.h"

#include "train/overlap.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct metrics {
    FILE *file;
    int problem; /* errno of the first failure */
};

struct metrics *metrics_open(const char *path, bool more)
{
    struct metrics *metrics = calloc(1, sizeof(*metrics));
    if (!metrics)
        return NULL;
    metrics->file = fopen(path, more ? "ae" : "we");
    if (!metrics->file) {
        int problem = errno;
        free(metrics);
        errno = problem;
        return NULL;
    }
    return metrics;
}

/* Takes over `object`. */
static void put(struct metrics *metrics, json_t *object)
{
    bool ok = object && json_dumpf(object, metrics->file, JSON_COMPACT | JSON_REAL_PRECISION(9)) == 0 &&
              fputc('\n', metrics->file) != EOF && fflush(metrics->file) == 0;
    if (!ok && metrics->problem == 0)
        metrics->problem = errno ? errno : ENOMEM;
    json_decref(object);
}

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void metrics_epoch(struct metrics *metrics, const struct gyre_nn_report *r)
{
    if (metrics)
        put(metrics,
            json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "event", "epoch", "epoch", (json_int_t)r->epoch,
                      "step", (json_int_t)r->step, "loss", number(r->loss), "test_loss", number(r->test_loss),
                      "accuracy", number(r->accuracy), "lr", number(r->rate), "seconds", number(r->seconds)));
}

void metrics_membership(struct metrics *metrics, const struct gyre_nn_membership *now)
{
    if (metrics)
        put(metrics,
            json_pack("{s:s, s:I, s:i}", "event", "membership", "step", (json_int_t)now->step, "ranks", now->ranks));
}

void metrics_overlap(struct metrics *metrics, const struct gyre_nn_overlap *o)
{
    if (metrics)
        put(metrics,
            json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "event", "overlap",
                      "hidden_fraction", number(o->hidden), "hidden_of_possible", number(overlap_of_possible(o)),
                      "hidden_low", number(o->hidden_low), "hidden_high", number(o->hidden_high), "compute",
                      number(o->compute), "backward", number(o->backward), "communication", number(o->communication),
                      "serial", number(o->serial), "overlapped", number(o->overlapped), "rounds", (json_int_t)o->rounds,
                      "buckets", (json_int_t)o->buckets));
}

void metrics_verify(struct metrics *metrics, double difference, double loss, double single_loss)
{
    if (metrics)
        put(metrics, json_pack("{s:s, s:o, s:o, s:o}", "event", "verify", "largest_difference", number(difference),
                               "loss", number(loss), "single_loss", number(single_loss)));
}

static json_t *list(const double *counts)
{
    json_t *array = json_array();
    for (int i = 0; i < GYRE_NN_STALENESS_BINS; i++)
        json_array_append_new(array, json_integer((json_int_t)counts[i]));
    return array;
}

void metrics_final(struct metrics *metrics, const struct gyre_nn_train_result *r, double hidden,
                   const double *staleness)
{
    char hash[17];
    snprintf(hash, sizeof(hash), "%016" PRIx64, r->params_xxh3);
    if (metrics)
        put(metrics,
            json_pack("{s:s, s:o, s:o, s:I, s:o, s:o, s:o, s:i, s:o, s:s}", "event", "final", "accuracy",
                      number(r->accuracy), "loss", number(r->loss), "steps", (json_int_t)r->steps, "seconds",
                      number(r->seconds), "samples_per_second", number(r->samples_per_second), "hidden_fraction",
                      number(hidden), "ranks", r->ranks, "staleness", list(staleness), "params_xxh3", hash));
}

bool metrics_close(struct metrics *metrics)
{
    if (!metrics)
        return true;
    int problem = metrics->problem;
    if (fclose(metrics->file) != 0 && problem == 0)
        problem = errno;
    free(metrics);
    errno = problem;
    return problem == 0;
}

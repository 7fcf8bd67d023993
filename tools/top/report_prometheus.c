/* Every sample has the labels job and rank. No label comes from a text of the job, so none has to be escaped. */
#include "top/report_prometheus.h"

#include <inttypes.h>

#include "top/render.h"

struct metric {
    const char *name, *type, *help;
    /* Returns false where the rank has no value. */
    bool (*value)(const struct top_state *state, double *value_p);
};

/* The counters of all communicators of a page. */
static struct gyre_page_comm add_up(const struct top_state *state)
{
    struct gyre_page_comm total = {0};
    const struct gyre_page *page = &state->rank->page;
    for (int c = 0; c < GYRE_PAGE_COMMS; c++) {
        if (!(page->comms & 1u << c))
            continue;
        total.started += page->comm[c].started;
        total.done += page->comm[c].done;
        total.failed += page->comm[c].failed;
        total.bytes += page->comm[c].bytes;
    }
    return total;
}

#define COUNTER(field)                                                        \
    static bool count_##field(const struct top_state *state, double *value_p) \
    {                                                                         \
        *value_p = state->rank ? (double)add_up(state).field : 0;             \
        return state->rank;                                                   \
    }
COUNTER(started)
COUNTER(done)
COUNTER(failed)
COUNTER(bytes)

static bool waiting(const struct top_state *state, double *value_p)
{
    *value_p = state->is == TOP_WAITING && state->seconds > 0 ? state->seconds : 0;
    return state->rank;
}

static bool holds_up(const struct top_state *state, double *value_p)
{
    *value_p = state->holds_up;
    return true;
}

static const struct metric metrics[] = {
    {"gyre_operations_started_total", "counter", "Operations that the rank has started.", count_started},
    {"gyre_operations_done_total", "counter", "Operations that have succeeded.", count_done},
    {"gyre_operations_failed_total", "counter", "Operations that have failed.", count_failed},
    {"gyre_bytes_total", "counter", "Bytes of the operations that have succeeded.", count_bytes},
    {"gyre_waiting_seconds", "gauge", "How long the rank has waited for others; 0: it does not wait.", waiting},
    {"gyre_holds_up_ranks", "gauge", "Ranks that wait for this one, directly or indirectly.", holds_up},
};

static void put_head(FILE *stream, const char *name, const char *type, const char *help)
{
    fprintf(stream, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_states(FILE *stream, const struct top_job *jobs, size_t count)
{
    put_head(stream, "gyre_rank_state", "gauge", "1 for the state in which the rank is, 0 for the others.");
    for (size_t j = 0; j < count; j++)
        for (int r = 0; r < jobs[j].size; r++)
            for (int is = TOP_MOVING; is <= TOP_ELSEWHERE; is++)
                fprintf(stream, "gyre_rank_state{job=\"%016" PRIx64 "\",rank=\"%d\",state=\"%s\"} %d\n", jobs[j].id, r,
                        top_word((enum top_is)is), (int)jobs[j].states[r].is == is);
}

static void put_jobs(FILE *stream, const struct top_job *jobs, size_t count)
{
    put_head(stream, "gyre_job_ranks", "gauge", "Ranks of the job.");
    for (size_t j = 0; j < count; j++)
        fprintf(stream, "gyre_job_ranks{job=\"%016" PRIx64 "\"} %d\n", jobs[j].id, jobs[j].size);
    put_head(stream, "gyre_job_ranks_seen", "gauge", "Ranks of the job whose pages can be read on this host.");
    for (size_t j = 0; j < count; j++)
        fprintf(stream, "gyre_job_ranks_seen{job=\"%016" PRIx64 "\"} %d\n", jobs[j].id, jobs[j].seen);
    put_head(stream, "gyre_job_circle", "gauge", "1 where ranks wait for one another in a circle.");
    for (size_t j = 0; j < count; j++)
        fprintf(stream, "gyre_job_circle{job=\"%016" PRIx64 "\"} %d\n", jobs[j].id, jobs[j].circle);
}

void top_prometheus(FILE *stream, const struct top_job *jobs, size_t count)
{
    put_jobs(stream, jobs, count);
    put_states(stream, jobs, count);
    for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
        put_head(stream, metrics[m].name, metrics[m].type, metrics[m].help);
        for (size_t j = 0; j < count; j++) {
            for (int r = 0; r < jobs[j].size; r++) {
                double value;
                if (metrics[m].value(&jobs[j].states[r], &value))
                    fprintf(stream, "%s{job=\"%016" PRIx64 "\",rank=\"%d\"} %.17g\n", metrics[m].name, jobs[j].id, r,
                            value);
            }
        }
    }
}

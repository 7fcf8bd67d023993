/* The timeline of a run in the Chrome trace format: one process per rank, thread 0 for what the rank computes and waits
 * for, one more per bucket for its all-reduce. Spans are kept in a ring, so that a long run shows its last steps; ranks
 * of one host share CLOCK_MONOTONIC, so their lines stand under each other as they happened; origin_ns is where that
 * clock stood at 0, for what happened beside the run. */
#include "io/trace.h"

#include "base/aside.h"
#include "base/error.h"
#include "base/plain.h"
#include "base/ready.h"
#include "base/require.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct span { /* fixed width: it travels as int32 */
    int64_t start, end;
    int32_t kind, index;
};

struct gyre_nn_trace {
    size_t capacity, total; /* total: ever added */
    struct span *spans;
};

static const char *const names[GY_NN_SPAN_COUNT] = {"forward", "backward", "wait", "update", "all_reduce"};

gyre_status gyre_nn_trace_create(size_t capacity, gyre_nn_trace **trace_p)
{
    GY_NN_REQUIRE(trace_p);
    gyre_nn_trace *trace = calloc(1, sizeof(*trace));
    if (trace)
        trace->spans = calloc(capacity ? capacity : 1, sizeof(*trace->spans));
    if (!trace || !trace->spans) {
        free(trace);
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for a trace of %zu spans", capacity);
    }
    trace->capacity = capacity ? capacity : 1;
    *trace_p = trace;
    return GYRE_SUCCESS;
}

void gyre_nn_trace_free(gyre_nn_trace *trace)
{
    if (trace)
        free(trace->spans);
    free(trace);
}

void gy_nn_trace_add(gyre_nn_trace *trace, enum gy_nn_span span, int32_t index, int64_t start)
{
    if (!trace)
        return;
    trace->spans[trace->total++ % trace->capacity] = (struct span){
        .start = start, .end = gy_nn_now(), .kind = (int32_t)span, .index = index};
}

/* The spans of all ranks in rank order, `most` per rank; unused ones have end 0. */
static gyre_status gather(gyre_nn_trace *trace, gyre_comm *comm, int ranks, struct span **all_p, size_t *most_p)
{
    size_t mine = trace->total < trace->capacity ? trace->total : trace->capacity;
    double most = (double)mine;
    gyre_status status = GYRE_SUCCESS;
    if (ranks > 1)
        status = gyre_all_reduce(comm, &most, &most, 1, GYRE_FLOAT64, GYRE_MAX);
    if (status != GYRE_SUCCESS)
        return gy_nn_fail_comm(status, comm, "gathering the trace");
    size_t count = (size_t)most ? (size_t)most : 1;
    struct span *all = calloc(count * ((size_t)ranks + 1), sizeof(*all));
    if (!all)
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory to gather %zu spans of %d ranks", count, ranks);
    struct span *own = all + count * (size_t)ranks;
    memcpy(own, trace->spans, mine * sizeof(*own));
    if (ranks > 1)
        status = gyre_all_gather(comm, own, all, count * sizeof(*own) / 4, GYRE_INT32);
    else
        memcpy(all, own, count * sizeof(*own));
    if (status != GYRE_SUCCESS) {
        free(all);
        return gy_nn_fail_comm(status, comm, "gathering the trace");
    }
    *all_p = all;
    *most_p = count;
    return GYRE_SUCCESS;
}

static void print_names(FILE *file, int rank, int32_t buckets)
{
    fprintf(file, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"rank %d\"}},\n", rank, rank);
    fprintf(file, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":0,\"args\":{\"name\":\"compute\"}},\n",
            rank);
    for (int32_t b = 0; b < buckets; b++)
        fprintf(file,
                "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":\"bucket %d\"}},\n",
                rank, (int)b + 1, (int)b);
}

static void print_spans(FILE *file, const struct span *spans, size_t count, int rank, int64_t origin)
{
    int32_t buckets = 0;
    for (size_t i = 0; i < count; i++) {
        const struct span *s = &spans[i];
        if (s->end == 0)
            continue;
        bool reduce = s->kind == GY_NN_SPAN_REDUCE;
        if (reduce && s->index >= buckets)
            buckets = s->index + 1;
        fprintf(file,
                "{\"name\":\"%s %d\",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":%d,\"tid\":%d},\n",
                names[s->kind], (int)s->index, reduce ? "communication" : "compute", (double)(s->start - origin) / 1e3,
                (double)(s->end - s->start) / 1e3, rank, reduce ? (int)s->index + 1 : 0);
    }
    print_names(file, rank, buckets);
}

static void print_all(FILE *file, const struct span *all, size_t most, int ranks)
{
    int64_t origin = INT64_MAX;
    for (size_t i = 0; i < most * (size_t)ranks; i++)
        if (all[i].end != 0 && all[i].start < origin)
            origin = all[i].start;
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", file);
    locale_t before = gy_plain_begin();
    for (int r = 0; r < ranks; r++)
        print_spans(file, all + (size_t)r * most, most, r, origin);
    gy_plain_end(before);
    fprintf(file, "{\"name\":\"gyre\",\"ph\":\"M\",\"pid\":0,\"args\":{\"version\":\"%s\",\"origin_ns\":%lld}}\n]}\n",
            gyre_version(), (long long)origin);
}

static gyre_status write_file(const char *path, const struct span *all, size_t most, int ranks)
{
    struct gy_aside aside;
    if (!gy_aside_open(&aside, path))
        return gy_nn_fail_system(errno, "cannot create the trace %s", path);
    print_all(aside.stream, all, most, ranks);
    if (!gy_aside_close(&aside, true))
        return gy_nn_fail_system(errno, "cannot write the trace %s", path);
    return GYRE_SUCCESS;
}

gyre_status gyre_nn_trace_write(gyre_nn_trace *trace, gyre_comm *comm, const char *path)
{
    GY_NN_REQUIRE(trace, path);
    int rank = comm ? gyre_comm_rank(comm) : 0, ranks = comm ? gyre_comm_size(comm) : 1;
    struct span *all = NULL;
    size_t most = 0;
    gyre_status status = gather(trace, comm, ranks, &all, &most);
    if (status != GYRE_SUCCESS)
        return status;
    if (rank == 0)
        status = write_file(path, all, most, ranks);
    free(all);
    return gy_nn_agree_ready(comm, status);
}

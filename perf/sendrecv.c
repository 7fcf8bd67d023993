/* Latency: half of a round trip, median over the iterations. Bandwidth: rank 0 starts a batch of messages and waits
 * for an answer of 4 bytes; bytes of a batch over the median of its time, 10^6 bytes a second. Bidirectional
 * bandwidth: both ranks do so at once, and the bytes of both count. A batch has one buffer, as in osu_bw. Iterations
 * are a tenth of those of the OSU benchmarks, unless -n gives their number. */
#include "sendrecv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/output.h"
#include "report.h"
#include "run/affinity.h"

#define LARGE 8192 /* bytes from which on there are fewer iterations */

struct pair {
    const struct gy_arguments *arguments;
    gyre_comm *comm;
    int rank;
    unsigned char *sent, *received;
    gyre_request **requests;
    int64_t *times;
    size_t wrong;
    double bandwidth; /* sum of the rows', 10^6 bytes a second */
    size_t rows;
    FILE *json;
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool succeeded(const struct pair *pair, gyre_status status)
{
    if (status != GYRE_SUCCESS)
        fprintf(stderr, "gyre-perf: %s: %s\n", gyre_status_name(status), gyre_last_error(pair->comm));
    return status == GYRE_SUCCESS;
}

static int iterations_of(int wanted, size_t bytes, int small, int large)
{
    return wanted >= 0 ? wanted : bytes > LARGE ? large : small;
}

static unsigned char pattern(size_t place, int from, uint64_t iteration)
{
    return (unsigned char)(place * 131 + (size_t)from * 17 + iteration * 29);
}

static void fill(struct pair *pair, size_t bytes, uint64_t iteration)
{
    memset(pair->received, 0xa5, bytes);
    for (size_t i = 0; i < bytes; i++)
        pair->sent[i] = pattern(i, pair->rank, iteration);
}

static void check(struct pair *pair, size_t bytes, uint64_t iteration)
{
    for (size_t i = 0; i < bytes; i++)
        pair->wrong += pair->received[i] != pattern(i, 1 - pair->rank, iteration);
}

/* From rank 0 to rank 1 and back. */
static bool round_trip(const struct pair *pair, size_t bytes)
{
    gyre_status status = GYRE_SUCCESS;
    if (pair->rank == 0)
        status = gyre_send(pair->comm, pair->sent, bytes, GYRE_UINT8, 1);
    if (status == GYRE_SUCCESS)
        status = gyre_recv(pair->comm, pair->received, bytes, GYRE_UINT8, 1 - pair->rank);
    if (status == GYRE_SUCCESS && pair->rank == 1)
        status = gyre_send(pair->comm, pair->sent, bytes, GYRE_UINT8, 0);
    return succeeded(pair, status);
}

/* A window of messages to rank 1, or also one from it, and rank 1's answer. */
static bool exchange_windows(const struct pair *pair, size_t bytes, bool sends, bool receives)
{
    gyre_status status = GYRE_SUCCESS;
    int window = pair->arguments->window, started = 0, answer = 0, peer = 1 - pair->rank;
    for (int i = 0; i < window && receives && status == GYRE_SUCCESS; i++)
        status = gyre_recv_start(pair->comm, pair->received, bytes, GYRE_UINT8, peer, &pair->requests[started++]);
    for (int i = 0; i < window && sends && status == GYRE_SUCCESS; i++)
        status = gyre_send_start(pair->comm, pair->sent, bytes, GYRE_UINT8, peer, &pair->requests[started++]);
    if (status == GYRE_SUCCESS)
        status = gyre_wait_all(pair->requests, (size_t)started);
    if (status == GYRE_SUCCESS)
        status = pair->rank == 0 ? gyre_recv(pair->comm, &answer, 1, GYRE_INT32, 1)
                                 : gyre_send(pair->comm, &answer, 1, GYRE_INT32, 0);
    return succeeded(pair, status);
}

static bool send_window(const struct pair *pair, size_t bytes)
{
    return exchange_windows(pair, bytes, pair->rank == 0, pair->rank == 1);
}

static bool swap_windows(const struct pair *pair, size_t bytes)
{
    return exchange_windows(pair, bytes, true, true);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The median time of `call` in ns; 0: it failed. */
static double measure(struct pair *pair, bool (*call)(const struct pair *, size_t), size_t bytes)
{
    int warm_up = iterations_of(pair->arguments->warm_up, bytes, 20, 5);
    int count = iterations_of(pair->arguments->iterations, bytes, 1000, 100);
    for (int i = 0; i < warm_up + count; i++) {
        int64_t begun = now_ns();
        if (!call(pair, bytes))
            return 0;
        pair->times[i < warm_up ? 0 : i - warm_up] = now_ns() - begun;
    }
    qsort(pair->times, (size_t)count, sizeof *pair->times, by_value);
    int64_t middle = pair->times[count / 2];
    return middle > 0 ? (double)middle : 1;
}

/* What the command line can ask for, in the order of the columns. */
static const struct figure {
    unsigned bit;
    bool (*call)(const struct pair *, size_t);
    bool both_receive;
    int width;
    const char *title, *key;
} figures[] = {
    {GY_LATENCY, round_trip, true, 14, "Latency (us)", "latency_us"},
    {GY_BANDWIDTH, send_window, false, 18, "Bandwidth (MB/s)", "bandwidth_mb"},
    {GY_BIBANDWIDTH, swap_windows, true, 21, "Bi-Bandwidth (MB/s)", "bibandwidth_mb"},
};
enum { FIGURES = sizeof figures / sizeof *figures };

unsigned gy_sendrecv_find(const char *name)
{
    static const struct {
        const char *name;
        unsigned messages;
    } known[] = {{"sendrecv", GY_LATENCY | GY_BANDWIDTH | GY_BIBANDWIDTH},
                 {"latency", GY_LATENCY},
                 {"bandwidth", GY_BANDWIDTH},
                 {"bw", GY_BANDWIDTH},
                 {"bibandwidth", GY_BIBANDWIDTH},
                 {"bibw", GY_BIBANDWIDTH}};
    name += strncmp(name, "osu_", 4) == 0 ? 4 : 0;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name) == 0)
            return known[i].messages;
    }
    return 0;
}

static bool is_asked(const struct pair *pair, int f)
{
    return pair->arguments->messages & figures[f].bit;
}

/* One call of each kind whose bytes are compared. */
static bool check_once(struct pair *pair, size_t bytes, size_t *wrong_p)
{
    double wrong;
    pair->wrong = 0;
    for (int f = 0; f < FIGURES; f++) {
        if (!is_asked(pair, f))
            continue;
        fill(pair, bytes, (uint64_t)f + 1);
        if (!succeeded(pair, gyre_barrier(pair->comm)) || !figures[f].call(pair, bytes))
            return false;
        if (figures[f].both_receive || pair->rank == 1)
            check(pair, bytes, (uint64_t)f + 1);
    }
    wrong = (double)pair->wrong;
    if (!succeeded(pair, gyre_all_reduce(pair->comm, &wrong, &wrong, 1, GYRE_FLOAT64, GYRE_SUM)))
        return false;
    *wrong_p = (size_t)wrong;
    return true;
}

static void print_row(const struct pair *pair, size_t bytes, const double *values, size_t wrong)
{
    char shown[24] = "N/A", json[24] = "null";
    if (pair->arguments->check) {
        snprintf(shown, sizeof shown, "%zu", wrong);
        snprintf(json, sizeof json, "%zu", wrong);
    }
    printf(" %12zu", bytes);
    for (int f = 0; f < FIGURES; f++) {
        if (is_asked(pair, f))
            printf(values[f] < 0.1 ? " %*.2g" : " %*.2f", figures[f].width, values[f]);
    }
    printf(" %7s\n", shown);
    gy_output_flush(stdout);
    if (!pair->json)
        return;
    fprintf(pair->json, "{\"collective\":\"sendrecv\",\"ranks\":2,\"bytes\":%zu,\"window\":%d,", bytes,
            pair->arguments->window);
    for (int f = 0; f < FIGURES; f++) {
        if (is_asked(pair, f))
            fprintf(pair->json, "\"%s\":%.6g,", figures[f].key, values[f]);
        else
            fprintf(pair->json, "\"%s\":null,", figures[f].key);
    }
    fprintf(pair->json, "\"wrong\":%s}\n", json);
    gy_output_flush(pair->json);
}

/* In the unit of its column, of a call that took so many ns. */
static double value_of(const struct pair *pair, int f, size_t bytes, double ns)
{
    double window = (double)bytes * pair->arguments->window / ns * 1e3;
    switch (figures[f].bit) {
    case GY_LATENCY: return ns / 2e3;
    case GY_BANDWIDTH: return window;
    default: return 2 * window;
    }
}

static bool measure_size(struct pair *pair, size_t bytes, size_t *total)
{
    size_t wrong = 0;
    double values[FIGURES] = {0};
    if (pair->arguments->check && !check_once(pair, bytes, &wrong))
        return false;
    for (int f = 0; f < FIGURES; f++) {
        if (!is_asked(pair, f))
            continue;
        double ns = measure(pair, figures[f].call, bytes);
        if (ns <= 0)
            return false;
        values[f] = value_of(pair, f, bytes, ns);
    }
    *total += wrong;
    pair->bandwidth += values[1] > 0 ? values[1] : values[2];
    pair->rows++;
    if (pair->rank == 0)
        print_row(pair, bytes, values, wrong);
    return true;
}

static bool measure_sizes(struct pair *pair, size_t *wrong)
{
    const struct gy_arguments *arguments = pair->arguments;
    for (size_t bytes = arguments->least; bytes <= arguments->most;
         bytes = arguments->step ? bytes + arguments->step : bytes * (size_t)arguments->factor) {
        if (!measure_size(pair, bytes, wrong))
            return false;
    }
    return true;
}

static bool prepare(struct pair *pair)
{
    const struct gy_arguments *arguments = pair->arguments;
    size_t iterations = (size_t)iterations_of(arguments->iterations, 0, 1000, 100);
    pair->sent = calloc(arguments->most, 1);
    pair->received = calloc(arguments->most, 1);
    pair->requests = calloc(2 * (size_t)arguments->window,
                            sizeof *pair->requests); /* NOLINT(bugprone-sizeof-expression): pointers */
    pair->times = calloc(iterations, sizeof *pair->times);
    if (!pair->sent || !pair->received || !pair->requests || !pair->times) {
        fprintf(stderr, "gyre-perf: no memory for two buffers of %zu bytes\n", arguments->most);
        return false;
    }
    if (!arguments->json || pair->rank != 0)
        return true;
    pair->json = strcmp(arguments->json, "-") == 0 ? stdout : fopen(arguments->json, "we");
    if (!pair->json)
        fprintf(stderr, "gyre-perf: cannot write %s: %m\n", arguments->json);
    return pair->json != NULL;
}

static int measure_pair(struct pair *pair)
{
    const struct gy_arguments *arguments = pair->arguments;
    size_t wrong = 0;
    if (pair->rank == 0) {
        printf("# gyre-perf %s  sendrecv  ranks 2  window %d  check %s\n", gyre_version(), arguments->window,
               arguments->check ? "exact" : "none");
        if (arguments->accepted[0])
            printf("# accepted, as gyre-perf does so anyway: %s\n", arguments->accepted);
        printf("#%12s", "Size (B)");
        for (int f = 0; f < FIGURES; f++) {
            if (is_asked(pair, f))
                printf(" %*s", figures[f].width, figures[f].title);
        }
        printf(" %7s\n", "#wrong");
    }
    if (!measure_sizes(pair, &wrong))
        return 1;
    if (pair->rank == 0)
        gy_report_end(stdout, arguments->check ? (long)wrong : -1, pair->bandwidth / 1e3 / (double)pair->rows);
    return wrong > 0;
}

int gy_sendrecv_run(const struct gy_arguments *arguments)
{
    struct pair pair = {.arguments = arguments};
    int status = 1;
    if (!succeeded(&pair, gyre_comm_create(NULL, &pair.comm)))
        return 1;
    pair.rank = gyre_comm_rank(pair.comm);
    if (gyre_comm_size(pair.comm) != 2)
        fprintf(stderr, "gyre-perf: sendrecv has two ranks, not %d\n", gyre_comm_size(pair.comm));
    else if (prepare(&pair)) {
        if (arguments->pin)
            gy_cores_bind(pair.rank);
        status = measure_pair(&pair);
    }
    if (!gy_output_close("gyre-perf", pair.json, arguments->json) ||
        (pair.json != stdout && !gy_output_arrived("gyre-perf", stdout, "the output")))
        status = 1;
    free(pair.sent);
    free(pair.received);
    free(pair.requests);
    free(pair.times);
    gyre_comm_destroy(pair.comm);
    return status;
}

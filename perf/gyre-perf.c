/* gyre-perf: how long a collective takes, beside nccl-tests and the OSU benchmarks.
 *
 *   isolated   for each iteration: new data; meet (gyre-perf's own barrier); call; meet; check. Time: latest start to
 *              latest end; in JSON also the median from the earliest start to it.
 *   streaming  calls back to back; time: the mean. The check is an iteration before and one after.
 *
 * It uses gyre's public interface only. With --ranks N it starts itself N times, as gyre-run would. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "arguments.h"
#include "common/output.h"
#include "device.h"
#include "exact.h"
#include "meet.h"
#include "report.h"
#include "run/launch.h"
#include "sendrecv.h"

struct perf {
    const struct gy_arguments *arguments;
    struct gy_case it;
    struct gy_perf_device *device; /* NULL: host memory */
    struct gy_bootstrap *meet;
    int64_t *times, *wholes;
    size_t total_wrong;
    double busbw; /* sum of the results' */
    size_t results;
    FILE *json;
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool succeeded(const struct perf *perf, gyre_status status)
{
    char who[32] = ""; /* before the meeting it is not known */
    if (perf->it.comm)
        snprintf(who, sizeof who, "rank %d: ", perf->it.rank);
    if (status != GYRE_SUCCESS)
        fprintf(stderr, "gyre-perf: %s%s: %s\n", who, gyre_status_name(status), gyre_last_error(perf->it.comm));
    return status == GYRE_SUCCESS;
}

static gyre_status start_call(const struct perf *perf)
{
    if (!perf->device)
        return gy_case_call(&perf->it);
    struct gy_case placed = gy_perf_device_case(perf->device, &perf->it);
    return gy_case_call_on(&placed);
}

/* The end of calls that a stream orders. */
static bool end_calls(const struct perf *perf)
{
    return !perf->device || (gy_perf_device_wait(perf->device) && succeeded(perf, gyre_cuda_status(perf->it.comm)));
}

/* One checked call with data of its own. */
static bool call_once(struct perf *perf, uint64_t iteration, int64_t *time_p, int64_t *whole_p, size_t *wrong)
{
    bool check = perf->arguments->check;
    if (check)
        gy_case_fill(&perf->it, iteration);
    if (check && perf->device && !gy_perf_device_put(perf->device, &perf->it))
        return false;
    if (!gy_bootstrap_one_host(perf->meet) && !succeeded(perf, gyre_barrier(perf->it.comm)))
        return false;
    gy_bootstrap_barrier(perf->meet);
    int64_t start = now_ns();
    gyre_status status = start_call(perf);
    bool good = status != GYRE_SUCCESS || end_calls(perf);
    int64_t end = now_ns();
    if (!succeeded(perf, status) || !good)
        return false;
    *time_p = gy_bootstrap_time(perf->meet, start, end, whole_p);
    if (check && perf->device && !gy_perf_device_get(perf->device, &perf->it))
        return false;
    if (check)
        *wrong += gy_case_wrong(&perf->it, iteration);
    return true;
}

static bool measure_isolated(struct perf *perf, size_t *wrong)
{
    int warm_up = perf->arguments->warm_up, iterations = perf->arguments->iterations;
    for (int i = 0; i < warm_up + iterations; i++) {
        int kept = i < warm_up ? 0 : i - warm_up; /* what warms up is written over */
        if (!call_once(perf, (uint64_t)i, &perf->times[kept], &perf->wholes[kept], wrong))
            return false;
    }
    return true;
}

static bool measure_streaming(struct perf *perf, size_t *wrong)
{
    int64_t ignored, whole;
    if (!call_once(perf, 0, &ignored, &whole, wrong))
        return false;
    for (int i = 0; i < perf->arguments->warm_up; i++) {
        if (!succeeded(perf, start_call(perf)))
            return false;
    }
    if (!end_calls(perf))
        return false;
    gy_bootstrap_barrier(perf->meet);
    int64_t start = now_ns();
    for (int i = 0; i < perf->arguments->iterations; i++) {
        if (!succeeded(perf, start_call(perf)))
            return false;
    }
    if (!end_calls(perf))
        return false;
    perf->times[0] = gy_bootstrap_time(perf->meet, start, now_ns(), &perf->wholes[0]);
    return call_once(perf, 1, &ignored, &whole, wrong);
}

/* Across hosts the longest time of any host counts; wrong elements are summed over all ranks. */
static bool combine(struct perf *perf, size_t count, size_t wrong, size_t *wrong_p)
{
    double sum = (double)wrong;
    if (!succeeded(perf, gyre_all_reduce(perf->it.comm, &sum, &sum, 1, GYRE_FLOAT64, GYRE_SUM)))
        return false;
    *wrong_p = (size_t)sum;
    if (gy_bootstrap_one_host(perf->meet))
        return true;
    double *longest = calloc(count, sizeof *longest);
    bool good = longest != NULL;
    for (size_t i = 0; good && i < count; i++)
        longest[i] = (double)perf->times[i];
    good = good && succeeded(perf, gyre_all_reduce(perf->it.comm, longest, longest, count, GYRE_FLOAT64, GYRE_MAX));
    for (size_t i = 0; good && i < count; i++)
        perf->times[i] = (int64_t)longest[i];
    free(longest);
    return good;
}

static bool measure(struct perf *perf, bool in_place, struct gy_result *result_p)
{
    size_t wrong = 0, total = 0;
    bool streaming = perf->arguments->streaming;
    size_t count = streaming ? 1 : (size_t)perf->arguments->iterations;
    perf->it.in_place = in_place;
    if (!(streaming ? measure_streaming(perf, &wrong) : measure_isolated(perf, &wrong)) ||
        !combine(perf, count, wrong, &total))
        return false;
    struct gy_times whole;
    gy_times_compute(perf->times, count, &result_p->time_us);
    gy_times_compute(perf->wholes, count, &whole);
    result_p->whole_us = streaming || !gy_bootstrap_one_host(perf->meet) ? NAN : whole.median;
    if (streaming) {
        double mean = result_p->time_us.mean / perf->arguments->iterations;
        result_p->time_us = (struct gy_times){NAN, NAN, mean, NAN, NAN};
    }
    result_p->shown_us = streaming ? result_p->time_us.mean : result_p->time_us.median;
    result_p->algbw = result_p->shown_us > 0 ? (double)perf->it.bytes / result_p->shown_us / 1e3 : 0;
    result_p->busbw = result_p->algbw * gy_kind_bus_factor(perf->it.kind, perf->it.size);
    result_p->wrong = perf->arguments->check ? (long)total : -1;
    perf->total_wrong += total;
    perf->busbw += result_p->busbw;
    perf->results++;
    return true;
}

static void print_json(struct perf *perf, const struct gy_result *out, const struct gy_result *in)
{
    const struct gy_case *it = &perf->it;
    const char *algorithm = it->kind < GY_KINDS
                                ? gyre_comm_algorithm(it->comm, gy_kind_name(it->kind), it->count, it->dtype)
                                : NULL;
    const char *transport = perf->arguments->transport ? perf->arguments->transport : getenv("GYRE_TRANSPORT");
    for (int in_place = 0; in_place <= gy_kind_is_in_place(it->kind); in_place++) {
        perf->it.in_place = in_place;
        gy_report_json(perf->json, it, algorithm ? algorithm : "", transport ? transport : "auto", in_place ? in : out);
    }
}

/* The size that gy_case_size has set. */
static bool measure_size(struct perf *perf)
{
    struct gy_result out, in = {.shown_us = NAN};
    if (!measure(perf, false, &out) || (gy_kind_is_in_place(perf->it.kind) && !measure(perf, true, &in)))
        return false;
    if (perf->it.rank != 0)
        return true;
    gy_report_row(stdout, &perf->it, &out, &in);
    if (perf->json)
        print_json(perf, &out, &in);
    return true;
}

/* Sizes that are the same in whole elements of every rank have one row. */
static bool measure_sizes(struct perf *perf)
{
    const struct gy_arguments *arguments = perf->arguments;
    size_t bytes = arguments->least, measured = 0;
    for (bool more = true; more;) {
        gy_case_size(&perf->it, bytes);
        if (perf->it.kind == GY_KIND_BARRIER)
            return measure_size(perf);
        if (perf->it.bytes != measured && !measure_size(perf))
            return false;
        measured = perf->it.bytes;
        more = arguments->step ? bytes + arguments->step <= arguments->most
                               : bytes <= arguments->most / (size_t)arguments->factor;
        bytes = arguments->step ? bytes + arguments->step : bytes * (size_t)arguments->factor;
    }
    return true;
}

/* True if the operation has a meaning for the type, and its results are exact for so many ranks. */
static bool can_measure(const struct perf *perf)
{
    const struct gy_case *it = &perf->it;
    return gy_exact_has(it->dtype, it->op) &&
           (!perf->arguments->check || it->size <= gy_exact_ranks(it->dtype, it->op));
}

/* Each root that was asked for. */
static bool measure_roots(struct perf *perf)
{
    struct gy_case *it = &perf->it;
    if (perf->arguments->root != GY_ALL || !gy_kind_has_root(it->kind))
        return measure_sizes(perf);
    for (it->root = 0; it->root < it->size; it->root++) {
        if (!measure_sizes(perf))
            return false;
    }
    return true;
}

/* Each operation of one type; of all operations those that have a meaning for it. */
static bool measure_ops(struct perf *perf)
{
    struct gy_case *it = &perf->it;
    if (perf->arguments->op != GY_ALL || !gy_kind_reduces(it->kind))
        return (perf->arguments->dtype == GY_ALL && gy_kind_reduces(it->kind) && !can_measure(perf)) ||
               measure_roots(perf);
    for (int op = 0; op < GYRE_PREMUL_SUM; op++) {
        it->op = (gyre_op)op;
        if (can_measure(perf) && !measure_roots(perf))
            return false;
    }
    return true;
}

static bool measure_all(struct perf *perf)
{
    if (perf->arguments->dtype != GY_ALL)
        return measure_ops(perf);
    for (int dtype = 0; gyre_dtype_name((gyre_dtype)dtype); dtype++) {
        perf->it.dtype = (gyre_dtype)dtype;
        if (!measure_ops(perf))
            return false;
    }
    return true;
}

/* The largest row's needs; small worlds of large elements may exceed --max by rounding up to one element a rank. */
static bool allocate(struct perf *perf)
{
    const struct gy_arguments *arguments = perf->arguments;
    size_t bytes = arguments->most + 8 * (size_t)perf->it.size;
    void *input = NULL, *output = NULL;
    perf->times = calloc((size_t)arguments->iterations, sizeof *perf->times);
    perf->wholes = calloc((size_t)arguments->iterations, sizeof *perf->wholes);
    if (arguments->gyre_memory) {
        if (!succeeded(perf, gyre_mem_alloc(perf->it.comm, bytes, &input)) ||
            !succeeded(perf, gyre_mem_alloc(perf->it.comm, bytes, &output)))
            return false;
    } else if (posix_memalign(&input, 4096, bytes) || posix_memalign(&output, 4096, bytes)) {
        input = NULL;
    }
    perf->it.input = input;
    perf->it.output = output;
    if (!input || !output || !perf->times || !perf->wholes) {
        fprintf(stderr, "gyre-perf: no memory for two buffers of %zu bytes\n", bytes);
        return false;
    }
    memset(input, 0, bytes); /* touched now: page faults are no part of a call */
    memset(output, 0, bytes);
    if (arguments->on_device)
        perf->device = gy_perf_device_open(perf->it.comm, arguments->ranks_per_gpu, bytes);
    return perf->device || !arguments->on_device;
}

static void release(struct perf *perf)
{
    if (perf->arguments->gyre_memory) {
        gyre_mem_free(perf->it.comm, perf->it.input);
        gyre_mem_free(perf->it.comm, perf->it.output);
    } else {
        free(perf->it.input);
        free(perf->it.output);
    }
    free(perf->times);
    free(perf->wholes);
    gy_perf_device_close(perf->device);
}

static bool open_json(struct perf *perf)
{
    const char *path = perf->arguments->json;
    if (!path || perf->it.rank != 0)
        return true;
    perf->json = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
    if (!perf->json)
        fprintf(stderr, "gyre-perf: cannot write %s: %m\n", path);
    return perf->json != NULL;
}

static void print_head(const struct perf *perf)
{
    const struct gy_arguments *arguments = perf->arguments;
    if (perf->it.rank != 0)
        return;
    printf("# gyre-perf %s  %s  ranks %d  %s  iterations %d  warm-up %d  memory %s  check %s\n", gyre_version(),
           gy_kind_name(perf->it.kind), perf->it.size, arguments->streaming ? "streaming" : "isolated",
           arguments->iterations, arguments->warm_up,
           arguments->on_device     ? "cuda"
           : arguments->gyre_memory ? "gyre"
                                    : "private",
           arguments->check ? "exact" : "none");
    if (arguments->accepted[0])
        printf("# accepted, as gyre-perf does so anyway: %s\n", arguments->accepted);
    gy_report_head(stdout);
}

static void print_end(const struct perf *perf)
{
    if (perf->it.rank == 0)
        gy_report_end(stdout, perf->arguments->check ? (long)perf->total_wrong : -1,
                      perf->results ? perf->busbw / (double)perf->results : 0);
}

static int run_rank(const struct gy_arguments *arguments)
{
    int status = 1;
    struct perf perf = {.arguments = arguments};
    struct gy_case *it = &perf.it;
    if (!succeeded(&perf, gyre_comm_create(NULL, &it->comm)))
        return 1;
    it->kind = arguments->kind;
    it->dtype = arguments->dtype == GY_ALL ? GYRE_INT8 : (gyre_dtype)arguments->dtype;
    it->op = arguments->op == GY_ALL ? GYRE_SUM : (gyre_op)arguments->op;
    it->root = arguments->root == GY_ALL ? 0 : arguments->root;
    it->rank = gyre_comm_rank(it->comm);
    it->size = gyre_comm_size(it->comm);
    if (it->root >= it->size) {
        fprintf(stderr, "gyre-perf: --root %d is not one of %d ranks\n", it->root, it->size);
        gyre_comm_destroy(it->comm);
        return 2;
    }
    if (arguments->check && gy_kind_reduces(it->kind) && arguments->dtype != GY_ALL && arguments->op != GY_ALL &&
        it->size > gy_exact_ranks(it->dtype, it->op)) {
        if (it->rank == 0)
            fprintf(stderr,
                    "gyre-perf: %s of %s is exact in any order for up to %d ranks only: -c 0 leaves the check\n",
                    gyre_op_name(it->op), gyre_dtype_name(it->dtype), gy_exact_ranks(it->dtype, it->op));
        gyre_comm_destroy(it->comm);
        return 2;
    }
    perf.meet = gy_bootstrap_open(it->comm, arguments->pin);
    if (!perf.meet)
        goto no_meet;
    if (!open_json(&perf) || !allocate(&perf))
        goto no_memory;
    print_head(&perf);
    if (measure_all(&perf)) {
        status = perf.total_wrong ? 1 : 0;
        print_end(&perf);
    }
    if (perf.total_wrong && it->rank == 0)
        fprintf(stderr, "gyre-perf: %zu elements are wrong\n", perf.total_wrong);
no_memory:
    if (!gy_output_close("gyre-perf", perf.json, arguments->json) ||
        (perf.json != stdout && !gy_output_arrived("gyre-perf", stdout, "the output")))
        status = 1;
    release(&perf);
    gy_bootstrap_close(perf.meet);
no_meet:
    gyre_comm_destroy(it->comm);
    return status;
}

int main(int argc, char **argv)
{
    struct gy_arguments arguments;
    gy_arguments_parse(argc, argv, &arguments);
    if (arguments.ranks == 0)
        return arguments.messages ? gy_sendrecv_run(&arguments) : run_rank(&arguments);
    setenv(GY_ARGUMENTS_STARTED, "1", 1);
    const struct gy_launch launch = {
        .tool = "gyre-perf", .path = "/proc/self/exe", .argv = argv, .ranks = arguments.ranks};
    return gy_launch_run(&launch);
}

/* gyre-tune: measures the figures of a cluster that GYRE_TUNING needs, between the ranks of its own job.
 *
 *     gyre-tune --ranks 4 -o here.tuning                      on this machine
 *     torchrun ... gyre-tune -o cluster.tuning                one rank per host, or as many as the job will have
 *
 * Measured between rank 0 and the nearest rank of another host (if there is none: another rank of this host):
 *
 *     alone     half of the round-trip time of a small message
 *     overhead  what each of many small messages costs in a stream; sender and receiver are assumed equal
 *     latency   alone, without both overheads
 *     bandwidth from the difference of two long messages
 *     burst     the most of a message, of three lengths, that took no time at that bandwidth. A shaper lets that many
 *               bytes pass at once. While a message goes one way, the bucket of the other direction refills
 *     copy      what a middle-sized message takes beyond all of these; on one host, what a long one takes
 *
 * Rank 0 also measures alone how fast it adds two vectors. With a rank of the same host, if there is one, it
 * measures the local latency and, from the difference of two long messages, the local copy. Hierarchical algorithms
 * need no other figure: their cost follows from the figures of both levels. All figures are medians. The other ranks
 * wait. The file is for GYRE_TUNING and for gyre-sim --cluster. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gyre/gyre.h>

#include "base/aside.h"

#include "common/burst.h"
#include "common/options.h"
#include "common/slope.h"
#include "run/launch.h"
#include "run/rendezvous_env.h"

#define STARTED "GYRE_TEST_TUNE_STARTED"
#define SMALL 4u
#define MIDDLE ((size_t)64 << 10)
#define LONG ((size_t)2 << 20)
#define LONGER ((size_t)10 << 20)
#define STREAM 512
#define VECTOR ((size_t)16 << 20) /* bytes: beyond the caches that one core has alone */

struct arguments {
    long ranks;
    const char *output;
};

struct tune {
    gyre_comm *comm;
    int rank, far, near; /* −1: there is none */
    unsigned char *memory;
};

struct figures {
    double hosts, ranks_per_host, bandwidth, latency, burst, overhead, copy, reduce, local_latency;
    double local_copy; /* 0: no rank of this host to measure it with */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void must(const struct tune *tune, gyre_status status)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "gyre-tune: %s: %s\n", gyre_status_name(status), gyre_last_error(tune->comm));
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), by_size);
    return values[count / 2];
}

/* Returns half of the round-trip time with `peer`; both ranks call it. */
static double there_and_back(const struct tune *tune, int peer, size_t bytes, int times)
{
    double values[256];
    bool first = tune->rank < peer;
    for (int i = -3; i < times; i++) {
        double start = now();
        if (first)
            must(tune, gyre_send(tune->comm, tune->memory, bytes, GYRE_UINT8, peer));
        must(tune, gyre_recv(tune->comm, tune->memory, bytes, GYRE_UINT8, peer));
        if (!first)
            must(tune, gyre_send(tune->comm, tune->memory, bytes, GYRE_UINT8, peer));
        if (i >= 0)
            values[i] = (now() - start) / 2;
    }
    return median(values, times);
}

/* Returns the time of a message in a stream of many. */
static double in_a_stream(const struct tune *tune, int peer)
{
    double values[9];
    for (int i = -1; i < 9; i++) {
        double start = now();
        for (int m = 0; m < STREAM; m++) {
            if (tune->rank < peer)
                must(tune, gyre_send(tune->comm, tune->memory, SMALL, GYRE_UINT8, peer));
            else
                must(tune, gyre_recv(tune->comm, tune->memory, SMALL, GYRE_UINT8, peer));
        }
        there_and_back(tune, peer, SMALL, 1); /* until the last has come */
        if (i >= 0)
            values[i] = (now() - start) / STREAM;
    }
    return median(values, 9);
}

/* Bytes per second with `peer`. */
static double bandwidth_of(const struct tune *tune, int peer)
{
    struct gy_timed shorter = {(double)LONG, there_and_back(tune, peer, LONG, 9)};
    struct gy_timed longer = {(double)LONGER, there_and_back(tune, peer, LONGER, 5)};
    return gy_slope(shorter, longer);
}

/* Bytes that pass at once to `peer`. */
static double burst_of(const struct tune *tune, int peer, double alone, double bandwidth)
{
    double burst = 0;
    for (size_t bytes = MIDDLE; bytes < LONG; bytes *= 4) {
        struct gy_timed message = {(double)bytes, there_and_back(tune, peer, bytes, 15)};
        double passed = gy_burst(message, alone, bandwidth);
        burst = passed > burst ? passed : burst;
    }
    return burst;
}

/* Bytes of a sum's result per second. */
static double reduction_speed(struct tune *tune)
{
    double values[9];
    size_t count = VECTOR / sizeof(float) / 2;
    float *result = (float *)(void *)tune->memory, *operand = result + count;
    memset(tune->memory, 0, VECTOR);
    for (int i = 0; i < 9; i++) {
        double start = now();
        for (size_t e = 0; e < count; e++)
            result[e] += operand[e];
        values[i] = now() - start;
    }
    return (double)(count * sizeof(float)) / median(values, 9);
}

static double at_least(double value, double least)
{
    return value > least ? value : least;
}

static void measure(struct tune *tune, struct figures *figures)
{
    int peer = tune->far >= 0 ? tune->far : tune->near;
    if (tune->rank == 0 || tune->rank == peer) {
        int other = tune->rank == 0 ? peer : 0;
        double alone = there_and_back(tune, other, SMALL, 200), stream = in_a_stream(tune, other);
        double middle = there_and_back(tune, other, MIDDLE, 40);
        figures->overhead = stream < alone / 2 ? stream : alone / 2;
        figures->latency = alone - 2 * figures->overhead;
        figures->bandwidth = bandwidth_of(tune, other);
        if (tune->far >= 0)
            figures->burst = burst_of(tune, other, alone, figures->bandwidth);
        double slowed = at_least((double)MIDDLE - figures->burst, 0);
        double copies = middle - alone - slowed / figures->bandwidth;
        figures->copy = 2 * (double)MIDDLE / at_least(copies, 2 * (double)MIDDLE / 50e9);
        if (tune->far < 0) /* inside a host both copies are all there is */
            figures->copy = 2 * figures->bandwidth;
    }
    must(tune, gyre_barrier(tune->comm));
    if (tune->near >= 0 && (tune->rank == 0 || tune->rank == tune->near)) {
        int other = tune->rank == 0 ? tune->near : 0;
        double alone = there_and_back(tune, other, SMALL, 200);
        figures->local_latency = at_least(alone - 2 * figures->overhead, 1e-8);
        figures->local_copy = 2 * bandwidth_of(tune, other);
    }
    must(tune, gyre_barrier(tune->comm));
    if (tune->rank == 0)
        figures->reduce = reduction_speed(tune);
    must(tune, gyre_barrier(tune->comm));
}

/* Chooses the ranks that are measured with rank 0. */
static void look_around(struct tune *tune, struct figures *figures_p)
{
    int size = gyre_comm_size(tune->comm);
    gyre_rank_place own = {.size = sizeof(own)};
    tune->far = tune->near = -1;
    must(tune, gyre_comm_topology(tune->comm, 0, &own));
    for (int r = size - 1; r > 0; r--) {
        gyre_rank_place place = {.size = sizeof(place)};
        must(tune, gyre_comm_topology(tune->comm, r, &place));
        *(place.host == own.host ? &tune->near : &tune->far) = r;
    }
    figures_p->hosts = own.hosts;
    int most = (size + own.hosts - 1) / own.hosts;
    figures_p->ranks_per_host = most;
    figures_p->local_latency = 2e-7;
}

static bool write_file(const char *path, const struct figures *figures)
{
    struct gy_aside aside = {.stream = stdout};
    bool printed = strcmp(path, "-") == 0;
    if (!printed && !gy_aside_open(&aside, path))
        return false;
    FILE *file = aside.stream;
    fprintf(file,
            "# made by gyre-tune %s: for GYRE_TUNING and gyre-sim --cluster; seconds and bytes per second\n"
            "hosts = %.0f\nranks_per_host = %.0f\nsend_overhead = %.4g\nreceive_overhead = %.4g\ncopy = %.4g\n"
            "reduce = %.4g\nlocal_latency = %.4g\n",
            gyre_version(), figures->hosts, figures->ranks_per_host, figures->overhead, figures->overhead,
            figures->copy, figures->reduce, figures->local_latency);
    if (figures->local_copy > 0)
        fprintf(file, "local_copy = %.4g\n", figures->local_copy);
    if (figures->hosts > 1 && figures->ranks_per_host > 1)
        fprintf(
            file,
            "# hierarchical algorithms: by local_latency and local_copy inside a host, by the others between hosts\n");
    if (figures->hosts > 1)
        fprintf(file, "bandwidth = %.4g\nlatency = %.4g\nburst = %.4g\n", figures->bandwidth, figures->latency,
                figures->burst);
    return printed ? fflush(file) == 0 && !ferror(file) : gy_aside_close(&aside, true);
}

static int run_rank(const struct arguments *arguments)
{
    struct tune tune = {0};
    struct figures figures = {0};
    int status = 0;
    must(&tune, gyre_comm_create(NULL, &tune.comm));
    tune.rank = gyre_comm_rank(tune.comm);
    tune.memory = calloc(1, VECTOR);
    if (gyre_comm_size(tune.comm) < 2) {
        fprintf(stderr, "gyre-tune: one rank alone has no peer to measure with: two or more are needed\n");
        status = GY_EXIT_USAGE;
    } else if (!tune.memory) {
        fprintf(stderr, "gyre-tune: no memory\n");
        status = 1;
    }
    if (status != 0)
        goto end;
    look_around(&tune, &figures);
    measure(&tune, &figures);
    if (tune.rank == 0 && !write_file(arguments->output, &figures)) {
        fprintf(stderr, "gyre-tune: cannot write %s: %m\n", arguments->output);
        status = 1;
    }
end:
    free(tune.memory);
    gyre_comm_destroy(tune.comm);
    return status;
}

static const struct argp_option table[] = {
    {"ranks", 'N', "N", 0, "start N ranks on this machine (otherwise a launcher has: gyre-run, torchrun)", 0},
    {"output", 'o', "FILE", 0, "what is written, by rank 0; default - is stdout", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct arguments *arguments = state->input;
    switch (key) {
    case ARGP_KEY_INIT: gy_options_init(state); return 0;
    case 'N': arguments->ranks = gy_options_integer("--ranks", text, 2, GY_LAUNCH_RANKS_MOST); return 0;
    case 'o': arguments->output = text; return 0;
    case ARGP_KEY_ARG: gy_options_refuse("unexpected argument '%s'", text);
    default: return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static const struct argp argp = {table, parse, NULL, "Measures a cluster for gyre's choice of algorithms.",
                                     NULL,  NULL,  NULL};
    struct arguments arguments = {.output = "-"};
    gy_options_parse("gyre-tune", &argp, 0, argc, argv, &arguments);
    gy_options_check_environment();
    if (arguments.ranks > 0 && !getenv(STARTED)) {
        const struct gy_launch launch = {
            .tool = "gyre-tune", .path = "/proc/self/exe", .argv = argv, .ranks = (int)arguments.ranks, .bind = true};
        setenv(STARTED, "1", 1);
        return gy_launch_run(&launch);
    }
    if (!gy_launch_found()) /* and its line says what to do */
        gy_options_refuse("no launcher has started ranks: say --ranks N, or use gyre-run, torchrun, mpirun or srun");
    return run_rank(&arguments);
}

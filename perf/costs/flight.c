/* gyre-flight: many requests at once beside as many blocking calls.
 *
 *     gyre-run -n 2 gyre-flight [REQUESTS [ROUNDS]]        64, 15; GYRE_TRANSPORT says over what
 *
 * In turns: REQUESTS blocking all_reduces one after the other; as many started first and then waited for together;
 * as many persistent ones likewise. Each call has buffers of its own, the same in all three forms. Per size: the
 * median times of the slowest rank, and the medians of the rounds' ratios with quartiles. A ratio above 1 means that
 * the requests cost more than the blocking calls. Every result is checked once per round. */
#include <math.h>
#include <string.h>

#include "turns.h"

#define REQUESTS_MOST 1024
#define BYTES_MOST ((size_t)256 << 20) /* of all buffers of one kind */

struct flight {
    gyre_comm *comm;
    size_t requests, count; /* floats of one call */
    float *input, *output;
    gyre_request *kept[REQUESTS_MOST];
};

static void blocking(const struct flight *f)
{
    for (size_t i = 0; i < f->requests; i++)
        EXPECT(f->comm, gyre_all_reduce(f->comm, f->input + i * f->count, f->output + i * f->count, f->count,
                                        GYRE_FLOAT32, GYRE_SUM));
}

static void in_flight(const struct flight *f)
{
    static gyre_request *requests[REQUESTS_MOST];
    for (size_t i = 0; i < f->requests; i++)
        EXPECT(f->comm, gyre_all_reduce_start(f->comm, f->input + i * f->count, f->output + i * f->count, f->count,
                                              GYRE_FLOAT32, GYRE_SUM, &requests[i]));
    EXPECT(f->comm, gyre_wait_all(requests, f->requests));
}

static void keep(struct flight *f)
{
    for (size_t i = 0; i < f->requests; i++)
        EXPECT(f->comm, gyre_all_reduce_init(f->comm, f->input + i * f->count, f->output + i * f->count, f->count,
                                             GYRE_FLOAT32, GYRE_SUM, &f->kept[i]));
}

static void persistent(const struct flight *f)
{
    static gyre_request *requests[REQUESTS_MOST];
    for (size_t i = 0; i < f->requests; i++) {
        requests[i] = f->kept[i];
        EXPECT(f->comm, gyre_start(requests[i]));
    }
    EXPECT(f->comm, gyre_wait_all(requests, f->requests));
}

static void let_go(struct flight *f)
{
    for (size_t i = 0; i < f->requests; i++)
        EXPECT(f->comm, gyre_request_free(&f->kept[i]));
}

/* The time of the slowest rank, in microseconds. */
static double measure(const struct flight *f, void (*way)(const struct flight *))
{
    EXPECT(f->comm, gyre_barrier(f->comm));
    int64_t start = turns_now();
    way(f);
    double mine = (double)(turns_now() - start) / 1e3, slowest = 0;
    EXPECT(f->comm, gyre_all_reduce(f->comm, &mine, &slowest, 1, GYRE_FLOAT64, GYRE_MAX));
    return slowest;
}

static void check(const struct flight *f)
{
    float ranks = (float)gyre_comm_size(f->comm), sum = ranks * (ranks + 1) / 2;
    for (size_t i = 0; i < f->requests * f->count; i += f->count) {
        if (fabsf(f->output[i] - sum) > 0 || fabsf(f->output[i + f->count - 1] - sum) > 0) {
            fprintf(stderr, "gyre-flight: a wrong sum\n");
            exit(1);
        }
    }
    memset(f->output, 0, f->requests * f->count * sizeof *f->output);
}

enum { BLOCKING, STARTED, PERSISTENT, WAYS };

/* Microseconds of each way, and how many times the blocking calls'. */
static void row(size_t bytes, double times[WAYS][TURNS_MOST], double ratios[WAYS][TURNS_MOST], size_t rounds)
{
    printf("%10zu %10.2f", bytes, turns_quartiles(times[BLOCKING], rounds).middle);
    for (int way = STARTED; way < WAYS; way++) {
        struct turns_quartiles ratio = turns_quartiles(ratios[way], rounds);
        printf(" %14.2f %6.2f (%.2f to %.2f)", turns_quartiles(times[way], rounds).middle, ratio.middle, ratio.low,
               ratio.high);
    }
    printf("\n");
}

static void compare(struct flight *f, size_t bytes, size_t rounds)
{
    static void (*const ways[WAYS])(const struct flight *) = {blocking, in_flight, persistent};
    static double times[WAYS][TURNS_MOST], ratios[WAYS][TURNS_MOST];
    f->count = bytes / sizeof *f->input;
    keep(f);
    for (size_t round = 0; round <= rounds; round++) { /* the first warms up */
        size_t at = round ? round - 1 : 0;
        for (int way = 0; way < WAYS; way++) {
            times[way][at] = measure(f, ways[way]);
            check(f);
            ratios[way][at] = times[way][at] / times[BLOCKING][at];
        }
    }
    let_go(f);
    if (gyre_comm_rank(f->comm) == 0)
        row(bytes, times, ratios, rounds);
}

int main(int argc, char **argv)
{
    static struct flight f = {.requests = 64};
    if (argc > 1)
        f.requests = (size_t)turns_number("gyre-flight", argv[1], REQUESTS_MOST);
    size_t rounds = argc > 2 ? (size_t)turns_number("gyre-flight", argv[2], TURNS_MOST) : 15;
    size_t most = BYTES_MOST / f.requests < 256 << 10 ? BYTES_MOST / f.requests : 256 << 10;
    EXPECT(NULL, gyre_comm_create(NULL, &f.comm));
    f.input = calloc(f.requests, most);
    f.output = calloc(f.requests, most);
    if (!f.input || !f.output) {
        fprintf(stderr, "gyre-flight: no memory\n");
        exit(1);
    }
    for (size_t i = 0; i < f.requests * most / sizeof *f.input; i++)
        f.input[i] = (float)(gyre_comm_rank(f.comm) + 1);
    if (gyre_comm_rank(f.comm) == 0)
        printf("# %d ranks, %zu all_reduces, %zu rounds in turns; microseconds for all of them\n#    bytes  "
               " blocking       requests  ratio (quartiles)       persistent  ratio (quartiles)\n",
               gyre_comm_size(f.comm), f.requests, rounds);
    for (size_t bytes = sizeof *f.input; bytes <= most; bytes *= 8)
        compare(&f, bytes, rounds);
    free(f.input);
    free(f.output);
    gyre_comm_destroy(f.comm);
    return 0;
}

/* gyre-flight: many requests at once beside as many blocking calls.
 *
 *     gyre-run -n 2 gyre-flight [REQUESTS [ROUNDS]]        64, 15; GYRE_TRANSPORT says over what
 *
 * In turns: REQUESTS blocking all_reduces one after the other; as many started first and then waited for together. Each
 * call has buffers of its own, the same in both ways. Per size the median times of all ranks' slowest, and the median of
 * the rounds' ratios with quartiles: above 1 the requests cost more. Every result is checked once per round. */
#include <math.h>
#include <string.h>

#include "turns.h"

#define REQUESTS_MOST 1024
#define BYTES_MOST ((size_t)256 << 20) /* of all buffers of one kind */

struct flight {
    gyre_comm *comm;
    size_t requests, count; /* floats of one call */
    float *input, *output;
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

static void compare(struct flight *f, size_t bytes, size_t rounds)
{
    double calls[TURNS_MOST], requests[TURNS_MOST], ratios[TURNS_MOST];
    f->count = bytes / sizeof *f->input;
    for (size_t round = 0; round <= rounds; round++) { /* the first warms up */
        size_t at = round ? round - 1 : 0;
        calls[at] = measure(f, blocking);
        check(f);
        requests[at] = measure(f, in_flight);
        check(f);
        ratios[at] = requests[at] / calls[at];
    }
    if (gyre_comm_rank(f->comm) == 0)
        turns_row(bytes, calls, requests, ratios, rounds);
}

int main(int argc, char **argv)
{
    struct flight f = {.requests = 64};
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
               "     blocking       requests    ratio    quartiles\n",
               gyre_comm_size(f.comm), f.requests, rounds);
    for (size_t bytes = sizeof *f.input; bytes <= most; bytes *= 8)
        compare(&f, bytes, rounds);
    free(f.input);
    free(f.output);
    gyre_comm_destroy(f.comm);
    return 0;
}

/* gyre-ends: the cost of uniform ends for an all_reduce.
 *
 *     gyre-run -n 2 gyre-ends [ROUNDS]        21; GYRE_TRANSPORT says over what
 *
 * Two communicators of the same ranks take turns: the same number of all_reduces with GYRE_ENDS local, and with
 * uniform, in the other order every second round. Per size: the median times of a call on the slowest rank, and the
 * median of the rounds' ratios with quartiles. The result of each turn's last call is checked. */
#include <math.h>
#include <string.h>

#include "turns.h"

#define BYTES_MOST ((size_t)1 << 20)
#define TURN_BYTES ((size_t)16 << 20) /* that a turn moves */
#define CALLS_MOST 500

struct ends {
    gyre_comm *local, *uniform;
    size_t count; /* floats of one call */
    int calls;
    float *input, *output;
};

/* Microseconds of a call, on the slowest rank. */
static double measure(const struct ends *e, gyre_comm *comm)
{
    float ranks = (float)gyre_comm_size(comm), sum = ranks * (ranks + 1) / 2;
    EXPECT(comm, gyre_barrier(comm));
    int64_t start = turns_now();
    for (int i = 0; i < e->calls; i++)
        EXPECT(comm, gyre_all_reduce(comm, e->input, e->output, e->count, GYRE_FLOAT32, GYRE_SUM));
    double mine = (double)(turns_now() - start) / 1e3 / e->calls, slowest = 0;
    if (fabsf(e->output[0] - sum) > 0 || fabsf(e->output[e->count - 1] - sum) > 0) {
        fprintf(stderr, "gyre-ends: a wrong sum\n");
        exit(1);
    }
    memset(e->output, 0, e->count * sizeof *e->output);
    EXPECT(comm, gyre_all_reduce(comm, &mine, &slowest, 1, GYRE_FLOAT64, GYRE_MAX));
    return slowest;
}

static void compare(struct ends *e, size_t bytes, size_t rounds)
{
    double local[TURNS_MOST], uniform[TURNS_MOST], ratios[TURNS_MOST];
    e->count = bytes / sizeof *e->input;
    e->calls = (int)(TURN_BYTES / bytes < CALLS_MOST ? TURN_BYTES / bytes : CALLS_MOST);
    for (size_t round = 0; round <= rounds; round++) { /* the first warms up */
        size_t at = round ? round - 1 : 0;
        if (round % 2)
            local[at] = measure(e, e->local);
        uniform[at] = measure(e, e->uniform);
        if (round % 2 == 0)
            local[at] = measure(e, e->local);
        ratios[at] = uniform[at] / local[at];
    }
    if (gyre_comm_rank(e->local) == 0)
        turns_row(bytes, local, uniform, ratios, rounds);
}

int main(int argc, char **argv)
{
    struct ends e = {0};
    size_t rounds = argc > 1 ? (size_t)turns_number("gyre-ends", argv[1], TURNS_MOST) : 21;
    EXPECT(NULL, gyre_comm_create(NULL, &e.local));
    EXPECT(e.local, gyre_comm_duplicate(e.local, &e.uniform));
    EXPECT(e.local, gyre_comm_set(e.local, "ends", "local"));
    EXPECT(e.uniform, gyre_comm_set(e.uniform, "ends", "uniform"));
    e.input = calloc(1, BYTES_MOST);
    e.output = calloc(1, BYTES_MOST);
    if (!e.input || !e.output) {
        fprintf(stderr, "gyre-ends: no memory\n");
        exit(1);
    }
    for (size_t i = 0; i < BYTES_MOST / sizeof *e.input; i++)
        e.input[i] = (float)(gyre_comm_rank(e.local) + 1);
    if (gyre_comm_rank(e.local) == 0)
        printf("# %d ranks, %zu rounds in turns; microseconds of an all_reduce\n#    bytes          local        "
               "uniform    ratio    quartiles\n",
               gyre_comm_size(e.local), rounds);
    for (size_t bytes = 8; bytes <= BYTES_MOST; bytes *= bytes < 1024 ? 128 : 32)
        compare(&e, bytes, rounds);
    free(e.input);
    free(e.output);
    EXPECT(e.uniform, gyre_comm_destroy(e.uniform));
    EXPECT(e.local, gyre_comm_destroy(e.local));
    return 0;
}

/* Calls enough of one size that the tuner tries every variant (collectives/shm/autotune.h), of two ranks and of
 * three that count cores for all of them. By each variant, and when it changes, every rank gets the right result,
 * and no rank's slot is another's. The bytes are other ones in each call, and what a rank has sent and received is
 * overwritten at once. */

#include "support/cores.h"
#include "support/launcher.h"

#define ROUNDS 80 /* more than a trial of four ways takes */
#define MOST ((size_t)128 << 10)

static int32_t *input, *output;
static int rank, size;

/* Element i of what a rank gives. */
static int32_t value(int from, int round, size_t i)
{
    return (int32_t)((size_t)(from + 1) * 1000003 + (size_t)round * 7919 + i * 31);
}

static int32_t sum(int round, size_t i)
{
    int32_t sum = 0;
    for (int p = 0; p < size; p++)
        sum += value(p, round, i);
    return sum;
}

/* `count` elements of the output: those from `first` on of the contribution of rank `from`, or of the sum of all
 * ranks. */
static void expect(size_t at, size_t count, int from, int round, size_t first)
{
    for (size_t i = 0; i < count; i++)
        CHECK(output[at + i] == (from < 0 ? sum(round, first + i) : value(from, round, first + i)));
}

enum { ALL_REDUCE, REDUCE, REDUCE_SCATTER, BROADCAST, ALL_GATHER, GATHER, ALL_TO_ALL, SCATTER, COLLECTIVES };

static gyre_status call(gyre_comm *comm, int collective, size_t count, int root)
{
    switch (collective) {
    case ALL_REDUCE: return gyre_all_reduce(comm, input, output, count, GYRE_INT32, GYRE_SUM);
    case REDUCE: return gyre_reduce(comm, input, output, count, GYRE_INT32, GYRE_SUM, root);
    case REDUCE_SCATTER: return gyre_reduce_scatter(comm, input, output, count, GYRE_INT32, GYRE_SUM);
    case BROADCAST: return gyre_broadcast(comm, input, output, count, GYRE_INT32, root);
    case ALL_GATHER: return gyre_all_gather(comm, input, output, count, GYRE_INT32);
    case GATHER: return gyre_gather(comm, input, output, count, GYRE_INT32, root);
    case ALL_TO_ALL: return gyre_all_to_all(comm, input, output, count, GYRE_INT32);
    default: return gyre_scatter(comm, input, output, count, GYRE_INT32, root);
    }
}

static void expect_all(int collective, size_t count, int root, int round)
{
    size_t mine = (size_t)rank * count;
    for (int p = 0; p < size; p++) {
        if (collective == ALL_GATHER || (collective == GATHER && rank == root))
            expect((size_t)p * count, count, p, round, 0);
        if (collective == ALL_TO_ALL)
            expect((size_t)p * count, count, p, round, mine);
    }
    if (collective == ALL_REDUCE || (collective == REDUCE && rank == root))
        expect(0, count, -1, round, 0);
    if (collective == REDUCE_SCATTER)
        expect(0, count, -1, round, mine);
    if (collective == BROADCAST)
        expect(0, count, root, round, 0);
    if (collective == SCATTER)
        expect(0, count, root, round, mine);
}

static void run(int me)
{
    gyre_comm *comm = rank_begin(100);
    static const size_t bytes[] = {4096, 8192 + 4, 16384, MOST};
    rank = me;
    size = gyre_comm_size(comm);
    size_t elements = (size_t)size * MOST / sizeof *input;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    input = malloc(elements * sizeof *input);
    output = malloc(elements * sizeof *output);
    CHECK(input && output);
    for (int collective = 0; collective < COLLECTIVES; collective++)
        for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++)
            for (int round = 0; round < ROUNDS; round++) {
                for (size_t i = 0; i < elements; i++)
                    input[i] = value(rank, round, i);
                OK(comm, call(comm, collective, bytes[b] / sizeof *input, size - 1));
                expect_all(collective, bytes[b] / sizeof *input, size - 1, round);
                memset(input, 0x33, elements * sizeof *input);
                memset(output, 0x44, elements * sizeof *output);
            }
    free(input);
    free(output);
    OK(comm, gyre_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    int ranks = argc > 1 ? atoi(argv[1]) : 2;
    return !launch(ranks, run, 110, "all ways");
}

/* A rank that computes for longer than GYRE_PEER_TIMEOUT, while others send to it what its socket does not hold: it is
 * absent, and not lost. The environment says how long a host may be silent, and the argument for how many milliseconds
 * a rank computes. */
#include "support/rank.h"

#define SHORT 8000     /* elements: eager, so that the root runs ahead */
#define LONG (1 << 20) /* granted */
#define BROADCASTS 12  /* more than sockets and credit hold */

static gyre_comm *comm;
static int rank, size;
static float in[LONG], out[LONG];

static void compute(const char *milliseconds)
{
    long ms = strtol(milliseconds, NULL, 10);
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void fill(float value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        in[i] = value;
}

static void all_are(float value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (out[i] < value || out[i] > value)
            rank_fail("element %zu is %g and not %g", i, (double)out[i], (double)value);
}

/* The last rank has not entered anything. */
static void test_ahead(const char *milliseconds)
{
    if (rank == size - 1)
        compute(milliseconds);
    for (int i = 0; i < BROADCASTS; i++) {
        fill((float)(rank + i), SHORT);
        OK(comm, gyre_broadcast(comm, in, out, SHORT, GYRE_FLOAT32, 0));
        all_are((float)i, SHORT);
    }
}

/* It has started what the others wait for. */
static void test_started(const char *milliseconds)
{
    gyre_request *request;
    fill((float)(rank + 1), LONG);
    OK(comm, gyre_all_reduce_start(comm, in, out, LONG, GYRE_FLOAT32, GYRE_SUM, &request));
    if (rank == size - 1)
        compute(milliseconds);
    OK(comm, gyre_wait(&request));
    all_are((float)(size * (size + 1) / 2), LONG);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        rank_fail("usage: absent_test MILLISECONDS");
    comm = rank_begin(50);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    test_ahead(argv[1]);
    test_started(argv[1]);
    OK(comm, gyre_barrier(comm));
    gyre_comm_destroy(comm);
    return 0;
}

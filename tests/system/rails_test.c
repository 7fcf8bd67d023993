/* One rank of rails_test.sh, whose hosts have several links. Collectives of sizes that are less than a stripe, several,
 * and not a whole number of them, every element of every result compared. Prints "ready" after the first rounds.
 *
 *   rounds    ends after them
 *   work      until something fails; then "STATUS MILLISECONDS SENTENCE", MILLISECONDS by the wall clock, goes on with
 *             those that are left, and prints "SUCCESS RANKS", or the status of its attempt
 *   die R     the same; rank R dies */
#include <signal.h>

#include "support/rank.h"

#define MOST (1 << 18)

static const size_t counts[] = {1, 1000, 16384, 40001, MOST, 300};
static float in[MOST], out[MOST];

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000L + now.tv_nsec / 1000000;
}

static gyre_status all_reduce(gyre_comm *comm, size_t count)
{
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm);
    for (size_t i = 0; i < count; i++)
        in[i] = (float)((rank + 1) * (int)(i % 1021 + 1));
    gyre_status status = gyre_all_reduce(comm, in, out, count, GYRE_FLOAT32, GYRE_SUM);
    for (size_t i = 0; i < count && status == GYRE_SUCCESS; i++)
        CHECK(out[i] == (float)(size * (size + 1) / 2 * (int)(i % 1021 + 1)));
    return status;
}

static gyre_status all_to_all(gyre_comm *comm, size_t count)
{
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm);
    for (int to = 0; to < size; to++)
        for (size_t i = 0; i < count; i++)
            in[(size_t)to * count + i] = (float)(rank * 100 + to + (int)(i % 1021) * 1000);
    gyre_status status = gyre_all_to_all(comm, in, out, count, GYRE_FLOAT32);
    for (int from = 0; from < size && status == GYRE_SUCCESS; from++)
        for (size_t i = 0; i < count; i++)
            CHECK(out[(size_t)from * count + i] == (float)(from * 100 + rank + (int)(i % 1021) * 1000));
    return status;
}

/* -1: until something fails. */
static gyre_status work(gyre_comm *comm, int rounds)
{
    gyre_status status = GYRE_SUCCESS;
    for (int i = 0; status == GYRE_SUCCESS && i != rounds; i++) {
        size_t count = counts[(size_t)i % (sizeof counts / sizeof *counts)];
        status = all_reduce(comm, count);
        if (status == GYRE_SUCCESS)
            status = all_to_all(comm, count / (size_t)gyre_comm_size(comm));
    }
    return status;
}

static void go_on(gyre_comm *comm)
{
    gyre_comm *next = NULL;
    gyre_comm_revoke(comm);
    gyre_status status = gyre_comm_shrink(comm, &next);
    if (status == GYRE_SUCCESS)
        status = work(next, 12);
    if (status == GYRE_SUCCESS)
        printf("SUCCESS %d\n", gyre_comm_size(next));
    else
        printf("%s %s\n", gyre_status_name(status), gyre_last_error(next ? next : comm));
    fflush(stdout);
    gyre_comm_destroy(next);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    gyre_comm *comm = rank_begin(120);
    OK(comm, work(comm, 12));
    puts("ready");
    fflush(stdout);
    if (strcmp(argv[1], "rounds") != 0) {
        if (strcmp(argv[1], "die") == 0 && argc == 3 && gyre_comm_rank(comm) == atoi(argv[2])) {
            work(comm, 20);
            raise(SIGKILL);
        }
        gyre_status status = work(comm, -1);
        printf("%s %ld %s\n", gyre_status_name(status), now_ms(), gyre_last_error(comm));
        go_on(comm);
    }
    gyre_comm_destroy(comm);
    return 0;
}

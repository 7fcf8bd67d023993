/* While ranks answer each other quickly over a socket of one host, the kernel reports no short frames
 * (tcp/receive.c). No rank may sleep then, for whatever reason, and a sleeping rank is woken by what comes. Both
 * ranks of two become quiet; rank 0 makes a call in which it waits, and rank 1 comes late. The meddler counts
 * sleeps: none is deaf, and of those of rank 0 one in some rounds begins where the link had been quiet, and ends
 * when something is there. Argument:
 *   late       an all_reduce
 *   leaf       a broadcast, of which rank 0 has had nothing but broadcasts before
 *   root       a reduce, likewise
 *   message    a receive
 *   request    an all_reduce that has been started
 *   computes   likewise, and rank 0 calls nothing for a while: for GYRE_PROGRESS_THREAD
 *   signal     a window's signal
 *   agree      an agreement, which goes over other sockets
 *   shrink     the next world
 *   grow       joiners, which do not come
 *   threads    an all_reduce of one thread, while another one's, of a communicator of its own, go on
 *   forked     a child has ended in between: the quiet is its parent's, and stays */
#include <pthread.h>
#include <sys/wait.h>

#include "meddler.h"

#include "support/rank.h"

#define LATE_US 20000 /* more than a rank spins */
#define ROUNDS 100    /* on a machine that others use a rank may sleep before it should, or not at all */
#define ENOUGH 3

static gyre_comm *comm, *other;
static gyre_window *window;
static int64_t memory[8];
static int rank;
static uint64_t signals;

static bool is_quiet(void)
{
    return meddler_wakes_at() > QUIET_BYTES;
}

static int32_t reduce_all(gyre_comm *over, int32_t value, gyre_op op)
{
    int32_t all = 0;
    OK(over, gyre_all_reduce(over, &value, &all, 1, GYRE_INT32, op));
    return all;
}

/* Until both are. */
static void grow_quiet(void)
{
    enum { CALLS = 50000 };
    int calls = 0;
    while (calls < CALLS && !reduce_all(comm, calls > 0 && is_quiet(), GYRE_MIN))
        calls++;
    if (calls == CALLS)
        rank_fail("the kernel still wakes a rank for each of %d short frames", CALLS);
}

/* ---- how rank 0 waits, and rank 1 comes ---- */

static void all_reduce(void)
{
    reduce_all(comm, 1, GYRE_SUM);
}

static void broadcast(void)
{
    int32_t value = rank;
    OK(comm, gyre_broadcast(comm, &value, &value, 1, GYRE_INT32, 1));
    CHECK(value == 1);
}

static void reduce(void)
{
    int32_t value = 1, sum = 0;
    OK(comm, gyre_reduce(comm, &value, &sum, 1, GYRE_INT32, GYRE_SUM, 0));
    CHECK(rank == 1 || sum == 2);
}

static void message(void)
{
    int32_t value = rank;
    if (rank == 0)
        OK(comm, gyre_recv(comm, &value, 1, GYRE_INT32, 1));
    else
        OK(comm, gyre_send(comm, &value, 1, GYRE_INT32, 0));
    CHECK(value == 1);
}

static void wait_after(unsigned pause_us)
{
    int32_t one = 1, sum = 0;
    gyre_request *request;
    OK(comm, gyre_all_reduce_start(comm, &one, &sum, 1, GYRE_INT32, GYRE_SUM, &request));
    usleep(pause_us);
    OK(comm, gyre_wait(&request));
    CHECK(sum == 2);
}

static void request(void)
{
    wait_after(0);
}

static void compute(void)
{
    wait_after(rank == 0 ? 2 * LATE_US : 0);
}

static void signal_once(void)
{
    signals++;
    if (rank == 0)
        OK(comm, gyre_window_wait(window, 0, signals));
    else
        OK(comm, gyre_window_signal(window, 0, 0));
}

static void agree(void)
{
    uint64_t bits = 0;
    OK(comm, gyre_comm_agree(comm, 6u + (unsigned)rank, &bits));
    CHECK(bits == 6);
}

static void shrink(void)
{
    gyre_comm *next = NULL;
    OK(comm, gyre_comm_shrink(comm, &next));
    OK(NULL, gyre_comm_destroy(comm));
    comm = next;
}

static void grow(void)
{
    gyre_comm *next = NULL;
    OK(comm, gyre_comm_grow(comm, 1, 0.02, &next));
    CHECK(!next);
}

/* A child calls, and ends. */
static void fork_before(void)
{
    bool quiet = is_quiet();
    pid_t child = rank == 0 ? fork() : 1;
    int status = 0;
    if (child == 0)
        _exit(gyre_barrier(comm) == GYRE_SUCCESS);
    if (rank == 0) {
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        CHECK(is_quiet() == quiet);
    }
    reduce_all(comm, 1, GYRE_SUM);
}

/* ---- one thread waits while another one's calls go on ---- */

static void *call_often(void *unused)
{
    (void)unused;
    usleep(LATE_US);
    for (int i = 0; i < 300; i++)
        reduce_all(other, i, GYRE_MAX);
    return NULL;
}

static void two_threads(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, call_often, NULL) == 0);
    if (rank == 1) /* its part of the other's is late by all of that */
        CHECK(pthread_join(thread, NULL) == 0);
    reduce_all(comm, 1, GYRE_SUM);
    if (rank == 0)
        CHECK(pthread_join(thread, NULL) == 0);
}

static const struct way {
    const char *name;
    void (*calls)(void);  /* on both */
    void (*before)(void); /* many of these have made them quiet; NULL: all_reduces */
    bool hears;           /* what ends the wait comes over the link */
} ways[] = {
    {"late", all_reduce, NULL, true},    {"leaf", broadcast, broadcast, true}, {"root", reduce, reduce, true},
    {"message", message, NULL, true},    {"request", request, NULL, true},     {"computes", compute, NULL, true},
    {"signal", signal_once, NULL, true}, {"agree", agree, NULL, false},        {"shrink", shrink, NULL, false},
    {"grow", grow, NULL, false},         {"threads", two_threads, NULL, true}, {"forked", fork_before, NULL, true},
};

/* True if rank 0 slept where the link had been quiet, and was woken. */
static bool round_of(const struct way *way)
{
    grow_quiet();
    for (int i = 0; i < 200 && way->before; i++)
        way->before();
    bool quiet = is_quiet();
    unsigned long begun = meddler_naps.begun, heard = meddler_naps.heard;
    if (rank == 1)
        usleep(LATE_US);
    way->calls();
    return quiet && meddler_naps.begun > begun && (!way->hears || meddler_naps.heard > heard);
}

static void test(const struct way *way)
{
    int32_t proven = 0;
    for (int round = 0; round < ROUNDS && proven < ENOUGH; round++) {
        bool good = round_of(way);
        if (meddler_naps.deaf > 0)
            break; /* the other rank ends with this one */
        proven += reduce_all(comm, rank == 0 && good, GYRE_MAX);
    }
    if (meddler_naps.deaf > 0)
        rank_fail("%lu of %lu sleeps beside a link of which the kernel said nothing", meddler_naps.deaf,
                  meddler_naps.begun);
    if (proven < ENOUGH)
        rank_fail("in %d of %d rounds a sleep began where the link had been quiet, and was ended by what came", proven,
                  ROUNDS);
}

int main(int argc, char **argv)
{
    comm = rank_begin(90);
    rank = gyre_comm_rank(comm);
    CHECK(gyre_comm_size(comm) == 2 && argc > 1);
    if (strcmp(argv[1], "threads") == 0)
        OK(comm, gyre_comm_duplicate(comm, &other));
    if (strcmp(argv[1], "signal") == 0)
        OK(comm, gyre_window_create(comm, memory, sizeof memory, &window));
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[1], ways[i].name) == 0)
            test(&ways[i]);
    OK(comm, gyre_barrier(comm));
    if (window)
        OK(comm, gyre_window_destroy(window));
    if (other)
        OK(NULL, gyre_comm_destroy(other));
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}

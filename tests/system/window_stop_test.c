/* A rank is stopped (SIGSTOP) in the middle of an accumulation. The operation is one of the test's own, which stops
 * the process that computes, so it always happens while the window's lock is held. The others are told of the
 * stopped rank, by its name, within their own timeout, whether they want the lock themselves or just wait for
 * something else:
 *
 *   holder   rank 2 holds the lock of rank 0's window, which rank 1 wants, in shared memory: PEER_STALLED
 *   hosts    the same with rank 1 on another host: rank 0 wants the lock for it
 *   target   rank 2 accumulates into its own window what rank 1 has sent: it does not answer: PEER_LATE
 *
 * The argument says which. The last process that ends kills the stopped rank. */
#include "support/launcher.h"

#define RANKS 3
#define STOPPED 2
#define CLOCK_S 2 /* of the clock that has to find it */
#define SLACK_S 12

struct shared {
    int64_t asked_ns;   /* when rank 1 began to want what the stopped one keeps from it */
    int64_t stopped_ns; /* 0: not yet */
    int ended;
    pid_t pid;
};

static struct shared *shared;
static const char *scenario;

static bool is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

static void stop_and_add(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    CHECK(user == shared && dtype == GYRE_INT64);
    if (getpid() == shared->pid) {
        __atomic_store_n(&shared->stopped_ns, rank_now_ns(), __ATOMIC_RELEASE);
        raise(SIGSTOP);
    }
    for (size_t i = 0; i < count; i++)
        ((int64_t *)result)[i] = ((const int64_t *)left)[i] + ((const int64_t *)right)[i];
}

static void expect_told(const gyre_comm *comm, gyre_status status)
{
    char name[16];
    int64_t now = rank_now_ns(), took = now - __atomic_load_n(&shared->stopped_ns, __ATOMIC_ACQUIRE);
    int64_t waited = now - __atomic_load_n(&shared->asked_ns, __ATOMIC_ACQUIRE);
    snprintf(name, sizeof name, "rank %d", STOPPED);
    GIVES(is("target") ? GYRE_PEER_LATE : GYRE_PEER_STALLED, comm, status);
    if (strncmp(gyre_last_error(comm), name, strlen(name)) != 0)
        rank_fail("does not begin with %s: '%s'", name, gyre_last_error(comm));
    if ((took < CLOCK_S * INT64_C(900000000) && waited < CLOCK_S * INT64_C(900000000)) ||
        took > (CLOCK_S + SLACK_S) * INT64_C(1000000000))
        rank_fail("told %.2f s after the stop, of %.2f s in which it was missed: '%s'", (double)took / 1e9,
                  (double)waited / 1e9, gyre_last_error(comm));
}

static void run_rank(int rank)
{
    int64_t one = 1;
    void *memory;
    gyre_window *window;
    gyre_op op;
    if (is("hosts"))
        setenv("GYRE_HOST_ID", rank == 1 ? "one" : "the-other", 1);
    gyre_comm *comm = rank_begin(40);
    OK(comm, gyre_mem_alloc(comm, 4096, &memory));
    OK(comm, gyre_window_create(comm, memory, 4096, &window));
    OK(comm, gyre_op_create(comm, stop_and_add, shared, 1, &op));
    if (rank == STOPPED) {
        shared->pid = getpid();
        OK(comm, gyre_barrier(comm));
        if (!is("target"))
            (void)gyre_window_accumulate(window, &one, 1, GYRE_INT64, op, 0, 0);
        else
            (void)gyre_window_wait(window, 0, 1);
        rank_fail("was not stopped"); /* it ends while it is */
    }
    gyre_status status = gyre_barrier(comm);
    if (rank == 0) { /* inside gyre, or in and out of it, for something that does not come */
        if (status == GYRE_SUCCESS && !is("target"))
            status = gyre_window_wait(window, 0, 1);
        for (; status == GYRE_SUCCESS; usleep(1000))
            status = gyre_progress(comm);
        expect_told(comm, status);
    } else {
        while (!is("target") && !__atomic_load_n(&shared->stopped_ns, __ATOMIC_ACQUIRE))
            usleep(1000);
        __atomic_store_n(&shared->asked_ns, rank_now_ns(), __ATOMIC_RELEASE);
        if (status == GYRE_SUCCESS)
            status = gyre_window_accumulate(window, &one, 1, GYRE_INT64, is("target") ? op : GYRE_SUM,
                                            is("target") ? STOPPED : 0, 0);
        expect_told(comm, status == GYRE_SUCCESS ? gyre_window_flush(window, -1) : status);
        if (is("holder") && !strstr(gyre_last_error(comm), "in an accumulation of window"))
            rank_fail("does not say in which call: '%s'", gyre_last_error(comm));
    }
    OK(comm, gyre_comm_destroy(comm));
    if (__atomic_add_fetch(&shared->ended, 1, __ATOMIC_ACQ_REL) == RANKS - 1)
        kill(shared->pid, SIGKILL);
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? argv[1] : "holder";
    CHECK(is("holder") || is("hosts") || is("target"));
    shared = launch_share(sizeof *shared);
    launch_may_die = STOPPED;
    launch_set_number(is("target") ? "GYRE_TIMEOUT" : "GYRE_STALL_TIMEOUT", CLOCK_S);
    return launch(RANKS, run_rank, 35, scenario) ? 0 : 1;
}

/* A rank that leaves because another one left is not to blame. Ranks make calls in which each needs its neighbour;
 * one destroys its communicator and leaves. Its neighbours fail, and theirs because of them, and so on. Every one of
 * them must be told GYRE_PEER_LEFT and the first that left, whatever those in between do about their own error:
 *
 *   destroy   they destroy their communicator at once
 *   linger    they keep it for a while, and do nothing
 *   abort     they abort, which ends all ranks, and destroy it
 *   exit      their process ends without a message
 *   window    they get from a window of the leaver's, which it has not destroyed
 *   signal    of two ranks, one waits for a signal of the other
 *
 * Arguments: what they do. */
#include "support/launcher.h"

#define RANKS 6
#define LEAVES_AFTER 5
#define SOON_NS (30 * INT64_C(1000000000)) /* before any clock of seconds would tell: CLOCKS */
#define CLOCKS "60"

static const char *scenario;
static int leaver;
static gyre_window *window;
static volatile int64_t *left_ns; /* shared */

static bool is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

static void check_told(const gyre_comm *comm, gyre_status status)
{
    char name[24];
    snprintf(name, sizeof name, "rank %d", leaver);
    GIVES(GYRE_PEER_LEFT, comm, status);
    if (strncmp(gyre_last_error(comm), name, strlen(name)) != 0)
        rank_fail("does not begin with %s: '%s'", name, gyre_last_error(comm));
    if (is("signal") && !strstr(gyre_last_error(comm), "in a wait for a signal of window"))
        rank_fail("does not say in which call: '%s'", gyre_last_error(comm));
    if (rank_now_ns() - *left_ns > SOON_NS)
        rank_fail("was told after %.1f s: '%s'", (double)(rank_now_ns() - *left_ns) / 1e9, gyre_last_error(comm));
}

static bool is_one_sided(void)
{
    return is("window") || is("signal");
}

/* What needs the others, once; for a one-sided call they are there until all have come to the last but one. */
static gyre_status need_others(gyre_comm *comm, int time)
{
    static float in[3000], out[3000];
    if (is("window") && time >= LEAVES_AFTER)
        return gyre_window_get(window, in, 3000, GYRE_FLOAT32, leaver, 0);
    if (is("signal") && time >= LEAVES_AFTER)
        return gyre_window_wait(window, 0, 1);
    return gyre_all_reduce(comm, in, out, 3000, GYRE_FLOAT32, GYRE_SUM);
}

static void run_rank(int rank)
{
    static float exposed[3000];
    gyre_status status = GYRE_SUCCESS;
    gyre_comm *comm = rank_begin(50);
    if (is_one_sided())
        OK(comm, gyre_window_create(comm, exposed, sizeof exposed, &window));
    for (int i = 0; status == GYRE_SUCCESS && (rank != leaver || i < LEAVES_AFTER); i++)
        status = need_others(comm, i);
    if (rank == leaver) {
        OK(comm, status);
        *left_ns = rank_now_ns();
        OK(comm, gyre_comm_destroy(comm));
        return;
    }
    check_told(comm, status);
    if (is("exit"))
        return;
    if (is("linger"))
        usleep(300000);
    if (is("abort"))
        OK(comm, gyre_comm_abort(comm));
    check_told(comm, gyre_barrier(comm)); /* it stays failed, and for the same reason */
    OK(comm, gyre_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? argv[1] : "destroy";
    CHECK(is("destroy") || is("linger") || is("abort") || is("exit") || is_one_sided());
    int ranks = is("signal") ? 2 : RANKS;
    left_ns = launch_share(sizeof *left_ns);
    setenv("GYRE_ALGORITHM", "all_reduce:ring", 1);
    setenv("GYRE_PEER_TIMEOUT", CLOCKS, 1);
    setenv("GYRE_STALL_TIMEOUT", CLOCKS, 1);
    for (leaver = 0; leaver < ranks; leaver++) {
        char what[64];
        snprintf(what, sizeof what, "%s, rank %d leaves", scenario, leaver);
        if (!launch(ranks, run_rank, 40, what))
            return 1;
    }
    printf("%s: %d ranks, whoever left first was named by all\n", scenario, ranks);
    return 0;
}

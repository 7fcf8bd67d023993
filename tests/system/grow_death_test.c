/* A rank dies while all ranks call gyre_comm_grow again and again: each of the others is told which rank died, also one
 * that had not noticed the death itself when the ranks agreed. GYRE_TEST_ROUNDS rounds, default 60. */
#include <pthread.h>

#include "support/launcher.h"

#define RANKS 4

static int victim;
static useconds_t delay;

static void *die(void *unused)
{
    (void)unused;
    usleep(delay);
    kill(getpid(), SIGKILL);
    return NULL;
}

static void body(int rank)
{
    char name[24];
    pthread_t thread;
    gyre_comm *comm = rank_begin(30), *next = NULL;
    gyre_status status = gyre_barrier(comm);
    if (rank == victim)
        CHECK(pthread_create(&thread, NULL, die, NULL) == 0);
    while (status == GYRE_SUCCESS && !next)
        status = gyre_comm_grow(comm, 0, 0, &next);
    snprintf(name, sizeof name, "rank %d ", victim);
    if (!next && (!strstr(gyre_last_error(comm), name) || strstr(gyre_last_error(comm), "because a rank has failed")))
        rank_fail("rank %d died, and gyre_comm_grow gave %s: %s", victim, gyre_status_name(status),
                  gyre_last_error(comm));
}

int main(void)
{
    const char *text = getenv("GYRE_TEST_ROUNDS");
    for (int round = 0; round < (text ? atoi(text) : 60); round++) {
        victim = launch_may_die = round % RANKS;
        delay = (useconds_t)(500 + rank_now_ns() / 1000 % 3000);
        if (!launch(RANKS, body, 25, "grow"))
            return 1;
    }
    return 0;
}

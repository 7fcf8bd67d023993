/* The real-time clock jumps by hours, back and forth, each time it is read. Ranks bootstrap, compute, wait for a
 * late rank for longer than their stall timeout, lose one, shrink, accept a joiner and go on. None of their timeouts
 * (stall 4 s, arrival 60 s, bootstrap 90 s) ends early, or never. Calls of the C library for the time come here
 * instead, as this program's symbols go before those of libraries; CLOCK_MONOTONIC is told truly. */
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include "support/launcher.h"

#define RANKS 3
#define LATE_MS 6000
#define SEEN __attribute__((visibility("default"))) /* by libraries */

static _Atomic unsigned looks;
static _Atomic uint64_t monotonic;

static time_t jump(void)
{
    unsigned look = atomic_fetch_add(&looks, 1);
    return (look % 2 ? -1 : 1) * (time_t)(3600 * (1 + look % 5));
}

SEEN int clock_gettime(clockid_t clock, struct timespec *now_p)
{
    long status = syscall(SYS_clock_gettime, clock, now_p);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now_p->tv_sec += jump();
    else
        atomic_fetch_add(&monotonic, 1);
    return (int)status;
}

SEEN int gettimeofday(struct timeval *restrict now_p, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *now_p = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

SEEN time_t time(time_t *now_p)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now_p)
        *now_p = now.tv_sec;
    return now.tv_sec;
}

static void sum(gyre_comm *comm, int ranks)
{
    for (int i = 0; i < 20; i++) {
        double one = 1;
        OK(comm, gyre_all_reduce(comm, &one, &one, 1, GYRE_FLOAT64, GYRE_SUM));
        CHECK((int)one == ranks);
    }
}

/* The others wait in a sum; the last one is late, and then it dies in the middle of the next. */
static void body(int rank)
{
    gyre_comm *comm = rank_begin(160), *next = NULL;
    double one = 1;
    if (rank < RANKS) {
        CHECK(gyre_comm_size(comm) == RANKS);
        sum(comm, RANKS);
        if (rank == RANKS - 1)
            usleep(LATE_MS * 1000);
        sum(comm, RANKS);
        /* A rank that sleeps in a call may hear of a death before it sees that the call is over. */
        rank_gather(comm, GYRE_PEER_DEAD);
        if (rank == RANKS - 1)
            raise(SIGKILL);
        CHECK(gyre_all_reduce(comm, &one, &one, 1, GYRE_FLOAT64, GYRE_SUM) == GYRE_PEER_DEAD);
        OK(comm, gyre_comm_shrink(comm, &next));
        gyre_comm_destroy(comm);
        comm = next;
        sum(comm, RANKS - 1);
        OK(comm, gyre_comm_grow(comm, 1, 60, &next));
        CHECK(next != NULL);
        gyre_comm_destroy(comm);
        comm = next;
    }
    sum(comm, RANKS);
    OK(comm, gyre_comm_destroy(comm));
    CHECK(atomic_load(&monotonic) > 10); /* the library looks at the time through this program */
}

/* The process behind the last number is the joiner. */
static void role(int number)
{
    launch_set_number("WORLD_SIZE", RANKS);
    if (number == RANKS)
        setenv("GYRE_JOIN", "1", 1);
    body(number);
}

int main(void)
{
    struct timespec now, again;
    launch_may_die = RANKS - 1;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_REALTIME, &again);
    CHECK(again.tv_sec < now.tv_sec - 3600);
    setenv("GYRE_STALL_TIMEOUT", "4", 1);
    setenv("GYRE_TIMEOUT", "60", 1);
    setenv("GYRE_MEET_TIMEOUT", "90", 1);
    return launch(RANKS + 1, role, 150, "a clock that jumps") ? 0 : 1;
}

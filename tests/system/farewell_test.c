/* A rank that has sent all that is needed of it may leave. Of three ranks that reduce to rank 0 one sends its part
 * and leaves, the other one is late. Rank 0 sees the part, the end of the link and the leave message in one progress
 * call, since its socket shows nothing before. It must wait for the late one, whose part is missing, and not report
 * the one that left. Over TCP. */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "support/launcher.h"

#define RANKS 3
#define HELD_NS (300 * INT64_C(1000000)) /* after the leaver has gone */

static int leaver;
static volatile int64_t *left_ns; /* shared; 0: it is still there */
static bool holding;

#pragma GCC visibility push(default) /* libgyre's calls come by here */

/* One that does not wait is a look at the clocks, too: frames may be read from here on. */
int epoll_wait(int epoll, struct epoll_event *events, int most, int ms)
{
    if (holding && ms == 0 && *left_ns != 0 && rank_now_ns() - *left_ns > HELD_NS)
        holding = false;
    return (int)syscall(SYS_epoll_pwait, epoll, events, most, ms, NULL, 8);
}

ssize_t recv(int fd, void *bytes, size_t count, int flags)
{
    char start[2] = "";
    if (holding && syscall(SYS_recvfrom, fd, start, sizeof start, MSG_PEEK | MSG_DONTWAIT, NULL, NULL) == 2 &&
        memcmp(start, "gy", 2) == 0) { /* a frame */
        errno = EAGAIN;
        return -1;
    }
    return syscall(SYS_recvfrom, fd, bytes, count, flags, NULL, NULL);
}

#pragma GCC visibility pop

static void run_rank(int rank)
{
    gyre_comm *comm = rank_begin(50);
    float in = (float)(rank + 1), out = 0;
    OK(comm, gyre_barrier(comm)); /* links are there */
    holding = rank == 0;
    while (rank != 0 && rank != leaver && (*left_ns == 0 || rank_now_ns() - *left_ns < 4 * HELD_NS))
        usleep(10000);
    OK(comm, gyre_reduce(comm, &in, &out, 1, GYRE_FLOAT32, GYRE_SUM, 0));
    if (rank == 0 && out != 6)
        rank_fail("%g instead of 6", (double)out);
    OK(comm, gyre_comm_destroy(comm));
    if (rank == leaver)
        *left_ns = rank_now_ns();
}

int main(void)
{
    left_ns = launch_share(sizeof *left_ns);
    setenv("GYRE_ALGORITHM", "reduce:binomial", 1);
    for (leaver = 1; leaver < RANKS; leaver++) {
        char what[64];
        *left_ns = 0;
        snprintf(what, sizeof what, "rank %d leaves", leaver);
        if (!launch(RANKS, run_rank, 50, what))
            return 1;
    }
    printf("rank 0 waited for who was late\n");
    return 0;
}

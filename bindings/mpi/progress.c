#include "progress.h"

#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <time.h>

#define SLICE_NS 100000 /* longest part of a sleep between two tests of the request */
#define TESTS 8         /* number of tests between two such parts */

_Thread_local MPI_Request *gm_progress_request;

/* MPI requires a status, although no call reads it. */
static int query(void *state, MPI_Status *status)
{
    (void)state;
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int release(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

void gm_progress_begin(MPI_Request *request)
{
    PMPI_Grequest_start(query, release, cancel, NULL, request);
}

void gm_progress_end(MPI_Request *request)
{
    if (*request == MPI_REQUEST_NULL)
        return;
    PMPI_Grequest_complete(*request);
    PMPI_Wait(request, MPI_STATUS_IGNORE);
}

static void progress(int tests)
{
    MPI_Request *request = gm_progress_request;
    for (int i = 0, complete; i < tests; i++)
        PMPI_Test(request, &complete, MPI_STATUS_IGNORE);
}

int __real_sched_yield(void);
int __real_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);
int __real_epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *timeout,
                        const sigset_t *mask);
int __real_ppoll(struct pollfd *set, nfds_t count, const struct timespec *timeout, const sigset_t *mask);

int __wrap_sched_yield(void);
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout);
int __wrap_epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *timeout,
                        const sigset_t *mask);
int __wrap_ppoll(struct pollfd *set, nfds_t count, const struct timespec *timeout, const sigset_t *mask);

int __wrap_sched_yield(void)
{
    if (gm_progress_request)
        progress(1);
    return __real_sched_yield();
}

/* The remaining time of a sleep, and the next part of it. */
static long long nanoseconds(const struct timespec *timeout)
{
    return timeout ? timeout->tv_sec * 1000000000LL + timeout->tv_nsec : LLONG_MAX;
}

static struct timespec next_slice(long long *left)
{
    long slice = *left < SLICE_NS ? (long)*left : SLICE_NS;
    *left -= slice;
    progress(TESTS);
    return (struct timespec){0, slice};
}

int __wrap_ppoll(struct pollfd *set, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    long long left = nanoseconds(timeout);
    int result = 0;
    if (!gm_progress_request || left == 0)
        return __real_ppoll(set, count, timeout, mask);
    while (result == 0 && left > 0) {
        const struct timespec slice = next_slice(&left);
        result = __real_ppoll(set, count, &slice, mask);
    }
    return result;
}

int __wrap_epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *timeout,
                        const sigset_t *mask)
{
    long long left = nanoseconds(timeout);
    int result = 0;
    if (!gm_progress_request || left == 0)
        return __real_epoll_pwait2(fd, events, most, timeout, mask);
    while (result == 0 && left > 0) {
        const struct timespec slice = next_slice(&left);
        result = __real_epoll_pwait2(fd, events, most, &slice, mask);
    }
    return result;
}

/* For Linux without epoll_pwait2: a part of the sleep is one millisecond. */
int __wrap_epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    int result = 0;
    if (!gm_progress_request || timeout == 0)
        return __real_epoll_wait(fd, events, most, timeout);
    for (int left = timeout; result == 0 && left != 0; left -= left > 0) {
        progress(TESTS);
        result = __real_epoll_wait(fd, events, most, 1);
    }
    return result;
}

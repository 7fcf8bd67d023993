/* The order in which ranks end. An epoll instance watches a pidfd of each rank: a pidfd becomes readable when its
 * process ends, and epoll lists descriptors in the order in which they became readable.  last call in an order of
 * its own. */
#include "run/launch_job.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EVENTS 64

void gy_launch_order_watch(struct gy_launch_job *job, int rank)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u32 = (uint32_t)rank};
    if (job->order < 0)
        job->order = epoll_create1(EPOLL_CLOEXEC);
    int fd = (int)syscall(SYS_pidfd_open, job->ranks[rank].pid, 0);
    if (job->order >= 0 && fd >= 0 && epoll_ctl(job->order, EPOLL_CTL_ADD, fd, &event) == 0)
        job->ranks[rank].end = fd;
    else if (fd >= 0)
        close(fd);
}

void gy_launch_order_forget(struct gy_launch_job *job, int rank)
{
    if (job->ranks[rank].end >= 0)
        close(job->ranks[rank].end); /* which also takes it out of the epoll instance */
    job->ranks[rank].end = -1;
}

int gy_launch_order_next(const struct gy_launch_job *job, int *ranks, int most)
{
    struct epoll_event events[EVENTS];
    int found = job->order < 0 ? 0 : epoll_wait(job->order, events, most < EVENTS ? most : EVENTS, 0);
    for (int i = 0; i < found; i++)
        ranks[i] = (int)events[i].data.u32;
    return found > 0 ? found : 0;
}

void gy_launch_order_close(struct gy_launch_job *job)
{
    for (int i = 0; i < job->launch->ranks && job->ranks; i++)
        gy_launch_order_forget(job, i);
    if (job->order >= 0)
        close(job->order);
}

/* One epoll set, level-triggered; the event's data is the watch.
 *
 *   epoll ──► batch (on the stack of gy_poller_poll) ──► callback, callback, …
 *                 ▲
 *                 └── remove() clears the pending events of the watch that it removes
 *
 * Invariant: after gy_poller_remove returns, the poller holds no pointer to the watch, not even in a batch in progress,
 * so the owner may free it inside any callback. Batches form a chain, since a callback may poll again.
 *
 * Invariant: no watch is quiet while a thread sleeps. A thread increments the count of sleepers before it ends quiet
 * watches. Both happen under the lock of the threads that share the poller, if any; so no quiet can begin in
 * between. */
#include "poller.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "mem.h"

#define BATCH_EVENTS 64

struct batch {
    struct batch *outer;
    int count;
    struct epoll_event events[BATCH_EVENTS];
};

struct gy_poller {
    int epoll_fd;
    bool complained;        /* a wait failed and this was logged */
    struct batch *batch;    /* the innermost batch under way */
    struct gy_watch *quiet; /* the quiet watches */
    unsigned sleepers;      /* and another poller, which may sleep at any time, for ever */
};

static atomic_bool pwait2_missing; /* the kernel is older than 5.11, or a filter forbids the call */

gyre_status gy_poller_create(struct gy_poller **poller_p, struct gy_error *error)
{
    struct gy_poller *poller = gy_alloc_zero(1, sizeof(*poller));

    if (!poller)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for an event set");
    poller->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (poller->epoll_fd < 0) {
        int errnum = errno;

        gy_free(poller);
        return gy_error_system(error, errnum, "cannot create an event set (epoll_create1)");
    }
    *poller_p = poller;
    return GYRE_SUCCESS;
}

/* False: it was not. */
static bool forget_quiet(struct gy_poller *poller, struct gy_watch *watch)
{
    struct gy_watch **place = &poller->quiet;

    while (*place && *place != watch)
        place = &(*place)->next;
    if (!*place)
        return false;
    *place = watch->next;
    watch->quiet = false;
    return true;
}

bool gy_poller_has_sleeper(const struct gy_poller *poller)
{
    return poller->sleepers > 0;
}

bool gy_poller_quiet(struct gy_poller *poller, struct gy_watch *watch)
{
    if (poller->sleepers > 0 || !watch->active)
        return false;
    if (watch->quiet)
        return true;
    watch->quiet = true;
    watch->next = poller->quiet;
    poller->quiet = watch;
    return true;
}

/* Modifies the epoll set, so that it checks readiness again. Data may have come meanwhile, and a kernel before 4.18 may
 * have reported them while the set had to ignore the event. */
void gy_poller_listen(struct gy_poller *poller, struct gy_watch *watch)
{
    struct epoll_event event = {.events = watch->events, .data.ptr = watch};

    if (!watch->quiet || !forget_quiet(poller, watch))
        return;
    watch->listen(watch->owner);
    epoll_ctl(poller->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event);
}

static void fall_asleep(struct gy_poller *poller)
{
    poller->sleepers++;
    while (poller->quiet)
        gy_poller_listen(poller, poller->quiet);
}

int gy_poller_fd(struct gy_poller *poller)
{
    fall_asleep(poller);
    return poller->epoll_fd;
}

void gy_poller_free(struct gy_poller *poller)
{
    if (!poller)
        return;
    if (poller->epoll_fd >= 0)
        close(poller->epoll_fd);
    gy_free(poller);
}

void gy_poller_abandon(struct gy_poller *poller)
{
    if (!poller)
        return;
    if (poller->epoll_fd >= 0)
        close(poller->epoll_fd);
    poller->epoll_fd = -1;
    poller->quiet = NULL; /* of the parent's sockets */
}

gyre_status gy_poller_add(struct gy_poller *poller, struct gy_watch *watch, struct gy_error *error)
{
    struct epoll_event event = {.events = watch->events, .data.ptr = watch};

    if (epoll_ctl(poller->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) < 0)
        return gy_error_system(error, errno, "cannot watch descriptor %d (epoll_ctl)", watch->fd);
    watch->active = true;
    return GYRE_SUCCESS;
}

void gy_poller_change(struct gy_poller *poller, struct gy_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    if (watch->events == events)
        return;
    watch->events = events;
    if (watch->active && epoll_ctl(poller->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) < 0)
        gy_log(GY_LOG_ERROR, "cannot change the events of descriptor %d: errno %d", watch->fd, errno);
}

void gy_poller_remove(struct gy_poller *poller, struct gy_watch *watch)
{
    if (!watch->active)
        return;
    watch->active = false;
    (void)forget_quiet(poller, watch);
    epoll_ctl(poller->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
    for (struct batch *batch = poller->batch; batch; batch = batch->outer) {
        for (int i = 0; i < batch->count; i++) {
            if (batch->events[i].data.ptr == watch)
                batch->events[i].data.ptr = NULL;
        }
    }
}

/* Milliseconds rounded up, so that a short wait does not become a spin. */
static int wait_milliseconds(int epoll_fd, struct epoll_event *events, int64_t timeout_ns)
{
    const int64_t longest = INT32_MAX;
    int64_t ms = timeout_ns > 0 ? (timeout_ns - 1) / GY_MILLISECOND + 1 : 0;

    return epoll_wait(epoll_fd, events, BATCH_EVENTS, (int)(ms < longest ? ms : longest));
}

static int wait_events(int epoll_fd, struct epoll_event *events, int64_t timeout_ns)
{
    struct timespec timeout;
    int count;

    if (timeout_ns <= 0 || atomic_load_explicit(&pwait2_missing, memory_order_relaxed))
        return wait_milliseconds(epoll_fd, events, timeout_ns);
    timeout.tv_sec = (time_t)(timeout_ns / GY_SECOND);
    timeout.tv_nsec = (long)(timeout_ns % GY_SECOND);
    count = epoll_pwait2(epoll_fd, events, BATCH_EVENTS, &timeout, NULL);
    if (count < 0 && (errno == ENOSYS || errno == EPERM)) {
        atomic_store_explicit(&pwait2_missing, true, memory_order_relaxed);
        count = wait_milliseconds(epoll_fd, events, timeout_ns);
    }
    return count;
}

int gy_poller_poll(struct gy_poller *poller, int64_t timeout_ns)
{
    struct batch batch; /* the events beyond `count` are never read */
    int called = 0;

    batch.outer = poller->batch;
    if (timeout_ns > 0)
        fall_asleep(poller);
    batch.count = wait_events(poller->epoll_fd, batch.events, timeout_ns);
    if (timeout_ns > 0)
        poller->sleepers--;
    if (batch.count < 0 && errno != EINTR && !poller->complained) {
        poller->complained = true;
        gy_log(GY_LOG_ERROR, "waiting for events failed (errno %d): was gyre's descriptor closed by the program?",
               errno);
    }
    poller->batch = &batch;
    for (int i = 0; i < batch.count; i++) {
        struct gy_watch *watch = batch.events[i].data.ptr;

        if (!watch)
            continue;
        called++;
        watch->callback(watch->owner, batch.events[i].events);
    }
    poller->batch = batch.outer;
    return called;
}

void gy_poller_wait(struct gy_poller *poller, int64_t timeout_ns, void (*leave)(void *user), void (*enter)(void *user),
                    void *user)
{
    struct pollfd set = {.fd = poller->epoll_fd, .events = POLLIN};
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / GY_SECOND), .tv_nsec = (long)(timeout_ns % GY_SECOND)};

    fall_asleep(poller);
    leave(user);
    ppoll(&set, 1, &timeout, NULL);
    enter(user);
    poller->sleepers--;
}

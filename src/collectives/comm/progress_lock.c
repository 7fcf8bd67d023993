#include "collectives/comm/progress_lock.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/single_threaded.h>
#include <time.h>
#include <unistd.h>

#include "collectives/comm/context.h"
#include "core/clock.h"

static _Thread_local char self; /* its address identifies the thread */

static void note_holder(struct gy_progress_lock *progress_lock)
{
    progress_lock->held = true;
    atomic_store_explicit(&progress_lock->holder, &self, memory_order_relaxed);
}

/* The only place that checks whether other threads exist. The answer cannot change from yes to no while the only
 * thread is inside; the holder records whether it locked. */
static void lock(struct gy_progress_lock *progress_lock)
{
    if (__libc_single_threaded)
        return;
    if (pthread_mutex_trylock(&progress_lock->lock) != 0) {
        atomic_fetch_add_explicit(&progress_lock->knockers, 1, memory_order_relaxed);
        pthread_mutex_lock(&progress_lock->lock);
        atomic_fetch_sub_explicit(&progress_lock->knockers, 1, memory_order_relaxed);
    }
    note_holder(progress_lock);
}

static void unlock(struct gy_progress_lock *progress_lock)
{
    if (!progress_lock->held)
        return;
    progress_lock->held = false;
    atomic_store_explicit(&progress_lock->holder, NULL, memory_order_relaxed);
    pthread_mutex_unlock(&progress_lock->lock);
}

void gy_progress_enter(struct gy_context *ctx)
{
    lock(&ctx->progress_lock);
}

bool gy_progress_enter_within(struct gy_context *ctx, int64_t ns)
{
    struct gy_progress_lock *progress_lock = &ctx->progress_lock;
    struct timespec end;
    if (__libc_single_threaded)
        return true;
    clock_gettime(CLOCK_MONOTONIC, &end);
    ns += end.tv_nsec;
    end.tv_sec += (time_t)(ns / GY_SECOND);
    end.tv_nsec = (long)(ns % GY_SECOND);
    atomic_fetch_add_explicit(&progress_lock->knockers, 1, memory_order_relaxed);
    int result = pthread_mutex_clocklock(&progress_lock->lock, CLOCK_MONOTONIC, &end);
    atomic_fetch_sub_explicit(&progress_lock->knockers, 1, memory_order_relaxed);
    if (result == 0)
        note_holder(progress_lock);
    return result == 0;
}

const char *gy_progress_lock_self(void)
{
    return &self;
}

/* Only the thread itself writes and clears its identity there. */
const char *gy_progress_lock_holder(const struct gy_context *ctx)
{
    return atomic_load_explicit(&ctx->progress_lock.holder, memory_order_relaxed);
}

/* No thread of this process is inside any more: in a failed world the other ranks are told. A forked child, whose
 * overlay was removed by atfork.c, sends nothing. */
static void step_out(struct gy_context *ctx)
{
    const struct gy_progress_lock *progress_lock = &ctx->progress_lock;
    if (ctx->closed && ctx->overlay && progress_lock->waits == 0 && progress_lock->sleepers == 0)
        ctx->up->returned(ctx);
}

static __attribute__((noinline)) void leave(struct gy_context *ctx)
{
    struct gy_progress_lock *progress_lock = &ctx->progress_lock;
    if (progress_lock->threaded && (ctx->active_first || ctx->windows) && progress_lock->waits == 0 &&
        progress_lock->sleepers == 0)
        pthread_cond_signal(&progress_lock->work);
    step_out(ctx);
    unlock(progress_lock);
}

/* The only thread of a working world has nothing to do. */
void gy_progress_leave(struct gy_context *ctx)
{
    if (ctx->progress_lock.threaded || ctx->progress_lock.held || ctx->closed)
        leave(ctx);
}

void gy_progress_yield(struct gy_context *ctx)
{
    struct gy_progress_lock *progress_lock = &ctx->progress_lock;
    if (atomic_load_explicit(&progress_lock->knockers, memory_order_relaxed) == 0)
        return;
    unlock(progress_lock);
    sched_yield();
    lock(progress_lock);
}

static void let_others_in(void *progress_lock)
{
    unlock(progress_lock);
}

static void come_back(void *progress_lock)
{
    lock(progress_lock);
}

void gy_progress_sleep(struct gy_context *ctx, int64_t timeout_ns)
{
    struct gy_progress_lock *progress_lock = &ctx->progress_lock;
    if (!progress_lock->held) {
        gy_poller_poll(ctx->poller, timeout_ns);
        return;
    }
    progress_lock->sleepers++;
    gy_poller_wait(ctx->poller, timeout_ns, let_others_in, come_back, progress_lock);
    progress_lock->sleepers--;
    gy_poller_poll(ctx->poller, 0);
}

void gy_progress_wake(struct gy_context *ctx)
{
    if (ctx->progress_lock.sleepers > 0)
        (void)eventfd_write(ctx->progress_lock.kick.fd, 1);
}

static void kicked(void *owner, uint32_t events)
{
    struct gy_progress_lock *progress_lock = owner;
    eventfd_t value;
    (void)events;
    if (progress_lock->sleepers == 0) /* other threads must see it as well */
        (void)eventfd_read(progress_lock->kick.fd, &value);
}

static void *run(void *argument)
{
    struct gy_context *ctx = argument;
    struct gy_progress_lock *progress_lock = &ctx->progress_lock;
    lock(progress_lock);
    while (!progress_lock->stop) {
        if ((!ctx->active_first && !ctx->windows) || progress_lock->waits > 0 || ctx->closed)
            pthread_cond_wait(&progress_lock->work, &progress_lock->lock);
        else
            ctx->up->drive(ctx);
        note_holder(progress_lock); /* the wait released the lock and took it back */
        step_out(ctx);              /* it may have slept beyond the return of the last call */
    }
    unlock(progress_lock);
    return NULL;
}

static gyre_status start_thread(struct gy_context *ctx, struct gy_error *error)
{
    struct gy_progress_lock *progress_lock = &ctx->progress_lock;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's: only its own threads receive them */
    progress_lock->threaded = true;
    int result = pthread_create(&progress_lock->thread, NULL, run, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0)
        return GYRE_SUCCESS;
    progress_lock->threaded = false;
    return gy_error_set(error, GYRE_SYSTEM, -1, "the progress thread cannot be started: %s", strerror(result));
}

gyre_status gy_progress_lock_create(struct gy_context *ctx, bool threaded, struct gy_error *error)
{
    struct gy_progress_lock *progress_lock = &ctx->progress_lock;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return gy_error_system(error, errno, "eventfd for waking threads");
    progress_lock->kick = (struct gy_watch){.fd = fd, .events = EPOLLIN, .callback = kicked, .owner = progress_lock};
    gyre_status status = gy_poller_add(ctx->poller, &progress_lock->kick, error);
    if (status != GYRE_SUCCESS)
        goto close_fd;
    pthread_mutex_init(&progress_lock->lock, NULL);
    pthread_cond_init(&progress_lock->work, NULL);
    if (threaded)
        status = start_thread(ctx, error);
    if (status == GYRE_SUCCESS)
        return GYRE_SUCCESS;
    gy_poller_remove(ctx->poller, &progress_lock->kick);
close_fd:
    close(fd);
    progress_lock->kick.fd = 0;
    return status;
}

void gy_progress_lock_free(struct gy_context *ctx)
{
    struct gy_progress_lock *progress_lock = &ctx->progress_lock;
    if (progress_lock->kick.fd == 0)
        return;
    if (progress_lock->threaded) {
        lock(progress_lock);
        progress_lock->stop = true;
        pthread_cond_signal(&progress_lock->work);
        gy_progress_wake(ctx);
        unlock(progress_lock);
        pthread_join(progress_lock->thread, NULL);
    }
    gy_poller_remove(ctx->poller, &progress_lock->kick);
    close(progress_lock->kick.fd);
    progress_lock->kick.fd = 0;
    pthread_cond_destroy(&progress_lock->work);
    pthread_mutex_destroy(&progress_lock->lock);
}

void gy_progress_lock_abandon(struct gy_context *ctx)
{
    struct gy_progress_lock *progress_lock = &ctx->progress_lock;
    pthread_mutex_init(&progress_lock->lock, NULL);
    close(progress_lock->kick.fd);
    progress_lock->kick.fd = 0;
    progress_lock->threaded = progress_lock->held = false;
    atomic_store_explicit(&progress_lock->holder, NULL, memory_order_relaxed);
}

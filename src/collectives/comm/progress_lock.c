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

static _Thread_local char self; /* its address is the thread's name */

static void note_holder(struct gy_driver *driver)
{
    driver->held = true;
    atomic_store_explicit(&driver->holder, &self, memory_order_relaxed);
}

/* The one place that needs to know whether there is anybody to lock out. The answer cannot change from yes to no while
 * the only thread is inside; the holder remembers what it did. */
static void lock(struct gy_driver *driver)
{
    if (__libc_single_threaded)
        return;
    if (pthread_mutex_trylock(&driver->lock) != 0) {
        atomic_fetch_add_explicit(&driver->knockers, 1, memory_order_relaxed);
        pthread_mutex_lock(&driver->lock);
        atomic_fetch_sub_explicit(&driver->knockers, 1, memory_order_relaxed);
    }
    note_holder(driver);
}

static void unlock(struct gy_driver *driver)
{
    if (!driver->held)
        return;
    driver->held = false;
    atomic_store_explicit(&driver->holder, NULL, memory_order_relaxed);
    pthread_mutex_unlock(&driver->lock);
}

void gy_driver_enter(struct gy_context *ctx)
{
    lock(&ctx->driver);
}

bool gy_driver_enter_within(struct gy_context *ctx, int64_t ns)
{
    struct gy_driver *driver = &ctx->driver;
    struct timespec end;
    if (__libc_single_threaded)
        return true;
    clock_gettime(CLOCK_MONOTONIC, &end);
    ns += end.tv_nsec;
    end.tv_sec += (time_t)(ns / GY_SECOND);
    end.tv_nsec = (long)(ns % GY_SECOND);
    atomic_fetch_add_explicit(&driver->knockers, 1, memory_order_relaxed);
    int result = pthread_mutex_clocklock(&driver->lock, CLOCK_MONOTONIC, &end);
    atomic_fetch_sub_explicit(&driver->knockers, 1, memory_order_relaxed);
    if (result == 0)
        note_holder(driver);
    return result == 0;
}

const char *gy_driver_self(void)
{
    return &self;
}

/* Only a thread itself writes its own name there, and takes it away. */
const char *gy_driver_holder(const struct gy_context *ctx)
{
    return atomic_load_explicit(&ctx->driver.holder, memory_order_relaxed);
}

/* No thread of this process is inside any more: in a world that has failed the others are told. A forked child, whose
 * overlay atfork.c has taken away, tells nobody. */
static void step_out(struct gy_context *ctx)
{
    const struct gy_driver *driver = &ctx->driver;
    if (ctx->closed && ctx->overlay && driver->waits == 0 && driver->naps == 0)
        ctx->up->returned(ctx);
}

static __attribute__((noinline)) void leave(struct gy_context *ctx)
{
    struct gy_driver *driver = &ctx->driver;
    if (driver->threaded && (ctx->active_first || ctx->windows) && driver->waits == 0 && driver->naps == 0)
        pthread_cond_signal(&driver->work);
    step_out(ctx);
    unlock(driver);
}

/* The only thread of a world that is whole has nothing to do. */
void gy_driver_leave(struct gy_context *ctx)
{
    if (ctx->driver.threaded || ctx->driver.held || ctx->closed)
        leave(ctx);
}

void gy_driver_yield(struct gy_context *ctx)
{
    struct gy_driver *driver = &ctx->driver;
    if (atomic_load_explicit(&driver->knockers, memory_order_relaxed) == 0)
        return;
    unlock(driver);
    sched_yield();
    lock(driver);
}

static void let_others_in(void *driver)
{
    unlock(driver);
}

static void come_back(void *driver)
{
    lock(driver);
}

void gy_driver_sleep(struct gy_context *ctx, int64_t timeout_ns)
{
    struct gy_driver *driver = &ctx->driver;
    if (!driver->held) {
        gy_poller_poll(ctx->poller, timeout_ns);
        return;
    }
    driver->naps++;
    gy_poller_wait(ctx->poller, timeout_ns, let_others_in, come_back, driver);
    driver->naps--;
    gy_poller_poll(ctx->poller, 0);
}

void gy_driver_wake(struct gy_context *ctx)
{
    if (ctx->driver.naps > 0)
        (void)eventfd_write(ctx->driver.kick.fd, 1);
}

static void kicked(void *owner, uint32_t events)
{
    struct gy_driver *driver = owner;
    eventfd_t value;
    (void)events;
    if (driver->naps == 0) /* the others are to see it too */
        (void)eventfd_read(driver->kick.fd, &value);
}

static void *run(void *argument)
{
    struct gy_context *ctx = argument;
    struct gy_driver *driver = &ctx->driver;
    lock(driver);
    while (!driver->stop) {
        if ((!ctx->active_first && !ctx->windows) || driver->waits > 0 || ctx->closed)
            pthread_cond_wait(&driver->work, &driver->lock);
        else
            ctx->up->drive(ctx);
        note_holder(driver); /* the wait gave the lock to others and took it back */
        step_out(ctx);       /* it may have slept on after the last call had returned */
    }
    unlock(driver);
    return NULL;
}

static gyre_status start_thread(struct gy_context *ctx, struct gy_error *error)
{
    struct gy_driver *driver = &ctx->driver;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's: its own threads get them */
    driver->threaded = true;
    int result = pthread_create(&driver->thread, NULL, run, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result == 0)
        return GYRE_SUCCESS;
    driver->threaded = false;
    return gy_error_set(error, GYRE_SYSTEM, -1, "the progress thread cannot be started: %s", strerror(result));
}

gyre_status gy_driver_create(struct gy_context *ctx, bool threaded, struct gy_error *error)
{
    struct gy_driver *driver = &ctx->driver;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return gy_error_system(error, errno, "eventfd for waking threads");
    driver->kick = (struct gy_watch){.fd = fd, .events = EPOLLIN, .callback = kicked, .owner = driver};
    gyre_status status = gy_poller_add(ctx->poller, &driver->kick, error);
    if (status != GYRE_SUCCESS)
        goto close_fd;
    pthread_mutex_init(&driver->lock, NULL);
    pthread_cond_init(&driver->work, NULL);
    if (threaded)
        status = start_thread(ctx, error);
    if (status == GYRE_SUCCESS)
        return GYRE_SUCCESS;
    gy_poller_remove(ctx->poller, &driver->kick);
close_fd:
    close(fd);
    driver->kick.fd = 0;
    return status;
}

void gy_driver_free(struct gy_context *ctx)
{
    struct gy_driver *driver = &ctx->driver;
    if (driver->kick.fd == 0)
        return;
    if (driver->threaded) {
        lock(driver);
        driver->stop = true;
        pthread_cond_signal(&driver->work);
        gy_driver_wake(ctx);
        unlock(driver);
        pthread_join(driver->thread, NULL);
    }
    gy_poller_remove(ctx->poller, &driver->kick);
    close(driver->kick.fd);
    driver->kick.fd = 0;
    pthread_cond_destroy(&driver->work);
    pthread_mutex_destroy(&driver->lock);
}

void gy_driver_abandon(struct gy_context *ctx)
{
    struct gy_driver *driver = &ctx->driver;
    pthread_mutex_init(&driver->lock, NULL);
    close(driver->kick.fd);
    driver->kick.fd = 0;
    driver->threaded = driver->held = false;
    atomic_store_explicit(&driver->holder, NULL, memory_order_relaxed);
}

/* A forked child inherits the world's memory and descriptors. It must not act for its parent: its copies of the
 * descriptors are closed (so that the parent's death stays visible to its peers), and its calls fail. */
#include "collectives/lifecycle/atfork.h"
#include "collectives/comm/status_page.h"

#include <pthread.h>
#include <time.h>

#include "core/clock.h"

#define WAIT (5 * GY_MILLISECOND) /* for the lock of a context, or between two tries for all */

/* A thread that waits for the list of contexts. It may hold locks of contexts meanwhile, if an operation of the
 * program's forks, or a world is made from another one. Those contexts are consistent until it has the list. */
struct waiter {
    const char *name; /* gy_progress_lock_self */
    struct waiter *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held for a few instructions */
static pthread_cond_t is_free = PTHREAD_COND_INITIALIZER;
static struct waiter *waiters;      /* under the lock, as the next one */
static bool taken;                  /* the list is held by one thread */
static struct gy_context *contexts; /* the list */

static void stand(struct waiter *self)
{
    self->name = gy_progress_lock_self();
    pthread_mutex_lock(&lock);
    self->next = waiters;
    waiters = self;
    pthread_mutex_unlock(&lock);
}

static void take_list(void)
{
    pthread_mutex_lock(&lock);
    while (taken)
        pthread_cond_wait(&is_free, &lock);
    taken = true;
    pthread_mutex_unlock(&lock);
}

/* Removes the waiter, which has the list. */
static void go_on(const struct waiter *self)
{
    struct waiter **place = &waiters;
    pthread_mutex_lock(&lock);
    while (*place != self)
        place = &(*place)->next;
    *place = self->next;
    pthread_mutex_unlock(&lock);
}

static void give_list(void)
{
    pthread_mutex_lock(&lock);
    taken = false;
    pthread_cond_broadcast(&is_free);
    pthread_mutex_unlock(&lock);
}

/* True if the thread inside the context is blocked, because it waits for the list that this one holds. */
static bool stands_still(const struct gy_context *ctx)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    const char *holder = gy_progress_lock_holder(ctx);
    for (const struct waiter *waiter = waiters; waiter; waiter = waiter->next)
        found |= waiter->name == holder;
    pthread_mutex_unlock(&lock);
    return found;
}

static void leave_all(void)
{
    for (struct gy_context *ctx = contexts; ctx; ctx = ctx->next)
        if (ctx->fork_entered)
            gy_progress_leave(ctx);
}

/* Enters all contexts, or returns false. A thread that forks in a function called by gyre, such as an operation of
 * the program's, is inside already. */
static bool enter_all(void)
{
    for (struct gy_context *ctx = contexts; ctx; ctx = ctx->next)
        ctx->fork_entered = false;
    for (struct gy_context *ctx = contexts; ctx; ctx = ctx->next) {
        bool whole = gy_progress_lock_holder(ctx) == gy_progress_lock_self() || stands_still(ctx);
        ctx->fork_entered = !whole && gy_progress_enter_within(ctx, WAIT);
        if (!whole && !ctx->fork_entered)
            return false;
    }
    return true;
}

/* The child needs consistent contexts. A thread inside one may wait for a thread that has to enter another, a rank
 * of the same world. So all are entered at once, or none. */
static void before(void)
{
    struct timespec pause = {.tv_nsec = WAIT};
    struct waiter self;
    stand(&self); /* stays a waiter in the pauses */
    for (take_list(); !enter_all(); take_list()) {
        leave_all();
        give_list();
        nanosleep(&pause, NULL);
    }
    go_on(&self);
    pthread_mutex_lock(&lock);
}

static void after_parent(void)
{
    pthread_mutex_unlock(&lock);
    leave_all();
    give_list();
}

static void after_child(void)
{
    atomic_fetch_add(&gy_fork_generation, 1);
    for (struct gy_context *ctx = contexts; ctx; ctx = ctx->next) {
        gy_progress_lock_abandon(ctx);
        gy_poller_abandon(ctx->poller); /* first: the epoll set is the parent's, too, and must not lose entries */
        for (int t = 0; t < ctx->transports; t++)
            ctx->ops[t]->fini(ctx->instance[t], true);
        ctx->transports = 0;
        if (ctx->overlay)
            gy_overlay_abandon(ctx->overlay);
        ctx->overlay = NULL;
        gy_page_abandon(ctx);
        gy_world_abandon(ctx->world);
    }
    contexts = NULL;
    waiters = NULL; /* they are the parent's */
    taken = false;
    pthread_cond_init(&is_free, NULL);
    pthread_mutex_unlock(&lock);
}

static void install(void)
{
    pthread_atfork(before, after_parent, after_child);
}

void gy_fork_watch(struct gy_context *ctx)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct waiter self;
    pthread_once(&once, install);
    stand(&self);
    take_list();
    go_on(&self);
    ctx->generation = atomic_load(&gy_fork_generation);
    ctx->next = contexts;
    contexts = ctx;
    give_list();
}

void gy_fork_unwatch(struct gy_context *ctx)
{
    struct waiter self;
    stand(&self);
    take_list();
    go_on(&self);
    for (struct gy_context **c = &contexts; *c; c = &(*c)->next)
        if (*c == ctx) {
            *c = ctx->next;
            break;
        }
    give_list();
}

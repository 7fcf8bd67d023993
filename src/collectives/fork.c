/* A forked child inherits the world's memory and descriptors. It must not speak for its parent: its copies of the
 * descriptors are closed (so that the parent's death stays visible to its peers), and its calls fail. */
#include <pthread.h>

#include "collectives/context.h"

_Atomic uint64_t gy_fork_generation = 1;
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gy_context *contexts; /* under contexts_lock */

/* The child gets whole contexts, not one that another thread has half moved. A thread that forks in a function which gyre
 * has called, an operation of the program's say, is inside already. */
static void before(void)
{
    pthread_mutex_lock(&contexts_lock);
    for (struct gy_context *ctx = contexts; ctx; ctx = ctx->next) {
        ctx->forks_inside = gy_driver_is_inside(ctx);
        if (!ctx->forks_inside)
            gy_driver_enter(ctx);
    }
}

static void after_parent(void)
{
    for (struct gy_context *ctx = contexts; ctx; ctx = ctx->next)
        if (!ctx->forks_inside)
            gy_driver_leave(ctx);
    pthread_mutex_unlock(&contexts_lock);
}

static void after_child(void)
{
    atomic_fetch_add(&gy_fork_generation, 1);
    for (struct gy_context *ctx = contexts; ctx; ctx = ctx->next) {
        gy_driver_abandon(ctx);
        gy_poller_abandon(ctx->poller); /* first: the epoll set is the parent's too, nothing may be removed from it */
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
    pthread_mutex_unlock(&contexts_lock);
}

static void install(void)
{
    pthread_atfork(before, after_parent, after_child);
}

void gy_fork_watch(struct gy_context *ctx)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    pthread_mutex_lock(&contexts_lock);
    ctx->generation = atomic_load(&gy_fork_generation);
    ctx->next = contexts;
    contexts = ctx;
    pthread_mutex_unlock(&contexts_lock);
}

void gy_fork_unwatch(struct gy_context *ctx)
{
    pthread_mutex_lock(&contexts_lock);
    for (struct gy_context **c = &contexts; *c; c = &(*c)->next)
        if (*c == ctx) {
            *c = ctx->next;
            break;
        }
    pthread_mutex_unlock(&contexts_lock);
}

/* The driver: which thread moves a context.
 *
 * Whoever is inside a call of gyre drives all requests of its context. Several threads may be inside, on communicators
 * of their own: one lock per context admits one at a time, and a waiting thread lets the others in at every turn and
 * while it sleeps. In a process with a single thread nobody locks anything.
 *
 * On request (GYRE_PROGRESS_THREAD) a thread of gyre's own drives while no caller does. It is parked while nothing is
 * under way, and sleeps in the kernel while nothing moves. */
#ifndef GY_COLLECTIVES_COMM_PROGRESS_LOCK_H
#define GY_COLLECTIVES_COMM_PROGRESS_LOCK_H

#include <pthread.h>

#include "core/base.h"
#include "core/poller.h"

struct gy_context;

struct gy_progress_lock {
    pthread_mutex_t lock;
    bool held;                    /* by the thread that is inside; false in a process with one thread */
    _Atomic(const char *) holder; /* that thread; NULL where `held` is false */
    _Atomic unsigned knockers;    /* threads that want in */
    unsigned waits;               /* threads inside gy_wait */
    unsigned sleepers;            /* threads asleep in the poller */
    bool threaded, stop;          /* a progress thread exists; it is to end */
    pthread_t thread;
    pthread_cond_t work;  /* something is under way and nobody drives it */
    struct gy_watch kick; /* an eventfd: wakes those who sleep in the poller */
};

gyre_status gy_progress_lock_create(struct gy_context *ctx, bool threaded, struct gy_error *error);
/* Ends the progress thread. Nobody is inside. */
void gy_progress_lock_free(struct gy_context *ctx);
/* After a fork, in the child: the thread and the holder of the lock stayed in the parent. */
void gy_progress_lock_abandon(struct gy_context *ctx);

/* The thread that holds the lock, by its name; a thread that finds itself there has been called by gyre. NULL: none, or the
 * only one of its process. */
const char *gy_progress_lock_holder(const struct gy_context *ctx);
const char *gy_progress_lock_self(void);
/* Every public call that touches a context stands between these two. Not recursive. */
void gy_progress_enter(struct gy_context *ctx);
void gy_progress_leave(struct gy_context *ctx);
/* False: another thread has held the lock for as long as that. */
bool gy_progress_enter_within(struct gy_context *ctx, int64_t ns);
/* Lets a thread in that knocks; what was known about the context before may have changed. */
void gy_progress_yield(struct gy_context *ctx);
/* Waits for events up to `timeout_ns`, and lets the others in meanwhile. */
void gy_progress_sleep(struct gy_context *ctx, int64_t timeout_ns);
/* A request has ended: its owner may be asleep. */
void gy_progress_wake(struct gy_context *ctx);

#endif

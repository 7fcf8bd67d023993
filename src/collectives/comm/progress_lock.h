/* The progress lock: which thread drives a context.
 *
 * Any thread inside a call of gyre advances all requests of its context. Several threads may be inside, on different
 * communicators: one lock per context admits one at a time. A waiting thread yields the lock at every progress
 * iteration and while it sleeps. In a process with a single thread nothing is locked.
 *
 * On request (GYRE_PROGRESS_THREAD) a thread of gyre's own drives the context while no caller does. It is parked
 * while nothing is in progress, and sleeps in the kernel while nothing can move. */
#ifndef GY_COLLECTIVES_COMM_PROGRESS_LOCK_H
#define GY_COLLECTIVES_COMM_PROGRESS_LOCK_H

#include <pthread.h>

#include "core/base.h"
#include "core/poller.h"

struct gy_context;

struct gy_progress_lock {
    pthread_mutex_t lock;
    bool held;                    /* by the thread inside; false in a process with one thread */
    _Atomic(const char *) holder; /* that thread; NULL where `held` is false */
    _Atomic unsigned knockers;    /* threads waiting for the lock */
    unsigned waits;               /* threads inside gy_wait */
    unsigned sleepers;            /* threads asleep in the poller */
    bool threaded, stop;          /* a progress thread exists; it is to end */
    pthread_t thread;
    pthread_cond_t work;  /* an operation is in progress and no thread drives it */
    struct gy_watch kick; /* an eventfd: wakes threads that sleep in the poller */
};

gyre_status gy_progress_lock_create(struct gy_context *ctx, bool threaded, struct gy_error *error);
/* Ends the progress thread. No thread may be inside. */
void gy_progress_lock_free(struct gy_context *ctx);
/* After a fork, in the child: the thread and the holder of the lock stayed in the parent. */
void gy_progress_lock_abandon(struct gy_context *ctx);

/* Returns the identity of the thread that holds the lock. If it is the calling thread, gyre called it. NULL: none,
 * or the process has one thread. */
const char *gy_progress_lock_holder(const struct gy_context *ctx);
const char *gy_progress_lock_self(void);
/* Every public call that touches a context runs between these two. Not recursive. */
void gy_progress_enter(struct gy_context *ctx);
void gy_progress_leave(struct gy_context *ctx);
/* Returns false if another thread held the lock for `ns`. */
bool gy_progress_enter_within(struct gy_context *ctx, int64_t ns);
/* Lets a waiting thread in; the context's state may change meanwhile. */
void gy_progress_yield(struct gy_context *ctx);
/* Waits for events for at most `timeout_ns`, with the lock released. */
void gy_progress_sleep(struct gy_context *ctx, int64_t timeout_ns);
/* A request has completed: its owner may be asleep. */
void gy_progress_wake(struct gy_context *ctx);

#endif

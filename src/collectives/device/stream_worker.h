/* The thread that executes staged calls on streams: stream_job.h. It uses a duplicate of the communicator, which no
 * other thread uses. */
#ifndef GY_COLLECTIVES_DEVICE_STREAM_WORKER_H
#define GY_COLLECTIVES_DEVICE_STREAM_WORKER_H

#include <pthread.h>

#include "collectives/device/stream_job.h"

struct gy_stream_worker {
    const struct gy_device *device;
    gy_cu_stream probe; /* stream that is queried to find a failure of the device */
    struct gyre_comm *traffic;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct gy_stream_job *first, **last; /* queue of jobs */
    struct gy_stream_job *left;          /* the batch in progress when the worker was stopped */
    _Atomic bool stop;
    _Atomic bool failed;
    char running[160];     /* the call that a job's own function makes; under the lock */
    struct gy_error error; /* the first failure; guarded by `lock` */
};

/* Starts the thread. Returns false if it cannot be created. */
bool gy_stream_worker_open(struct gy_stream_worker *worker, const struct gy_device *device, gy_cu_stream probe,
                           struct gyre_comm *traffic);
/* Queues jobs, which the worker owns from here on. After a failure it releases their streams at once. */
void gy_stream_worker_push(struct gy_stream_worker *worker, struct gy_stream_job *jobs);
/* Stores a failure of the device and reports it to the other ranks: the world has failed. The caller may hold the
 * progress lock. */
void gy_stream_worker_fail(struct gy_stream_worker *worker, gy_cu_result result, const char *what);
/* Stores a failure that has already been reported. */
void gy_stream_worker_end(struct gy_stream_worker *worker, gyre_status status, const char *text);
/* Returns true if the worker has failed or is to end. */
bool gy_stream_worker_is_over(struct gy_stream_worker *worker);
/* Makes an internal call on the worker's communicator for a job that it runs (job->run), and waits for the end. Returns
 * the status; a failure ends the worker. GYRE_ABORTED: the worker was stopped, and the communicator ends the request.
 * The operands are valid until the communicator is closed. For the worker's thread, without the progress lock. */
gyre_status gy_stream_worker_call(struct gy_stream_worker *worker, struct gy_stream_job *job,
                                  const struct gy_call *call);
/* Progresses the world, so that requests of this rank and of other ranks continue while this thread waits. Stores a
 * failure of the world. Returns true if there was progress. The caller does not hold the progress lock. */
bool gy_stream_worker_progress(struct gy_stream_worker *worker);
/* Called after an error of the driver. If the device itself has failed, stores and reports that, and returns true. */
bool gy_stream_worker_check(struct gy_stream_worker *worker);
/* Returns the status of the first failure, which is copied to `error`. */
gyre_status gy_stream_worker_status(struct gy_stream_worker *worker, struct gy_error *error);
/* stop ends the thread, even while it waits; the worker's communicator may then be destroyed. close ends the remaining
 * jobs without making their calls, and releases their streams. */
void gy_stream_worker_stop(struct gy_stream_worker *worker);
void gy_stream_worker_close(struct gy_stream_worker *worker);

#endif

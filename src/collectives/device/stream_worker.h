/* The thread that makes the calls which streams order: stream_job.h. It drives a communicator of its own. */
#ifndef GY_COLLECTIVES_DEVICE_STREAM_WORKER_H
#define GY_COLLECTIVES_DEVICE_STREAM_WORKER_H

#include <pthread.h>

#include "collectives/device/stream_job.h"

struct gy_stream_worker {
    const struct gy_device *device;
    gy_cu_stream probe; /* a stream whose state tells whether the device has failed */
    struct gyre_comm *traffic;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct gy_stream_job *first, **last; /* queued jobs */
    struct gy_stream_job *left;          /* under way when the worker was stopped */
    _Atomic bool stop;
    _Atomic bool failed;
    struct gy_error error; /* the first failure; under the lock */
};

/* Starts the thread. Returns false if there is none to be had. */
bool gy_stream_worker_open(struct gy_stream_worker *worker, const struct gy_device *device, gy_cu_stream probe,
                           struct gyre_comm *traffic);
/* Queues jobs, which belong to the worker from here on. After a failure their streams are released at once. */
void gy_stream_worker_push(struct gy_stream_worker *worker, struct gy_stream_job *jobs);
/* Notes a failure of the device and reports it to the other ranks: the world has failed. The caller may be inside. */
void gy_stream_worker_fail(struct gy_stream_worker *worker, gy_cu_result result, const char *what);
/* Notes a failure that is reported already. */
void gy_stream_worker_end(struct gy_stream_worker *worker, gyre_status status, const char *text);
/* Progresses the world, so that its failures, which are noted, and other ranks' calls do not wait for this thread.
 * Returns true if something moved. The caller is not inside. */
bool gy_stream_worker_look_around(struct gy_stream_worker *worker);
/* After an error of the driver: if the device itself has failed, notes and reports that. Returns true then. */
bool gy_stream_worker_check(struct gy_stream_worker *worker);
/* Returns the status of the first failure; its sentence is copied to `error`. */
gyre_status gy_stream_worker_status(struct gy_stream_worker *worker, struct gy_error *error);
/* stop: ends the thread, whatever it waits for. Its communicator may then be destroyed. close: ends the jobs that are
 * left, without their calls, and releases their streams. */
void gy_stream_worker_stop(struct gy_stream_worker *worker);
void gy_stream_worker_close(struct gy_stream_worker *worker);

#endif

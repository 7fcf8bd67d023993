/* The worker of stream calls: stream_worker.h. */
#include "collectives/device/stream_worker.h"

#include <stdio.h>
#include <time.h>

#include "collectives/call/launch.h"
#include "collectives/call/prepare.h"
#include "collectives/comm/flight_recorder.h"
#include "collectives/comm/progress_lock.h"
#include "collectives/engine/progress.h"
#include "collectives/select/selector.h"
#include "core/clock.h"
#include "core/mem.h"
#include "membership/overlay.h"

#define SPINS 400 /* polls of a word without progress before the thread sleeps between polls */
#define PAUSE_NS 20000
#define HEALTH_NS (10 * GY_MILLISECOND) /* between two queries of the driver for a failure of the device */

bool gy_stream_worker_is_over(struct gy_stream_worker *worker)
{
    return atomic_load_explicit(&worker->stop, memory_order_acquire) ||
           atomic_load_explicit(&worker->failed, memory_order_acquire);
}

/* Only the first failure is stored. */
void gy_stream_worker_end(struct gy_stream_worker *worker, gyre_status status, const char *text)
{
    pthread_mutex_lock(&worker->lock);
    if (worker->error.status == GYRE_SUCCESS) {
        worker->error.status = status;
        worker->error.rank = -1;
        if (*worker->running)
            snprintf(worker->error.text, sizeof(worker->error.text), "%s on a stream: %.800s", worker->running, text);
        else
            snprintf(worker->error.text, sizeof(worker->error.text), "%s", text);
    }
    pthread_mutex_unlock(&worker->lock);
    atomic_store_explicit(&worker->failed, true, memory_order_release);
}

void gy_stream_worker_fail(struct gy_stream_worker *worker, gy_cu_result result, const char *what)
{
    struct gy_context *ctx = worker->traffic->ctx;
    char reason[300], text[400];
    gy_driver_sentence(worker->device->driver, result, what, reason, sizeof(reason));
    snprintf(text, sizeof(text), "rank %d: GPU %d has failed: %s", ctx->world->rank, worker->device->number, reason);
    gy_stream_worker_end(worker, GYRE_SYSTEM, text);
    gy_overlay_report(ctx->overlay, GYRE_SYSTEM, ctx->world->rank, text); /* the progress lock is not needed */
}

bool gy_stream_worker_check(struct gy_stream_worker *worker)
{
    const struct gy_driver *driver = worker->device->driver;
    gy_cu_result result = gy_device_enter(worker->device);
    if (result == GY_CU_SUCCESS) {
        result = driver->stream_query(worker->probe);
        gy_device_leave(worker->device);
    }
    if (result == GY_CU_SUCCESS || result == GY_CU_NOT_READY)
        return false;
    gy_stream_worker_fail(worker, result, "before a call");
    return true;
}

gyre_status gy_stream_worker_status(struct gy_stream_worker *worker, struct gy_error *error)
{
    if (!atomic_load_explicit(&worker->failed, memory_order_acquire))
        return GYRE_SUCCESS;
    pthread_mutex_lock(&worker->lock);
    *error = worker->error;
    pthread_mutex_unlock(&worker->lock);
    return error->status;
}

static void end_job(struct gy_stream_worker *worker, struct gy_stream_job *job)
{
    struct gy_staging_block *block = job->call.block;
    if (gy_stream_worker_is_over(worker))
        gy_staging_release(block);
    else
        atomic_store_explicit(&block->words->done, block->use, memory_order_release);
    gy_staged_close(&job->call);
    gy_free(job);
}

static void end_jobs(struct gy_stream_worker *worker, struct gy_stream_job *job)
{
    while (job) {
        struct gy_stream_job *next = job->next;
        end_job(worker, job);
        job = next;
    }
}

/* ---- Waiting for inputs ---- */

bool gy_stream_worker_progress(struct gy_stream_worker *worker)
{
    struct gy_context *ctx = worker->traffic->ctx;
    gy_progress_enter(ctx);
    bool moved = !ctx->closed && gy_progress(ctx);
    int64_t now = gy_now();
    if (!ctx->closed && now - ctx->progressed_at > GY_MILLISECOND / 5)
        moved |= gy_progress_slow(ctx, now);
    if (ctx->closed)
        gy_stream_worker_end(worker, ctx->error.status, ctx->error.text);
    gy_progress_leave(ctx);
    return moved;
}

static void wait_ready(struct gy_stream_worker *worker, const struct gy_stream_job *job)
{
    const struct gy_staging_block *block = job->call.block;
    int64_t checked = gy_now();
    for (unsigned rounds = 0; !gy_staging_reached(block, &block->words->ready) && !gy_stream_worker_is_over(worker);
         rounds++) {
        if (gy_stream_worker_progress(worker))
            rounds = 0;
        if (rounds > SPINS)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
        if (gy_now() - checked < HEALTH_NS)
            continue;
        checked = gy_now();
        gy_stream_worker_check(worker);
    }
}

/* ---- The calls ---- */

struct batch {
    struct gy_stream_worker *worker;
    struct gy_stream_job *jobs;
};

static bool is_over(const void *what)
{
    const struct batch *batch = what;
    if (atomic_load_explicit(&batch->worker->stop, memory_order_acquire))
        return true;
    for (const struct gy_stream_job *job = batch->jobs; job; job = job->next)
        if (job->request && !job->request->complete)
            return false;
    return true;
}

/* Returns the message of the error with which calls end. */
static const char *message(const struct gyre_comm *traffic)
{
    if (traffic->ctx->closed)
        return traffic->ctx->error.text;
    return traffic->ended.status != GYRE_SUCCESS ? traffic->ended.text : traffic->error.text;
}

/* This rank cannot make a call for which the other ranks wait. Reports the error to them: the world has failed. */
static void report(struct gyre_comm *traffic, const struct gy_stream_job *job, gyre_status status)
{
    struct gy_context *ctx = traffic->ctx;
    char text[400];
    snprintf(text, sizeof(text), "rank %d cannot make its call of %s on a stream: %.300s", ctx->world->rank,
             gy_collective_name(job->call.user.call.collective), traffic->error.text);
    gy_overlay_report(ctx->overlay, status, ctx->world->rank, text);
}

static gyre_status start(struct gyre_comm *traffic, struct gy_stream_job *job, const struct gy_call *call)
{
    job->request = NULL;
    if (traffic->ctx->closed)
        return traffic->ctx->error.status;
    if (traffic->ended.status != GYRE_SUCCESS)
        return traffic->ended.status;
    gyre_status status = gy_request_start(traffic, call, &job->request);
    if (status != GYRE_SUCCESS && !traffic->ctx->closed)
        report(traffic, job, status);
    return status;
}

/* A request that is incomplete because the worker was stopped is ended by the communicator. */
static void collect(struct gy_stream_worker *worker, struct gy_stream_job *job)
{
    if (!job->request || !job->request->complete)
        return;
    gyre_status status = job->request->status;
    gy_request_recycle(job->request);
    job->request = NULL;
    if (status != GYRE_SUCCESS)
        gy_stream_worker_end(worker, status, message(worker->traffic));
}

/* Starts the requests of jobs without a function of their own. */
static void start_requests(struct gy_stream_worker *worker, struct gy_stream_job *jobs)
{
    struct gyre_comm *traffic = worker->traffic;
    gy_progress_enter(traffic->ctx);
    for (struct gy_stream_job *job = jobs; job && !gy_stream_worker_is_over(worker); job = job->next) {
        gyre_status status = job->run ? GYRE_SUCCESS : start(traffic, job, &job->call.staged);
        if (status != GYRE_SUCCESS)
            gy_stream_worker_end(worker, status, message(traffic));
    }
    gy_progress_leave(traffic->ctx);
}

static void set_running(struct gy_stream_worker *worker, const char *what)
{
    pthread_mutex_lock(&worker->lock);
    snprintf(worker->running, sizeof(worker->running), "%s", what);
    pthread_mutex_unlock(&worker->lock);
}

static void run_job(struct gy_stream_worker *worker, struct gy_stream_job *job)
{
    char what[sizeof(worker->running)];
    gy_shape_print(&job->arrival.shape, what, sizeof(what));
    set_running(worker, what);
    job->run(worker, job);
    set_running(worker, "");
}

static void run_batch(struct gy_stream_worker *worker, struct gy_stream_job *jobs)
{
    struct gyre_comm *traffic = worker->traffic;
    struct batch batch = {worker, jobs};
    for (struct gy_stream_job *job = jobs; job; job = job->next)
        wait_ready(worker, job);
    start_requests(worker, jobs);
    for (struct gy_stream_job *job = jobs; job && !gy_stream_worker_is_over(worker); job = job->next)
        if (job->run)
            run_job(worker, job);
    gy_progress_enter(traffic->ctx);
    gy_wait_until(traffic->ctx, is_over, &batch);
    for (struct gy_stream_job *job = jobs; job; job = job->next)
        collect(worker, job);
    gy_progress_leave(traffic->ctx);
}

/* Requests of other jobs of the batch may be incomplete. */
static bool request_is_over(const void *what)
{
    const struct batch *batch = what;
    return atomic_load_explicit(&batch->worker->stop, memory_order_acquire) || batch->jobs->request->complete;
}

static gyre_status await_request(struct gy_stream_worker *worker, struct gy_stream_job *job)
{
    struct batch batch = {worker, job};
    gy_wait_until(worker->traffic->ctx, request_is_over, &batch);
    if (!job->request->complete)
        return GYRE_ABORTED;
    const gyre_status status = job->request->status;
    gy_request_recycle(job->request);
    job->request = NULL;
    return status;
}

gyre_status gy_stream_worker_call(struct gy_stream_worker *worker, struct gy_stream_job *job,
                                  const struct gy_call *call)
{
    struct gyre_comm *traffic = worker->traffic;
    struct gy_call own = *call;
    own.unforced = gy_select_forces(traffic, call->collective); /* as gy_run_own does */
    gy_progress_enter(traffic->ctx);
    gyre_status status = start(traffic, job, &own);
    if (status == GYRE_SUCCESS)
        status = await_request(worker, job);
    if (status != GYRE_SUCCESS && !atomic_load(&worker->stop))
        gy_stream_worker_end(worker, status, message(traffic));
    gy_progress_leave(traffic->ctx);
    return status;
}

/* Waits for the next batch and removes it from the queue. Returns NULL if the worker is to end. */
static struct gy_stream_job *take_batch(struct gy_stream_worker *worker)
{
    pthread_mutex_lock(&worker->lock);
    while (!worker->first && !atomic_load(&worker->stop))
        pthread_cond_wait(&worker->work, &worker->lock);
    struct gy_stream_job *batch = atomic_load(&worker->stop) ? NULL : worker->first;
    if (batch) {
        struct gy_stream_job *last = batch;
        while (last->more)
            last = last->next;
        worker->first = last->next;
        if (!worker->first)
            worker->last = &worker->first;
        last->next = NULL;
    }
    pthread_mutex_unlock(&worker->lock);
    return batch;
}

static void *run(void *argument)
{
    struct gy_stream_worker *worker = argument;
    for (struct gy_stream_job *batch; (batch = take_batch(worker));) {
        if (!gy_stream_worker_is_over(worker))
            run_batch(worker, batch);
        if (atomic_load(&worker->stop))
            worker->left = batch;
        else
            end_jobs(worker, batch);
    }
    return NULL;
}

bool gy_stream_worker_open(struct gy_stream_worker *worker, const struct gy_device *device, gy_cu_stream probe,
                           struct gyre_comm *traffic)
{
    *worker = (struct gy_stream_worker){.device = device, .probe = probe, .traffic = traffic};
    worker->last = &worker->first;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->work, NULL);
    if (pthread_create(&worker->thread, NULL, run, worker) == 0)
        return true;
    pthread_mutex_destroy(&worker->lock);
    pthread_cond_destroy(&worker->work);
    return false;
}

void gy_stream_worker_push(struct gy_stream_worker *worker, struct gy_stream_job *jobs)
{
    struct gy_stream_job *last = jobs;
    while (last->next)
        last = last->next;
    pthread_mutex_lock(&worker->lock);
    *worker->last = jobs;
    worker->last = &last->next;
    pthread_cond_signal(&worker->work);
    pthread_mutex_unlock(&worker->lock);
}

void gy_stream_worker_stop(struct gy_stream_worker *worker)
{
    struct gy_context *ctx = worker->traffic->ctx;
    pthread_mutex_lock(&worker->lock);
    atomic_store(&worker->stop, true);
    pthread_cond_signal(&worker->work);
    pthread_mutex_unlock(&worker->lock);
    gy_progress_enter(ctx);
    gy_progress_wake(ctx);
    gy_progress_leave(ctx);
    pthread_join(worker->thread, NULL);
}

void gy_stream_worker_close(struct gy_stream_worker *worker)
{
    for (struct gy_stream_job *job = worker->left; job; job = job->next)
        if (job->request)
            gy_request_recycle(job->request);
    end_jobs(worker, worker->left);
    end_jobs(worker, worker->first);
    worker->left = worker->first = NULL;
    pthread_mutex_destroy(&worker->lock);
    pthread_cond_destroy(&worker->work);
}

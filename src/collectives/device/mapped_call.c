/* Calls by kernels over mapped memory: mapped_call.h. */
#include "collectives/device/mapped_call.h"

#include <stdio.h>
#include <time.h>

#include "collectives/comm/progress_lock.h"
#include "collectives/device/mapper.h"
#include "collectives/engine/call_check.h"
#include "core/log.h"

enum { SPINS = 400 }; /* queries of a stream without progress before the thread sleeps between queries */
#define PAUSE_NS 20000

/* A call on the worker's thread. */
struct running {
    struct gy_stream_worker *worker;
    struct gy_stream_job *job;
    struct gy_mapper *mapper;
    struct gyre_comm *traffic;
};

/* ---- The device ---- */

static gyre_status fail_device(const struct running *it, gy_cu_result result, const char *what)
{
    struct gy_error error = {.status = GYRE_SYSTEM};
    gy_stream_worker_fail(it->worker, result, what);
    (void)gy_stream_worker_status(it->worker, &error);
    return error.status;
}

/* Waits until a stream is idle, or the worker is to end. */
static gyre_status await_stream(const struct running *it, gy_cu_stream stream, const char *what)
{
    const struct gy_driver *driver = it->mapper->device->driver;
    gy_cu_result result;
    for (unsigned rounds = 0; (result = driver->stream_query(stream)) == GY_CU_NOT_READY; rounds++) {
        if (gy_stream_worker_is_over(it->worker))
            return GYRE_ABORTED;
        if (gy_stream_worker_progress(it->worker))
            rounds = 0;
        if (rounds > SPINS)
            nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return result == GY_CU_SUCCESS ? GYRE_SUCCESS : fail_device(it, result, what);
}

/* ---- What all ranks do ---- */

static gyre_status gather_facts(const struct running *it)
{
    struct gy_mapper *mapper = it->mapper;
    struct gy_call_fact *mine = gy_mapper_fact(mapper, mapper->size);
    gy_call_fact_fill(mine, &it->job->arrival, mapper->share, &mapper->forgotten);
    const struct gy_call gather = {.collective = GY_ALL_GATHER,
                                   .input = mine,
                                   .output = mapper->facts,
                                   .count = mapper->fact_bytes,
                                   .dtype = GYRE_UINT8};
    const gyre_status status = gy_stream_worker_call(it->worker, it->job, &gather);
    if (status == GYRE_SUCCESS && mapper->leads)
        gy_mapper_close_forgotten(mapper);
    return status;
}

/* Fails the world if a rank has made another call. */
static gyre_status compare_calls(const struct running *it)
{
    const struct gy_call_signature *own = &it->job->arrival.shape;
    struct gyre_comm *traffic = it->traffic;
    int other = 0;
    while (other < traffic->size && gy_shape_equal(&gy_mapper_fact(it->mapper, other)->shape, own))
        other++;
    if (other == traffic->size)
        return GYRE_SUCCESS;
    gy_progress_enter(traffic->ctx);
    if (!traffic->ctx->closed)
        gy_mismatch(traffic, other, &gy_mapper_fact(it->mapper, other)->shape, own);
    gy_context_fail(traffic->ctx);
    const gyre_status status = traffic->ctx->error.status;
    gy_stream_worker_end(it->worker, status, traffic->ctx->error.text);
    gy_progress_leave(traffic->ctx);
    return status;
}

/* Sets *done to false unless it is true on all ranks. */
static gyre_status agree(const struct running *it, bool *done)
{
    struct gy_mapper *mapper = it->mapper;
    mapper->done_here = *done;
    const struct gy_call reduce = {.collective = GY_ALL_REDUCE,
                                   .input = &mapper->done_here,
                                   .output = &mapper->done_by_all,
                                   .count = 1,
                                   .dtype = GYRE_INT32,
                                   .op = GYRE_MIN};
    const gyre_status status = gy_stream_worker_call(it->worker, it->job, &reduce);
    *done = status == GYRE_SUCCESS && mapper->done_by_all == 1;
    return status;
}

/* ---- What leaders do ---- */

static bool plan(const struct running *it)
{
    char why[300] = "";
    if (gy_mapper_plan(it->mapper, &it->job->arrival, why, sizeof(why)))
        return true;
    gy_log(GY_LOG_DEBUG, "%s is staged through host memory: %s", gy_collective_name(it->job->arrival.call->collective),
           why);
    return false;
}

static gyre_status launch(const struct running *it)
{
    gy_cu_result result = gy_mapper_launch(it->mapper);
    if (result != GY_CU_SUCCESS)
        return fail_device(it, result, it->mapper->launcher.what);
    const gyre_status status = await_stream(it, it->mapper->launcher.stream, "a kernel over mapped operands");
    if (status != GYRE_SUCCESS)
        gy_launcher_stop(&it->mapper->launcher); /* a kernel that has not begun does nothing */
    return status;
}

/* Executes the call by kernels. *done is false if they cannot execute it; then nothing is written. */
static gyre_status run_kernels(const struct running *it, bool *done)
{
    struct gy_mapper *mapper = it->mapper;
    gyre_status status = GYRE_SUCCESS;
    *done = !mapper->leads || plan(it);
    if (mapper->parts > 1)
        status = agree(it, done);
    if (status == GYRE_SUCCESS && *done && mapper->leads)
        status = launch(it);
    gy_mapper_release(mapper);
    if (status == GYRE_SUCCESS && (*done || mapper->parts == 1))
        status = agree(it, done);
    return status;
}

static bool all_shared(const struct gy_mapper *mapper)
{
    for (int r = 0; r < mapper->size; r++)
        if (!gy_call_fact_is_shared(gy_mapper_fact(mapper, r)))
            return false;
    return true;
}

/* ---- Staged ---- */

static gyre_status stage(const struct running *it)
{
    struct gy_mapper *mapper = it->mapper;
    struct gy_staged_call staged;
    gy_cu_result result = gy_staged_open(&staged, &mapper->staging, it->traffic, it->job->arrival.call);
    if (result != GY_CU_SUCCESS)
        return fail_device(it, result, "memory for a call on a stream");
    result = gy_staged_copy_in(&staged, &mapper->staging, it->traffic, mapper->stream);
    gyre_status status = result == GY_CU_SUCCESS ? await_stream(it, mapper->stream, "a copy to the host")
                                                 : fail_device(it, result, "a copy to the host");
    if (status == GYRE_SUCCESS)
        status = gy_stream_worker_call(it->worker, it->job, &staged.staged);
    if (status == GYRE_SUCCESS) {
        result = gy_staged_copy_out(&staged, &mapper->staging, it->traffic, mapper->stream);
        status = result == GY_CU_SUCCESS ? await_stream(it, mapper->stream, "a copy from the host")
                                         : fail_device(it, result, "a copy from the host");
    }
    if (status == GYRE_SUCCESS) /* else the block stays in use: a copy or a request may still touch it */
        gy_staging_give(staged.block);
    gy_staged_close(&staged);
    return status;
}

static void run_inside(const struct running *it)
{
    bool done = false;
    gyre_status status = gather_facts(it);
    if (status == GYRE_SUCCESS)
        status = compare_calls(it);
    if (status == GYRE_SUCCESS && all_shared(it->mapper))
        status = run_kernels(it, &done);
    if (status == GYRE_SUCCESS && !done)
        (void)stage(it);
}

/* For the worker's thread, without the progress lock. */
static void run(struct gy_stream_worker *worker, struct gy_stream_job *job)
{
    struct gy_attachment *attachment = job->comm->attachment;
    const struct running it = {worker, job, attachment->mapper, attachment->traffic};
    gy_cu_result result = gy_device_enter(&attachment->device);
    if (result != GY_CU_SUCCESS) {
        (void)fail_device(&it, result, "cuCtxPushCurrent");
        return;
    }
    run_inside(&it);
    gy_device_leave(&attachment->device);
}

/* ---- The caller's half ---- */

gy_cu_result gy_mapped_call_begin(struct gy_stream_job *job, const struct gy_call *call)
{
    struct gy_attachment *attachment = job->comm->attachment;
    struct gy_staging *staging = &attachment->staging;
    if (!gy_kept_call_open(&job->call.user, call, attachment->traffic->size))
        return GY_CU_OUT_OF_MEMORY;
    gy_arrival_open(&job->arrival, attachment->traffic, &job->call.user.call);
    job->arrival.shape.sequence = ++attachment->mapper->calls;
    job->run = run;
    gy_cu_result result = gy_staging_take(staging, 0, &job->call.block);
    if (result == GY_CU_SUCCESS)
        result = gy_staging_write(staging, job->call.block, &job->call.block->words->ready, job->stream);
    if (result != GY_CU_SUCCESS)
        gy_staged_close(&job->call);
    return result;
}

gy_cu_result gy_mapped_call_end(struct gy_stream_job *job)
{
    const struct gy_staging *staging = &job->comm->attachment->staging;
    const struct gy_staging_block *block = job->call.block;
    gy_cu_result result = gy_staging_wait_done(staging, block, job->stream);
    if (result == GY_CU_SUCCESS)
        result = gy_staging_write(staging, block, &block->words->freed, job->stream);
    return result;
}

/* Calls on streams: stream_call.h. */
#include "collectives/device/stream_call.h"

#include <stdio.h>

#include "collectives/device/fused_call.h"
#include "collectives/device/mapped_call.h"
#include "core/mem.h"

static gyre_status refuse(struct gyre_comm *comm, gyre_status status, const char *text)
{
    comm->error.status = GYRE_SUCCESS;
    gy_error_set(&comm->error, status, -1, "%s", text);
    comm->error.status = GYRE_SUCCESS; /* the communicator stays usable: only its message is set */
    return status;
}

/* Writes the name of the call: "all_reduce on a stream". Returns `text`. */
static const char *what_of(const struct gy_call *call, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s on a stream", gy_collective_name(call->collective));
    return text;
}

static gyre_status refuse_memory(struct gyre_comm *comm, const struct gy_call *call)
{
    char text[100];
    snprintf(text, sizeof(text), "out of memory for %s on a stream", gy_collective_name(call->collective));
    return refuse(comm, GYRE_NO_MEMORY, text);
}

static gyre_status refuse_result(struct gyre_comm *comm, gy_cu_result result, const char *what)
{
    char text[300];
    gy_driver_sentence(comm->attachment->device.driver, result, what, text, sizeof(text));
    (void)gy_stream_worker_check(&comm->attachment->worker);
    return refuse(comm, result == GY_CU_OUT_OF_MEMORY ? GYRE_NO_MEMORY : GYRE_SYSTEM, text);
}

static gyre_status check_capture(struct gyre_comm *comm, gy_cu_stream stream)
{
    unsigned capturing = GY_CU_CAPTURE_NONE;
    gy_cu_result result = comm->attachment->device.driver->stream_is_capturing(stream, &capturing);
    if (result != GY_CU_SUCCESS)
        return refuse_result(comm, result, "cuStreamIsCapturing");
    if (capturing == GY_CU_CAPTURE_NONE)
        return GYRE_SUCCESS;
    return refuse(comm, GYRE_UNSUPPORTED,
                  "the stream is being captured into a graph: a call that is staged through the host cannot be "
                  "captured; make it outside of the capture");
}

/* Begins a staged call: copies its input. The device's context is current. */
static gy_cu_result begin(struct gy_stream_job *job, struct gy_attachment *attachment, const struct gy_call *call)
{
    gy_cu_result result = gy_staged_open(&job->call, &attachment->staging, job->comm, call);
    if (result != GY_CU_SUCCESS)
        return result;
    const struct gy_staging_block *block = job->call.block;
    result = gy_staged_copy_in(&job->call, &attachment->staging, job->comm, job->stream);
    if (result == GY_CU_SUCCESS)
        result = gy_staging_write(&attachment->staging, block, &block->words->ready, job->stream);
    if (result != GY_CU_SUCCESS) /* the block is not reused: a copy may still write to it */
        gy_staged_close(&job->call);
    return result;
}

static gyre_status begin_inside(struct gy_stream_job *job, const struct gy_call *call)
{
    char what[64];
    struct gy_attachment *attachment = job->comm->attachment;
    gy_cu_result result = gy_device_enter(&attachment->device);
    if (result != GY_CU_SUCCESS)
        return refuse_result(job->comm, result, "cuCtxPushCurrent");
    gyre_status status = check_capture(job->comm, job->stream);
    if (status == GYRE_SUCCESS && attachment->meeting) {
        status = gy_fused_call_begin(job, call) ? GYRE_SUCCESS : refuse_memory(job->comm, call);
    } else if (status == GYRE_SUCCESS) {
        const bool mapped = attachment->mapper && !gy_is_point_to_point(call->collective);
        result = mapped ? gy_mapped_call_begin(job, call) : begin(job, attachment, call);
        if (result != GY_CU_SUCCESS)
            status = refuse_result(job->comm, result, what_of(call, what, sizeof(what)));
    }
    gy_device_leave(&attachment->device);
    return status;
}

gyre_status gy_stream_call_begin(struct gyre_comm *comm, const struct gy_call *call, gy_cu_stream stream,
                                 struct gy_stream_job **job_p)
{
    struct gy_attachment *attachment = comm->attachment;
    struct gy_error error;
    gyre_status status = gy_stream_worker_status(&attachment->worker, &error);
    if (status != GYRE_SUCCESS)
        return refuse(comm, status, error.text);
    struct gy_stream_job *job = gy_alloc_zero(1, sizeof(*job));
    if (!job)
        return refuse_memory(comm, call);
    job->comm = comm;
    job->stream = stream;
    status = begin_inside(job, call);
    if (status == GYRE_SUCCESS)
        *job_p = job;
    else
        gy_free(job);
    return status;
}

/* Ends a staged call: the stream waits for the result and copies the output. The device's context is current. */
static gy_cu_result end_staged_call(struct gy_stream_job *job)
{
    const struct gy_staging *staging = &job->comm->attachment->staging;
    const struct gy_staging_block *block = job->call.block;
    gy_cu_result result = gy_staging_wait_done(staging, block, job->stream);
    if (result == GY_CU_SUCCESS)
        result = gy_staged_copy_out(&job->call, staging, job->comm, job->stream);
    if (result == GY_CU_SUCCESS)
        result = gy_staging_write(staging, block, &block->words->freed, job->stream);
    return result;
}

static gy_cu_result end(struct gy_stream_job *job)
{
    const struct gy_device *device = &job->comm->attachment->device;
    gy_cu_result result = gy_device_enter(device);
    if (result != GY_CU_SUCCESS)
        return result;
    result = job->run ? gy_mapped_call_end(job) : end_staged_call(job);
    gy_device_leave(device);
    return result;
}

struct gy_stream_job *gy_stream_jobs_take(struct gy_stream_job **jobs, const struct gyre_comm *comm)
{
    struct gy_stream_job *taken = NULL, **last = &taken, **at = jobs;
    while (*at) {
        struct gy_stream_job *job = *at;
        if (job->comm != comm) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        job->next = NULL;
        *last = job;
        last = &job->next;
    }
    return taken;
}

/* Removes the jobs of the first job's communicator from the list. */
static struct gy_stream_job *take_batch(struct gy_stream_job **jobs)
{
    struct gy_stream_job *batch = gy_stream_jobs_take(jobs, (*jobs)->comm);
    for (struct gy_stream_job *job = batch; job->next; job = job->next)
        job->more = true;
    return batch;
}

/* Begins the calls that the meeting has decided to stage. */
static gyre_status begin_staged(struct gy_stream_job **at)
{
    gyre_status first = GYRE_SUCCESS;
    char what[64];
    while (*at) {
        struct gy_stream_job *job = *at;
        struct gy_attachment *attachment = job->comm->attachment;
        what_of(&job->kept.call, what, sizeof(what));
        gy_cu_result result = job->meets ? gy_device_enter(&attachment->device) : GY_CU_SUCCESS;
        if (job->meets && result == GY_CU_SUCCESS) {
            result = begin(job, attachment, &job->kept.call);
            gy_device_leave(&attachment->device);
        }
        gy_kept_call_close(&job->kept);
        job->meets = false;
        if (result == GY_CU_SUCCESS) {
            at = &job->next;
            continue;
        }
        gy_stream_worker_fail(&attachment->worker, result, what);
        first = refuse_result(job->comm, result, what);
        *at = job->next;
        gy_free(job);
    }
    return first;
}

static void end_staged(struct gy_stream_job *jobs)
{
    char what[64];
    for (struct gy_stream_job *job = jobs; job; job = job->next) {
        gy_cu_result result = end(job);
        if (result != GY_CU_SUCCESS)
            gy_stream_worker_fail(&job->comm->attachment->worker, result,
                                  what_of(&job->call.user.call, what, sizeof(what)));
    }
    while (jobs) {
        struct gy_stream_job *batch = take_batch(&jobs);
        gy_stream_worker_push(&batch->comm->attachment->worker, batch);
    }
}

gyre_status gy_stream_calls_end(struct gy_stream_job *jobs)
{
    gyre_status fused = gy_fused_calls_end(&jobs), staged = begin_staged(&jobs);
    end_staged(jobs);
    return fused != GYRE_SUCCESS ? fused : staged;
}

void gy_stream_calls_drop(struct gy_stream_job *jobs)
{
    gy_fused_calls_drop(&jobs);
    end_staged(jobs);
}

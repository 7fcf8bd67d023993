/* A rank's part of fused calls: fused_call.h. */
#include "collectives/device/fused_call.h"

#include <stdio.h>

#include "collectives/device/launcher.h"
#include "collectives/device/meeting.h"
#include "collectives/engine/call_check.h"
#include "collectives/engine/operands.h"
#include "core/clock.h"
#include "core/mem.h"
#include "cuda/pointer.h"
#include "membership/overlay.h"

enum { SPINS = 200 };   /* polls of the outcome without progress before the thread sleeps */
#define SHORT_NS 50000  /* longest sleep at the beginning of a wait */
#define LONG_NS 1000000 /* longest sleep later: the delay with which a failure is found */
#define LATER_NS (10 * GY_MILLISECOND)

/* An event of the attachment's pool. A job uses it from its arrival until its outcome is decided. */
struct gy_ready_event {
    struct gy_ready_event *next;
    gy_cu_event event;
    bool used;
};

/* ---- Begin ---- */

static bool is_reachable(const struct gyre_comm *comm, const struct gy_call *call, bool input, int device)
{
    const void *operand = input ? call->input : call->output;
    const enum gy_part part = gy_part_here(comm, call, input);
    if (part == GY_PART_NONE || gy_part_elements(comm, call, input, part) == 0)
        return true;
    const struct gy_pointer pointer = gy_pointer_look(operand);
    return pointer.kind == GY_POINTER_PINNED || (pointer.kind == GY_POINTER_DEVICE && pointer.device == device);
}

bool gy_fused_call_begin(struct gy_stream_job *job, const struct gy_call *call)
{
    struct gy_attachment *attachment = job->comm->attachment;
    const struct gyre_comm *traffic = attachment->traffic;
    struct gy_arrival *arrival = &job->arrival;
    if (!gy_kept_call_open(&job->kept, call, traffic->size))
        return false;
    job->meets = true;
    gy_arrival_open(arrival, traffic, &job->kept.call);
    arrival->reachable = is_reachable(traffic, call, true, attachment->device.number) &&
                         is_reachable(traffic, call, false, attachment->device.number);
    return true;
}

/* ---- Failures ---- */

/* Ends the attachment and the meeting with the error. The communicator gets the message only, since its calls without a
 * stream may continue. */
static gyre_status fail(struct gy_stream_job *job, const struct gy_error *error)
{
    struct gy_attachment *attachment = job->comm->attachment;
    struct gy_error *last = &job->comm->error;
    gy_host_meeting_fail(attachment->meeting, error);
    gy_stream_worker_end(&attachment->worker, error->status, error->text);
    last->status = GYRE_SUCCESS; /* the communicator stays usable: only its message is set */
    last->quiet = true;
    gy_error_set(last, error->status, error->rank, "%s", error->text);
    last->status = GYRE_SUCCESS;
    last->quiet = false;
    return error->status;
}

/* Reports an error that this rank has found to all other ranks. */
static void report(struct gy_context *ctx, const struct gy_error *error)
{
    gy_overlay_report(ctx->overlay, error->status, error->rank, error->text);
}

/* Closes the world after a failure that has been decided. Returns the error as this rank sees it. */
static struct gy_error close_world(struct gy_context *ctx)
{
    gy_context_fail(ctx);
    return ctx->error;
}

static struct gy_error mismatch_error(const struct gy_stream_job *job)
{
    const struct gy_arrival *arrival = &job->arrival;
    struct gyre_comm *traffic = job->comm->attachment->traffic;
    gy_progress_enter(traffic->ctx);
    if (!traffic->ctx->closed)
        gy_mismatch(traffic, arrival->other, &arrival->theirs, &arrival->shape);
    struct gy_error error = close_world(traffic->ctx);
    gy_progress_leave(traffic->ctx);
    return error;
}

/* The error of a wait for a rank that has exceeded GYRE_TIMEOUT. It ends the world. */
static struct gy_error late_error(const struct gy_stream_job *job, int missing)
{
    const struct gyre_comm *traffic = job->comm->attachment->traffic;
    struct gy_context *ctx = traffic->ctx;
    char what[160];
    gy_shape_print(&job->arrival.shape, what, sizeof(what));
    gy_progress_enter(ctx);
    if (!ctx->closed) {
        const int peer = gy_group_world(&traffic->group, missing);
        gy_error_set(&ctx->error, GYRE_PEER_LATE, peer, "rank %d did not arrive in %s within %g s (GYRE_TIMEOUT)", peer,
                     what, (double)traffic->attributes.timeout_ns / 1e9);
        report(ctx, &ctx->error);
    }
    struct gy_error error = close_world(ctx);
    gy_progress_leave(ctx);
    return error;
}

static struct gy_error departed_error(const struct gy_stream_job *job, int missing)
{
    const struct gyre_comm *traffic = job->comm->attachment->traffic;
    struct gy_error error = {.status = GYRE_PEER_LEFT, .rank = gy_group_world(&traffic->group, missing)};
    char what[160];
    gy_shape_print(&job->arrival.shape, what, sizeof(what));
    snprintf(error.text, sizeof(error.text), "rank %d destroyed its communicator, while rank %d was in %s", error.rank,
             traffic->ctx->world->rank, what);
    return error;
}

/* ---- Arrival ---- */

static gy_cu_result take_event(struct gy_attachment *attachment, struct gy_ready_event **event_p)
{
    struct gy_ready_event *event = attachment->ready;
    while (event && event->used)
        event = event->next;
    if (!event) {
        event = gy_alloc_zero(1, sizeof(*event));
        if (!event)
            return GY_CU_OUT_OF_MEMORY;
        gy_cu_result result = attachment->device.driver->event_create(&event->event, GY_CU_EVENT_DISABLE_TIMING);
        if (result != GY_CU_SUCCESS) {
            gy_free(event);
            return result;
        }
        event->next = attachment->ready;
        attachment->ready = event;
    }
    event->used = true;
    *event_p = event;
    return GY_CU_SUCCESS;
}

void gy_ready_events_free(struct gy_attachment *attachment)
{
    while (attachment->ready) {
        struct gy_ready_event *gone = attachment->ready;
        attachment->ready = gone->next;
        (void)attachment->device.driver->event_destroy(gone->event);
        gy_free(gone);
    }
}

static gy_cu_result record(struct gy_stream_job *job)
{
    struct gy_attachment *attachment = job->comm->attachment;
    gy_cu_result result = take_event(attachment, &job->ready);
    if (result != GY_CU_SUCCESS)
        return result;
    job->arrival.ready = job->ready->event;
    return attachment->device.driver->event_record(job->ready->event, job->stream);
}

/* An event cannot be recorded, so this rank cannot arrive. Ends the meeting, since the other ranks wait for this
 * one. */
static void fail_record(struct gy_attachment *attachment, gy_cu_result result)
{
    struct gy_error error;
    gy_stream_worker_fail(&attachment->worker, result, "an event before a call");
    if (gy_stream_worker_status(&attachment->worker, &error) != GYRE_SUCCESS)
        gy_host_meeting_fail(attachment->meeting, &error);
}

/* Arrives with all jobs of the first job's meeting: in a group one thread may make the calls of several ranks. The
 * arrivals are made in one step, so that their calls can share a launch. */
static void arrive(struct gy_stream_job *jobs)
{
    struct gy_attachment *attachment = jobs->comm->attachment;
    struct gy_arrival *first = NULL, **last = &first;
    gy_cu_result result = gy_device_enter(&attachment->device);
    const bool entered = result == GY_CU_SUCCESS;
    for (struct gy_stream_job *job = jobs; job; job = job->next) {
        if (!job->meets || job->comm->attachment->meeting != attachment->meeting)
            continue;
        if (result == GY_CU_SUCCESS && (result = record(job)) != GY_CU_SUCCESS)
            fail_record(job->comm->attachment, result);
        job->arrived = true;
        *last = &job->arrival;
        last = &job->arrival.next;
    }
    if (!entered)
        fail_record(attachment, result);
    gy_host_meeting_arrive(attachment->meeting, first);
    if (entered)
        gy_device_leave(&attachment->device);
}

/* ---- Waiting ---- */

static int outcome_of(const struct gy_stream_job *job)
{
    return atomic_load_explicit(&job->arrival.outcome, memory_order_acquire);
}

/* Returns true if the call cannot complete; `error` then says why. */
static bool has_failed(struct gy_stream_job *job, int64_t since, struct gy_error *error)
{
    struct gy_attachment *attachment = job->comm->attachment;
    const struct gyre_comm *traffic = attachment->traffic;
    bool departed;
    if (gy_stream_worker_status(&attachment->worker, error) != GYRE_SUCCESS)
        return true;
    const int missing = gy_host_meeting_missing(attachment->meeting, &job->arrival, &departed);
    if (missing < 0)
        return false;
    const bool late = gy_now() - since > traffic->attributes.timeout_ns;
    if (departed)
        *error = departed_error(job, missing);
    else if (late)
        *error = late_error(job, missing);
    return departed || late;
}

/* Waits for the outcome. The thread progresses the world meanwhile, so that other requests of this rank continue and
 * failures are found. */
static void await(struct gy_stream_job *job)
{
    struct gy_attachment *attachment = job->comm->attachment;
    const unsigned spins = attachment->traffic->ctx->oversubscribed ? 0 : SPINS;
    const int64_t since = gy_now();
    struct gy_error error;
    for (unsigned rounds = 0; outcome_of(job) == GY_OUTCOME_NONE; rounds++) {
        if (gy_stream_worker_progress(&attachment->worker))
            rounds = 0;
        if (rounds < spins)
            continue;
        gy_host_meeting_wait(attachment->meeting, &job->arrival, gy_now() - since > LATER_NS ? LONG_NS : SHORT_NS);
        if (outcome_of(job) == GY_OUTCOME_NONE && has_failed(job, since, &error))
            gy_host_meeting_fail(attachment->meeting, &error);
    }
}

/* Makes the stream wait for the end of the kernel. */
static gyre_status wait_for_launch(struct gy_stream_job *job)
{
    struct gy_attachment *attachment = job->comm->attachment;
    gy_cu_result result = gy_device_enter(&attachment->device);
    if (result == GY_CU_SUCCESS) {
        result = attachment->device.driver->stream_wait_event(job->stream, job->arrival.launch->done, 0);
        gy_device_leave(&attachment->device);
    }
    gy_launch_release(job->arrival.launch);
    if (result == GY_CU_SUCCESS)
        return GYRE_SUCCESS;
    struct gy_error error = {0};
    gy_stream_worker_fail(&attachment->worker, result, "cuStreamWaitEvent");
    (void)gy_stream_worker_status(&attachment->worker, &error);
    return fail(job, &error);
}

static gyre_status end_one(struct gy_stream_job *job)
{
    struct gy_attachment *attachment = job->comm->attachment;
    struct gy_error error;
    await(job);
    if (job->ready)
        job->ready->used = false;
    switch (outcome_of(job)) {
    case GY_OUTCOME_FUSED: return wait_for_launch(job);
    case GY_OUTCOME_STAGED: return GYRE_SUCCESS;
    case GY_OUTCOME_DIFFERS: error = mismatch_error(job); return fail(job, &error);
    default:
        error = gy_host_meeting_error(attachment->meeting);
        if (error.status != GYRE_PEER_LEFT)
            report(attachment->traffic->ctx, &error);
        return fail(job, &error);
    }
}

static void free_job(struct gy_stream_job **at)
{
    struct gy_stream_job *gone = *at;
    *at = gone->next;
    gy_kept_call_close(&gone->kept);
    gy_free(gone);
}

gyre_status gy_fused_calls_end(struct gy_stream_job **jobs)
{
    gyre_status first = GYRE_SUCCESS;
    for (struct gy_stream_job *job = *jobs; job; job = job->next)
        if (job->meets && !job->arrived)
            arrive(job);
    while (*jobs) {
        struct gy_stream_job *job = *jobs;
        if (job->meets) {
            gyre_status status = end_one(job);
            first = first == GYRE_SUCCESS ? status : first;
            if (outcome_of(job) != GY_OUTCOME_STAGED) {
                free_job(jobs);
                continue;
            }
        }
        jobs = &job->next;
    }
    return first;
}

void gy_fused_calls_drop(struct gy_stream_job **jobs)
{
    while (*jobs) {
        if ((*jobs)->meets)
            free_job(jobs);
        else
            jobs = &(*jobs)->next;
    }
}

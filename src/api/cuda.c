/* The public calls on GPUs: gyre/cuda.h. */
#include <gyre/cuda.h>

#include "api/call_group.h"
#include "api/check.h"
#include "collectives/call/blocking.h"
#include "collectives/call/launch.h"
#include "collectives/device/stream_call.h"
#include "cuda/device.h"

gyre_status gyre_cuda_available(int *devices_p)
{
    char why[300];
    if (!devices_p)
        return gy_check_none("%s: devices_p is NULL", __func__);
    int count = gy_device_count(why, sizeof(why));
    if (count > 0) {
        *devices_p = count;
        return GYRE_SUCCESS;
    }
    (void)gy_check_none("%s", why);
    return GYRE_UNSUPPORTED;
}

gyre_status gyre_cuda_attach(gyre_comm *comm, int device)
{
    if (!gy_check_lives(comm, __func__) || !gy_check_ungrouped(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (comm->attachment)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%s: the communicator is attached already", __func__);
    gy_progress_enter(comm->ctx);
    gyre_status status = gy_check_comm(comm);
    gy_progress_leave(comm->ctx);
    return status == GYRE_SUCCESS ? gy_attach(comm, device) : status;
}

static gyre_status check_attached(const char *function, gyre_comm *comm)
{
    if (!gy_check_lives(comm, function))
        return GYRE_INVALID_ARGUMENT;
    gyre_status status = gy_check_owner(comm);
    if (status == GYRE_SUCCESS && !comm->attachment)
        status = gy_check_fail(comm, GYRE_INVALID_ARGUMENT,
                               "%s: the communicator is not attached to a GPU: call gyre_cuda_attach first", function);
    return status;
}

gyre_status gyre_cuda_status(gyre_comm *comm)
{
    struct gy_error error;
    gyre_status status = check_attached(__func__, comm);
    if (status != GYRE_SUCCESS || !comm->attachment->has_device)
        return status;
    status = gy_stream_worker_status(&comm->attachment->worker, &error);
    if (status != GYRE_SUCCESS)
        return gy_check_fail(comm, status, "%s", error.text);
    gy_progress_enter(comm->ctx);
    status = comm->ctx->error.status;
    gy_progress_leave(comm->ctx);
    return status;
}

/* A rank without a device makes the call itself, in a group as a request. The caller is inside. */
static gyre_status run_on_host(gyre_comm *comm, const struct gy_call *call, gyre_stream stream)
{
    struct gyre_comm *traffic = comm->attachment->traffic;
    gyre_request *request;
    if (stream)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "this rank is attached to no GPU: it has no streams");
    if (!gy_call_group_open())
        return gy_run(traffic, call);
    gyre_status status = gy_call_group_reserve() ? gy_request_start(traffic, call, &request) : GYRE_NO_MEMORY;
    if (status == GYRE_SUCCESS)
        gy_call_group_add(request);
    return status;
}

static gyre_status start_on(gyre_comm *comm, const struct gy_call *call, gyre_stream stream)
{
    struct gy_stream_job *job;
    gyre_status status = gy_stream_call_begin(comm, call, stream, &job);
    if (status != GYRE_SUCCESS)
        return status;
    if (!gy_call_group_open())
        return gy_stream_calls_end(job);
    gy_call_group_defer(job);
    return GYRE_SUCCESS;
}

static gyre_status run_on(const char *function, gyre_comm *comm, const struct gy_call *call, gyre_stream stream)
{
    gyre_status status = check_attached(function, comm);
    if (status != GYRE_SUCCESS)
        return status;
    gy_progress_enter(comm->ctx);
    status = gy_check_entry(comm, call, false);
    if (status == GYRE_SUCCESS && !comm->attachment->has_device)
        status = run_on_host(comm, call, stream);
    gy_progress_leave(comm->ctx);
    return status == GYRE_SUCCESS && comm->attachment->has_device ? start_on(comm, call, stream) : status;
}

#define GY_CALL_FORMS(name, parameters, call)                                     \
    gyre_status gyre_##name##_on(gyre_comm *comm, parameters, gyre_stream stream) \
    {                                                                             \
        struct gy_call it = call;                                                 \
        return run_on(__func__, comm, &it, stream);                               \
    }

#include "api/collective_calls.inc"

gyre_status gyre_barrier_on(gyre_comm *comm, gyre_stream stream)
{
    const struct gy_call call = {.collective = GY_BARRIER, .dtype = GYRE_INT32};
    return run_on(__func__, comm, &call, stream);
}

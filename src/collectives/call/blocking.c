/* A blocking call: its short path, or a request. */
#include "collectives/call/blocking.h"

#include <stdio.h>

#include "collectives/call/dispatch.h"
#include "collectives/call/launch.h"
#include "collectives/call/prepare.h"
#include "collectives/call/shm_blocking.h"
#include "collectives/engine/progress.h"
#include "collectives/select/selector.h"
#include "collectives/shm/autotune.h"

/* The request path, which takes every call that has no shorter path. */
static gyre_status run_request(struct gyre_comm *comm, const struct gy_call *call)
{
    struct gyre_request *request;
    gyre_status status;
    bool alone = !comm->ctx->active_first;
    status = alone ? gy_request_make(comm, call, &request) : gy_request_start(comm, call, &request);
    if (status != GYRE_SUCCESS || (alone && gy_shm_blocking_run(request, &status)))
        return status;
    if (alone)
        gy_request_launch(request);
    gy_wait(request);
    status = request->status;
    bool uniform = request->completion != 0;
    gy_request_recycle(request);
    if (status != GYRE_SUCCESS || !comm->verify)
        return status;
    gyre_status settled = comm->ctx->up->settle(comm);
    return uniform ? status : settled; /* all ranks saw success: the next call reports the failure */
}

gyre_status gy_run(struct gyre_comm *comm, const struct gy_call *call)
{
    gyre_status status;
    if (comm->ctx->closed) { /* closed by an earlier call of gyre's own: no progress from here on */
        comm->ctx->up->refuse(comm);
        return comm->ctx->error.status;
    }
    if (comm->ended.status != GYRE_SUCCESS)
        return comm->ctx->up->refuse(comm);
    if (gy_path_run(gy_path_of(comm, call), comm, call, &status))
        return status;
    gy_tuner_begin(comm);
    status = run_request(comm, call);
    gy_tuner_end(comm, status == GYRE_SUCCESS);
    return status;
}

gyre_status gy_run_own(struct gyre_comm *comm, const struct gy_call *call)
{
    struct gy_call own = *call;
    own.unforced = gy_select_forces(comm, call->collective); /* without a forced choice the short paths are open */
    const gyre_status status = gy_run(comm, &own);
    gy_report_shortage(comm, status);
    return status;
}

void gy_report_shortage(const struct gyre_comm *comm, gyre_status status)
{
    const struct gy_context *ctx = comm->ctx;
    const bool is_shortage = status == GYRE_NO_MEMORY || status == GYRE_NO_DESCRIPTORS || status == GYRE_SYSTEM;
    if (!is_shortage || ctx->closed)
        return;
    char text[512];
    snprintf(text, sizeof(text), "rank %d: %.490s", ctx->world->rank, comm->error.text);
    gy_overlay_report(ctx->overlay, status, ctx->world->rank, text);
}

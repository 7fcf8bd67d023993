/* A blocking call, by the shortest way there is. */
#include "collectives/call/blocking.h"

#include "collectives/call/call_cache_inline.h"
#include "collectives/call/eager_call.h"
#include "collectives/call/launch.h"
#include "collectives/call/prepare.h"
#include "collectives/call/shm_blocking.h"
#include "collectives/engine/progress.h"
#include "collectives/link/eager_exchange.h"
#include "collectives/link/eager_message.h"
#include "collectives/select/selector.h"
#include "collectives/shm/autotune.h"

/* What has no shorter way. */
static gyre_status run_long(struct gyre_comm *comm, const struct gy_call *call)
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
    return uniform ? status : settled; /* all have been told of its success: what is wrong, the next call says */
}

gyre_status gy_run(struct gyre_comm *comm, const struct gy_call *call)
{
    gyre_status status;
    if (comm->ctx->closed) { /* since the one before, of several that gyre itself makes: nothing would move this one */
        comm->ctx->up->refuse(comm);
        return comm->ctx->error.status;
    }
    if (comm->ended.status != GYRE_SUCCESS)
        return comm->ctx->up->refuse(comm);
    if (gy_is_point_to_point(call->collective)
            ? gy_message_call(comm, call, &status)
            : gy_eager_call(comm, call, &status) || gy_eager_exchange_call(comm, call, &status) ||
                  gy_shm_blocking_call(comm, call, &status) || gy_shm_blocking_rooted(comm, call, &status))
        return status;
    gy_tuner_begin(comm);
    status = run_long(comm, call);
    gy_tuner_end(comm, status == GYRE_SUCCESS);
    return status;
}

gyre_status gy_run_own(struct gyre_comm *comm, const struct gy_call *call)
{
    struct gy_call own = *call;
    own.unforced = gy_select_forces(comm, call->collective); /* where nothing is, it may go the short ways */
    return gy_run(comm, &own);
}

bool gy_call_cache_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    const struct gy_cached_call *cached = &comm->call_cache[call->collective];
    if (cached->what == GY_CACHED_EXCHANGE)
        return gy_call_cache_exchange(comm, call, status_p);
    return gy_call_is_cached(comm, cached, call) && !comm->ctx->active_first && cached->direct(comm, call, status_p);
}

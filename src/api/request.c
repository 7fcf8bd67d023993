/* test, wait, wait_all, progress. */
#include "api/check.h"
#include "core/clock.h"

/* No request ends with it: the mark of one that its owner has collected. Whoever kept a second copy of the handle finds
 * it until the memory serves another request. */
#define COLLECTED GYRE_INVALID_ARGUMENT

static gyre_status take(gyre_request **request)
{
    gyre_request *r = *request;
    bool kept = r->comm; /* on the free list; else it is freed */
    gyre_status status = r->status;
    *request = NULL;
    gy_request_recycle(r);
    if (kept)
        r->status = COLLECTED;
    return status;
}

/* Turns the context once; the caller is inside. */
static gyre_status progress(gyre_comm *comm)
{
    gyre_status status = gy_check_comm(comm);
    if (status != GYRE_SUCCESS)
        return status;
    gy_progress(comm->ctx);
    int64_t now = gy_now();
    if (now - comm->ctx->turned > GY_MILLISECOND / 5)
        gy_turn(comm->ctx, now);
    return comm->ctx->closed ? comm->ctx->error.status : GYRE_SUCCESS;
}

gyre_status gyre_test(gyre_request **request)
{
    if (!request)
        return GYRE_INVALID_ARGUMENT;
    if (!*request)
        return GYRE_SUCCESS;
    if ((*request)->complete && (*request)->status == COLLECTED)
        return GYRE_INVALID_ARGUMENT;
    struct gyre_comm *comm = (*request)->comm;
    if (!comm) /* it ended with its communicator */
        return take(request);
    gy_driver_enter(comm->ctx);
    gyre_status status = (*request)->complete ? GYRE_SUCCESS : progress(comm);
    if (status != GYRE_FORKED)
        status = (*request)->complete ? take(request) : GYRE_IN_PROGRESS;
    gy_driver_leave(comm->ctx);
    return status;
}

gyre_status gyre_wait(gyre_request **request)
{
    if (!request)
        return GYRE_INVALID_ARGUMENT;
    if (!*request)
        return GYRE_SUCCESS;
    if ((*request)->complete && (*request)->status == COLLECTED)
        return GYRE_INVALID_ARGUMENT;
    struct gyre_comm *comm = (*request)->comm;
    if (!comm)
        return take(request);
    gy_driver_enter(comm->ctx);
    gyre_status status = (*request)->complete ? GYRE_SUCCESS : gy_check_comm(comm);
    if (status != GYRE_FORKED) {
        gy_wait(*request);
        status = take(request);
    }
    gy_driver_leave(comm->ctx);
    return status;
}

gyre_status gyre_wait_all(gyre_request **requests, size_t count)
{
    if (count > 0 && !requests)
        return GYRE_INVALID_ARGUMENT;
    gyre_status first = GYRE_SUCCESS;
    for (size_t i = 0; i < count; i++) {
        gyre_status status = gyre_wait(&requests[i]);
        if (first == GYRE_SUCCESS)
            first = status;
    }
    return first;
}

gyre_status gyre_progress(gyre_comm *comm)
{
    if (!comm)
        return GYRE_INVALID_ARGUMENT;
    gy_driver_enter(comm->ctx);
    gyre_status status = progress(comm);
    gy_driver_leave(comm->ctx);
    return status;
}

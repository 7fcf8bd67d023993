/* Failures and recovery: the public calls. The work is in collectives/lifecycle/shrink.c. */
#include <stdio.h>

#include "api/check.h"
#include "collectives/lifecycle/agree.h"
#include "collectives/lifecycle/grow.h"
#include "collectives/lifecycle/shrink.h"

gyre_status gyre_comm_revoke(gyre_comm *comm)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (comm->ctx->generation != atomic_load(&gy_fork_generation))
        return GYRE_FORKED; /* from any thread: the message is the parent's */
    char text[80];
    snprintf(text, sizeof(text), "rank %d revoked the communicator", comm->ctx->world->rank);
    gy_overlay_call_off(comm->ctx->overlay, GYRE_REVOKED, text);
    return GYRE_SUCCESS;
}

gyre_status gyre_comm_agree(gyre_comm *comm, uint64_t bits, uint64_t *bits_p)
{
    if (!gy_check_lives(comm, __func__) || !gy_check_ungrouped(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!bits_p)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_comm_agree: bits_p is NULL");
    gyre_status status = gy_check_owner(comm);
    if (status != GYRE_SUCCESS)
        return status;
    gy_progress_enter(comm->ctx);
    status = gy_agree(comm, bits, bits_p);
    gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_comm_shrink(gyre_comm *comm, gyre_comm **comm_p)
{
    if (!gy_check_lives(comm, __func__) || !gy_check_ungrouped(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!comm_p)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_comm_shrink: comm_p is NULL");
    gyre_status status = gy_check_owner(comm);
    if (status != GYRE_SUCCESS)
        return status;
    gy_progress_enter(comm->ctx);
    status = gy_shrink(comm, comm_p);
    gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_comm_grow(gyre_comm *comm, int joiners, double seconds, gyre_comm **comm_p)
{
    if (!gy_check_lives(comm, __func__) || !gy_check_ungrouped(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!comm_p)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_comm_grow: comm_p is NULL");
    gyre_status status = gy_check_owner(comm);
    if (status != GYRE_SUCCESS)
        return status;
    gy_progress_enter(comm->ctx);
    status = gy_grow(comm, joiners, seconds, comm_p);
    gy_progress_leave(comm->ctx);
    return status;
}

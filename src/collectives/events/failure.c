/* The failure of a world: the error of each communicator, and the end of what was in flight. */
#include "collectives/events/failure.h"

#include <stdio.h>
#include <string.h>

#include "collectives/comm/status_page.h"
#include "collectives/engine/call_check.h"
#include "collectives/engine/request.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "collectives/rma/window.h"
#include "core/log.h"

/* Adds the transport by which this rank reached the failed one: the report names the rank, but only this rank knows
 * its own connection. */
static void add_way(const struct gy_context *ctx, struct gy_error *error)
{
    int rank = error->rank;
    char way[160] = "";
    if (rank < 0 || rank >= ctx->world->size || !ctx->peers[rank].link)
        return;
    const struct gy_transport_ops *ops = ctx->ops[ctx->peers[rank].transport];
    ops->describe(ctx->peers[rank].link, way, sizeof(way));
    size_t used = strlen(error->text);
    if (way[0] && !strstr(error->text, way))
        snprintf(error->text + used, sizeof(error->text) - used, "; its link here: %s, %s", ops->name, way);
}

/* Writes what this rank was doing on the communicator: a request, a blocked one-sided call, or what `what` says
 * already. Returns the world's rank for which it waited; -1: none. */
static int say_where(const struct gyre_comm *comm, const struct gyre_request *r, char *what, size_t bytes)
{
    const struct gy_one_sided_wait *wait = gy_one_sided_wait_of(comm);
    if (r) {
        char shape[180];
        gy_shape_print(&r->shape, shape, sizeof(shape));
        snprintf(what, bytes, "in %s", shape);
        return r->waiting_for >= 0 ? gy_group_world(&comm->group, r->waiting_for) : -1;
    }
    if (!wait)
        return -1;
    snprintf(what, bytes, "in %s of window %u", wait->call, wait->window);
    return wait->world;
}

void gy_failure_spread(struct gy_context *ctx)
{
    add_way(ctx, &ctx->error);
    gy_page_fail(ctx);
    if (ctx->error.status == GYRE_PEER_LEFT && gy_uniform_pending(ctx)) /* their end is decided by all ranks */
        gy_overlay_report(ctx->overlay, GYRE_PEER_LEFT, ctx->error.rank, ctx->error.text);
    else if (ctx->error.status == GYRE_PEER_LEFT) /* before links end: ranks that wait for this one learn why */
        gy_overlay_leave(ctx->overlay, ctx->error.rank);
    for (int t = 0; t < ctx->transports; t++)
        ctx->ops[t]->close(ctx->instance[t]);
    gy_windows_withdraw(ctx);
    for (struct gyre_comm *comm = ctx->comms; comm; comm = comm->next) {
        struct gyre_request *r = ctx->active_first;
        while (r && r->comm != comm)
            r = r->next;
        char what[200] = "between two operations";
        int awaited = say_where(comm, r, what, sizeof(what));
        if (!comm->refused) {
            comm->error = ctx->error;
            if (awaited >= 0)
                snprintf(comm->error.text, sizeof(comm->error.text), "%.700s; rank %d was %s, waiting for rank %d",
                         ctx->error.text, ctx->world->rank, what, awaited);
            else
                snprintf(comm->error.text, sizeof(comm->error.text), "%.700s; rank %d was %s", ctx->error.text,
                         ctx->world->rank, what);
        }
    }
    struct gyre_request *next;
    for (struct gyre_request *r = ctx->active_first; r; r = next) {
        next = r->next;
        if (!gy_uniform_decides(r)) /* the end of those for which it does is decided by agreement */
            gy_request_finish(r, ctx->error.status);
    }
    if (gy_log_enabled(GY_LOG_INFO))
        for (struct gyre_comm *comm = ctx->comms; comm; comm = comm->next)
            (void)gy_recorder_dump(&comm->recorder, comm->rank, 2);
}

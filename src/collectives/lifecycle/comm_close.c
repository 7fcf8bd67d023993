/* Destroys communicators: comm_close.h. */
#include "collectives/lifecycle/comm_close.h"

#include <stdio.h>

#include "collectives/engine/progress.h"
#include "collectives/lifecycle/comm_open.h"
#include "collectives/lifecycle/comm_teardown.h"
#include "collectives/lifecycle/context_open.h"
#include "collectives/lifecycle/result_check.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "core/clock.h"

void gy_comm_close(struct gyre_comm *comm)
{
    struct gy_context *ctx = comm->ctx;
    gy_progress_enter(ctx);
    if (!gy_comm_end_settle(comm)) {
        /* Peers wait for data that will never come, and links still point into the caller's buffers. */
        char text[80]; /* if the world has failed already, survivors lose nothing with this rank */
        snprintf(text, sizeof(text), "rank %d aborted the communicator", ctx->world->rank);
        gy_overlay_call_off(ctx->overlay, GYRE_ABORTED, text);
        gy_progress_slow(ctx, gy_now());
    }
    if (ctx->closed)
        gy_uniform_leave(comm);
    gy_verify_settle(comm); /* peers compare results with ours, too */
    gy_overlay_read(ctx->overlay);
    gy_comm_free(comm);
    bool last = !ctx->comms;
    gy_progress_leave(ctx);
    if (last)
        gy_context_free(ctx);
}

/* Requests: made, launched, started again, collected. */
#include "collectives/call/launch.h"

#include <string.h>

#include "collectives/call/eager_call.h"
#include "collectives/call/eager_fit.h"
#include "collectives/call/eager_progress.h"
#include "collectives/call/eager_start.h"
#include "collectives/call/prepare.h"
#include "collectives/link/flow_control.h"
#include "collectives/shm/eager.h"
#include "collectives/shm/zero_copy.h"
#include "core/clock.h"
#include "core/handle.h"
#include "core/mem.h"

static struct gyre_request *request_take(struct gy_context *ctx)
{
    struct gyre_request *r = ctx->idle;
    if (r) {
        ctx->idle = r->next;
    } else {
        r = gy_alloc(sizeof(*r));
        if (r) {
            gy_handle_add(r, GY_HANDLE_REQUEST);
            r->next_made = ctx->made;
            ctx->made = r;
        }
    }
    if (r) /* the lanes are most of the request: a start clears those of the schedule */
        memset(r, 0, offsetof(struct gyre_request, lane));
    return r;
}

/* Checks the early frames of peers, which carry the shape of their call. Returns false if a shape differs. */
static bool check_early(struct gyre_request *r)
{
    if (r->schedule->shape.collective == GY_SEND_TO) /* the peer's frame of this number belongs to another message */
        return true;
    bool message = gy_is_point_to_point(r->schedule->shape.collective);
    int first = message ? r->schedule->shape.root : 0, end = message ? first + 1 : r->comm->size;
    for (int peer = first; peer < end; peer++) { /* other peers use the same message numbers */
        struct gy_channel *channel = r->comm->channels[peer];
        struct gy_stashed *early = channel ? gy_channel_any(channel, r->shape.sequence) : NULL;
        if (early && !gy_flow_fits(r, peer, &early->frame))
            return false;
    }
    return true;
}

/* The number of the operation: counted per communicator, or per direction for messages between two ranks. */
static uint64_t next_sequence(struct gyre_request *r)
{
    enum gy_collective collective = r->schedule->shape.collective;
    if (!gy_is_point_to_point(collective))
        return ++r->comm->sequence;
    struct gy_channel *channel = r->comm->channels[r->schedule->shape.root];
    return GY_POINT_TO_POINT | (collective == GY_SEND_TO ? ++channel->sent : ++channel->received);
}

void gy_request_enlist(struct gyre_request *r)
{
    gy_request_list(r);
    if (!check_early(r))
        gy_context_fail(r->comm->ctx);
}

/* Launches a request: from here on the peers see it. */
void gy_request_launch(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    struct gy_context *ctx = comm->ctx;
    r->shape.sequence = next_sequence(r);
    r->eager = r->schedule->shm && gy_eager_fits(comm, &r->shape, r->element);
    if (r->eager) { /* now: numbers are in the order of the launches, the same everywhere */
        r->kind = gy_exchange_kind_of(comm, &r->shape, r->element);
        r->exchange = gy_exchange_of(comm, &r->kind, &r->shape, ++comm->inline_started, r->input, r->output);
        r->eager_next = r->kind.awaited.first;
    }
    struct gyre_page_record *record = gy_recorder_begin(&comm->recorder, &r->shape);
    gy_recorder_note(record, gy_now());
    r->record = record->serial;
    comm->recorder.page->bytes += r->in.total * r->element;
    if (r->schedule->shm)
        comm->recorder.page->window_bytes += r->in.total * r->element;
    gy_request_rewind(r);
    if (r->schedule->shape.collective == GY_SEND_TO && r->lane[0].eager)
        r->ticket = comm->channels[r->schedule->shape.root]->tickets++;
    if (r->staged.memory)
        gy_prepare_stage(r);
    gy_mapped_offer(r);
    if (comm->ended.status != GYRE_SUCCESS) /* the communicator ended while this call looked for a shorter path */
        r->phase = GY_DETACHES;
    if (comm->verify || comm->attributes.uniform)
        ctx->up->launched(r);
    gy_request_list(r);
    if (comm->region_reserved && !gy_is_point_to_point(r->schedule->shape.collective))
        gy_request_publish_signature(comm);
    if (!check_early(r)) /* now: the next progress would take those frames for this operation's */
        gy_context_fail(ctx);
    if (r->eager && !ctx->closed)
        gy_eager_show(comm);
    if (!r->complete && !ctx->closed && !(gy_request_is_linked(r) && ctx->active - ctx->queued > GY_AT_ONCE))
        ctx->up->advance(r);
    if (!r->complete) /* a sleeping thread has not armed a wake-up for this request */
        gy_progress_wake(ctx);
}

gyre_status gy_request_make(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p)
{
    struct gy_context *ctx = comm->ctx;
    struct gyre_request *r = request_take(ctx);
    if (!r)
        return gy_error_set(&comm->error, GYRE_NO_MEMORY, -1, "out of memory for a request");
    gyre_status status = gy_prepare(r, comm, call);
    if (status != GYRE_SUCCESS) {
        gy_request_rest(ctx, r);
        return status;
    }
    *request_p = r;
    return GYRE_SUCCESS;
}

gyre_status gy_request_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p)
{
    if (gy_eager_start(comm, call, request_p))
        return GYRE_SUCCESS;
    gyre_status status = gy_request_make(comm, call, request_p);
    if (status == GYRE_SUCCESS)
        gy_request_launch(*request_p);
    return status;
}

gyre_status gy_request_keep(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p)
{
    gyre_status status = gy_request_make(comm, call, request_p);
    if (status != GYRE_SUCCESS)
        return status;
    struct gyre_request *r = *request_p;
    r->persistent = true;
    (void)gy_recorder_provide(&comm->recorder); /* so that its starts allocate nothing */
    gy_request_set_complete(r, GYRE_SUCCESS);
    return GYRE_SUCCESS;
}

void gy_request_restart(struct gyre_request *r)
{
    r->launched = true;
    if (gy_eager_restart(r))
        return;
    gy_request_reset(r);
    gy_request_launch(r);
}

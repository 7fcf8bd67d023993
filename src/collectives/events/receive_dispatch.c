/* The receive handler of every link: finds the request of a frame, and the place of its payload.
 *
 *   frame ──▶ awaited by a blocking call (eager_message.c, eager_exchange.c)? ──▶ consumed
 *         ──▶ of the world (PING, PONG), of a window (rma/window.h), else of a channel of its communicator:
 *               DATA    the lane waits for it ──▶ consumed at once; else, if it is eager ──▶ stashed
 *               GRANT   the lane sends there ──▶ continues; else kept until it does
 *               WANT    answered with the grant that was missed, if there is one
 *               CREDIT  returned to the channel
 *
 * No frame is trusted. A frame that was never allowed is an error that names the peer, and one of another operation
 * than this rank's a mismatch. A payload in pieces is placed before it counts (place), and counts when it is
 * complete (arrived), in memory that no other frame uses meanwhile. */
#include <stddef.h>
#include <string.h>

#include "collectives/engine/call_check.h"
#include "collectives/engine/lane.h"
#include "collectives/engine/liveness.h"
#include "collectives/engine/request.h"
#include "collectives/events/stall_detector.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "collectives/link/eager_message.h"
#include "collectives/link/flow_control.h"
#include "collectives/rma/window.h"

/* `peer` is a rank of the world here and where frames come in, elsewhere of the communicator. */
static gyre_status protocol(struct gy_context *ctx, int peer, const char *what)
{
    gy_error_set(&ctx->error, GYRE_PROTOCOL, peer, "rank %d sent %s; do all ranks run the same gyre?", peer, what);
    gy_overlay_report(ctx->overlay, GYRE_PROTOCOL, peer, ctx->error.text);
    return GYRE_PROTOCOL;
}

/* This rank is out of memory: the frame is lost, and with it the world. */
static gyre_status no_memory(struct gy_context *ctx, int peer)
{
    int own = ctx->world->rank;
    gy_error_set(&ctx->error, GYRE_NO_MEMORY, own, "rank %d has no memory for what rank %d sends", own, peer);
    gy_overlay_report(ctx->overlay, GYRE_NO_MEMORY, own, ctx->error.text);
    return GYRE_NO_MEMORY;
}

static gyre_status comm_protocol(struct gyre_comm *comm, int peer, const char *what)
{
    return protocol(comm->ctx, gy_group_world(&comm->group, peer), what);
}

/* True if the frame is the one for which the lane waits. */
static bool is_next(struct gyre_request *r, int l, int peer, const struct gy_frame *frame)
{
    struct gy_lane_state *lane = &r->lane[l];
    if (lane->exhausted)
        return false;
    const struct gy_step *step = &r->schedule->step[lane->step];
    uint64_t number = lane->pair_base + (uint64_t)lane->round * lane->tiles + lane->tile;
    return step->peer == peer && number == frame->value && gy_needs_met(r, l, step, lane->lane_round, lane->tile) &&
           gy_lane_piece(r, l).count * r->element == frame->bytes;
}

/* The place where the lane waits for the frame; NULL: it does not. A short operand of a reduction has no place but
 * the stash. */
static void *place_now(struct gyre_request *r, int l, int peer, const struct gy_frame *frame)
{
    if (l < 0 || !is_next(r, l, peer, frame) ||
        (!(frame->flags & GY_FRAME_EAGER) && frame->value >= r->lane[l].granted))
        return NULL;
    const struct gy_step *step = &r->schedule->step[r->lane[l].step];
    if (step->kind == GY_RECV_REDUCE)
        return r->landing[l].memory;
    return gy_operand(r, l, step->dst, gy_lane_piece(r, l).start);
}

static void *place_early(struct gyre_comm *comm, int peer, const struct gy_frame *frame)
{
    int world = gy_group_world(&comm->group, peer);
    struct gy_channel *channel = gy_comm_channel(comm, peer);
    unsigned char *memory = NULL;
    if (!channel)
        no_memory(comm->ctx, world);
    else if (!gy_channel_stash(channel, frame, &memory))
        protocol(comm->ctx, world, "more early frames than it had credit for");
    return memory;
}

/* True for a communicator that this rank has destroyed, that has ended, or of which it was no member, and for such a
 * window: numbers are not reused. Later frames for it are dropped. A communicator that has not been made yet cannot
 * be known. */
static bool is_destroyed(const struct gy_context *ctx, struct gyre_comm *comm, const struct gy_frame *frame)
{
    bool one_sided = gy_is_one_sided(frame->kind);
    if (comm)
        return one_sided ? gy_window_is_destroyed(comm, frame->sequence)
                         : frame->kind == GY_FRAME_DATA && comm->ended.status != GYRE_SUCCESS;
    return frame->comm < ctx->next_comm && (one_sided || frame->kind == GY_FRAME_DATA);
}

static void *place_discard(struct gy_context *ctx, int world)
{
    void *discard = gy_context_discard_buffer(ctx, world);
    if (!discard)
        no_memory(ctx, world);
    return discard;
}

/* True if the payload is placed in a window's memory before it is authenticated. Others write to that memory
 * meanwhile, and then its seal would not match. */
static bool is_sealed_put(const struct gy_context *ctx, int world, const struct gy_frame *frame)
{
    return frame->kind == GY_FRAME_PUT && ctx->config.integrity != GY_INTEGRITY_OFF &&
           ctx->ops[ctx->peers[world].transport]->has_descriptor;
}

static void *handler_place(void *user, int world, const struct gy_frame *frame)
{
    struct gy_context *ctx = user;
    struct gyre_comm *comm = gy_comm_find(ctx, frame->comm);
    int peer = comm ? gy_group_rank(&comm->group, world) : -1;
    if (is_destroyed(ctx, comm, frame))
        return place_discard(ctx, world);
    if (peer >= 0 && gy_is_one_sided(frame->kind)) {
        void *memory = NULL;
        gyre_status status = gy_rma_place(comm, peer, frame, &memory);
        if (status == GYRE_NO_MEMORY)
            no_memory(ctx, world);
        else if (status != GYRE_SUCCESS)
            protocol(ctx, world, "one-sided access outside any window");
        return memory && is_sealed_put(ctx, world, frame) ? place_discard(ctx, world) : memory;
    }
    if (peer < 0 || frame->kind != GY_FRAME_DATA) {
        protocol(ctx, world, "data outside any communicator");
        return NULL;
    }
    struct gyre_request *r = gy_request_find(comm, frame->sequence, peer, false);
    if (r && !gy_flow_fits(r, peer, frame))
        return NULL;
    void *memory = r ? place_now(r, gy_flow_lane(r, frame->lane, peer, false), peer, frame) : NULL;
    if (!memory && (frame->flags & GY_FRAME_EAGER))
        return place_early(comm, peer, frame);
    if (!memory)
        protocol(ctx, world, "data that it had no grant for");
    return memory;
}

/* Data for an operation that is complete here: its sender made another call, for instance with itself as root. */
static gyre_status unexpected(struct gyre_comm *comm, int peer, const struct gy_frame *frame)
{
    const struct gyre_page_record *record = gy_recorder_find(&comm->recorder, frame->sequence);
    if (!record)
        return comm_protocol(comm, peer, "data for an operation that ended long ago");
    struct gy_call_signature theirs = {frame->sequence, frame->count, frame->root,     frame->collective,
                                       frame->dtype,    frame->op,    frame->algorithm};
    struct gy_call_signature mine = {record->sequence, record->count, (uint32_t)record->root, record->collective,
                                     record->dtype,    record->op,    record->algorithm};
    gy_mismatch(comm, peer, &theirs, &mine);
    return GYRE_MISMATCH;
}

static gyre_status data_arrived(struct gyre_comm *comm, int peer, const struct gy_frame *frame, const void *payload)
{
    struct gyre_request *r = gy_request_find(comm, frame->sequence, peer, false);
    if (r && !gy_flow_fits(r, peer, frame))
        return GYRE_MISMATCH;
    int l = r ? gy_flow_lane(r, frame->lane, peer, false) : -1;
    if (!(frame->flags & GY_FRAME_EAGER)) {
        if (l < 0 || !is_next(r, l, peer, frame) || frame->value >= r->lane[l].granted)
            return comm_protocol(comm, peer, "data that it had no grant for");
        gy_flow_consume(r, l, payload);
        return GYRE_SUCCESS;
    }
    if (!r && frame->sequence <= comm->sequence)
        return unexpected(comm, peer, frame);
    struct gy_channel *channel = gy_comm_channel(comm, peer);
    if (!channel)
        return no_memory(comm->ctx, gy_group_world(&comm->group, peer));
    struct gy_stashed *stashed = gy_channel_find(channel, frame->sequence, frame->lane, frame->value);
    if (l >= 0 && is_next(r, l, peer, frame)) {
        gy_flow_consume(r, l, payload);
        if (stashed)
            gy_channel_unstash(channel, stashed);
        gy_flow_give_credit(comm, peer, frame);
        return GYRE_SUCCESS;
    }
    if (stashed) { /* it was placed there */
        stashed->whole = true;
        return GYRE_SUCCESS;
    }
    unsigned char *memory;
    stashed = gy_channel_stash(channel, frame, &memory);
    if (!stashed)
        return comm_protocol(comm, peer, "more early frames than it had credit for");
    if (frame->bytes > 0) /* an empty frame has no payload at all */
        memcpy(memory, payload, frame->bytes);
    stashed->whole = true;
    return GYRE_SUCCESS;
}

/* True if this rank has started and completed the operation for which the peer grants data. */
static bool is_over(struct gyre_comm *comm, int peer, uint64_t sequence)
{
    if (!(sequence & GY_POINT_TO_POINT))
        return sequence <= comm->sequence;
    return comm->channels[peer] && (sequence & ~GY_POINT_TO_POINT) <= comm->channels[peer]->sent;
}

/* True if the lane has still to reach a step with the peer. */
static bool comes_to(const struct gyre_request *r, int l, int peer)
{
    const struct gy_lane *lane = &r->schedule->lane[l];
    for (int32_t s = r->lane[l].step + 1; s < lane->first + lane->count; s++)
        if (r->schedule->step[s].peer == peer)
            return true;
    return false;
}

static gyre_status grant_arrived(struct gyre_comm *comm, int peer, const struct gy_frame *frame)
{
    struct gyre_request *r = gy_request_find(comm, frame->sequence, peer, true);
    if (r && !gy_flow_fits(r, peer, frame))
        return GYRE_MISMATCH;
    if (!r && is_over(comm, peer, frame->sequence))
        return GYRE_SUCCESS; /* a repeated grant for what is complete */
    int l = r ? gy_flow_lane(r, frame->lane, peer, true) : -1;
    struct gy_lane_state *lane = l >= 0 ? &r->lane[l] : NULL;
    if (lane && !lane->exhausted && r->schedule->step[lane->step].peer == peer) {
        if (frame->value > lane->granted)
            lane->granted = frame->value;
        return GYRE_SUCCESS;
    }
    if (r && (l < 0 || !comes_to(r, l, peer)))
        return GYRE_SUCCESS; /* ... for a step that is over: the grant would stay in one of the channel's few places */
    struct gy_channel *channel = gy_comm_channel(comm, peer);
    if (channel)
        gy_channel_keep_grant(channel, frame->sequence, frame->lane, frame->value);
    return GYRE_SUCCESS;
}

static gyre_status want_arrived(struct gyre_comm *comm, int peer, const struct gy_frame *frame)
{
    struct gyre_request *r = gy_request_find(comm, frame->sequence, peer, false);
    if (!r)
        return GYRE_SUCCESS; /* the grant is sent when this rank enters */
    if (!gy_flow_fits(r, peer, frame))
        return GYRE_MISMATCH;
    int l = gy_flow_lane(r, frame->lane, peer, false);
    struct gy_lane_state *lane = l >= 0 ? &r->lane[l] : NULL;
    if (lane && !lane->exhausted && r->schedule->step[lane->step].peer == peer && lane->granted > frame->value)
        gy_flow_control(r, l, peer, GY_FRAME_GRANT, lane->granted); /* one that is still queued has the same effect */
    return GYRE_SUCCESS;
}

static gyre_status credit_arrived(struct gyre_comm *comm, int peer, unsigned use, uint64_t value)
{
    struct gy_channel *channel = gy_comm_channel(comm, peer);
    struct gy_credit *credit = channel && use < GY_CREDIT_USES ? &channel->credit[use] : NULL;
    if (!credit || value > gy_credit_most((enum gy_credit_use)use) - credit->left)
        return comm_protocol(comm, peer, "more credit than there is");
    credit->left += (unsigned)value;
    return GYRE_SUCCESS;
}

/* True if a blocking call without a request waits for the frame, see eager_message.c. */
static bool is_awaited(const struct gy_awaited *awaited, int world, const struct gy_frame *frame)
{
    return awaited && !awaited->arrived && awaited->peer == world &&
           gy_frame_equal(&awaited->frame, frame, offsetof(struct gy_frame, credit));
}

static gyre_status take_awaited(struct gy_awaited *awaited, const struct gy_frame *frame, const void *payload)
{
    struct gyre_comm *comm = awaited->comm;
    struct gy_channel *channel = comm->channels[awaited->rank];
    if (frame->credit > 0 &&
        credit_arrived(comm, awaited->rank, gy_credit_use_of(frame->sequence), frame->credit) != GYRE_SUCCESS)
        return GYRE_PROTOCOL;
    gy_awaited_take(awaited, payload);
    if (gy_channel_holds(channel, payload)) /* it came in pieces, and was placed there */
        gy_channel_unstash(channel, gy_channel_find(channel, frame->sequence, frame->lane, frame->value));
    awaited->arrived = true;
    if (!(frame->sequence & GY_POINT_TO_POINT) && frame->sequence > channel->entered)
        channel->entered = frame->sequence;
    gy_flow_give_credit(comm, awaited->rank, frame);
    return GYRE_SUCCESS;
}

static gyre_status uniform_arrived(struct gyre_comm *comm, int peer, const struct gy_frame *frame)
{
    struct gy_channel *channel = gy_comm_channel(comm, peer);
    if (!channel)
        return no_memory(comm->ctx, gy_group_world(&comm->group, peer));
    gy_uniform_heard(channel, frame->value);
    return GYRE_SUCCESS;
}

static gyre_status handler_arrived(void *user, int world, const struct gy_frame *frame, const void *payload)
{
    struct gy_context *ctx = user;
    ctx->peers[world].heard = 0; /* the clock is read lazily: stall_detector.c */
    ctx->peers[world].met = true;
    if (is_awaited(ctx->awaited, world, frame))
        return take_awaited(ctx->awaited, frame, payload);
    if (frame->epoch != ctx->world->epoch)
        return GYRE_SUCCESS;
    if (frame->kind == GY_FRAME_PING)
        return gy_liveness_ping(ctx, world, frame), GYRE_SUCCESS;
    if (frame->kind == GY_FRAME_PONG)
        return gy_liveness_pong(ctx, world, frame), GYRE_SUCCESS;
    struct gyre_comm *comm = gy_comm_find(ctx, frame->comm);
    if (is_destroyed(ctx, comm, frame) && gy_is_one_sided(frame->kind))
        return gy_liveness_disown(ctx, world, frame), GYRE_SUCCESS; /* a rank that asks for something is not to wait
                                                                     * for it */
    if (!comm)
        return GYRE_SUCCESS;
    int peer = gy_group_rank(&comm->group, world);
    if (peer < 0)
        return protocol(ctx, world, "a frame on a communicator that it does not belong to");
    if (gy_is_one_sided(frame->kind))
        return gy_rma_arrived(comm, peer, frame, payload) ? GYRE_SUCCESS
                                                          : protocol(ctx, world, "one-sided access outside any window");
    if (comm->ended.status != GYRE_SUCCESS)
        return GYRE_SUCCESS;
    struct gy_channel *from = gy_comm_channel(comm, peer);
    if (from && !(frame->sequence & GY_POINT_TO_POINT) && frame->sequence > from->entered)
        from->entered = frame->sequence;
    if (frame->kind == GY_FRAME_DATA && frame->credit > 0 &&
        credit_arrived(comm, peer, gy_credit_use_of(frame->sequence), frame->credit) != GYRE_SUCCESS)
        return GYRE_PROTOCOL;
    switch (frame->kind) {
    case GY_FRAME_DATA: return data_arrived(comm, peer, frame, payload);
    case GY_FRAME_GRANT: return grant_arrived(comm, peer, frame);
    case GY_FRAME_WANT: return want_arrived(comm, peer, frame);
    case GY_FRAME_CREDIT: return credit_arrived(comm, peer, frame->lane, frame->value);
    case GY_FRAME_UNIFORM: return uniform_arrived(comm, peer, frame);
    default: return protocol(ctx, world, "a frame of an unknown kind");
    }
}

static void handler_broken(void *user, int peer, const struct gy_error *error)
{
    struct gy_context *ctx = user;
    if (ctx->peers[peer].broken)
        return;
    ctx->peers[peer].broken = -1; /* the next slow progress sets its time */
    ctx->peers[peer].why = *error;
}

const struct gy_receive_handler gy_flow_handler = {
    .place = handler_place, .arrived = handler_arrived, .broken = handler_broken};

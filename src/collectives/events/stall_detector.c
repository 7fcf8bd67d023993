/* The stall and arrival clocks. Dead ranks are detected by the overlay; here are ranks that live and make no
 * progress.
 *
 *   has the awaited rank entered the operation?
 *     no:  it may be computing: legal until GYRE_TIMEOUT, with one log line a minute              -> PEER_LATE
 *     yes: does it show signs of life inside gyre (heartbeat in shared memory, answer to a ping)?
 *            yes: it waits itself for another rank, which that wait will detect
 *            no:  for GYRE_STALL_TIMEOUT                                                          -> PEER_STALLED
 *
 * The first limit is longer by half, and by at most GY_GRACE, for a rank that shows life inside gyre, or cannot
 * because it has not made its side of the link. Such a rank may itself wait, in an earlier operation, for the late
 * one. A rank that waits for the late one directly is to name it first, even on a machine that gives it a core late.
 * The first limit also holds if only the awaited rank's confirmation is missing (uniform_completion.h), for it has
 * done its part. */
#include "collectives/events/stall_detector.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "collectives/call/executor.h"
#include "collectives/engine/call_check.h"
#include "collectives/engine/liveness.h"
#include "collectives/lifecycle/comm_teardown.h"
#include "collectives/link/flow_control.h"
#include "collectives/rma/window.h"
#include "core/clock.h"
#include "core/log.h"

#define GY_RING_POLLS 64 /* more than a ring holds */
#define GY_TELL_EVERY (60 * GY_SECOND)
#define GY_GRACE (30 * GY_SECOND)

static void post_ping(struct gy_context *ctx, const struct gyre_request *r, int peer)
{
    struct gy_peer *p = &ctx->peers[peer];
    if (!p->link || p->ping.queued || p->broken)
        return;
    gy_frame_fill(r, &p->ping.header, GY_FRAME_PING, 0, gy_group_rank(&r->comm->group, peer));
    p->ping.payload = NULL;
    gy_context_post(ctx, peer, &p->ping);
}

/* False if the peer's call differs from this rank's. One side of a message or of a step may wait for a grant that
 * the other, whose call makes it eager, will never send. */
static bool fits_ping(struct gyre_comm *comm, int peer, const struct gy_frame *ping)
{
    int rank = gy_group_rank(&comm->group, peer);
    if (rank < 0)
        return true;
    struct gyre_request *r = gy_request_find(comm, ping->sequence, rank, ping->root != (uint32_t)rank);
    return !r || gy_flow_fits(r, rank, ping);
}

/* True if the question is about a window, and not about an operation: gy_liveness_ask. */
static bool asks_about_window(struct gyre_comm *comm, const struct gy_frame *ping)
{
    return ping->sequence == 0 && gy_window_is_destroyed(comm, ping->count);
}

static uint64_t pong_value(struct gyre_comm *comm, const struct gy_frame *ping)
{
    if (!comm)
        return GY_PONG_DESTROYED;
    if (ping->sequence == 0) /* of a window, which outlives an end that is not its owner's */
        return asks_about_window(comm, ping) ? GY_PONG_WITHDRAWN : comm->sequence;
    return comm->ended.status != GYRE_SUCCESS ? GY_PONG_ENDED : comm->sequence;
}

/* Answers when this rank is inside gyre, for only then is this code running. */
void gy_liveness_ping(struct gy_context *ctx, int peer, const struct gy_frame *ping)
{
    struct gy_peer *p = &ctx->peers[peer];
    struct gyre_comm *comm = gy_comm_find(ctx, ping->comm);
    if ((comm && !fits_ping(comm, peer, ping)) || !p->link || p->pong.queued)
        return;
    p->pong.header = *ping;
    p->pong.header.kind = GY_FRAME_PONG;
    p->pong.header.value = pong_value(comm, ping);
    p->pong.header.root = (uint32_t)(comm && comm->ended.status != GYRE_SUCCESS ? comm->ended.rank : ctx->world->rank);
    p->pong.payload = NULL;
    gy_context_post(ctx, peer, &p->pong);
}

void gy_liveness_pong(struct gy_context *ctx, int peer, const struct gy_frame *pong)
{
    struct gyre_comm *comm = gy_comm_find(ctx, pong->comm);
    int rank = comm ? gy_group_rank(&comm->group, peer) : -1;
    struct gy_channel *channel = rank >= 0 ? gy_comm_channel(comm, rank) : NULL;
    if (!channel)
        return;
    int cause = pong->root < (uint32_t)ctx->world->size ? (int)pong->root : peer;
    if (pong->value == GY_PONG_DESTROYED) {
        gy_comm_end_heard(comm, rank, cause, true);
        gy_windows_give_up(comm, rank, 0);
    } else if (pong->value == GY_PONG_ENDED) {
        gy_comm_end_heard(comm, rank, cause, false);
    } else if (pong->value == GY_PONG_WITHDRAWN) {
        gy_windows_give_up(comm, rank, pong->count);
    } else if (pong->value > channel->entered) {
        channel->entered = pong->value;
    }
}

static bool has_entered(struct gyre_request *r, int rank)
{
    const struct gyre_comm *comm = r->comm;
    if (gy_is_point_to_point(r->schedule->shape.collective)) /* some data of it has arrived, or been granted */
        return r->lane[0].iteration > 0 || (r->schedule->shape.collective == GY_SEND_TO && r->lane[0].granted > 0);
    if (comm->region >= 0 &&
        atomic_load_explicit(&comm->control[rank]->entered, memory_order_acquire) >= r->shape.sequence)
        return true; /* it shows few at a time; a frame may have shown a later one */
    struct gy_channel *channel = comm->channels[rank];
    return channel && channel->entered >= r->shape.sequence;
}

/* The time when `peer` last showed that it runs inside gyre. */
static int64_t last_heard(struct gy_context *ctx, int peer, int64_t now)
{
    struct gy_peer *p = &ctx->peers[peer];
    const struct gy_world *world = ctx->world;
    if (gy_liveness_is_seen(ctx, peer)) {
        uint64_t beat = atomic_load_explicit(&gy_segment_rank(ctx->segment, world->members[peer].local)->heartbeat,
                                             memory_order_relaxed);
        if (beat != p->heartbeat) {
            p->heartbeat = beat;
            p->heard = now;
            p->met = true;
        }
    }
    if (p->heard == 0)
        p->heard = now;
    return p->heard;
}

static void fail_world(struct gy_context *ctx, gyre_status status, int peer, const char *text)
{
    gy_error_set(&ctx->error, status, peer, "%s", text);
    gy_overlay_report(ctx->overlay, status, peer, text);
}

static void find_late(struct gyre_request *r, int peer)
{
    char what[160], text[480];
    double seconds = (double)r->comm->attributes.timeout_ns / 1e9;
    gy_shape_print(&r->shape, what, sizeof(what));
    snprintf(text, sizeof(text), "rank %d did not %s %s within %g s (GYRE_TIMEOUT)", peer,
             r->phase != GY_MOVES ? "come to the end of" : "arrive in", what, seconds);
    fail_world(r->comm->ctx, GYRE_PEER_LATE, peer, text);
}

static void find_stalled(struct gyre_request *r, int peer, double seconds)
{
    char what[160], text[480];
    gy_shape_print(&r->shape, what, sizeof(what));
    snprintf(text, sizeof(text), "rank %d entered %s and has not moved for %.0f s (GYRE_STALL_TIMEOUT); is it stopped?",
             peer, what, seconds);
    fail_world(r->comm->ctx, GYRE_PEER_STALLED, peer, text);
}

/* Reads all that has arrived by the link: the peer's state in shared memory may be ahead of it. */
static void take_all(struct gy_context *ctx, int peer)
{
    const struct gy_peer *p = &ctx->peers[peer];
    for (int i = 0; i < GY_RING_POLLS && p->link && !p->broken && !ctx->closed; i++)
        if (!ctx->ops[p->transport]->progress(p->link))
            break;
}

/* A rank that left in order may have sent all that this operation needs: its data is read to the end first. */
static bool has_nothing_more(struct gyre_request *r, int rank, int64_t now)
{
    struct gy_context *ctx = r->comm->ctx;
    int peer = gy_group_world(&r->comm->group, rank);
    if (!gy_overlay_has_left(ctx->overlay, peer) && gy_comm_end_cause(r->comm, rank) >= 0) {
        if (now - r->idle_since <= GY_LEFT_GRACE)
            return false;
        take_all(ctx, peer);
        return true;
    }
    return gy_liveness_has_gone(ctx, peer, r->schedule->shm, r->idle_since, now);
}

/* The rank has left, and data that this operation needs of it has not arrived. */
static void tell_left(struct gyre_request *r, int rank, int peer)
{
    struct gy_context *ctx = r->comm->ctx;
    bool left = gy_overlay_has_left(ctx->overlay, peer);
    int cause = left ? gy_overlay_left_because(ctx->overlay, peer) : gy_comm_end_cause(r->comm, rank);
    char text[160], sentence[300];
    gy_shape_print(&r->shape, text, sizeof(text));
    if (cause == peer)
        snprintf(sentence, sizeof(sentence), "rank %d destroyed its communicator; %s needs it", peer, text);
    else
        snprintf(sentence, sizeof(sentence),
                 "rank %d destroyed its communicator; because of that rank %d failed, which %s needs", cause, peer,
                 text);
    if (left) /* local: a rank that does not need that one continues */
        gy_error_set(&ctx->error, GYRE_PEER_LEFT, cause, "%s", sentence);
    else
        gy_comm_end(r->comm, GYRE_PEER_LEFT, cause, sentence);
}

/* The rank is there, and has been awaited since `idle_since`: decides if it is late, or stopped. */
static void check_clocks(struct gyre_request *r, int rank, int peer, int64_t now)
{
    struct gy_context *ctx = r->comm->ctx;
    int64_t waited = now - r->idle_since, heard = last_heard(ctx, peer, now);
    if (r->phase != GY_MOVES || !has_entered(r, rank)) {
        int64_t timeout = r->comm->attributes.timeout_ns;
        int64_t grace = timeout / 2 < GY_GRACE ? timeout / 2 : GY_GRACE;
        bool alive = !ctx->peers[peer].met || now - heard <= 2 * gy_liveness_interval(ctx);
        if (waited > timeout + (alive ? grace : 0)) {
            find_late(r, peer);
        } else if (now - r->told > GY_TELL_EVERY) {
            r->told = now;
            gy_log(GY_LOG_WARN, "waiting for rank %d to %s operation %" PRIu64 " for %.0f s", peer,
                   r->phase != GY_MOVES ? "come to the end of" : "arrive in", r->shape.sequence, (double)waited / 1e9);
        }
    } else if (waited > ctx->config.stall_timeout_ns && now - heard > ctx->config.stall_timeout_ns) {
        find_stalled(r, peer, (double)(now - heard) / 1e9);
    }
}

/* Checks the clocks of `r` towards one rank for which it waits. Returns false if data of it came; `r` may be gone. */
static bool check_peer(struct gyre_request *r, const int *missed, int64_t now, bool ask)
{
    struct gy_context *ctx = r->comm->ctx;
    int rank = *missed;
    if (rank < 0)
        return true;
    int peer = gy_group_world(&r->comm->group, rank);
    if (r->idle_since == 0)
        r->idle_since = r->told = now;
    if (rank == r->comm->rank) { /* a message to itself, of which it has called one end only */
        if (now - r->idle_since > r->comm->attributes.timeout_ns)
            find_late(r, peer);
        return ctx->error.status == GYRE_SUCCESS;
    }
    if (r->phase != GY_DETACHES && has_nothing_more(r, rank, now)) {
        /* The last data may have arrived in this very progress call, before the end, and have been consumed by the
         * link itself: now the request waits for another rank, if any. */
        if (!r->comm->ctx->up->advance(r) && *missed == rank)
            tell_left(r, rank, peer);
        return false;
    }
    if (r->comm->region_reserved && !(r->shape.sequence & GY_POINT_TO_POINT) &&
        !gy_signature_compare(r->comm, r->shape.sequence, rank))
        return false;
    if (now - r->idle_since > GY_CONNECT_AFTER)
        gy_overlay_connect_on_demand(ctx->overlay, peer);
    if (now - r->idle_since < gy_liveness_interval(ctx))
        return true;
    if (ask)
        post_ping(ctx, r, peer);
    check_clocks(r, rank, peer, now);
    return ctx->error.status == GYRE_SUCCESS;
}

/* Each lane may wait for another rank. The rank that blocks all may be awaited by one lane only: its other victims
 * wait for one another, each of them alive. */
static void check_request(struct gyre_request *r, int64_t now)
{
    if (r->waiting_for < 0)
        return;
    bool ask = now - r->asked > gy_liveness_interval(r->comm->ctx);
    if (ask && r->idle_since && now - r->idle_since >= gy_liveness_interval(r->comm->ctx))
        r->asked = now;
    if (r->eager || r->phase != GY_MOVES) {
        check_peer(r, &r->waiting_for, now, ask);
        return;
    }
    for (int l = 0; l < r->schedule->lanes; l++) {
        if (!check_peer(r, &r->lane[l].waiting_for, now, ask))
            return;
    }
}

/* The end of a link does not show the cause. The peer may have died, may have left, or may have closed its links
 * because it learned of another rank's death before this rank did. All three are reported over the overlay, sooner
 * or later, since the ranks that forward reports may be computing. Only if no report comes for as long as the loss
 * of a host may take, the link itself has broken. Any other reason (nonsense on the link, no descriptors) is the
 * link's own, and only this rank knows it. */
static void check_broken(struct gy_context *ctx, int64_t now)
{
    for (int i = 0; i < ctx->links; i++) {
        int peer = ctx->linked[i];
        struct gy_peer *p = &ctx->peers[peer];
        if (p->broken == 0 || gy_overlay_has_left(ctx->overlay, peer))
            continue;
        if (p->broken < 0)
            p->broken = now;
        if (p->why.status == GYRE_PEER_UNREACHABLE && now - p->broken < ctx->config.peer_timeout_ns)
            continue;
        char text[400];
        snprintf(text, sizeof(text), "the link to rank %d broke: %.300s", peer, p->why.text);
        fail_world(ctx, p->why.status, peer, text);
    }
}

void gy_liveness_check(struct gy_context *ctx, int64_t now)
{
    gy_liveness_show(ctx);
    gy_comm_end_check(ctx);
    check_broken(ctx, now);
    struct gyre_request *next;
    for (struct gyre_request *r = ctx->active_first; r && ctx->error.status == GYRE_SUCCESS; r = next) {
        next = r->next; /* the check may complete `r`, which then is on another list */
        check_request(r, now);
    }
}

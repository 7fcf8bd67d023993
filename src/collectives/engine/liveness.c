/* Liveness between ranks: heartbeats, unasked messages, and questions. Stopped and late ranks are found by
 * events/stall_detector.c. */
#include "collectives/engine/liveness.h"

#include "core/clock.h"

#define GY_AWAY (100 * GY_MILLISECOND) /* twice the longest sleep: a longer pause means that this rank did not run */
#define GY_LEFT_CONNECTED (5 * GY_SECOND)

int64_t gy_liveness_interval(const struct gy_context *ctx)
{
    return ctx->config.stall_timeout_ns / 4 < GY_SECOND ? ctx->config.stall_timeout_ns / 4 : GY_SECOND;
}

/* True if the peer's heartbeat is visible to this rank, and this rank's to the peer. */
bool gy_liveness_is_seen(const struct gy_context *ctx, int peer)
{
    const struct gy_world *world = ctx->world;
    return ctx->segment && world->members[peer].host == world->members[world->rank].host;
}

/* The first question comes soon, each next one after twice as long, up to the interval of a collective. */
void gy_liveness_ask(struct gyre_comm *comm, uint32_t window, int rank, int64_t since, int64_t now, int64_t *asked)
{
    struct gy_context *ctx = comm->ctx;
    int world = gy_group_world(&comm->group, rank);
    struct gy_peer *p = &ctx->peers[world];
    int64_t pause = *asked - since > GY_CONNECT_AFTER ? *asked - since : GY_CONNECT_AFTER;
    if (now - *asked < (pause < gy_liveness_interval(ctx) ? pause : gy_liveness_interval(ctx)))
        return;
    *asked = now;
    if (!p->link || p->ping.queued || p->broken)
        return;
    p->ping.header = (struct gy_frame){
        .kind = GY_FRAME_PING, .epoch = ctx->world->epoch, .comm = comm->id, .count = window};
    p->ping.payload = NULL;
    gy_context_post(ctx, world, &p->ping);
}

/* A frame that is dropped because another answer is in flight will be asked for. */
void gy_liveness_disown(struct gy_context *ctx, int peer, const struct gy_frame *frame)
{
    struct gy_peer *p = &ctx->peers[peer];
    if (!p->link || p->pong.queued || p->broken)
        return;
    p->pong.header = (struct gy_frame){.kind = GY_FRAME_PONG,
                                       .epoch = ctx->world->epoch,
                                       .comm = frame->comm,
                                       .count = frame->sequence,
                                       .root = (uint32_t)ctx->world->rank,
                                       .value = gy_comm_find(ctx, frame->comm) ? GY_PONG_WITHDRAWN : GY_PONG_DESTROYED};
    p->pong.payload = NULL;
    gy_context_post(ctx, peer, &p->pong);
}

bool gy_liveness_has_gone(struct gy_context *ctx, int peer, bool by_memory, int64_t since, int64_t now)
{
    struct gy_peer *p = &ctx->peers[peer];
    bool has_descriptor = !by_memory && ctx->ops[p->transport]->has_descriptor;
    if (!gy_overlay_has_left(ctx->overlay, peer))
        return false;
    if (p->left == 0)
        p->left = now;
    if (p->left > since)
        since = p->left;
    return (has_descriptor && p->broken != 0) || now - since > (has_descriptor ? GY_LEFT_CONNECTED : GY_LEFT_GRACE);
}

void gy_liveness_restart(struct gy_context *ctx, int64_t now)
{
    int64_t away = now - ctx->progressed_at - GY_AWAY;
    if (ctx->progressed_at == 0 || away <= 0)
        return;
    for (struct gyre_request *r = ctx->active_first; r; r = r->next)
        if (r->idle_since) {
            r->idle_since += away;
            r->told += away;
        }
    for (int p = 0; p < ctx->world->size; p++)
        if (ctx->peers[p].heard)
            ctx->peers[p].heard += away;
}

void gy_liveness_show(struct gy_context *ctx)
{
    if (ctx->segment)
        atomic_fetch_add_explicit(&gy_segment_rank(ctx->segment, ctx->world->local)->heartbeat, 1,
                                  memory_order_relaxed);
}

void gy_liveness_call(struct gyre_comm *comm, int64_t now)
{
    struct gy_context *ctx = comm->ctx;
    if (ctx->called != 0 && now - ctx->called < gy_liveness_interval(ctx))
        return;
    ctx->called = now;
    for (int i = 0; i < ctx->links; i++) {
        struct gy_peer *p = &ctx->peers[ctx->linked[i]];
        if (gy_liveness_is_seen(ctx, ctx->linked[i]) || p->broken || p->pong.queued)
            continue;
        p->pong.header = (struct gy_frame){
            .kind = GY_FRAME_PONG, .epoch = ctx->world->epoch, .comm = comm->id, .value = comm->sequence};
        p->pong.payload = NULL;
        gy_context_post(ctx, ctx->linked[i], &p->pong);
    }
}

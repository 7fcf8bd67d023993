#include "collectives/comm/context.h"

#include <string.h>

#include "collectives/comm/channel.h"
#include "core/mem.h"
#include "transport/link.h"

_Atomic uint64_t gy_fork_generation = 1;

gyre_status gy_context_link(struct gy_context *ctx, int peer, struct gy_link **link_p)
{
    struct gy_peer *p = &ctx->peers[peer];
    if (!p->link) {
        gyre_status status = ctx->ops[p->transport]->link(ctx->instance[p->transport], peer, &p->link, &ctx->error);
        if (status != GYRE_SUCCESS) {
            p->link = NULL;
            return status;
        }
        ctx->linked[ctx->links++] = peer;
        ctx->remote |= ctx->ops[p->transport]->has_descriptor;
    }
    *link_p = p->link;
    return GYRE_SUCCESS;
}

void gy_context_post(struct gy_context *ctx, int peer, struct gy_frame_out *frame)
{
    struct gy_peer *p = &ctx->peers[peer];
    frame->done = false;
    frame->queued = false;
    frame->sent = 0;
    frame->next = NULL;
    ctx->ops[p->transport]->post(p->link, frame);
}

void gy_context_register(struct gy_context *ctx, const void *memory, size_t bytes)
{
    for (int t = 0; t < ctx->transports; t++)
        ctx->ops[t]->register_memory(ctx->instance[t], memory, bytes);
}

void gy_context_unregister(struct gy_context *ctx, const void *memory)
{
    for (int t = 0; t < ctx->transports; t++)
        ctx->ops[t]->unregister_memory(ctx->instance[t], memory);
}

void gy_context_fail(struct gy_context *ctx)
{
    if (ctx->closed)
        return;
    ctx->closed = true;
    ctx->up->failed(ctx);
}

void gy_context_free_later(struct gy_context *ctx, struct gy_channel *channel)
{
    if (!channel || !gy_channel_queued(channel)) {
        gy_channel_free(channel);
        return;
    }
    channel->next = ctx->deferred;
    ctx->deferred = channel;
}

void gy_context_no_memory(struct gy_context *ctx, int peer)
{
    int own = ctx->world->rank;
    gy_error_set(&ctx->error, GYRE_NO_MEMORY, own, "rank %d has no memory for what is under way to or from rank %d",
                 own, peer);
    gy_overlay_report(ctx->overlay, GYRE_NO_MEMORY, own, ctx->error.text);
    gy_context_fail(ctx);
}

void *gy_context_discard_buffer(struct gy_context *ctx, int peer)
{
    struct gy_peer *p = &ctx->peers[peer];
    if (!p->discard)
        p->discard = gy_alloc_aligned(64, GY_FRAME_MAX);
    return p->discard;
}

/* Applies only to frames whose place came from the receive handler of communicators. */
static bool is_of(const struct gy_frame *frame, uint32_t comm, uint64_t window)
{
    bool one_sided = gy_is_one_sided(frame->kind), data = frame->kind == GY_FRAME_DATA;
    if (frame->comm != comm)
        return false;
    return window == 0 ? one_sided || data : window == GY_BUT_WINDOWS ? data : one_sided && frame->sequence == window;
}

void gy_context_take_back(struct gy_context *ctx, uint32_t comm, uint64_t window)
{
    for (int i = 0; i < ctx->links && !ctx->closed; i++) {
        int peer = ctx->linked[i];
        struct gy_link *link = ctx->peers[peer].link;
        if (!link->inbound.active || link->inbound.dropped || !is_of(&link->inbound.frame, comm, window))
            continue;
        unsigned char *discard = gy_context_discard_buffer(ctx, peer);
        if (discard)
            gy_link_inbound_drop(link, discard);
        else
            gy_context_no_memory(ctx, peer);
    }
}

/* Sizes are rounded up to powers of two, so that a thousand counts use a handful of buffers. */
static int power_of(size_t bytes)
{
    int power = 12;
    while (power < GY_BUFFER_POWERS && (size_t)1 << power < bytes)
        power++;
    return power;
}

bool gy_context_buffers_wait(const struct gy_context *ctx, size_t bytes, int count)
{
    int power = power_of(bytes);
    void *memory = power < GY_BUFFER_POWERS ? ctx->kept[power] : NULL;
    for (; memory && count > 1; count--)
        memcpy(&memory, memory, sizeof(void *));
    return memory != NULL;
}

void *gy_context_buffer_take(struct gy_context *ctx, size_t bytes, size_t *bytes_p)
{
    int power = power_of(bytes);
    if (power == GY_BUFFER_POWERS)
        return NULL;
    void *memory = ctx->kept[power];
    if (memory)
        memcpy(&ctx->kept[power], memory, sizeof(void *));
    else
        memory = gy_alloc_aligned(64, (size_t)1 << power);
    if (memory)
        *bytes_p = (size_t)1 << power;
    return memory;
}

void gy_context_buffer_give(struct gy_context *ctx, void *memory, size_t bytes)
{
    int power = __builtin_ctzll(bytes);
    memcpy(memory, &ctx->kept[power], sizeof(void *));
    ctx->kept[power] = memory;
}

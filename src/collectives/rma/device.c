/* One-sided access by a transport whose device reaches the target's memory. The target's processor takes no part, so
 * a put, a get and their flush complete even while the target computes.
 *
 * Puts and gets only. An accumulation excludes those of every other rank, also of the target and of its host's
 * ranks, which reduce with the processor. A device's atomics (fetch and add of 64 bits) exclude only those of other
 * devices, so additions would be lost. A signal has to wake a waiting rank, which a silent write does not. Both stay
 * messages.
 *
 * Order: accesses of one rank to one target happen in the order of its calls. A get or put does not wait for
 * accumulations of this rank that the target has not processed yet, since they are messages: until a flush has
 * completed them, it follows them as a message. If the peer has several devices, none of which knows what the others
 * have written, puts are settled before any other access. */
#include "collectives/rma/window.h"

bool gy_window_by_device(const struct gyre_window *window, int target)
{
    return window->targets[target].rma_key.rails > 0 && !window->targets[target].reduced;
}

static bool is_done(const void *what)
{
    const struct gy_access *access = what;
    return access->done;
}

static gyre_status access_target(struct gyre_window *window, struct gy_access *access, int target, const char *call)
{
    struct gy_context *ctx = window->comm->ctx;
    struct gy_link *link;
    gyre_status status = gy_context_link(ctx, gy_group_world(&window->comm->group, target), &link);
    if (status == GYRE_SUCCESS && gy_window_has_lost(window, target))
        return gy_window_tell_lost(window, target); /* its device would refuse, which would end the link */
    if (status != GYRE_SUCCESS)
        return gy_error_set(&window->comm->error, status, -1, "%.900s", ctx->error.text);
    access->key = &window->targets[target].rma_key;
    ctx->ops[window->carrier]->access(link, access);
    /* On failure the world is closed, and with it the link that holds the access. */
    return gy_window_until(window, is_done, access, target, call);
}

gyre_status gy_window_settle(struct gyre_window *window, int target)
{
    struct gy_access access = {.kind = GY_ACCESS_FLUSH};
    return window->targets[target].rma_key.rails > 0 ? access_target(window, &access, target, "a flush") : GYRE_SUCCESS;
}

gyre_status gy_window_settle_between(struct gyre_window *window, int target)
{
    return window->targets[target].rma_key.rails > 1 ? gy_window_settle(window, target) : GYRE_SUCCESS;
}

gyre_status gy_device_put(struct gyre_window *window, const unsigned char *source, size_t bytes, int target,
                          size_t offset)
{
    struct gy_access access = {
        .kind = GY_ACCESS_PUT, .offset = offset, .memory = (unsigned char *)(uintptr_t)source, .bytes = bytes};
    return bytes > 0 ? access_target(window, &access, target, "a put") : GYRE_SUCCESS;
}

gyre_status gy_device_get(struct gyre_window *window, unsigned char *destination, size_t bytes, int target,
                          size_t offset)
{
    struct gy_access access = {.kind = GY_ACCESS_GET, .offset = offset, .bytes = bytes};
    access.memory = destination;
    if (bytes == 0)
        return GYRE_SUCCESS;
    gyre_status status = gy_window_settle_between(window, target);
    return status == GYRE_SUCCESS ? access_target(window, &access, target, "a get") : status;
}

/* Exposes the memory to the first transport that reaches a member and has such a device: there is at most one. Each
 * transport is tried once: memory that a device cannot register for one member it cannot register for another. */
void gy_window_expose_to_devices(struct gyre_window *window, struct gy_rma_key *key_p)
{
    struct gyre_comm *comm = window->comm;
    struct gy_context *ctx = comm->ctx;
    unsigned asked = 0;
    *key_p = (struct gy_rma_key){0};
    for (int r = 0; r < comm->size && !window->exposed; r++) {
        int carrier = ctx->peers[gy_group_world(&comm->group, r)].transport;
        if (r == comm->rank || (asked >> carrier & 1))
            continue;
        asked |= 1u << carrier;
        window->carrier = carrier;
        window->exposed = ctx->ops[carrier]->expose(ctx->instance[carrier], window->memory, window->bytes, key_p);
    }
}

/* Stores the target's key. Both ends have to be ready, and connected by this transport. */
void gy_window_take_key(struct gyre_window *window, int target, const struct gy_rma_key *key)
{
    struct gyre_comm *comm = window->comm;
    int carrier = comm->ctx->peers[gy_group_world(&comm->group, target)].transport;
    if (window->exposed && carrier == window->carrier && key->rails <= GY_RMA_KEYS)
        window->targets[target].rma_key = *key;
}

void gy_window_conceal_from_devices(struct gyre_window *window)
{
    struct gy_context *ctx = window->comm->ctx;
    if (window->exposed && window->carrier < ctx->transports) /* a forked child has none */
        ctx->ops[window->carrier]->conceal(ctx->instance[window->carrier], window->exposed);
    window->exposed = NULL;
}

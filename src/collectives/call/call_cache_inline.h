/* The entries of the call cache (call_cache.h), and the part of a cached call that is compiled into each
 * collective's own function. There the arguments are compared in the registers that pass them. Nothing is written to
 * memory until the call is known to differ. */
#ifndef GY_COLLECTIVES_CALL_CALL_CACHE_INLINE_H
#define GY_COLLECTIVES_CALL_CALL_CACHE_INLINE_H

#include "collectives/call/call_cache.h"
#include "collectives/shm/eager.h"

struct gy_cached_call {
    enum gy_path path; /* GY_PATH_NONE: the entry is empty */
    gyre_dtype dtype;
    gyre_op op;
    int root;
    size_t count;
    size_t input_bytes, output_bytes;
    bool has_buffers, in_place; /* both are required; they may be the same */
    struct gy_owned owned;      /* what that prefetches for writing */
    struct gy_exchange_kind kind;
    struct gy_call_signature shape;
    struct gy_exchange exchange;
};

/* Compares all fields without a branch: they are equal most often. */
static inline bool gy_call_cache_is_like(const struct gy_cached_call *cached, const struct gy_call *call)
{
    bool differs = (cached->count != call->count) | (cached->dtype != call->dtype) | (cached->op != call->op) |
                   (cached->root != call->root) | call->varying;
    return cached->path != GY_PATH_NONE && !differs;
}

static inline bool gy_call_cache_has_buffers(const struct gy_cached_call *cached, const struct gy_call *call)
{
    const void *in = call->input, *out = call->output;
    bool there = (in && out) || !cached->has_buffers;
    return there && (gy_buffers_lie_apart(in, cached->input_bytes, out, cached->output_bytes) ||
                     (in == out && cached->in_place));
}

/* True if nothing has failed. A failure is left to the path of a first call, which finds and reports it. */
static inline bool gy_call_cache_is_usual(const struct gy_context *ctx)
{
    return ctx->generation == atomic_load_explicit(&gy_fork_generation, memory_order_relaxed) && !ctx->closed &&
           ctx->idle && gy_overlay_is_quiet(ctx->overlay);
}

static inline bool gy_call_is_cached(const struct gyre_comm *comm, const struct gy_cached_call *cached,
                                     const struct gy_call *call)
{
    return gy_call_cache_is_like(cached, call) && gy_call_cache_has_buffers(cached, call) &&
           gy_call_cache_is_usual(comm->ctx);
}

/* Prefetches for writing what the next exchange writes first, before anything else: peers may hold those lines. */
static inline struct gy_exchange *gy_call_cache_next(struct gyre_comm *comm, struct gy_cached_call *cached)
{
    cached->exchange.number = comm->inline_started + 1;
    gy_exchange_fetch_owned(&cached->exchange, cached->owned);
    return &cached->exchange;
}

/* Returns the cached exchange of the call, with its buffers; NULL if none is cached for it. */
static inline struct gy_exchange *gy_call_cache_take(struct gyre_comm *comm, struct gy_cached_call *cached,
                                                     const struct gy_call *call)
{
    if (cached->path != GY_PATH_EAGER)
        return NULL;
    struct gy_exchange *it = gy_call_cache_next(comm, cached);
    if (!gy_call_is_cached(comm, cached, call))
        return NULL;
    it->input = call->input;
    it->output = call->output;
    return it;
}

/* gy_call_cache_call for an exchange only. */
static inline bool gy_call_cache_exchange(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    struct gy_cached_call *cached = &comm->call_cache[call->collective];
    struct gy_exchange *it = gy_call_cache_take(comm, cached, call);
    if (!it || comm->ctx->active_first)
        return false;
    *status_p = gy_eager_exchange(it, &cached->shape);
    return true;
}

/* The same for a start. */
static inline bool gy_call_cache_start(struct gyre_comm *comm, const struct gy_call *call,
                                       struct gyre_request **request_p)
{
    struct gy_cached_call *cached = &comm->call_cache[call->collective];
    struct gy_exchange *it = comm->size > 1 ? gy_call_cache_take(comm, cached, call)
                                            : NULL; /* a rank alone has no queue */
    if (!it)
        return false;
    *request_p = gy_eager_begin(it, &cached->shape);
    return true;
}

#endif

/* What is kept of a call for those like it (call_cache.h), and the part of a repeat that is compiled into each collective's own function: there
 * its arguments are compared in the registers in which they came, and no call is written to memory before it is found to be another one. */
#ifndef GY_COLLECTIVES_CALL_CALL_CACHE_INLINE_H
#define GY_COLLECTIVES_CALL_CALL_CACHE_INLINE_H

#include "collectives/call/call_cache.h"
#include "collectives/shm/eager.h"

struct gy_repeat {
    enum { GY_KEPT_NOTHING, GY_KEPT_EXCHANGE, GY_KEPT_DIRECT } what;
    gyre_dtype dtype;
    gyre_op op;
    int root;
    size_t count;
    size_t input_bytes, output_bytes;
    bool has_buffers, in_place; /* both must be there; they may be the same */
    gy_repeat_func direct;      /* what does it, unless it is an exchange */
    struct gy_owned owned;      /* what that fetches for writing */
    struct gy_exchange_kind kind;
    struct gy_arrival shape;
    struct gy_exchange exchange;
};

/* All of it is compared at once: it is equal most often. */
static inline bool gy_repeat_is_like(const struct gy_repeat *repeat, const struct gy_call *call)
{
    bool differs = (repeat->count != call->count) | (repeat->dtype != call->dtype) | (repeat->op != call->op) |
                   (repeat->root != call->root) | call->varying;
    return repeat->what != GY_KEPT_NOTHING && !differs;
}

static inline bool gy_repeat_has_buffers(const struct gy_repeat *repeat, const struct gy_call *call)
{
    const void *in = call->input, *out = call->output;
    bool there = (in && out) || !repeat->has_buffers;
    return there && (gy_buffers_lie_apart(in, repeat->input_bytes, out, repeat->output_bytes) ||
                     (in == out && repeat->in_place));
}

/* Whatever has failed is found again, and told, by who looks at a first call. */
static inline bool gy_repeat_is_usual(const struct gy_context *ctx)
{
    return ctx->generation == atomic_load_explicit(&gy_fork_generation, memory_order_relaxed) && !ctx->closed &&
           ctx->idle && gy_overlay_is_quiet(ctx->overlay);
}

static inline bool gy_is_repeat(const struct gyre_comm *comm, const struct gy_repeat *repeat,
                                const struct gy_call *call)
{
    return gy_repeat_is_like(repeat, call) && gy_repeat_has_buffers(repeat, call) && gy_repeat_is_usual(comm->ctx);
}

/* What the next exchange writes first is fetched before anything else: a peer may have to give lines up. */
static inline struct gy_exchange *gy_repeat_next(struct gyre_comm *comm, struct gy_repeat *repeat)
{
    repeat->exchange.number = comm->inline_started + 1;
    gy_exchange_fetch_owned(&repeat->exchange, repeat->owned);
    return &repeat->exchange;
}

/* Of what the call repeats, with its buffers; NULL: it is no exchange that has been kept. */
static inline struct gy_exchange *gy_repeat_take(struct gyre_comm *comm, struct gy_repeat *repeat,
                                                 const struct gy_call *call)
{
    if (repeat->what != GY_KEPT_EXCHANGE)
        return NULL;
    struct gy_exchange *it = gy_repeat_next(comm, repeat);
    if (!gy_is_repeat(comm, repeat, call))
        return NULL;
    it->input = call->input;
    it->output = call->output;
    return it;
}

/* gy_repeat_call of an exchange alone. */
static inline bool gy_repeat_exchange(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    struct gy_repeat *repeat = &comm->repeats[call->collective];
    struct gy_exchange *it = gy_repeat_take(comm, repeat, call);
    if (!it || comm->ctx->active_first)
        return false;
    *status_p = gy_tiny_exchange(it, &repeat->shape);
    return true;
}

/* The same of a start. */
static inline bool gy_repeat_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p)
{
    struct gy_repeat *repeat = &comm->repeats[call->collective];
    struct gy_exchange *it = comm->size > 1 ? gy_repeat_take(comm, repeat, call)
                                            : NULL; /* alone there is no queue for it */
    if (!it)
        return false;
    *request_p = gy_tiny_begin(it, &repeat->shape);
    return true;
}

#endif

/* What is kept, and why it is right: repeat.h. */
#include "collectives/repeat.h"

#include "collectives/exchange.h"
#include "core/mem.h"

struct gy_repeat {
    enum { NOTHING, EXCHANGE, DIRECT } what;
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

struct gy_repeat *gy_repeat_make(void)
{
    return gy_alloc_zero(GY_COLLECTIVES, sizeof(struct gy_repeat));
}

void gy_repeat_forget(struct gyre_comm *comm)
{
    for (int c = 0; c < GY_COLLECTIVES; c++)
        comm->repeats[c].what = NOTHING;
}

/* Where the buffers of a gather or scatter lie is another thing on the root, and they are always looked at. */
static struct gy_repeat *keep(struct gyre_comm *comm, const struct gy_call *call)
{
    enum gy_collective collective = call->collective;
    struct gy_repeat *repeat = &comm->repeats[collective];
    size_t block = call->count * gy_dtype_bytes(call->dtype), all = block * (size_t)comm->size;
    bool scatters = collective == GY_REDUCE_SCATTER || collective == GY_ALL_TO_ALL,
         gathers = collective == GY_ALL_GATHER || collective == GY_ALL_TO_ALL;
    *repeat = (struct gy_repeat){.dtype = call->dtype,
                                 .op = call->op,
                                 .root = call->root,
                                 .count = call->count,
                                 .input_bytes = scatters ? all : block,
                                 .output_bytes = gathers ? all : block,
                                 .has_buffers = collective != GY_BARRIER,
                                 .in_place = collective == GY_ALL_REDUCE || collective == GY_BROADCAST ||
                                             collective == GY_REDUCE_TO};
    return repeat;
}

void gy_repeat_keep(struct gyre_comm *comm, const struct gy_call *call, const struct gy_arrival *shape,
                    const struct gy_exchange_kind *kind)
{
    if (call->collective == GY_GATHER_TO || call->collective == GY_SCATTER_FROM)
        return;
    struct gy_repeat *repeat = keep(comm, call);
    repeat->what = EXCHANGE;
    repeat->kind = *kind;
    repeat->shape = *shape;
    repeat->exchange = gy_exchange_of(comm, &repeat->kind, &repeat->shape, 0, NULL, NULL);
    repeat->owned = gy_exchange_owned(&repeat->exchange);
}

void gy_repeat_keep_direct(struct gyre_comm *comm, const struct gy_call *call, gy_repeat_func func)
{
    struct gy_repeat *repeat = keep(comm, call);
    repeat->what = DIRECT;
    repeat->direct = func;
}

/* All of it is compared at once: it is equal most often. */
static bool is_like(const struct gy_repeat *repeat, const struct gy_call *call)
{
    bool differs = (repeat->count != call->count) | (repeat->dtype != call->dtype) | (repeat->op != call->op) |
                   (repeat->root != call->root) | call->varying;
    return repeat->what != NOTHING && !differs;
}

static bool has_usual_buffers(const struct gy_repeat *repeat, const struct gy_call *call)
{
    const void *in = call->input, *out = call->output;
    bool there = (in && out) || !repeat->has_buffers;
    return there && (gy_buffers_lie_apart(in, repeat->input_bytes, out, repeat->output_bytes) ||
                     (in == out && repeat->in_place));
}

/* Whatever has failed is found again, and told, by who looks at a first call. */
static bool is_usual(const struct gy_context *ctx)
{
    return ctx->generation == atomic_load_explicit(&gy_fork_generation, memory_order_relaxed) && !ctx->closed &&
           ctx->idle && gy_overlay_is_quiet(ctx->overlay);
}

/* What the next exchange writes first is fetched before anything else: a peer may have to give lines up. */
static struct gy_exchange *next_exchange(struct gyre_comm *comm, struct gy_repeat *repeat)
{
    repeat->exchange.number = comm->inline_started + 1;
    gy_exchange_fetch_owned(&repeat->exchange, repeat->owned);
    return &repeat->exchange;
}

static bool is_repeat(const struct gyre_comm *comm, const struct gy_repeat *repeat, const struct gy_call *call)
{
    return is_like(repeat, call) && has_usual_buffers(repeat, call) && is_usual(comm->ctx);
}

bool gy_repeat_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    struct gy_repeat *repeat = &comm->repeats[call->collective];
    struct gy_exchange *it = repeat->what == EXCHANGE ? next_exchange(comm, repeat) : NULL;
    if (!is_repeat(comm, repeat, call) || comm->ctx->active_first)
        return false;
    if (!it)
        return repeat->direct(comm, call, status_p);
    it->input = call->input;
    it->output = call->output;
    *status_p = gy_tiny_exchange(it, &repeat->shape);
    return true;
}

bool gy_repeat_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p)
{
    struct gy_repeat *repeat = &comm->repeats[call->collective];
    if (repeat->what != EXCHANGE || comm->size < 2) /* alone there is no queue for it */
        return false;
    struct gy_exchange *it = next_exchange(comm, repeat);
    if (!is_repeat(comm, repeat, call))
        return false;
    it->input = call->input;
    it->output = call->output;
    *request_p = gy_tiny_begin(it, &repeat->shape);
    return true;
}

/* What is kept, and why it is right: repeat.h. */
#include "collectives/repeat.h"

#include "collectives/direct.h"
#include "collectives/exchange.h"

void gy_repeat_keep(struct gyre_comm *comm, const struct gy_exchange *it)
{
    comm->tiny[it->shape->collective].repeat = (struct gy_repeat){
        .what = GY_REPEATS_EXCHANGE, .shape = *it->shape, .block = it->block, .bytes = it->bytes, .word = it->word};
}

void gy_repeat_keep_rooted(struct gyre_comm *comm, const struct gy_call *call, size_t bytes)
{
    comm->tiny[call->collective].repeat = (struct gy_repeat){
        .what = GY_REPEATS_ROOTED, .shape = gy_shape_of(call, GY_DIRECT_ONE_SHOT, comm->size), .block = bytes};
}

static bool is_like(const struct gy_repeat *repeat, const struct gy_call *call)
{
    return repeat->what != GY_REPEATS_NOTHING && repeat->shape.count == call->count &&
           repeat->shape.dtype == (unsigned)call->dtype && repeat->shape.op == (unsigned)call->op &&
           repeat->shape.root == (unsigned)call->root && !call->varying;
}

/* Whatever has failed is found again, and told, by who looks at a first call. */
static bool is_usual(struct gy_context *ctx)
{
    return ctx->generation == atomic_load_explicit(&gy_fork_generation, memory_order_relaxed) && !ctx->closed &&
           !ctx->active_first && ctx->idle && gy_overlay_check(ctx->overlay, &ctx->error) == GYRE_SUCCESS;
}

bool gy_repeat_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    const struct gy_repeat *repeat = &comm->tiny[call->collective].repeat;
    if (!is_like(repeat, call) || !gy_call_has_usual_buffers(call, repeat->block, comm->size) || !is_usual(comm->ctx))
        return false;
    if (repeat->what == GY_REPEATS_ROOTED)
        return gy_direct_root(comm, call, status_p);
    struct gy_arrival shape = repeat->shape;
    struct gy_exchange it = {.comm = comm,
                             .shape = &shape,
                             .block = repeat->block,
                             .bytes = repeat->bytes,
                             .word = repeat->word,
                             .input = call->input,
                             .output = call->output};
    *status_p = gy_tiny_exchange(&it, &shape, call);
    return true;
}

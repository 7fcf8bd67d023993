/* What is kept, and why it is right: repeat.h. */
#include "collectives/repeat.h"

#include "collectives/exchange.h"

/* What a rank reads and writes in a call without lists of counts, at most. */
static void keep_buffers(struct gy_repeat *repeat, int size)
{
    size_t all = repeat->block * (size_t)size;
    switch (repeat->shape.collective) {
    case GY_BARRIER: repeat->input = repeat->output = 0; break;
    case GY_ALL_GATHER: repeat->output = all; break;
    case GY_REDUCE_SCATTER: repeat->input = all; break;
    case GY_ALL_TO_ALL: repeat->input = repeat->output = all; break;
    case GY_ALL_REDUCE:
    case GY_BROADCAST:
    case GY_REDUCE_TO: repeat->in_place = true; break;
    default: repeat->kept = false; /* its buffers are others on the root */
    }
}

void gy_repeat_keep(struct gyre_comm *comm, const struct gy_exchange *it)
{
    struct gy_repeat *repeat = &comm->tiny[it->shape->collective].repeat;
    *repeat = (struct gy_repeat){.kept = true,
                                 .shape = *it->shape,
                                 .block = it->block,
                                 .bytes = it->bytes,
                                 .word = it->word,
                                 .input = it->block,
                                 .output = it->block};
    keep_buffers(repeat, comm->size);
}

static bool is_like(const struct gy_repeat *repeat, const struct gy_call *call)
{
    return repeat->kept && repeat->shape.count == call->count && repeat->shape.dtype == (unsigned)call->dtype &&
           repeat->shape.op == (unsigned)call->op && repeat->shape.root == (unsigned)call->root && !call->varying;
}

/* As the arguments of a first call are looked at, but for what is odd and has to be explained. */
static bool buffers_are_right(const struct gy_repeat *repeat, const struct gy_call *call)
{
    uintptr_t input = (uintptr_t)call->input, output = (uintptr_t)call->output;
    if (repeat->output == 0)
        return repeat->shape.collective == GY_BARRIER;
    if (!input || !output)
        return false;
    return input + repeat->input <= output || output + repeat->output <= input || (repeat->in_place && input == output);
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
    if (!is_like(repeat, call) || !buffers_are_right(repeat, call) || !is_usual(comm->ctx))
        return false;
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

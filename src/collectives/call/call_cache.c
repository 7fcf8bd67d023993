/* What is kept, and why it is right: call_cache.h. */
#include "collectives/call/call_cache_inline.h"

#include "collectives/call/eager_queue.h"
#include "core/mem.h"

/* Of all communicators that keep nothing; never written. */
static struct gy_repeat nothing[GY_COLLECTIVES];

void gy_repeat_init(struct gyre_comm *comm)
{
    comm->repeats = nothing;
}

void gy_repeat_provide(struct gyre_comm *comm)
{
    struct gy_repeat *repeats = gy_alloc_zero(GY_COLLECTIVES, sizeof(*repeats));
    if (repeats)
        comm->repeats = repeats;
}

void gy_repeat_fini(struct gyre_comm *comm)
{
    if (comm->repeats != nothing)
        gy_free(comm->repeats);
}

void gy_repeat_forget(struct gyre_comm *comm)
{
    if (comm->repeats == nothing)
        return;
    for (int c = 0; c < GY_COLLECTIVES; c++)
        comm->repeats[c].what = GY_KEPT_NOTHING;
}

/* Where the buffers of a gather or scatter lie is another thing on the root, and they are always looked at. */
static struct gy_repeat *keep(struct gyre_comm *comm, const struct gy_call *call)
{
    enum gy_collective collective = call->collective;
    struct gy_repeat *repeat = &comm->repeats[collective];
    if (comm->ctx->bundle)
        gy_bundle_keep(comm->ctx->bundle, &repeat->kind);
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
    if (comm->repeats == nothing || call->collective == GY_GATHER_TO || call->collective == GY_SCATTER_FROM)
        return;
    struct gy_repeat *repeat = keep(comm, call);
    repeat->what = GY_KEPT_EXCHANGE;
    repeat->kind = *kind;
    repeat->shape = *shape;
    repeat->exchange = gy_exchange_of(comm, &repeat->kind, &repeat->shape, 0, NULL, NULL);
    repeat->owned = gy_exchange_owned(&repeat->exchange);
}

void gy_repeat_keep_direct(struct gyre_comm *comm, const struct gy_call *call, gy_repeat_func func)
{
    if (comm->repeats == nothing)
        return;
    struct gy_repeat *repeat = keep(comm, call);
    repeat->what = GY_KEPT_DIRECT;
    repeat->direct = func;
}

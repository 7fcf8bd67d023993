/* The call cache: call_cache.h says what is cached and why that is right. */
#include "collectives/call/call_cache_inline.h"

#include "core/mem.h"

/* The cache of all communicators that cache nothing; never written. */
static struct gy_cached_call nothing[GY_COLLECTIVES];

void gy_call_cache_init(struct gyre_comm *comm)
{
    comm->call_cache = nothing;
}

void gy_call_cache_provide(struct gyre_comm *comm)
{
    struct gy_cached_call *call_cache = gy_alloc_zero(GY_COLLECTIVES, sizeof(*call_cache));
    if (call_cache)
        comm->call_cache = call_cache;
}

void gy_call_cache_fini(struct gyre_comm *comm)
{
    if (comm->call_cache != nothing)
        gy_free(comm->call_cache);
}

void gy_call_cache_forget(struct gyre_comm *comm)
{
    if (comm->call_cache == nothing)
        return;
    for (int c = 0; c < GY_COLLECTIVES; c++)
        comm->call_cache[c].path = GY_PATH_NONE;
}

/* Fills an entry. The buffers of a gather or scatter differ on the root, and are always checked. */
static struct gy_cached_call *keep(struct gyre_comm *comm, const struct gy_call *call)
{
    enum gy_collective collective = call->collective;
    struct gy_cached_call *cached = &comm->call_cache[collective];
    size_t block = call->count * gy_dtype_bytes(call->dtype), all = block * (size_t)comm->size;
    bool scatters = collective == GY_REDUCE_SCATTER || collective == GY_ALL_TO_ALL,
         gathers = collective == GY_ALL_GATHER || collective == GY_ALL_TO_ALL;
    *cached = (struct gy_cached_call){.dtype = call->dtype,
                                      .op = call->op,
                                      .root = call->root,
                                      .count = call->count,
                                      .input_bytes = scatters ? all : block,
                                      .output_bytes = gathers ? all : block,
                                      .has_buffers = collective != GY_BARRIER,
                                      .in_place = collective == GY_ALL_REDUCE || collective == GY_BROADCAST ||
                                                  collective == GY_REDUCE_TO};
    return cached;
}

void gy_call_cache_keep(struct gyre_comm *comm, const struct gy_call *call, const struct gy_call_signature *shape,
                        const struct gy_exchange_kind *kind)
{
    if (comm->call_cache == nothing || call->collective == GY_GATHER_TO || call->collective == GY_SCATTER_FROM)
        return;
    struct gy_cached_call *cached = keep(comm, call);
    cached->path = GY_PATH_EAGER;
    cached->kind = *kind;
    cached->shape = *shape;
    cached->exchange = gy_exchange_of(comm, &cached->kind, &cached->shape, 0, NULL, NULL);
    cached->owned = gy_exchange_owned(&cached->exchange);
}

void gy_call_cache_keep_path(struct gyre_comm *comm, const struct gy_call *call, enum gy_path path)
{
    if (comm->call_cache != nothing)
        keep(comm, call)->path = path;
}

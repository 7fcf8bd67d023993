/* core_affinity.h says what this is for. */
#include "collectives/engine/core_affinity.h"

#include <sched.h>

#include "collectives/comm/communicator.h"

void gy_cores_show(const struct gyre_comm *comm)
{
    if (!comm->ctx->oversubscribed)
        return;
    _Atomic uint32_t *shown = &comm->control[comm->rank]->core;
    uint32_t core = 1 + (uint32_t)sched_getcpu(); /* 0: unknown */
    if (atomic_load_explicit(shown, memory_order_relaxed) != core)
        atomic_store_explicit(shown, core, memory_order_relaxed);
}

static _Atomic uint32_t *told_by(const struct gy_context *ctx, int local)
{
    return &gy_segment_rank(ctx->segment, local)->core;
}

void gy_cores_tell(const struct gy_context *ctx)
{
    if (!ctx->segment)
        return;
    _Atomic uint32_t *told = told_by(ctx, ctx->world->local);
    uint32_t core = 1 + (uint32_t)sched_getcpu();
    if (atomic_load_explicit(told, memory_order_relaxed) != core)
        atomic_store_explicit(told, core, memory_order_relaxed);
}

bool gy_cores_shared(const struct gy_context *ctx)
{
    if (!ctx->segment)
        return false;
    gy_cores_tell(ctx);
    uint32_t mine = atomic_load_explicit(told_by(ctx, ctx->world->local), memory_order_relaxed);
    for (int local = 0; local < ctx->world->nlocals; local++) {
        const struct gy_rank_control *other = gy_segment_rank(ctx->segment, local);
        if (local != ctx->world->local && mine != 0 &&
            atomic_load_explicit(&other->core, memory_order_relaxed) == mine &&
            atomic_load_explicit(&other->sleeping, memory_order_relaxed) == 0)
            return true;
    }
    return false;
}

static uint32_t shown_by(const struct gyre_comm *comm, int rank)
{
    return atomic_load_explicit(&comm->control[rank]->core, memory_order_relaxed);
}

bool gy_cores_same(const struct gyre_comm *comm, int rank)
{
    uint32_t mine = shown_by(comm, comm->rank);
    return mine != 0 && mine == shown_by(comm, rank);
}

bool gy_cores_apart(const struct gyre_comm *comm, int rank)
{
    uint32_t mine = shown_by(comm, comm->rank), other = shown_by(comm, rank);
    return mine != 0 && other != 0 && mine != other;
}

/* cores.h says what it is for. */
#include "collectives/cores.h"

#include <sched.h>

#include "collectives/comm.h"

void gy_cores_show(const struct gyre_comm *comm)
{
    if (!comm->ctx->crowded)
        return;
    _Atomic uint32_t *shown = &comm->control[comm->rank]->core;
    uint32_t core = 1 + (uint32_t)sched_getcpu(); /* unknown: 0 */
    if (atomic_load_explicit(shown, memory_order_relaxed) != core)
        atomic_store_explicit(shown, core, memory_order_relaxed);
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

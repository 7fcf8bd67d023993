/* How long a call without a request polls a peer before it becomes one, whose progress serves other requests, too,
 * and receives failures. If ranks share cores, the call yields a number of times, but no longer than until the
 * kernel's next tick. If programs that compute use these cores, too, each yield takes as long as their time slices:
 * 16 yields took half a second, in which this rank received no news of a peer's death. */
#ifndef GY_COLLECTIVES_ENGINE_SPIN_H
#define GY_COLLECTIVES_ENGINE_SPIN_H

#include "collectives/comm/communicator.h"
#include "collectives/engine/core_affinity.h"

#define GY_SPINS 2000             /* polls: tens of microseconds */
#define GY_SPINS_OVERSUBSCRIBED 4 /* if the peer may need this core */
#define GY_SPINS_SHARED 128       /* after each of this many: checks whether the peer needs this core after all */
#define GY_SPINS_APART 70         /* for a peer on another core: as long as a time slice of others on this one */
#define GY_SPIN_YIELDS 16         /* and then at most this many yields */

struct gy_spin {
    const struct gy_context *ctx;
    unsigned spins, yields;
    int64_t since; /* the tick of the first yield; 0: none yet */
};

/* Yields, and returns the remaining policy. By value, so that a caller that never waits keeps it in registers. */
struct gy_spin gy_spin_yield(struct gy_spin spinning);

/* A thread that waits for the lock gets it in a request's progress. */
static inline struct gy_spin gy_spin_of(const struct gy_context *ctx)
{
    return (struct gy_spin){.ctx = ctx,
                            .spins = ctx->oversubscribed ? GY_SPINS_OVERSUBSCRIBED : GY_SPINS,
                            .yields = ctx->oversubscribed && !ctx->progress_lock.held ? GY_SPIN_YIELDS : 0};
}

/* True if ranks share cores, but that rank runs on another one: polling for it costs it nothing. */
static inline bool gy_spin_is_apart(const struct gyre_comm *comm, int rank)
{
    return comm->ctx->oversubscribed && comm->ctx->config.spin_ns != 0 && gy_cores_apart(comm, rank);
}

/* The policy of a rank that waits for that rank alone; -1: for none, or for several, of which one may be on this
 * core. */
static inline struct gy_spin gy_spin_for(const struct gyre_comm *comm, int rank)
{
    struct gy_spin spinning = gy_spin_of(comm->ctx);
    if (rank >= 0 && gy_spin_is_apart(comm, rank))
        spinning.spins = GY_SPINS_APART;
    return spinning;
}

/* Skips the remaining polls if another rank is on this core. */
static inline void gy_spin_check(struct gy_spin *spinning)
{
    if (!gy_cores_shared(spinning->ctx))
        return;
    spinning->spins = 0;
    spinning->yields = spinning->ctx->progress_lock.held ? 0 : GY_SPIN_YIELDS;
}

/* After a poll without success: returns true if another one is worth it. */
static inline bool gy_spin_policy(struct gy_spin *spinning)
{
    if (spinning->spins > 0) {
        spinning->spins--;
        if (spinning->spins % GY_SPINS_SHARED == GY_SPINS_SHARED - 1)
            gy_spin_check(spinning);
        gy_cpu_relax();
        return true;
    }
    if (spinning->yields == 0)
        return false;
    *spinning = gy_spin_yield(*spinning);
    return true;
}

#endif

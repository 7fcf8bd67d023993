/* How long a call that does everything itself looks at a peer before it becomes a request, whose turns serve others, too, and hear
 * of failures. Where ranks share cores others go first, a number of times, but for no longer than until the kernel's next tick: where
 * programs that compute have these cores, too, each time takes as long as their turns do, and 16 of them took half a second in which
 * this rank heard nothing of a peer's death. */
#ifndef GY_COLLECTIVES_ENGINE_SPIN_H
#define GY_COLLECTIVES_ENGINE_SPIN_H

#include "collectives/comm/communicator.h"
#include "collectives/engine/core_affinity.h"

#define GY_SPIN_SPINS 2000       /* looks: tens of microseconds */
#define GY_SPIN_SPINS_CROWDED 4  /* where the peer may need this very core */
#define GY_SPIN_SPINS_SHARED 128 /* after so many, and as many again: does the peer need this core after all? */
#define GY_SPIN_SPINS_APART 70   /* where it runs on another core: as long as a turn of others on this one takes */
#define GY_SPIN_YIELDS 16        /* and then so many times, at most, others go first */

struct gy_spin {
    const struct gy_context *ctx;
    unsigned spins, yields;
    int64_t since; /* the tick in which others went first for the first time; 0: they have not */
};

/* Lets others go first; what is left of the patience then. By value, so that who never waits keeps it in registers. */
struct gy_spin gy_spin_yield(struct gy_spin spinning);

/* A thread that waits for the lock is let in by a request's turns. */
static inline struct gy_spin gy_spin_of(const struct gy_context *ctx)
{
    return (struct gy_spin){.ctx = ctx,
                            .spins = ctx->oversubscribed ? GY_SPIN_SPINS_CROWDED : GY_SPIN_SPINS,
                            .yields = ctx->oversubscribed && !ctx->progress_lock.held ? GY_SPIN_YIELDS : 0};
}

/* Ranks share cores, but not that rank this one's: looking for it takes it nothing. */
static inline bool gy_spin_is_apart(const struct gyre_comm *comm, int rank)
{
    return comm->ctx->oversubscribed && comm->ctx->config.spin_ns != 0 && gy_cores_apart(comm, rank);
}

/* Of who waits for that rank alone; −1: for nobody, or for others as well, of whom one may be on this core. */
static inline struct gy_spin gy_spin_for(const struct gyre_comm *comm, int rank)
{
    struct gy_spin spinning = gy_spin_of(comm->ctx);
    if (rank >= 0 && gy_spin_is_apart(comm, rank))
        spinning.spins = GY_SPIN_SPINS_APART;
    return spinning;
}

/* The rest of the looks is left out where another rank is on this core. */
static inline void gy_spin_check(struct gy_spin *spinning)
{
    if (!gy_cores_shared(spinning->ctx))
        return;
    spinning->spins = 0;
    spinning->yields = spinning->ctx->progress_lock.held ? 0 : GY_SPIN_YIELDS;
}

/* After a look that found nothing: is another one worth it? */
static inline bool gy_spin_policy(struct gy_spin *spinning)
{
    if (spinning->spins > 0) {
        spinning->spins--;
        if (spinning->spins % GY_SPIN_SPINS_SHARED == GY_SPIN_SPINS_SHARED - 1)
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

/* How long a call that does everything itself looks at a peer before it becomes a request, whose turns serve others, too, and hear
 * of failures. Where ranks share cores others go first, a number of times, but for no longer than until the kernel's next tick: where
 * programs that compute have these cores, too, each time takes as long as their turns do, and 16 of them took half a second in which
 * this rank heard nothing of a peer's death. */
#ifndef GY_COLLECTIVES_ENGINE_SPIN_H
#define GY_COLLECTIVES_ENGINE_SPIN_H

#include "collectives/comm/communicator.h"
#include "collectives/engine/core_affinity.h"

#define GY_PATIENT_SPINS 2000       /* looks: tens of microseconds */
#define GY_PATIENT_SPINS_CROWDED 4  /* where the peer may need this very core */
#define GY_PATIENT_SPINS_SHARED 128 /* after so many, and as many again: does the peer need this core after all? */
#define GY_PATIENT_SPINS_APART 70   /* where it runs on another core: as long as a turn of others on this one takes */
#define GY_PATIENT_YIELDS 16        /* and then so many times, at most, others go first */

struct gy_patience {
    const struct gy_context *ctx;
    unsigned spins, yields;
    int64_t since; /* the tick in which others went first for the first time; 0: they have not */
};

/* Lets others go first; what is left of the patience then. By value, so that who never waits keeps it in registers. */
struct gy_patience gy_patience_yield(struct gy_patience patience);

/* A thread that waits for the lock is let in by a request's turns. */
static inline struct gy_patience gy_patience_of(const struct gy_context *ctx)
{
    return (struct gy_patience){.ctx = ctx,
                                .spins = ctx->crowded ? GY_PATIENT_SPINS_CROWDED : GY_PATIENT_SPINS,
                                .yields = ctx->crowded && !ctx->driver.held ? GY_PATIENT_YIELDS : 0};
}

/* Ranks share cores, but not that rank this one's: looking for it takes it nothing. */
static inline bool gy_patience_is_apart(const struct gyre_comm *comm, int rank)
{
    return comm->ctx->crowded && comm->ctx->config.spin_ns != 0 && gy_cores_apart(comm, rank);
}

/* Of who waits for that rank alone; −1: for nobody, or for others as well, of whom one may be on this core. */
static inline struct gy_patience gy_patience_for(const struct gyre_comm *comm, int rank)
{
    struct gy_patience patience = gy_patience_of(comm->ctx);
    if (rank >= 0 && gy_patience_is_apart(comm, rank))
        patience.spins = GY_PATIENT_SPINS_APART;
    return patience;
}

/* The rest of the looks is left out where another rank is on this core. */
static inline void gy_patience_check(struct gy_patience *patience)
{
    if (!gy_cores_shared(patience->ctx))
        return;
    patience->spins = 0;
    patience->yields = patience->ctx->driver.held ? 0 : GY_PATIENT_YIELDS;
}

/* After a look that found nothing: is another one worth it? */
static inline bool gy_patient(struct gy_patience *patience)
{
    if (patience->spins > 0) {
        patience->spins--;
        if (patience->spins % GY_PATIENT_SPINS_SHARED == GY_PATIENT_SPINS_SHARED - 1)
            gy_patience_check(patience);
        gy_cpu_relax();
        return true;
    }
    if (patience->yields == 0)
        return false;
    *patience = gy_patience_yield(*patience);
    return true;
}

#endif

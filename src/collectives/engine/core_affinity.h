/* If ranks share cores: the core of each rank. A rank that waits for a rank of its own core yields to it. A rank of
 * another core is most often running, and its data comes sooner than a yield would return. Data that only a rank of
 * the same core will read need not leave their shared caches. */
#ifndef GY_COLLECTIVES_ENGINE_CORE_AFFINITY_H
#define GY_COLLECTIVES_ENGINE_CORE_AFFINITY_H

#include <stdbool.h>

struct gy_context;
struct gyre_comm;

/* Publishes this rank's core if ranks share cores. Every call over regions does so before it waits. libc knows the
 * core without a system call if the kernel provides it (rseq). */
void gy_cores_show(const struct gyre_comm *comm);
/* same, apart: true if `rank` was on this rank's core, or on another one, when both last published theirs. Both are
 * false if a rank has published none. */
bool gy_cores_same(const struct gyre_comm *comm, int rank);
bool gy_cores_apart(const struct gyre_comm *comm, int rank);

/* For ranks with a core each, which the scheduler may still place on one core. While another program ran on the
 * other core, two ranks of two stayed on one for seconds, and each call took as long as both polled in vain.
 *
 * Publishes this rank's core to all local ranks; takes tens of nanoseconds at most. */
void gy_cores_tell(const struct gy_context *ctx);
/* Publishes this rank's core. Returns true if another local rank that is awake was last on the same core: this rank
 * may be blocking the rank for which it waits. */
bool gy_cores_shared(const struct gy_context *ctx);

#endif

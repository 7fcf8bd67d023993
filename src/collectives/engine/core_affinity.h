/* Where ranks share cores: which one each is on. Who waits for a rank of its own core lets it run; one of another core most often
 * runs just now, and what it will show comes sooner than this rank would be back. What a rank of the same core alone will read
 * need not leave the caches that both have. */
#ifndef GY_COLLECTIVES_ENGINE_CORE_AFFINITY_H
#define GY_COLLECTIVES_ENGINE_CORE_AFFINITY_H

#include <stdbool.h>

struct gy_context;
struct gyre_comm;

/* In every call over regions, before it waits: shows which core this rank is on, where ranks share cores; elsewhere nothing. Asks libc,
 * which knows it without a system call where the kernel tells it (rseq). */
void gy_cores_show(const struct gyre_comm *comm);
/* Was `rank` on the core of this one, or on another one, when both showed it last? Neither where one has shown nothing. */
bool gy_cores_same(const struct gyre_comm *comm, int rank);
bool gy_cores_apart(const struct gyre_comm *comm, int rank);

/* For ranks that have a core each, which the scheduler may still place on one core: where another program runs on the other core, two
 * ranks of two stayed on one for seconds, and each call took as long as both looked for the other in vain.
 *
 * Shows this rank's core to all local ranks; tens of nanoseconds at most. */
void gy_cores_tell(const struct gy_context *ctx);
/* Tells, and returns true if another local rank that is awake told the same core last: this rank may keep the processor from the rank
 * that it waits for. */
bool gy_cores_shared(const struct gy_context *ctx);

#endif

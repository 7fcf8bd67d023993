/* The call cache: a short call, blocking or started, that equals the last one of its collective in count, type,
 * operation and root. Most calls of a program do. Classifying a call takes as long as one cache line transfer
 * between cores with the same last-level cache. So everything that depends on these four arguments alone is cached.
 *
 *   first call    arguments ──▶ choice ──▶ exchange, or another path    check.c, eager_call.c, shm_blocking.c,
 *                                          without a request            shm_rooted_mapped.c store the result
 *   cached call   ────────────────────────▶ the same                    call_cache.c, call_cache_inline.h
 *
 *   cached        that the arguments are right, the path, and all of an exchange but its number and its buffers
 *   checked       that this process owns the communicator, that the world has not failed, where the buffers lie;
 *                 for a blocking call also that nothing is in flight, beside which it would be a request
 *
 * The cache is local to this rank: the peers see the same protocol. A change of attributes clears what depends on
 * them. */
#ifndef GY_COLLECTIVES_CALL_CALL_CACHE_H
#define GY_COLLECTIVES_CALL_CALL_CACHE_H

#include "collectives/call/path.h"
#include "core/base.h"

struct gyre_comm;
struct gy_call_signature;
struct gy_call;
struct gy_exchange_kind;
struct gy_cached_call;
struct gyre_request;

/* Initialises an empty cache without memory. */
void gy_call_cache_init(struct gyre_comm *comm);
void gy_call_cache_fini(struct gyre_comm *comm);
/* Allocates an entry per collective, once the communicator has a region, which such calls use. Without memory
 * nothing is cached. */
void gy_call_cache_provide(struct gyre_comm *comm);
void gy_call_cache_forget(struct gyre_comm *comm);
/* Stores a call, blocking or not, whose arguments are right and which is such an exchange. */
void gy_call_cache_keep(struct gyre_comm *comm, const struct gy_call *call, const struct gy_call_signature *shape,
                        const struct gy_exchange_kind *kind);
/* Stores a call that another path has carried out. */
void gy_call_cache_keep_path(struct gyre_comm *comm, const struct gy_call *call, enum gy_path path);
/* Runs a blocking call that is cached (for a start: call_cache_inline.h). Returns false, with no effect, if the call
 * is not cached or its path declines. */
bool gy_call_cache_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);

#endif

/* A short call, blocking or started, like the last one of its collective: of the same count, type, operation and root. Most calls of a
 * program are such, and finding out what they are takes as long as a line's way between two near cores. So what hangs on these four alone
 * is kept.
 *
 *   the first     arguments ──▶ choice ──▶ exchange, or what else               check.c, eager_call.c, shm_blocking.c, shm_rooted_mapped.c, which keep
 *                                          is done without a request            what has come out
 *   a repeat      ────────────────────────▶ the same                            call_cache.c, call_cache_inline.h
 *
 *   kept          that the arguments are right, what it is, and all of an exchange but its number and its buffers
 *   looked at     does this process own the communicator, has the world failed, where are the buffers? Of a blocking call: is anything
 *                 under way, beside which it would be a request?
 *
 * It is this rank's affair alone: what the others see is the same. What a change of attributes may change is forgotten with it. */
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

/* A new communicator keeps nothing and has no room for it. */
void gy_call_cache_init(struct gyre_comm *comm);
void gy_call_cache_fini(struct gyre_comm *comm);
/* It has a region now, by which such calls go: makes room for one of each collective. Without memory it goes on keeping nothing. */
void gy_call_cache_provide(struct gyre_comm *comm);
void gy_call_cache_forget(struct gyre_comm *comm);
/* A call, blocking or not, that was found to be such an exchange, its arguments right. */
void gy_call_cache_keep(struct gyre_comm *comm, const struct gy_call *call, const struct gy_call_signature *shape,
                        const struct gy_exchange_kind *kind);
/* A call that another path has carried out, likewise. */
void gy_call_cache_keep_path(struct gyre_comm *comm, const struct gy_call *call, enum gy_path path);
/* The whole of a blocking call that is a repeat (of a start: call_cache_inline.h). False: it is none, or its path declines; nothing
 * has happened. */
bool gy_call_cache_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);

#endif

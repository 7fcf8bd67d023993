/* Shared by the blocking calls over regions that do all their work themselves (shm_blocking.c, shm_rooted_mapped.c,
 * shm_rooted_slots.c). They follow the protocol of their schedule. Each fills a request on the way, which stays private
 * unless a peer blocks the call. */
#ifndef GY_COLLECTIVES_CALL_SHM_BLOCKING_H
#define GY_COLLECTIVES_CALL_SHM_BLOCKING_H

#include "collectives/engine/request.h"
#include "collectives/engine/spin.h"
#include "collectives/shm/autotune.h"

#define GY_SHM_BLOCKING_MOST \
    (1u << 20) /* bytes: for longer vectors the path does not matter, and peers need progress meanwhile */

/* The counters of a rank in a one-shot schedule: tiles published, reduced, collected. */
enum { GY_PUBLISH_COUNTER, GY_GATHER_COUNTER, GY_COLLECT_COUNTER };

/* True if the algorithm is the choice for a vector of `bytes` bytes. Caches the last one that was. */
bool gy_shm_blocking_is_chosen(struct gyre_comm *comm, enum gy_collective collective, size_t bytes,
                               enum gy_algorithm algorithm);
/* Returns the request that the schedule would have, with the next sequence number. The context has an idle request. */
struct gyre_request *gy_shm_blocking_fill(struct gyre_comm *comm, const struct gy_call *call,
                                          struct gy_schedule *schedule);
/* Releases a request that is unused or complete. */
void gy_shm_blocking_drop(struct gyre_request *request);
/* Writes the call to the flight recorder and the counters. */
struct gyre_page_record *gy_shm_blocking_note(struct gyre_comm *comm, const struct gy_call_signature *shape,
                                              size_t bytes);
struct gy_entry *gy_shm_blocking_entry(const struct gyre_comm *comm, int rank, uint64_t sequence);
/* A peer blocks the call, or runs the schedule: the request continues with the lanes as they stand. */
gyre_status gy_shm_blocking_go_on(struct gyre_request *request);
/* The same from this lane on; the lanes before it are complete. */
gyre_status gy_shm_blocking_go_on_from(struct gyre_request *request, int lane);
/* Runs the schedule from the beginning, after the entry; as a request from where a peer blocks it. */
gyre_status gy_shm_blocking_lanes(struct gyre_request *request, struct gyre_page_record *record);
/* In shm_rooted_slots.c: a broadcast or reduction to a root through slots, written as `variant` says. Releases the
 * schedule. */
gyre_status gy_shm_blocking_slots(struct gyre_comm *comm, const struct gy_call *call, struct gy_schedule *schedule,
                                  enum gy_shm_variant variant);
/* Ends a call that is complete. */
gyre_status gy_shm_blocking_end(struct gyre_request *request, struct gyre_page_record *record);

/* Paths of dispatch.h, start to end. is_open: true if a plain call of its collective may use the path, on an idle
 * context. A call returns false, with no effect, if the path declines. mapped: an all_reduce whose operands lie in
 * memory of gyre_mem_alloc. rooted: a broadcast or reduction to a root, whose operand is read in place or goes
 * through slots. */
bool gy_shm_mapped_is_open(struct gyre_comm *comm, const struct gy_call *call);
bool gy_shm_mapped_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);
bool gy_shm_rooted_is_open(struct gyre_comm *comm, const struct gy_call *call);
bool gy_shm_rooted_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);
/* Runs any schedule over regions, for a request that was made and not launched, and collects the request at the end.
 * Returns false, with no effect, if it declines. */
bool gy_shm_blocking_run(struct gyre_request *request, gyre_status *status_p);

#endif

/* What blocking calls over regions that do everything themselves have in common (shm_blocking.c, shm_rooted_mapped.c, shm_rooted_slots.c). They follow the
 * protocol of their plan and fill a request on the way, of which nobody knows as long as no peer keeps the call waiting. */
#ifndef GY_COLLECTIVES_CALL_SHM_BLOCKING_H
#define GY_COLLECTIVES_CALL_SHM_BLOCKING_H

#include "collectives/engine/request.h"
#include "collectives/engine/spin.h"
#include "collectives/shm/autotune.h"

#define GY_SHM_BLOCKING_MOST \
    (1u << 20) /* bytes: of more the way does not matter, and peers want to be looked at meanwhile */

/* What counts of a rank in a plan of one shot: tiles that it has shown, reduced, taken. */
enum { GY_PUBLISH_COUNTER, GY_GATHER_COUNTER, GY_COLLECT_COUNTER };

/* Is this algorithm the choice for a vector of so many bytes? Remembers the last that was. */
bool gy_shm_blocking_is_chosen(struct gyre_comm *comm, enum gy_collective collective, size_t bytes,
                               enum gy_algorithm algorithm);
/* The request as its plan would have it, with a sequence number that is still to come; the context has an idle one. */
struct gyre_request *gy_shm_blocking_fill(struct gyre_comm *comm, const struct gy_call *call, struct gy_plan *plan);
/* Nothing has come of it, or it is over: it holds nothing any more. */
void gy_shm_blocking_drop(struct gyre_request *request);
/* In the flight recorder and the counters. */
struct gyre_page_record *gy_shm_blocking_note(struct gyre_comm *comm, const struct gy_call_signature *shape,
                                              size_t bytes);
struct gy_entry *gy_shm_blocking_entry(const struct gyre_comm *comm, int rank, uint64_t sequence);
/* A peer keeps us waiting, or goes by the plan: so do we, with the lanes as they stand. */
gyre_status gy_shm_blocking_go_on(struct gyre_request *request);
/* Likewise from this lane on, and those before it are done. */
gyre_status gy_shm_blocking_go_on_from(struct gyre_request *request, int lane);
/* Its plan, from the beginning, after the arrival; as a request from where a peer keeps us waiting. */
gyre_status gy_shm_blocking_lanes(struct gyre_request *request, struct gyre_page_record *record);
/* shm_rooted_slots.c: a broadcast or reduction to a root through slots, given so; releases the plan. */
gyre_status gy_shm_blocking_slots(struct gyre_comm *comm, const struct gy_call *call, struct gy_plan *plan,
                                  enum gy_shm_variant variant);
/* It is over. */
gyre_status gy_shm_blocking_end(struct gyre_request *request, struct gyre_page_record *record);

/* Paths of dispatch.h, start to end; is_open: true if a plain call of its collective may go so, on an idle context. False of a call:
 * it declines, and nothing has happened. mapped: an all_reduce whose operands lie in memory of gyre_mem_alloc. rooted: a broadcast
 * or reduction to a root, whose operand is used where it lies or goes through slots. */
bool gy_shm_mapped_is_open(struct gyre_comm *comm, const struct gy_call *call);
bool gy_shm_mapped_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);
bool gy_shm_rooted_is_open(struct gyre_comm *comm, const struct gy_call *call);
bool gy_shm_rooted_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);
/* Any plan over regions, of a request that was made and not launched, and is collected when that is over; false likewise. */
bool gy_shm_blocking_run(struct gyre_request *request, gyre_status *status_p);

#endif

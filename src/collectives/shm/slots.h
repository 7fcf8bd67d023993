/* The steps over shared memory: slots.c, slot_reduce.c. */
#ifndef GY_COLLECTIVES_SHM_SLOTS_H
#define GY_COLLECTIVES_SHM_SLOTS_H

#include "collectives/engine/request.h"

gyre_status gy_slot_begin(struct gyre_request *request);
/* True if a step on regions may continue without polling the readers of its slot, because it will not write it. */
bool gy_slot_idle(const struct gyre_request *request, const struct gy_step *step);
/* True if this rank's own block is copied to the output in the pass that publishes it. If lines of a slot are waited
 * for, because they are neither write-prefetched nor non-temporal, two passes are faster. */
bool gy_slot_keeps_own(const struct gyre_request *request);
bool gy_slot_everyone(struct gyre_request *request, int lane, const struct gy_step *step, int region_lane,
                      uint64_t target);
/* True if this step is fused into another lane's copy loop and must not run by itself. */
bool gy_slot_follows(const struct gyre_request *request, const struct gy_step *step);
/* Runs one iteration. Returns false if its source has been withdrawn, which precedes the world's failure. */
bool gy_slot_step(struct gyre_request *request, int lane);
/* Runs all that a lane of the schedule gathers at once: no rank whose operand it reads has used slots. Returns false
 * likewise. */
bool gy_slot_reduce_whole(struct gyre_request *request, int lane);
/* Returns true if all lanes have finished here; false while peers still read what this rank exposed. */
bool gy_slot_end(struct gyre_request *request);
/* The value of a rank's counters at the end of the operation, which has begun here. */
uint64_t gy_slot_after(const struct gyre_request *request);
/* Elements of a tile for a block of `block` bytes. */
size_t gy_slot_tile(const struct gyre_comm *comm, const struct gy_schedule *schedule, size_t block, size_t element);
/* Rings the doorbells of sleeping ranks. Call after the store for which they wait. */
void gy_slot_wake(const struct gyre_comm *comm);

#endif

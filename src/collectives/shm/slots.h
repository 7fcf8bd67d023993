/* The steps over shared memory: slots.c, slot_reduce.c. */
#ifndef GY_COLLECTIVES_SHM_SLOTS_H
#define GY_COLLECTIVES_SHM_SLOTS_H

#include "collectives/engine/request.h"

gyre_status gy_slot_begin(struct gyre_request *request);
/* May a step on regions go on without looking at the readers of its slot, since it will not write it? */
bool gy_slot_idle(const struct gyre_request *request, const struct gy_step *step);
/* Does this rank's own block go into the output in the pass in which it publishes? Where lines of a slot are waited for, as where they
 * are neither claimed nor past the caches, two passes are quicker. */
bool gy_slot_keeps_own(const struct gyre_request *request);
bool gy_slot_everyone(struct gyre_request *request, int lane, const struct gy_step *step, int region_lane,
                      uint64_t target);
/* Does a step on regions leave its iteration to another lane, which does it in the pass in which it does one of its own? */
bool gy_slot_follows(const struct gyre_request *request, const struct gy_step *step);
/* One iteration; false: what it was to read has been withdrawn, and the world's end is near. */
bool gy_slot_step(struct gyre_request *request, int lane);
/* The whole of what a lane of its plan gathers, at once: nobody whose operand it reads has put it into slots. False likewise. */
bool gy_slot_gather_whole(struct gyre_request *request, int lane);
/* All lanes have finished here; false: others still read what this rank offered. */
bool gy_slot_end(struct gyre_request *request);
/* The value of a rank's counters when it is through with the operation, which has begun here. */
uint64_t gy_slot_after(const struct gyre_request *request);
/* Elements of a tile where a block has so many bytes. */
size_t gy_slot_tile(const struct gyre_comm *comm, const struct gy_plan *plan, size_t block, size_t element);
/* Rings the doorbells of those who sleep; after the store that they wait for. */
void gy_slot_wake(const struct gyre_comm *comm);

#endif

/* What the steps over shared regions know of a tile: where it lies, and who alone reads it. */
#ifndef GY_COLLECTIVES_SHM_SLOT_TILE_H
#define GY_COLLECTIVES_SHM_SLOT_TILE_H

#include "collectives/engine/request.h"

#define GY_CLAIMED (4u << 10) /* bytes of slots that are claimed at once, and used from the first-level cache */

/* Of a rank, for the tile of this iteration through the communicator's life. */
unsigned char *gy_slot_of(const struct gyre_comm *comm, int rank, enum gy_space space, uint64_t iteration);
/* Where rank p has published the piece of slice b. */
const unsigned char *gy_slot_published(const struct gyre_request *request, int p, int32_t b, uint64_t iteration);
/* Does this rank claim the slots of which the step reads? Not what others read, too. */
bool gy_slot_claims(const struct gyre_request *request, const struct gy_step *step);
/* slot_reduce.c: one tile, reduced or copied to where it belongs; false: what it was to read has been withdrawn. */
bool gy_slot_gather(struct gyre_request *request, const struct gy_step *step, int lane, uint64_t iteration);

#endif

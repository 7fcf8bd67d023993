/* The place of a tile in the regions, and its only reader. */
#ifndef GY_COLLECTIVES_SHM_SLOT_TILE_H
#define GY_COLLECTIVES_SHM_SLOT_TILE_H

#include "collectives/engine/request.h"

#define GY_CLAIMED (4u << 10) /* bytes of slots write-prefetched at once, and used from the first-level cache */

/* A rank's slot for the tile of this iteration, counted through the communicator's life. */
unsigned char *gy_slot_of(const struct gyre_comm *comm, int rank, enum gy_space space, uint64_t iteration);
/* Where rank p has published the piece of slice b. */
const unsigned char *gy_slot_published(const struct gyre_request *request, int p, int32_t b, uint64_t iteration);
/* True if this rank write-prefetches the slots that the step reads; false for slots that other ranks read, too. */
bool gy_slot_claims(const struct gyre_request *request, const struct gy_step *step);
/* In slot_reduce.c: reduces or copies one tile to its destination. Returns false if its source has been withdrawn. */
bool gy_slot_reduce(struct gyre_request *request, const struct gy_step *step, int lane, uint64_t iteration);

#endif

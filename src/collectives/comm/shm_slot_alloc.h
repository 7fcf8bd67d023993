/* Region slots: which of the segment's regions a communicator uses.
 *
 * A slot is agreed when the communicator is made: the lowest that is free on all its ranks. It is free again on a rank
 * when every member has destroyed the communicator, since until then somebody may still be reading this rank's last
 * tiles; each rank shows in shared memory which communicator it has in which slot. */
#ifndef GY_COLLECTIVES_COMM_SHM_SLOT_ALLOC_H
#define GY_COLLECTIVES_COMM_SHM_SLOT_ALLOC_H

#include "collectives/comm/group.h"
#include "transport/shm/segment.h"

struct gy_context;

struct gy_regions {
    uint64_t taken; /* a bit per slot */
    struct {
        struct gy_group group; /* size 0: not retired */
        uint32_t comm;
    } retired[GY_REGION_COMMS]; /* destroyed here, perhaps not everywhere */
};

/* The slots that are free on this rank. */
uint64_t gy_region_free(struct gy_context *ctx);
/* Takes a slot, and makes this rank's part of it as new. Every member does so before any of them uses it. */
void gy_region_take(struct gy_context *ctx, int slot, uint32_t comm);
/* The communicator is gone here; `group` is taken over. */
void gy_region_retire(struct gy_context *ctx, int slot, uint32_t comm, struct gy_group *group);
/* Has the member (a rank of the world, on this host) destroyed the communicator? One that has yet to make it has not. */
bool gy_region_destroyed(struct gy_context *ctx, int slot, uint32_t comm, int world);
/* The communicator has ended here, because `cause` has destroyed it: shown, until the slot is taken anew. */
void gy_region_end(struct gy_context *ctx, int slot, int cause);
/* Because of whom does the member take no more part in the communicator? Itself, where it has destroyed it in order; −1: it takes
 * part, or has yet to make it. */
int gy_region_cause(struct gy_context *ctx, int slot, uint32_t comm, int world);
void gy_region_clear(struct gy_context *ctx);

#endif

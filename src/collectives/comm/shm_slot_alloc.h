/* Region slots: the segment's region used by a communicator.
 *
 * The slot is agreed when the communicator is made: the lowest that is free on all its ranks. It is free again on a
 * rank when every member has destroyed the communicator; until then a peer may still read this rank's last tiles.
 * Each rank shows in shared memory which communicator it has in which slot. */
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
    } retired[GY_REGION_COMMS]; /* destroyed here, perhaps not on all members */
};

/* Returns the slots that are free on this rank, a bit each. */
uint64_t gy_region_free(struct gy_context *ctx);
/* Takes a slot and resets this rank's part of it. Every member does so before any of them uses it. */
void gy_region_take(struct gy_context *ctx, int slot, uint32_t comm);
/* The communicator was destroyed here; `group` is taken over. */
void gy_region_retire(struct gy_context *ctx, int slot, uint32_t comm, struct gy_group *group);
/* True if the member (a rank of the world, on this host) has destroyed the communicator; false if it has yet to make
 * it. */
bool gy_region_destroyed(struct gy_context *ctx, int slot, uint32_t comm, int world);
/* Publishes that the communicator has ended here because `cause` destroyed it, until the slot is taken anew. */
void gy_region_end(struct gy_context *ctx, int slot, int cause);
/* Returns the rank because of which the member left the communicator: itself if it destroyed it in order. −1: it
 * takes part, or has yet to make it. */
int gy_region_cause(struct gy_context *ctx, int slot, uint32_t comm, int world);
void gy_region_clear(struct gy_context *ctx);

#endif

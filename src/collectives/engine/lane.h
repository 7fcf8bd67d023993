/* A lane: a cursor into the plan, and where the data of its current iteration lies. */
#ifndef GY_COLLECTIVES_ENGINE_LANE_H
#define GY_COLLECTIVES_ENGINE_LANE_H

#include "collectives/engine/request.h"

void gy_lane_begin(struct gyre_request *request, int lane);
/* Is iteration (lane_round, tile) of `step` allowed? Notes whom it waits for. */
bool gy_needs_met(struct gyre_request *request, int lane, const struct gy_step *step, int64_t lane_round, size_t tile);
void gy_lane_next(struct gyre_request *request, int lane);
void gy_lane_done(struct gy_lane_state *state, int64_t round, size_t tile, size_t tiles);
/* Elements of the longest range of a step; what decides between eager and granted, and the number of tiles. */
size_t gy_step_longest(const struct gyre_request *request, const struct gy_step *step);
/* The piece of the lane's current iteration, and where an operand of it lies. */
struct gy_piece gy_lane_piece(const struct gyre_request *request, int lane);
unsigned char *gy_operand(const struct gyre_request *request, int lane, enum gy_space space, size_t start);
/* Into the output: past the caches where the whole of it outgrows them. */
void gy_put(const struct gyre_request *request, void *dst, const void *src, size_t bytes);
/* In the input or the output: element `start`, which lies in `block` or after it. */
unsigned char *gy_operand_at(const struct gyre_request *request, enum gy_space space, int32_t block, size_t start);
/* Moves the data of an iteration of a step within this rank. */
void gy_lane_local(struct gyre_request *request, int lane);
/* Bytes of a slot of scratch that holds so many. */
static inline size_t gy_scratch_slot(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

#endif

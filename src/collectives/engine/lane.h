/* A lane: a cursor into the schedule, and where the data of its current iteration lies. */
#ifndef GY_COLLECTIVES_ENGINE_LANE_H
#define GY_COLLECTIVES_ENGINE_LANE_H

#include "collectives/engine/request.h"

void gy_lane_begin(struct gyre_request *request, int lane);
/* True if iteration (lane_round, tile) of `step` may run. Notes the rank for which it waits. */
bool gy_needs_met(struct gyre_request *request, int lane, const struct gy_step *step, int64_t lane_round, size_t tile);
void gy_lane_next(struct gyre_request *request, int lane);
void gy_lane_done(struct gy_lane_state *state, int64_t round, size_t tile, size_t tiles);
/* Elements of the longest range of a step, which decides between eager and granted, and sets the number of tiles. */
size_t gy_step_longest(const struct gyre_request *request, const struct gy_step *step);
/* The piece of the lane's current iteration, and the address of an operand of it. */
struct gy_piece gy_lane_piece(const struct gyre_request *request, int lane);
unsigned char *gy_operand(const struct gyre_request *request, int lane, enum gy_space space, size_t start);
/* Copies into the output, with non-temporal stores if the whole output exceeds the caches. */
void gy_put(const struct gyre_request *request, void *dst, const void *src, size_t bytes);
/* The address of element `start` in the input or the output; it lies in `block` or after it. */
unsigned char *gy_operand_at(const struct gyre_request *request, enum gy_space space, int32_t block, size_t start);
/* Moves the data of an iteration of a step within this rank. */
void gy_lane_local(struct gyre_request *request, int lane);
/* Bytes of a slot of scratch that holds `bytes` bytes. */
static inline size_t gy_scratch_slot(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

#endif

/* Bounds for the collectives that move a vector once, beside the one for an all_reduce (private_buffers.c). */
#ifndef GYRE_LIMITS_PRIVATE_MOVES_H
#define GYRE_LIMITS_PRIVATE_MOVES_H

#include <stdbool.h>

#include "../compare/driver.h"
#include "pass.h"

/* The first `skip` bytes behind the arena are in use; `tile` in floats. */
void gy_moves_join(int rank, size_t skip, size_t tile, enum gy_pass_variant way, bool kernel);

void gy_moves_barrier(const struct gy_call *it);
void gy_moves_broadcast(const struct gy_call *it);
void gy_moves_reduce(const struct gy_call *it);
void gy_moves_reduce_scatter(const struct gy_call *it);
void gy_moves_all_gather(const struct gy_call *it);
void gy_moves_all_to_all(const struct gy_call *it);

#endif

/* The stall and arrival clocks of all waits. */
#ifndef GY_COLLECTIVES_EVENTS_STALL_DETECTOR_H
#define GY_COLLECTIVES_EVENTS_STALL_DETECTOR_H

#include "collectives/engine/request.h"

/* Checks them all. */
void gy_liveness_check(struct gy_context *ctx, int64_t now);
/* Handle frames of kind PING and PONG. */
void gy_liveness_ping(struct gy_context *ctx, int peer, const struct gy_frame *ping);
void gy_liveness_pong(struct gy_context *ctx, int peer, const struct gy_frame *pong);

#endif

/* The failure of a world. */
#ifndef GY_COLLECTIVES_EVENTS_FAILURE_H
#define GY_COLLECTIVES_EVENTS_FAILURE_H

#include "collectives/comm/context.h"

/* ctx->error has the reason: closes the transports, sets every communicator's error message, ends every request.
 * Once. */
void gy_failure_spread(struct gy_context *ctx);

#endif

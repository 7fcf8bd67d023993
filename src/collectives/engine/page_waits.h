/* The status page's part of the slow progress. */
#ifndef GY_COLLECTIVES_ENGINE_PAGE_WAITS_H
#define GY_COLLECTIVES_ENGINE_PAGE_WAITS_H

#include "collectives/comm/context.h"

/* Writes the heartbeat, and the ranks for which operations in flight wait. */
void gy_page_update(struct gy_context *ctx, int64_t now);

#endif

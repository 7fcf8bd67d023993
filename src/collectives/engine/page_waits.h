/* The slow turn's part of the status page. */
#ifndef GY_COLLECTIVES_ENGINE_PAGE_WAITS_H
#define GY_COLLECTIVES_ENGINE_PAGE_WAITS_H

#include "collectives/comm/context.h"

/* The beat, and whom the operations under way miss. */
void gy_page_update(struct gy_context *ctx, int64_t now);

#endif

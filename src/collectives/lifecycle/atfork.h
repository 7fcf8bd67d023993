/* Contexts in a forked child. */
#ifndef GY_COLLECTIVES_LIFECYCLE_ATFORK_H
#define GY_COLLECTIVES_LIFECYCLE_ATFORK_H

#include "collectives/comm/context.h"

/* From here on a child of this process closes its copies of the context's descriptors. */
void gy_fork_watch(struct gy_context *ctx);
void gy_fork_unwatch(struct gy_context *ctx);

#endif

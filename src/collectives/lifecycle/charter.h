/* What a joiner inherits from the communicator that it joins. */
#ifndef GY_COLLECTIVES_LIFECYCLE_CHARTER_H
#define GY_COLLECTIVES_LIFECYCLE_CHARTER_H

#include "collectives/comm/communicator.h"
#include "membership/join_server.h"

/* `operations`: the number of operations of the user's own so far, on any member. */
void gy_charter_write(const struct gyre_comm *comm, uint64_t operations, struct gy_charter *charter_p);
/* Applies a charter to the context of a joiner. PROTOCOL: not understood. */
gyre_status gy_charter_follow(struct gy_context *ctx, const struct gy_charter *charter, struct gy_error *error);

#endif

/* By which transport each other rank is reached. */
#ifndef GY_COLLECTIVES_COMM_TRANSPORT_SELECT_H
#define GY_COLLECTIVES_COMM_TRANSPORT_SELECT_H

#include "collectives/comm/context.h"

/* Opens those that GYRE_TRANSPORT names and that there are, in the order of preference. */
gyre_status gy_transports_open(struct gy_context *ctx, struct gy_error *error);
/* For each rank the first of them that reaches it. PEER_UNREACHABLE: two ranks have none in common; both are told the same
 * sentence, and the same one of them, the higher, has to go (error->rank, which may be this rank). */
gyre_status gy_transports_choose(struct gy_context *ctx, struct gy_error *error);

#endif

/* Selection of the transport to each rank. */
#ifndef GY_COLLECTIVES_COMM_TRANSPORT_SELECT_H
#define GY_COLLECTIVES_COMM_TRANSPORT_SELECT_H

#include "collectives/comm/context.h"

/* Opens the available transports named by GYRE_TRANSPORT, in order of preference. */
gyre_status gy_transports_open(struct gy_context *ctx, struct gy_error *error);
/* Selects for each rank the first transport that reaches it. PEER_UNREACHABLE: two ranks have none in common. Both
 * get the same message, and the higher has to leave (error->rank, which may be this rank). */
gyre_status gy_transports_choose(struct gy_context *ctx, struct gy_error *error);

#endif

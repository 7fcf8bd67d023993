/* A collective of a short vector between two ranks over their link. */
#ifndef GY_COLLECTIVES_LINK_EAGER_EXCHANGE_H
#define GY_COLLECTIVES_LINK_EAGER_EXCHANGE_H

#include "collectives/engine/request.h"

/* Runs a blocking call. Returns false if it takes the general path: nothing has happened, except what
 * comm->sent_ahead says. */
bool gy_eager_exchange_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);

#endif

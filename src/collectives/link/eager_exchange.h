/* A collective of a short vector between two ranks over their link. */
#ifndef GY_COLLECTIVES_LINK_EAGER_EXCHANGE_H
#define GY_COLLECTIVES_LINK_EAGER_EXCHANGE_H

#include "collectives/engine/request.h"

/* The whole of a blocking call; false: it takes the
 * general path, and nothing has happened yet, but for what comm->swapped says. */
bool gy_eager_exchange_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);

#endif

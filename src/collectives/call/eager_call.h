/* Short vectors, exchanged directly instead of by a plan. */
#ifndef GY_COLLECTIVES_CALL_EAGER_CALL_H
#define GY_COLLECTIVES_CALL_EAGER_CALL_H

#include "collectives/engine/request.h"

/* The blocking call, start to end without a request;
 * false: this call takes the general path, and nothing has happened yet. */
bool gy_eager_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);

#endif

/* Starts of eager exchanges. */
#ifndef GY_COLLECTIVES_CALL_EAGER_START_H
#define GY_COLLECTIVES_CALL_EAGER_START_H

#include "collectives/engine/request.h"

/* Starts a call that does not block, with a request that holds nothing. Returns false, with no effect, if the call
 * takes the general path. */
bool gy_eager_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
/* Starts again a persistent request that has been such an exchange before. */
bool gy_eager_restart(struct gyre_request *request);

#endif

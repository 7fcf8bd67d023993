/* Blocking calls of short vectors by the eager exchange instead of a schedule. */
#ifndef GY_COLLECTIVES_CALL_EAGER_CALL_H
#define GY_COLLECTIVES_CALL_EAGER_CALL_H

#include "collectives/engine/request.h"

/* Runs the blocking call without a request. Returns false, with no effect, if the call takes the general path. */
bool gy_eager_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);

#endif

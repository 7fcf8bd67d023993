/* Starts of direct exchanges. */
#ifndef GY_COLLECTIVES_CALL_EAGER_START_H
#define GY_COLLECTIVES_CALL_EAGER_START_H

#include "collectives/engine/request.h"

/* A call that does not block, with a request that holds nothing; false: it takes the general path, and nothing has happened yet. */
bool gy_eager_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
/* The same of one that has been such an exchange before. */
bool gy_eager_restart(struct gyre_request *request);

#endif

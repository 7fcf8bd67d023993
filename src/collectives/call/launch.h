/* Requests: made, launched, started again, collected. */
#ifndef GY_COLLECTIVES_CALL_LAUNCH_H
#define GY_COLLECTIVES_CALL_LAUNCH_H

#include "collectives/engine/request.h"

/* Starts a collective; the arguments have been checked. Never blocks. */
gyre_status gy_request_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
/* A request that is started, and completes, any number of times; allocates all that it will need. */
gyre_status gy_request_keep(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
/* It is not under way. */
void gy_request_restart(struct gyre_request *request);
/* One with all that it needs, which is not started. */
gyre_status gy_request_make(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
void gy_request_launch(struct gyre_request *request);
/* One that has its numbers and its record, and has been shown, becomes an active request, with its lanes where they are. */
void gy_request_enlist(struct gyre_request *request);

#endif

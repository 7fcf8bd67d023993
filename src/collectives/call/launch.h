/* Requests: made, launched, started again, collected. */
#ifndef GY_COLLECTIVES_CALL_LAUNCH_H
#define GY_COLLECTIVES_CALL_LAUNCH_H

#include "collectives/engine/request.h"

/* Starts a collective; the arguments have been checked. Never blocks. */
gyre_status gy_request_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
/* Makes a persistent request, which is started and completed any number of times. Allocates all that it needs. */
gyre_status gy_request_keep(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
/* Starts a persistent request that is not in flight. */
void gy_request_restart(struct gyre_request *request);
/* Makes a request with all that it needs, without a start. */
gyre_status gy_request_make(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
void gy_request_launch(struct gyre_request *request);
/* Makes an active request of one that has its numbers and its record and has been published. Its lanes keep their
 * places. */
void gy_request_enlist(struct gyre_request *request);

#endif

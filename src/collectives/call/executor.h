/* Moves the lanes of a request through its schedule. */
#ifndef GY_COLLECTIVES_CALL_EXECUTOR_H
#define GY_COLLECTIVES_CALL_EXECUTOR_H

#include "collectives/engine/request.h"

/* Moves the lanes of a request that is no eager exchange. Returns true if anything moved. */
bool gy_request_advance(struct gyre_request *request);
/* Progresses the lanes alone. *over_p: this rank's part is complete. */
bool gy_lanes_progress(struct gyre_request *request, bool *over_p);

#endif

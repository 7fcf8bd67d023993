/* Moves the lanes of a request through its plan. */
#ifndef GY_COLLECTIVES_CALL_EXECUTOR_H
#define GY_COLLECTIVES_CALL_EXECUTOR_H

#include "collectives/engine/request.h"

/* Moves the lanes of one that is no direct exchange; returns true if anything moved. */
bool gy_request_advance(struct gyre_request *request);
/* A turn of its lanes alone; *over_p: all that there is to do here is done. */
bool gy_lanes_progress(struct gyre_request *request, bool *over_p);

#endif

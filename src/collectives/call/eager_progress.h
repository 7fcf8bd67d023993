/* Progress of eager exchanges. */
#ifndef GY_COLLECTIVES_CALL_EAGER_PROGRESS_H
#define GY_COLLECTIVES_CALL_EAGER_PROGRESS_H

#include "collectives/engine/request.h"

/* Progresses the eager exchange at the head of the queue, and those behind it once it is complete. */
bool gy_eager_advance(struct gyre_request *request);
/* Publishes as many of the queued exchanges as may be in flight at once. */
void gy_eager_show(struct gyre_comm *comm);

#endif

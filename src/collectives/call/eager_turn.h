/* Turns of direct exchanges. */
#ifndef GY_COLLECTIVES_CALL_EAGER_TURN_H
#define GY_COLLECTIVES_CALL_EAGER_TURN_H

#include "collectives/engine/request.h"

/* The request at the head of the queue, a direct exchange, has its turn, and so have those behind it when it is over. */
bool gy_eager_advance(struct gyre_request *request);
/* Shows as many of the exchanges in the queue as may be under way at once. */
void gy_eager_show(struct gyre_comm *comm);

#endif

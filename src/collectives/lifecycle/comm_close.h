/* Destroys communicators. */
#ifndef GY_COLLECTIVES_LIFECYCLE_COMM_CLOSE_H
#define GY_COLLECTIVES_LIFECYCLE_COMM_CLOSE_H

#include "collectives/comm/communicator.h"

/* Ends what is in flight on it with GYRE_ABORTED and frees it; with the last one, frees its context. The caller is not
 * inside. */
void gy_comm_close(struct gyre_comm *comm);

#endif

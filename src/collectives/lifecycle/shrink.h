/* A communicator of the remaining ranks. */
#ifndef GY_COLLECTIVES_LIFECYCLE_SHRINK_H
#define GY_COLLECTIVES_LIFECYCLE_SHRINK_H

#include "collectives/comm/communicator.h"

/* Makes a communicator in a context of its own, of the ranks that take part. Blocks. */
gyre_status gy_shrink(struct gyre_comm *comm, struct gyre_comm **comm_p);

#endif

/* Letting joiners in: grow.c. */
#ifndef GY_COLLECTIVES_LIFECYCLE_GROW_H
#define GY_COLLECTIVES_LIFECYCLE_GROW_H

#include "collectives/comm/communicator.h"

/* A communicator in a context of its own, of the ranks of `comm` and of newcomers. Rank 0 waits for `joiners` of them, at
 * most so long; 0: those who are there. NULL with SUCCESS: there are none, and the communicator goes on. INVALID_ARGUMENT on
 * all, who wait for rank 0's list, where what it wants cannot be. */
gyre_status gy_grow(struct gyre_comm *comm, int joiners, double seconds, struct gyre_comm **comm_p);

#endif

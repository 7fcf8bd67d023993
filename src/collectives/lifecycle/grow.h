/* Admits joiners: grow.c. */
#ifndef GY_COLLECTIVES_LIFECYCLE_GROW_H
#define GY_COLLECTIVES_LIFECYCLE_GROW_H

#include "collectives/comm/communicator.h"

/* Makes a communicator in a context of its own, of the ranks of `comm` and of joiners. Rank 0 waits for `joiners` of
 * them, at most `seconds`; 0: those that are there. NULL with SUCCESS: there are none, and the communicator
 * continues. INVALID_ARGUMENT on all ranks, which wait for rank 0's list, if rank 0 asks for what is impossible. */
gyre_status gy_grow(struct gyre_comm *comm, int joiners, double seconds, struct gyre_comm **comm_p);

#endif

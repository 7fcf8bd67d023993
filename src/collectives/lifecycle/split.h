/* Divides communicators. */
#ifndef GY_COLLECTIVES_LIFECYCLE_SPLIT_H
#define GY_COLLECTIVES_LIFECYCLE_SPLIT_H

#include "collectives/comm/communicator.h"

/* Collective over `parent`. Every rank passes a colour and a key. Ranks of one colour get a communicator, in the
 * order of their keys and then of their ranks. colour < 0: none, NULL in *comm_p. `word` must be the same on all
 * ranks. */
gyre_status gy_comm_divide(struct gyre_comm *parent, int colour, int key, uint32_t word, struct gyre_comm **comm_p);

#endif

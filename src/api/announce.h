/* What GYRE_LOG=info says of a world that has just been made, as users of NCCL_DEBUG=INFO expect it. */
#ifndef GY_API_ANNOUNCE_H
#define GY_API_ANNOUNCE_H

#include "collectives/comm/communicator.h"

/* Each rank: version, rank, process, host, integrity, and by which transport it reaches the others. Rank 0: the algorithm of each
 * collective, by size. Nothing where the level is not enabled. */
void gy_announce_world(struct gyre_comm *comm);

#endif

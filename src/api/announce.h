/* What GYRE_LOG=info prints about a new world, as users of NCCL_DEBUG=INFO expect it. */
#ifndef GY_API_ANNOUNCE_H
#define GY_API_ANNOUNCE_H

#include "collectives/comm/communicator.h"

/* Each rank prints: version, rank, process, host, integrity, and the transport to each other rank. Rank 0 also
 * prints the algorithm of each collective, by size. Prints nothing if the level is not enabled. */
void gy_announce_world(struct gyre_comm *comm);

#endif

/* Going on after a failure: agreement among those who are left, and a communicator of them. */
#ifndef GY_COLLECTIVES_RECOVER_H
#define GY_COLLECTIVES_RECOVER_H

#include "collectives/comm.h"

/* The bits that all who take part have in common. Blocks; works whatever has failed, but after an abort. */
gyre_status gy_recover_agree(struct gyre_comm *comm, uint64_t bits, uint64_t *bits_p);
/* A communicator in a context of its own, of those who take part. */
gyre_status gy_recover_shrink(struct gyre_comm *comm, struct gyre_comm **comm_p);
/* Looks for news without blocking, in a failed world too. */
void gy_recover_look(struct gy_context *ctx);

#endif

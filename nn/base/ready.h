/* Whether every rank can go on. */
#ifndef GY_NN_BASE_READY_H
#define GY_NN_BASE_READY_H

#include <gyre/gyre.h>

/* Collective, between stages in which a single rank may fail: `status` is this rank's. If ranks have failed, every
 * other rank gets the status of the lowest failed rank, and the message "rank R: " with that rank's. A rank that has
 * failed keeps its own. comm may be NULL. */
gyre_status gy_nn_agree_ready(gyre_comm *comm, gyre_status status);

#endif

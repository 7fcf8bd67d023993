/* Whether every rank can go on. */
#ifndef GY_NN_BASE_READY_H
#define GY_NN_BASE_READY_H

#include <gyre/gyre.h>

/* Collective, between stages in which one rank alone may fail: `status` is this rank's. Where ranks have failed, every other rank
 * gets the status of the lowest of them, and the sentence "rank R: " with that rank's; a rank that has failed keeps its own. comm
 * may be NULL. */
gyre_status gy_nn_agree_ready(gyre_comm *comm, gyre_status status);

#endif

/* Argument checks, shared by the public functions. A wrong argument leaves the communicator as it was. */
#ifndef GY_API_CHECK_H
#define GY_API_CHECK_H

#include "collectives/request.h"

/* Is the communicator usable by this process, and its world whole? */
gyre_status gy_check_comm(struct gyre_comm *comm);
/* The world was broken before this call began: the sentence says which call met it, once. Returns `status`. */
gyre_status gy_check_refused(struct gyre_comm *comm, const struct gy_call *call, gyre_status status);
gyre_status gy_check_call(struct gyre_comm *comm, const struct gy_call *call);
/* Of a send and a receive at once, each of them checked. */
gyre_status gy_check_apart(struct gyre_comm *comm, const struct gy_call *sends, const struct gy_call *receives);
/* The sentence of a wrong call replaces the last one: unlike failures of the world, it is not the first that counts. */
gyre_status gy_check_fail(struct gyre_comm *comm, gyre_status status, const char *format, ...) GY_PRINTF(3, 4);

#endif

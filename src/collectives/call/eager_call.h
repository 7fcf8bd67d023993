/* Short vectors, exchanged directly instead of by a plan. */
#ifndef GY_COLLECTIVES_CALL_EAGER_CALL_H
#define GY_COLLECTIVES_CALL_EAGER_CALL_H

#include "collectives/engine/request.h"

/* The blocking call, start to end without a request;
 * false: this call takes the general path, and nothing has happened yet. */
bool gy_tiny_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);
/* The same for a call that does not block, with a request that holds nothing; false likewise. */
bool gy_tiny_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
/* The same of one that has been such an exchange before. */
bool gy_tiny_restart(struct gyre_request *request);
/* The request at the head of the queue, a direct exchange, has its turn, and so have those behind it when it is over. */
bool gy_tiny_advance(struct gyre_request *request);
/* Shows as many of the exchanges in the queue as may be under way at once. */
void gy_tiny_show(struct gyre_comm *comm);
/* Is a call of this shape, of elements of so many bytes, exchanged directly? The same on every rank. */
bool gy_tiny_fits(struct gyre_comm *comm, const struct gy_arrival *shape, size_t element);
/* The algorithm that stands in the shape of a call that is; false: it is not. */
bool gy_tiny_algorithm(struct gyre_comm *comm, const struct gy_call *call, enum gy_algorithm *algorithm_p);

/* Is there nothing unusual about the call: a communicator that is in use, counts that are the same everywhere, an operation of
 * the kernels, nobody who compares or asks to be shown? */
bool gy_tiny_is_plain(const struct gyre_comm *comm, const struct gy_call *call);

#endif

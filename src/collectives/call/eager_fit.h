/* Which calls are exchanged directly instead of by a plan. */
#ifndef GY_COLLECTIVES_CALL_EAGER_FIT_H
#define GY_COLLECTIVES_CALL_EAGER_FIT_H

#include "collectives/engine/request.h"

/* Is a call of this shape, of elements of so many bytes, exchanged directly? The same on every rank. */
bool gy_eager_fits(struct gyre_comm *comm, const struct gy_call_signature *shape, size_t element);
/* The algorithm that stands in the shape of a call that is; false: it is not. */
bool gy_eager_algorithm(struct gyre_comm *comm, const struct gy_call *call, enum gy_algorithm *algorithm_p);
/* Is there nothing unusual about the call: a communicator that is in use, counts that are the same everywhere, an operation of
 * the kernels, nobody who compares or asks to be shown? */
bool gy_eager_is_plain(const struct gyre_comm *comm, const struct gy_call *call);
/* Bytes of the largest contribution that is exchanged directly; −1: none. */
int32_t gy_eager_limit(struct gyre_comm *comm, enum gy_collective collective);
/* True if a plain call is one of these. What is unusual takes the request path: a first call, which makes plan, region and request, an
 * operation that needs more than kernels, a choice that is to be shown. */
bool gy_eager_is_open(struct gyre_comm *comm, const struct gy_call *call);

#endif

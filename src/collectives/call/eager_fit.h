/* Which calls use the eager exchange instead of a schedule. */
#ifndef GY_COLLECTIVES_CALL_EAGER_FIT_H
#define GY_COLLECTIVES_CALL_EAGER_FIT_H

#include "collectives/engine/request.h"

/* True if a call of this shape, with elements of `element` bytes, uses the eager exchange. The same on every rank. */
bool gy_eager_fits(struct gyre_comm *comm, const struct gy_call_signature *shape, size_t element);
/* Sets *algorithm_p to the algorithm in the shape of an eager call. Returns false if the call is not one. */
bool gy_eager_algorithm(struct gyre_comm *comm, const struct gy_call *call, enum gy_algorithm *algorithm_p);
/* True if the call is plain: the communicator is in use, counts are the same everywhere, the operation is one of the
 * kernels, and neither result checks nor shown choices are on. */
bool gy_eager_is_plain(const struct gyre_comm *comm, const struct gy_call *call);
/* Returns the bytes of the largest contribution of an eager exchange; -1: none. */
int32_t gy_eager_limit(struct gyre_comm *comm, enum gy_collective collective);
/* True if a plain call is one of these. Other calls take the request path: a first call, which makes schedule, region
 * and request, an operation that needs more than kernels, a choice that is to be shown. */
bool gy_eager_is_open(struct gyre_comm *comm, const struct gy_call *call);

#endif

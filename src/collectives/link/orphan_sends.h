/* Sends of requests that are over. */
#ifndef GY_COLLECTIVES_LINK_ORPHAN_SENDS_H
#define GY_COLLECTIVES_LINK_ORPHAN_SENDS_H

#include "collectives/engine/request.h"

/* It is about to end, without all that it has posted having left: the caller's buffers are free from now on, and the request
 * serves nobody else before links have given its frames back. False: not yet. */
bool gy_request_detach_sends(struct gyre_request *request);
/* Those that are free by now; all: links touch nothing any more. */
void gy_requests_take_back(struct gy_context *ctx, bool all);

#endif

/* Sends of requests that are over. */
#ifndef GY_COLLECTIVES_LINK_ORPHAN_SENDS_H
#define GY_COLLECTIVES_LINK_ORPHAN_SENDS_H

#include "collectives/engine/request.h"

/* Detaches the sends of a request that is about to end before all that it has posted is sent: the caller's buffers
 * are free from now on. The request is not reused before links have released its frames. Returns false if that is
 * not possible yet. */
bool gy_request_detach_sends(struct gyre_request *request);
/* Takes back the requests that are free by now; all: links touch nothing any more. */
void gy_requests_take_back(struct gy_context *ctx, bool all);

#endif

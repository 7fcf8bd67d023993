/* A short message over a link. */
#ifndef GY_COLLECTIVES_LINK_EAGER_MESSAGE_H
#define GY_COLLECTIVES_LINK_EAGER_MESSAGE_H

#include "collectives/engine/request.h"

/* Start to end without a request. The whole of a blocking call; false: it takes the
 * general path, and nothing has happened yet, but for what comm->swapped says. */
bool gy_message_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);
/* Is the short way to and from this rank open? */
bool gy_message_open(const struct gyre_comm *comm, int rank);
/* The header of a call's short vector as one frame, which both ends come to alike; its lane and algorithm are the caller's. */
struct gy_frame gy_message_header(const struct gyre_comm *comm, const struct gy_call *call, uint64_t sequence);
/* Looks for the frame for a while, and takes it; false: it has not come, and nothing has happened. */
bool gy_message_comes(struct gy_awaited *it);
void gy_awaited_take(const struct gy_awaited *awaited, const void *payload);
/* It has happened: counted and recorded as a request's would be, whose vector has so many blocks like the frame's. */
void gy_message_note(struct gyre_comm *comm, const struct gy_frame *frame, size_t blocks);

#endif

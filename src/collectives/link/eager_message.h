/* A short message over a link. */
#ifndef GY_COLLECTIVES_LINK_EAGER_MESSAGE_H
#define GY_COLLECTIVES_LINK_EAGER_MESSAGE_H

#include "collectives/engine/request.h"

/* Runs a blocking call, start to end without a request. Returns false if it takes the general path: nothing has
 * happened, except what comm->sent_ahead says. */
bool gy_message_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);
/* True if the short path to and from this rank is open. */
bool gy_message_open(const struct gyre_comm *comm, int rank);
/* The header of a call's short vector as one frame, the same on both ends; the caller sets its lane and algorithm. */
struct gy_frame gy_message_header(const struct gyre_comm *comm, const struct gy_call *call, uint64_t sequence);
/* Polls for the frame for a while, and copies it. Returns false, with no effect, if it has not arrived. */
bool gy_message_comes(struct gy_awaited *it);
void gy_awaited_take(const struct gy_awaited *awaited, const void *payload);
/* Counts and records a completed message as a request would, with `blocks` blocks like the frame's in its vector. */
void gy_message_note(struct gyre_comm *comm, const struct gy_frame *frame, size_t blocks);

#endif

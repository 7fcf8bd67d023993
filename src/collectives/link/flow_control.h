/* The steps over links. */
#ifndef GY_COLLECTIVES_LINK_FLOW_CONTROL_H
#define GY_COLLECTIVES_LINK_FLOW_CONTROL_H

#include "collectives/engine/request.h"

/* The lane comes to a step over a link: what follows from the step, and which grants count. */
void gy_flow_begin(struct gyre_request *request, int lane, const struct gy_step *step);
bool gy_flow_send(struct gyre_request *request, int lane);
bool gy_flow_receive(struct gyre_request *request, int lane);
bool gy_flow_reap(struct gyre_request *request, int lane);
/* How many of the request's messages from there may be under way at once. */
uint64_t gy_flow_ahead(const struct gyre_request *request, int peer);
/* Do the messages of the step leave before they are granted? */
bool gy_flow_is_eager(const struct gyre_request *request, int lane, const struct gy_step *step);
/* Eager frames that were consumed and are to be given back: a frame of data takes them along in its header (owed), which counts
 * once it is as good as sent (returned); and what else was consumed, in batches (give_credit). */
uint8_t gy_flow_owed(const struct gyre_comm *comm, int peer, uint64_t sequence);
void gy_flow_returned(struct gyre_comm *comm, int peer, const struct gy_frame *frame);
void gy_flow_give_credit(struct gyre_comm *comm, int peer, const struct gy_frame *frame);
/* Do both ends of a link that is dialled, over TCP or RDMA, lie on this host? */
bool gy_flow_is_same_host(const struct gyre_comm *comm, int peer);
/* Nothing is there of the short message that a call waits for: what is owed is given back now, if that brings it sooner, as between
 * sockets of a host. */
void gy_flow_kept_waiting(struct gyre_comm *comm, int peer, uint64_t sequence);
void gy_flow_consume(struct gyre_request *request, int lane, const void *payload);
void gy_frame_fill(const struct gyre_request *request, struct gy_frame *frame, enum gy_frame_kind kind, int channel,
                   int peer);
/* Did the peer call what this rank called? False: mismatch, and the world is told. */
bool gy_flow_fits(struct gyre_request *request, int peer, const struct gy_frame *frame);
/* The lane that sends to the peer (or receives from it) on the channel; −1: none. */
int gy_flow_lane(const struct gyre_request *request, unsigned channel, int peer, bool sends);
/* False: the lane's one before is still under way. */
bool gy_flow_control(struct gyre_request *request, int lane, int peer, enum gy_frame_kind kind, uint64_t value);
static inline enum gy_credit_use gy_credit_use_of(uint64_t sequence)
{
    return sequence & GY_POINT_TO_POINT ? GY_FOR_MESSAGES : GY_FOR_COLLECTIVES;
}

#endif

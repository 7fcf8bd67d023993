/* The steps over links. */
#ifndef GY_COLLECTIVES_LINK_FLOW_CONTROL_H
#define GY_COLLECTIVES_LINK_FLOW_CONTROL_H

#include "collectives/engine/request.h"

/* The lane reaches a step over a link: sets what follows from the step, and which grants are valid. */
void gy_flow_begin(struct gyre_request *request, int lane, const struct gy_step *step);
bool gy_flow_send(struct gyre_request *request, int lane);
bool gy_flow_receive(struct gyre_request *request, int lane);
bool gy_flow_reap(struct gyre_request *request, int lane);
/* The number of the request's messages from that peer that may be in flight at once. */
uint64_t gy_flow_ahead(const struct gyre_request *request, int peer);
/* True if the messages of the step are sent before they are granted. */
bool gy_flow_is_eager(const struct gyre_request *request, int lane, const struct gy_step *step);
/* The credit of consumed eager frames. owed: a data frame returns it in its header. returned: call it once that
 * frame is certain to be sent. give_credit: returns other consumed frames, in batches. */
uint8_t gy_flow_owed(const struct gyre_comm *comm, int peer, uint64_t sequence);
void gy_flow_returned(struct gyre_comm *comm, int peer, const struct gy_frame *frame);
void gy_flow_give_credit(struct gyre_comm *comm, int peer, const struct gy_frame *frame);
/* True if the peer is on this host and the link to it leads through descriptors all the same, as over TCP or RDMA: what
 * is sent loops back inside the host. False between hosts and for shared memory. */
bool gy_flow_is_loopback(const struct gyre_comm *comm, int peer);
/* The short message that a call awaits has not arrived: returns the owed credit now, if that brings it sooner, as
 * between sockets of a host. */
void gy_flow_kept_waiting(struct gyre_comm *comm, int peer, uint64_t sequence);
void gy_flow_consume(struct gyre_request *request, int lane, const void *payload);
void gy_frame_fill(const struct gyre_request *request, struct gy_frame *frame, enum gy_frame_kind kind, int tag,
                   int peer);
/* True if the peer's call is this rank's. Returns false on a mismatch, which is reported. */
bool gy_flow_fits(struct gyre_request *request, int peer, const struct gy_frame *frame);
/* The lane that sends to the peer (or receives from it) with the tag; -1: none. */
int gy_flow_lane(const struct gyre_request *request, unsigned tag, int peer, bool sends);
/* Sends a control frame. Returns false if the lane's frame before is still in flight. */
bool gy_flow_control(struct gyre_request *request, int lane, int peer, enum gy_frame_kind kind, uint64_t value);
static inline enum gy_credit_use gy_credit_use_of(uint64_t sequence)
{
    return sequence & GY_POINT_TO_POINT ? GY_FOR_MESSAGES : GY_FOR_COLLECTIVES;
}

#endif

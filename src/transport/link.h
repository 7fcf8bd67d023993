/* The parts common to all links: a peer, a queue of outgoing frames, the frame being received, and one failure.
 *
 *   post --> [first ... last] --> wire        the queue is threaded through the frames: posting allocates nothing
 *   wire --> inbound.frame, inbound.place --> handler.arrived
 *
 * A failure found while posting is stored and reported by the next progress call, because the receive handler must
 * not be entered from its own post. */
#ifndef GY_TRANSPORT_LINK_H
#define GY_TRANSPORT_LINK_H

#include "transport/transport.h"

enum gy_link_state {
    GY_LINK_OPEN,
    GY_LINK_FAILED, /* error is filled, not yet reported to the receive handler */
    GY_LINK_DEAD,   /* reported to the receive handler; nothing moves any more */
};

/* First member of every transport's own link. Touched only by the driving thread. */
struct gy_link {
    int peer;
    enum gy_link_state state;
    struct gy_frame_out *first, *last;
    const struct gy_frame_out *kept; /* in that queue: the rest of what send_short accepted; NULL: nothing */
    /* Set by the transport around a delivery: more frames follow in the same progress call. It only saves CREDIT frames
     * (flow_control.c), so a transport that cannot tell leaves it false. */
    bool more;
    struct {
        bool active; /* header seen, payload not complete */
        struct gy_frame frame;
        unsigned char *place;
        size_t got;   /* shm, rdma: padding included */
        bool dropped; /* its owner is gone: the rest is read from the stream and discarded */
    } inbound;
    struct gy_error error;
};

void gy_link_push(struct gy_link *link, struct gy_frame_out *frame);
/* Inserts before the payloads after the first `begun` frames; never before a frame without a payload. */
void gy_link_push_ahead(struct gy_link *link, struct gy_frame_out *frame, size_t begun);
/* Removes the first frame from the queue and returns it to its owner: not touched afterwards. */
void gy_link_complete_first(struct gy_link *link);

/* Asks the receive handler for the payload's place and opens `inbound`. Returns false if the link failed. */
bool gy_link_inbound_begin(struct gy_link *link, const struct gy_receive_handler *handler,
                           const struct gy_frame *frame);
/* The payload is complete: tells the receive handler. Returns false if the handler refused; then the link is dead. */
bool gy_link_inbound_end(struct gy_link *link, const struct gy_receive_handler *handler);
/* The receive handler revokes the place that it gave. Received and remaining bytes of the payload go to `memory`,
 * which has room for all of it, until the next payload begins. The handler is not told of this one. A seal is still
 * checked. */
void gy_link_inbound_drop(struct gy_link *link, unsigned char *memory);
/* The same without place(), from the transport's memory. */
bool gy_link_arrived(struct gy_link *link, const struct gy_receive_handler *handler, const struct gy_frame *frame,
                     const void *payload);

/* Records the failure; the first one wins. Not logged as an error: the layer above decides whether a closed link is
 * one. */
void gy_link_fail(struct gy_link *link, gyre_status status, const char *format, ...) GY_PRINTF(3, 4);
/* Reports a new failure to the receive handler; returns true if there was one. */
bool gy_link_report(struct gy_link *link, const struct gy_receive_handler *handler);

/* Optional operations of transports that have nothing to do there. */
bool gy_transport_always_available(char *why, size_t why_bytes);
void gy_transport_register_nothing(void *instance, const void *memory, size_t bytes);
void gy_transport_unregister_nothing(void *instance, const void *memory);
bool gy_transport_register_no_device(void *instance, const void *memory, size_t bytes, int dmabuf, uint64_t offset);
void *gy_transport_expose_nothing(void *instance, void *memory, size_t bytes, struct gy_rma_key *key_p);
void gy_transport_conceal_nothing(void *instance, void *exposed);
bool gy_transport_send_no_short(struct gy_link *link, const struct gy_frame *header, const void *payload);
int64_t gy_transport_round_trip_unknown(const struct gy_link *link);
void gy_transport_describe_nothing(const struct gy_link *link, char *text_p, size_t bytes);
bool gy_transport_reads_nothing_in_place(const struct gy_link *link, const struct gy_frame_out *frame);
void gy_transport_access_nothing(struct gy_link *link, struct gy_access *access);
void gy_transport_check_nothing(struct gy_link *link, int64_t timeout);

#endif

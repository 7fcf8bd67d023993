/* What every link has, whatever carries it: a peer, a queue of outgoing frames, the frame that is arriving, and one
 * failure.
 *
 *   post --> [first ... last] --> wire        the queue is threaded through the frames: posting allocates nothing
 *   wire --> inbound.frame, inbound.place --> sink.arrived
 *
 * A failure found while posting is kept and told to the receive handler at the next progress, because the receive handler must not be entered
 * from its own post. */
#ifndef GY_TRANSPORT_LINK_H
#define GY_TRANSPORT_LINK_H

#include "transport/transport.h"

enum gy_link_state {
    GY_LINK_OPEN,
    GY_LINK_FAILED, /* error is filled, the receive handler does not know yet */
    GY_LINK_DEAD,   /* the receive handler knows; nothing moves any more */
};

/* First member of every transport's own link. Touched only by the driving thread. */
struct gy_link {
    int peer;
    enum gy_link_state state;
    struct gy_frame_out *first, *last;
    const struct gy_frame_out *kept; /* in that queue: the rest of what send_short took; NULL: nothing */
    bool
        more; /* the receive handler is given a frame, and behind that others have come, which it gets in this progress, too */
    struct {
        bool active; /* header seen, payload not complete */
        struct gy_frame frame;
        unsigned char *place;
        size_t got;   /* shm, rdma: padding, too */
        bool dropped; /* whose it was is gone: read to its end, as the stream has it, and then forgotten */
    } inbound;
    struct gy_error error;
};

void gy_link_push(struct gy_link *link, struct gy_frame_out *frame);
/* Before the payloads behind the first `begun` frames; never before a frame without one. */
void gy_link_push_ahead(struct gy_link *link, struct gy_frame_out *frame, size_t begun);
/* Takes the first frame off the queue and gives it back to its owner: not touched afterwards. */
void gy_link_complete_first(struct gy_link *link);

/* Asks the receive handler where the payload goes and opens `inbound`. false: the link failed. */
bool gy_link_inbound_begin(struct gy_link *link, const struct gy_receive_handler *handler,
                           const struct gy_frame *frame);
/* The payload is complete: tells the sink. false: the receive handler refused and the link is dead. */
bool gy_link_inbound_end(struct gy_link *link, const struct gy_receive_handler *handler);
/* The receive handler takes back the place that it gave. What has come and what is still to come of the payload goes to `memory`, which is
 * large enough for all of it, until the next one begins; the receive handler does not hear of this one. A seal is checked all the same. */
void gy_link_inbound_drop(struct gy_link *link, unsigned char *memory);
/* The same without place(), from memory that the transport owns. */
bool gy_link_arrived(struct gy_link *link, const struct gy_receive_handler *handler, const struct gy_frame *frame,
                     const void *payload);

/* Notes the failure, the first one wins. Not logged as an error: whether a closed link is one is decided above. */
void gy_link_fail(struct gy_link *link, gyre_status status, const char *format, ...) GY_PRINTF(3, 4);
/* Tells the receive handler about a failure that it does not know; true if it did. */
bool gy_link_report(struct gy_link *link, const struct gy_receive_handler *handler);

/* Slots for transports that have nothing special to say. */
bool gy_transport_always_available(char *why, size_t why_bytes);
void gy_transport_know_nothing(void *instance, const void *memory, size_t bytes);
void gy_transport_forget_nothing(void *instance, const void *memory);
bool gy_transport_know_no_device(void *instance, const void *memory, size_t bytes, int dmabuf, uint64_t offset);
void *gy_transport_expose_nothing(void *instance, void *memory, size_t bytes, struct gy_rma_key *key_p);
void gy_transport_conceal_nothing(void *instance, void *exposed);
bool gy_transport_send_no_short(struct gy_link *link, const struct gy_frame *header, const void *payload);
int64_t gy_transport_round_trip_unknown(const struct gy_link *link);
void gy_transport_describe_nothing(const struct gy_link *link, char *text_p, size_t bytes);
bool gy_transport_lends_nothing(const struct gy_link *link, const struct gy_frame_out *frame);
void gy_transport_access_nothing(struct gy_link *link, struct gy_access *access);
void gy_transport_check_nothing(struct gy_link *link, int64_t timeout);

#endif

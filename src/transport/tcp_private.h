/* Shared by the parts of the tcp transport only: tcp.c (connections, the table), tcp_send.c and tcp_receive.c (frames
 * to bytes and back). Touched by the driving thread alone. */
#ifndef GY_TRANSPORT_TCP_PRIVATE_H
#define GY_TRANSPORT_TCP_PRIVATE_H

#include "transport/envelope.h"
#include "transport/link.h"

#define GY_TCP_AHEAD (16u << 10)

struct tcp_link {
    struct gy_link base;
    struct tcp *tcp;
    struct gy_watch watch; /* fd −1: not connected yet, or no more */
    struct tcp_link *next;
    bool mute; /* sending failed: what the peer sent before it went is still read, then the end is reported */
    struct gy_envelopes *envelopes; /* what leaves sealed, see envelope.h; NULL: the link is not sealed */
    struct gy_seal opens;           /* and what comes; valid where envelopes is */
    size_t start, end;              /* unread bytes of ahead */
    size_t wakes_at;                /* bytes in the socket that end a sleep, 0 and 1 alike: any */
    unsigned char ahead[GY_TCP_AHEAD];
};

/* Accepted before anybody here asked for the link. */
struct tcp_parked {
    int fd; /* −1: none */
    struct gy_seal_keys keys;
};

struct tcp {
    struct gy_transport_env env;
    struct tcp_link *links;    /* asked for so far */
    struct tcp_parked *parked; /* [world size] */
    bool closed;
};

/* The connection is at its end; `reason` an errno, or 0: by the peer, in order. */
void gy_tcp_fail(struct tcp_link *link, int reason);
/* Sends what the socket takes; true if anything moved. */
bool gy_tcp_flush(struct tcp_link *link);
/* Is there something to do with what is in memory already? */
bool gy_tcp_digestible(const struct tcp_link *link);
/* Before a sleep: what of the payload under way is worth an end of it. */
void gy_tcp_expect(struct tcp_link *link);
/* Reads what is there, within bounds, and hands complete frames to the sink; true if anything moved. */
bool gy_tcp_receive(struct tcp_link *link);

#endif

/* Shared by the parts of the tcp transport only: tcp.c (connections, the table), tcp/send.c and tcp/receive.c (frames
 * to bytes and back), striping.c (several connections as one link). Touched by the driving thread alone. */
#ifndef GY_TRANSPORT_TCP_INTERNAL_H
#define GY_TRANSPORT_TCP_INTERNAL_H

#include "net/socket.h"
#include "transport/link.h"
#include "transport/sealed_frames.h"

#define GY_TCP_SLOTS 8 /* of 256 KiB: 2 MiB a rank */
#define GY_TCP_EAGER (64u << 10)
#define GY_TCP_AHEAD (GY_TCP_EAGER + 1024) /* an eager frame arrives whole in one call, under any seal */

/* Flags of a frame between sockets of one host, in gy_frame.flags beside GY_FRAME_EAGER: zero_copy_policy.c. */
#define GY_TCP_FRAME_NT 2u          /* sent by non-temporal copy */
#define GY_TCP_FRAME_CLASS_SHIFT 2u /* bits 2 and 3: the size class of `pace` */
#define GY_TCP_FRAME_TIMED 16u      /* its payload's copies are timed */

struct tcp_link;

/* A connection. A link has one, or one for each interface of ours. */
struct tcp_rail {
    struct gy_watch watch; /* fd −1: not connected yet, or no more */
    struct tcp_link *link;
    size_t wakes_at; /* unread bytes that end a sleep, 0 and 1 alike: any */
    struct gy_socket_progress progress;
    unsigned unanswered; /* consecutive checks that found the peer's host silent */
};

/* Position in a link's byte stream, in one direction. */
struct tcp_way {
    struct tcp_rail *rail;
    size_t left; /* bytes until the next rail's turn; unbounded for a single rail */
};

/* Timing samples of the kernel's copy of payloads. */
#define GY_TCP_FIGURES 8u
struct tcp_pace {
    int64_t ns; /* for this many bytes since the last sample */
    size_t bytes;
    uint8_t count, next;             /* number of samples, and the index of the next */
    uint16_t mean;                   /* nanoseconds per KiB; 0: not known yet */
    uint16_t figure[GY_TCP_FIGURES]; /* the samples, each */
};

/* State of zero_copy_policy.c for payloads of about one length. Of two paces the first is that of plain sends, the
 * second of non-temporal ones. */
#define GY_TCP_SORTS 4u                    /* from 16 KiB, twice, four and eight times that */
#define GY_TCP_ZERO_COPY_LEAST (16u << 10) /* shorter payloads are sent plainly */
#define GY_TCP_ZERO_COPY_LONG (128u << 10)
struct tcp_sort {
    struct tcp_pace sends[2], reads[2];
    uint16_t theirs[2]; /* the peer's read times */
    bool pays;          /* non-temporal sends take less time of both ends together */
    unsigned frames;    /* sent so far */
};

struct tcp_policy {
    uint64_t taken;     /* bytes of the stream that the peer has read, as last reported */
    bool tells;         /* the last received payload had a size class, `said`; the peer is told of it */
    bool reading_timed; /* the current or next payload is timed */
    bool nt, timed;     /* the last header's flags */
    unsigned said;      /* the size class */
    size_t unnamed;     /* bytes in the read-ahead of an unknown frame, */
    int64_t unnamed_ns; /* and the time to read them */
    struct tcp_sort sort[GY_TCP_SORTS];
    /* zero_copy_pool.c: */
    const struct gy_frame_out *frame; /* the frame with a piece in `slot` that has not fully left; NULL: none */
    unsigned slot;
    bool fresh;         /* its pages were never touched */
    size_t from, bytes; /* start of that piece in the frame, header included, and its length */
};

struct tcp_link {
    struct gy_link base;
    struct tcp *tcp;
    struct tcp_link *next;
    const struct gy_receive_handler *handler; /* the layer above; until RAILS has come, striping.c before it */
    struct tcp_way out, in;
    bool same_machine;              /* only this machine's kernel is between the ends */
    bool deferred;                  /* the queue waits for the next progress, see gy_frame_out.coalesce */
    bool send_failed;               /* sending failed: the peer's remaining data is read, then the end is reported */
    struct gy_envelopes *envelopes; /* outgoing seals, see sealed_frames.h; NULL: the link is not sealed */
    struct gy_seal opens;           /* incoming seal; valid if envelopes is */
    struct tcp_policy policy;
    struct gy_frame_out kept; /* base.kept, with `rest` as its payload: see tcp/send.c */
    bool lengthy;             /* the last payload was longer than that: see tcp/receive.c */
    unsigned arrivals;        /* arrivals since the last sleep or post: see tcp/receive.c */
    size_t start, end;        /* unread bytes of ahead */
    size_t whole;             /* bytes of a frame that is processed when complete; 0: none */
    struct tcp_rail rail[GY_RAILS_MOST];
    struct tcp_rails *rails; /* state of several rails; NULL: there is one */
    /* The last member, so that its pages are untouched until data arrives or stays. */
    unsigned char ahead[GY_TCP_AHEAD];
    unsigned char rest[GY_TCP_EAGER];
};

/* The pool that a transport's links share. */
struct tcp_pool {
    bool refused;          /* unavailable */
    int fd;                /* valid where memory is */
    unsigned char *memory; /* NULL: not wanted yet */
    struct tcp_slot {
        const struct tcp_link *link; /* its link; NULL: free */
        uint64_t until;              /* free once that link's stream has been read up to here */
        bool bare;                   /* it has no pages */
    } slot[GY_TCP_SLOTS];
};

/* Accepted before the link was requested here. */
struct tcp_parked {
    int fd;                    /* −1: none */
    struct gy_seal_keys *keys; /* secret memory; NULL: the link is not sealed */
};

struct tcp {
    struct gy_transport_env env;
    int rails;                                  /* connections of a link */
    struct sockaddr_storage own[GY_RAILS_MOST]; /* their addresses here (port 0), where there are several */
    struct tcp_link *links;                     /* requested so far */
    gy_listener_func on_connected;              /* for a rail that was connected, or failed to connect */
    struct tcp_pool pool;
    struct tcp_parked *parked; /* [world size], of first rails */
    bool closed;
};

/* tcp.c. Starts using the connected socket. */
void gy_tcp_connected(struct tcp_rail *rail, int fd, const struct gy_seal_keys *keys);

/* Returns an error message for an errno of a connection. 0: the peer closed it. EMSGSIZE: the path drops long
 * packets. */
const char *gy_tcp_reason(int reason);
/* Closes the connection and the link; `reason` as above. */
void gy_tcp_fail(struct tcp_rail *rail, int reason);
/* Sends what the socket accepts; true if anything moved. */
bool gy_tcp_flush(struct tcp_link *link);
/* send_short of the table. */
bool gy_tcp_send_short(struct gy_link *link, const struct gy_frame *header, const void *payload);
/* True if data in memory can be processed. */
bool gy_tcp_digestible(const struct tcp_link *link);
/* Before a sleep: sets how much of the current payload ends it. */
void gy_tcp_expect(struct tcp_link *link);
/* Ends the quiet mode: more than short frames is awaited. */
void gy_tcp_listen(struct tcp_link *link);
/* The rail's part of it, called by the poller before any sleep. */
void gy_tcp_end_quiet(void *rail);
/* Reads available data, within bounds, and delivers complete frames to the receive handler; true if anything moved. */
bool gy_tcp_receive(struct tcp_link *link);

/* striping.c. Advances by `bytes` and switches rails. */
void gy_tcp_next_rail(struct tcp_way *way);
static inline void gy_tcp_passed(struct tcp_way *way, size_t bytes)
{
    way->left -= bytes;
    if (way->left == 0)
        gy_tcp_next_rail(way);
}
/* Makes a new link's rails, and sends the peer their addresses if its rank is the higher one. Returns false if out
 * of memory. */
bool gy_tcp_rails_make(struct tcp_link *link);
/* Returns the link's rail on which the peer has connected. */
int gy_tcp_rails_come_by(const struct tcp *tcp, int fd);
/* " over eth1 (10.1.0.1) to 10.1.0.2" for messages, or "" if there is one rail. */
#define GY_TCP_RAIL_TEXT 288
const char *gy_tcp_rails_name(const struct tcp_rail *rail, char text_p[GY_TCP_RAIL_TEXT]);

/* Where link->rails is not NULL only: */
/* This rail is connected: its other end's name is known from now on. */
void gy_tcp_rails_connected(struct tcp_rail *rail);
/* Sending on this rail is no longer possible. */
void gy_tcp_rails_send_failed(struct tcp_rail *rail, int reason);
/* The poller reports the end of this rail, which is not being read. */
void gy_tcp_rails_end(struct tcp_rail *rail);
/* Fails a link that cannot send if the awaited data cannot arrive any more. */
void gy_tcp_rails_check(struct tcp_link *link);
/* The link has failed because of this rail: all ranks are told if no other rank can know. */
void gy_tcp_rails_fail(struct tcp_rail *rail, int reason);
/* The link has failed: its rails are idle until close. */
void gy_tcp_rails_rest(struct tcp_link *link);

/* Returns the byte position of a link with one rail. */
static inline uint64_t gy_tcp_position(const struct tcp_way *way)
{
    return SIZE_MAX - way->left;
}

/* zero_copy_policy.c: selects non-temporal payloads. Before a frame leaves or is queued: sets its flags and its read
 * report. */
void gy_tcp_zero_copy_mark(struct tcp_link *link, struct gy_frame *header);
/* Processes and clears the policy's fields of a received header. */
void gy_tcp_zero_copy_heard(struct tcp_link *link, struct gy_frame *header);
/* Returns the size class of the payload; NULL if payloads of this size are not timed. */
struct tcp_sort *gy_tcp_zero_copy_sort(struct tcp_link *link, size_t payload);
/* Adds a timing: `bytes` of such a payload took `ns`. */
void gy_tcp_zero_copy_timed(struct tcp_pace *pace, size_t payload, size_t bytes, int64_t ns);
/* Adds bytes read of the payload, or of a frame not known yet. */
void gy_tcp_zero_copy_read(struct tcp_link *link, size_t bytes, int64_t ns);
/* A frame's payload begins: bytes already read are counted for it. */
void gy_tcp_zero_copy_begin(struct tcp_link *link, const struct gy_frame *header);

/* zero_copy_pool.c: the pool. True if a piece of the frame, the first to leave, is or can be placed in the pool.
 * Else it is sent plainly. */
bool gy_tcp_pool_has(struct tcp_link *link, struct gy_frame_out *frame);
/* Sends what the socket accepts of that piece: bytes, or −1 and errno as sendmsg does. */
ssize_t gy_tcp_pool_send(struct tcp_link *link);
/* The link's connection is closed: unread slots stay as they are. */
void gy_tcp_pool_leave(struct tcp_link *link);
void gy_tcp_pool_free(struct tcp_pool *pool);

#endif

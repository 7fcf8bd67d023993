/* Shared by the parts of the tcp transport only: tcp.c (connections, the table), tcp/send.c and tcp/receive.c (frames
 * to bytes and back), striping.c (several connections as one link). Touched by the driving thread alone. */
#ifndef GY_TRANSPORT_TCP_INTERNAL_H
#define GY_TRANSPORT_TCP_INTERNAL_H

#include "net/socket.h"
#include "transport/link.h"
#include "transport/sealed_frames.h"

#define GY_TCP_SLOTS 8 /* of 256 KiB: 2 MiB a rank */
#define GY_TCP_EAGER (64u << 10)
#define GY_TCP_AHEAD (GY_TCP_EAGER + 1024) /* an eager frame comes whole by one call, whatever seals it */

struct tcp_link;

/* A connection. A link has one, or one for each interface of ours. */
struct tcp_rail {
    struct gy_watch watch; /* fd −1: not connected yet, or no more */
    struct tcp_link *link;
    size_t wakes_at; /* bytes in the socket that end a sleep, 0 and 1 alike: any */
    struct gy_socket_progress progress;
    unsigned unanswered; /* looks that found the peer's host silent, one after the other */
};

/* How far a link's stream of bytes has come, in one direction. */
struct tcp_way {
    struct tcp_rail *rail;
    size_t left; /* bytes that go over it before the next has its turn; where it is alone, more than ever will */
};

/* What the kernel's copy of payloads takes: the last figures. */
#define GY_TCP_FIGURES 8u
struct tcp_pace {
    int64_t ns; /* for so many bytes since the last of them */
    size_t bytes;
    uint8_t count, next;             /* of figures, and the place of the next */
    uint16_t mean;                   /* nanoseconds for a KiB; 0: not known yet */
    uint16_t figure[GY_TCP_FIGURES]; /* of them, each */
};

/* What zero_copy_policy.c knows of payloads of about one length. Of two paces the first is that of what goes plainly, the second of what goes past
 * the caches. */
#define GY_TCP_SORTS 4u                    /* from 16 KiB, twice, four and eight times that */
#define GY_TCP_ZERO_COPY_LEAST (16u << 10) /* shorter payloads go plainly */
#define GY_TCP_ZERO_COPY_LONG (128u << 10)
struct tcp_sort {
    struct tcp_pace sends[2], reads[2];
    uint16_t theirs[2]; /* what the peer says of his reads */
    bool pays;          /* payloads past the caches take less of both together */
    unsigned frames;    /* sent so far */
};

struct tcp_past {
    uint64_t taken;     /* bytes of the stream that the peer has read, as he said last */
    bool tells;         /* the last payload that came was of a sort: of this one. The peer is told of that */
    bool heeds;         /* what comes now, or next, is timed */
    bool past, timed;   /* what the last header said */
    unsigned said;      /* the sort */
    size_t unnamed;     /* so many bytes in the read-ahead, of which nothing is known yet, */
    int64_t unnamed_ns; /* took so long to be read */
    struct tcp_sort sort[GY_TCP_SORTS];
    /* zero_copy_pool.c: */
    const struct gy_frame_out *frame; /* a piece of it lies in `slot`, and has not left to its end; NULL: of none */
    unsigned slot;
    bool fresh;         /* whose pages nobody had touched */
    size_t from, bytes; /* of the frame, header included: where that piece begins, and how long it is */
};

struct tcp_link {
    struct gy_link base;
    struct tcp *tcp;
    struct tcp_link *next;
    const struct gy_receive_handler *handler; /* the layer above; until RAILS has come, striping.c before it */
    struct tcp_way out, in;
    bool near;    /* nothing but this machine's kernel is between the ends */
    bool untried; /* what is queued waits for the next progress, see gy_frame_out.patient */
    bool mute;    /* sending failed: what the peer sent before it went is still read, then the end is reported */
    struct gy_envelopes *envelopes; /* what leaves sealed, see sealed_frames.h; NULL: the link is not sealed */
    struct gy_seal opens;           /* and what comes; valid where envelopes is */
    struct tcp_past past;
    struct gy_frame_out kept; /* base.kept, with `rest` as its payload: see tcp/send.c */
    bool lengthy;             /* the last payload was longer than that: see tcp/receive.c */
    unsigned brisk;           /* times that something came since anybody slept or posted a frame: see tcp/receive.c */
    size_t start, end;        /* unread bytes of ahead */
    size_t whole;             /* of them a frame that is looked at when it is there to its end; 0: none */
    struct tcp_rail rail[GY_RAILS_MOST];
    struct tcp_rails *rails; /* what several need besides; NULL: there is one */
    /* Nobody's memory until something comes, or stays: the last, so that no page of them is touched before. */
    unsigned char ahead[GY_TCP_AHEAD];
    unsigned char rest[GY_TCP_EAGER];
};

/* What links have in common of that. */
struct tcp_pool {
    bool refused;          /* it cannot be had */
    int fd;                /* valid where memory is */
    unsigned char *memory; /* NULL: not wanted yet */
    struct tcp_slot {
        const struct tcp_link *link; /* who has it; NULL: nobody */
        uint64_t until;              /* of that link's stream: read so far, it is free */
        bool bare;                   /* it has no pages */
    } slot[GY_TCP_SLOTS];
};

/* Accepted before anybody here asked for the link. */
struct tcp_parked {
    int fd; /* −1: none */
    struct gy_seal_keys keys;
};

struct tcp {
    struct gy_transport_env env;
    int rails;                                  /* connections of a link */
    struct sockaddr_storage own[GY_RAILS_MOST]; /* their addresses here (port 0), where there are several */
    struct tcp_link *links;                     /* asked for so far */
    gy_listener_func dialled;                   /* for a rail that has been dialled, or could not be */
    struct tcp_pool pool;
    struct tcp_parked *parked; /* [world size], of first rails */
    bool closed;
};

/* tcp.c. Takes the connected socket into use. */
void gy_tcp_connected(struct tcp_rail *rail, int fd, const struct gy_seal_keys *keys);

/* A sentence for an errno of a connection. 0: the peer closed it. EMSGSIZE: the path drops long packets. */
const char *gy_tcp_reason(int reason);
/* The connection is at its end, and the link with it; `reason` as above. */
void gy_tcp_fail(struct tcp_rail *rail, int reason);
/* Sends what the socket takes; true if anything moved. */
bool gy_tcp_flush(struct tcp_link *link);
/* send_short of the table. */
bool gy_tcp_send_short(struct gy_link *link, const struct gy_frame *header, const void *payload);
/* Is there something to do with what is in memory already? */
bool gy_tcp_digestible(const struct tcp_link *link);
/* Before a sleep: what of the payload under way is worth an end of it. */
void gy_tcp_expect(struct tcp_link *link);
/* Somebody waits for more than short frames. */
void gy_tcp_listen(struct tcp_link *link);
/* The rail's part of it, which the poller calls before any sleep. */
void gy_tcp_end_quiet(void *rail);
/* Reads what is there, within bounds, and hands complete frames to the receive handler; true if anything moved. */
bool gy_tcp_receive(struct tcp_link *link);

/* striping.c. Whose turn it is after so many bytes. */
void gy_tcp_progress(struct tcp_way *way);
static inline void gy_tcp_passed(struct tcp_way *way, size_t bytes)
{
    way->left -= bytes;
    if (way->left == 0)
        gy_tcp_progress(way);
}
/* A new link gets its rails, and tells the peer of them if its rank is the higher one. False: no memory. */
bool gy_tcp_rails_make(struct tcp_link *link);
/* By which of a link's rails has the peer come? */
int gy_tcp_rails_come_by(const struct tcp *tcp, int fd);
/* " over eth1 (10.1.0.1) to 10.1.0.2" for sentences, or "" where there is one rail. */
#define GY_TCP_RAIL_TEXT 288
const char *gy_tcp_rails_name(const struct tcp_rail *rail, char text_p[GY_TCP_RAIL_TEXT]);

/* Where link->rails is not NULL only: */
/* This one is there: from now on its other end has a name. */
void gy_tcp_rails_connected(struct tcp_rail *rail);
/* Nothing can be sent over this one. */
void gy_tcp_rails_mute(struct tcp_rail *rail, int reason);
/* The poller says that this one, which is not being read, has ended. */
void gy_tcp_rails_end(struct tcp_rail *rail);
/* Does what a mute link had to wait for come no more? Then it fails. */
void gy_tcp_rails_check(struct tcp_link *link);
/* The link has failed because of this one: all ranks are told if nobody else can know. */
void gy_tcp_rails_fail(struct tcp_rail *rail, int reason);
/* The link has failed: it is quiet until it is closed. */
void gy_tcp_rails_rest(struct tcp_link *link);

/* Bytes of a link's one connection. */
static inline uint64_t gy_tcp_position(const struct tcp_way *way)
{
    return SIZE_MAX - way->left;
}

/* zero_copy_policy.c: which payloads go past the caches. Before a frame leaves, or is queued: marks it if it is one, and says what has been read. */
void gy_tcp_zero_copy_mark(struct tcp_link *link, struct gy_frame *header);
/* A header has come: the layer above sees nothing of that in it. */
void gy_tcp_zero_copy_heard(struct tcp_link *link, struct gy_frame *header);
/* Of which sort is a payload of this length? NULL: of none, so that it is not to be known what it takes. */
struct tcp_sort *gy_tcp_zero_copy_sort(struct tcp_link *link, size_t payload);
/* So many bytes of such a payload took `ns`. */
void gy_tcp_zero_copy_timed(struct tcp_pace *pace, size_t payload, size_t bytes, int64_t ns);
/* This much of its payload, or of what is not known yet, has been read. */
void gy_tcp_zero_copy_read(struct tcp_link *link, size_t bytes, int64_t ns);
/* A frame's payload begins: what has been read of it is. */
void gy_tcp_zero_copy_begin(struct tcp_link *link, const struct gy_frame *header);

/* zero_copy_pool.c: how they do. Is a piece of the frame, the first that is to leave, in the pool, or can it come there? Else it goes as others do. */
bool gy_tcp_pool_has(struct tcp_link *link, struct gy_frame_out *frame);
/* Sends of that what the socket takes: bytes, or −1 and errno as sendmsg does. */
ssize_t gy_tcp_pool_send(struct tcp_link *link);
/* The link's connection is closed: what is still to be read stays as it is. */
void gy_tcp_pool_leave(struct tcp_link *link);
void gy_tcp_pool_free(struct tcp_pool *pool);

#endif

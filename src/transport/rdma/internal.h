/* Inside the rdma transport, from the top: rdma.c (operations table, progress, sleeping), events.c (events of devices),
 * connect.c (from a socket to queue pairs), send.c and receive.c (frames), header_elision.c and polled_write.c (short frames),
 * rma.c (one-sided), arrival.c (order of chunks), read_rendezvous.c (chunks that the receiver reads), queue_pair.c (requests,
 * credit), handshake.c (its messages). No other folder includes this.
 *
 * A link is a byte stream in each direction, laid out in a ring in the receiver's memory, as between ranks of one host:
 *
 *   sender:    staging  |..[header 64][payload, padded to 64]..|      head: written up to here, tail: free again up to here
 *                 │ RDMA write with immediate, one per chunk, to the same offset; a payload in announced memory straight from there
 *                 ▼
 *   receiver:  ring     |..[header 64][payload, padded to 64]..|      head: arrived up to here, tail: consumed up to here
 *
 * Chunk k of a direction goes over queue pair k mod n, so that a large frame is striped over all of them, and devices
 * deliver in any order: the receiver counts arrivals per queue pair, and the stream goes on as far as chunks are there
 * without a gap. The immediate says how long the chunk is, takes credit back by the way, and says of a short frame that
 * its header need not be sent (header_elision.c). A short frame for which the peer looks comes without immediate (polled_write.c).
 * Some chunks are told, and read by the receiver (read_rendezvous.c).
 *
 * Invariants: a receive request is posted for everything that may arrive, so that the receiver is always ready: a sender
 * has at most GY_RDMA_CHUNKS · n chunks for which it has no credit back, and credits have a reserve of their own (there
 * are never more than 13 on their way, see GY_RDMA_RESERVE). Remote ranks can write into the ring, read staging where
 * chunks of it are theirs to read, read and write a page of words of the link (struct gy_rdma_words) and what the program
 * has exposed as a window for as long as it is one, and nothing else. */
#ifndef GY_TRANSPORT_RDMA_INTERNAL_H
#define GY_TRANSPORT_RDMA_INTERNAL_H

#include <stdatomic.h>

#include "transport/link.h"
#include "transport/rdma/devices.h"
#include "transport/rdma/registration_cache.h"

#define GY_RDMA_PATHS 8                  /* queue pairs of a link, at most */
#define GY_RDMA_CHUNK ((64u << 10) + 64) /* bytes, at most: a frame of 64 KiB is one */
#define GY_RDMA_CHUNKS 64u               /* on their way per queue pair */
#define GY_RDMA_RESERVE 16u              /* receive requests for credits, and send requests */
#define GY_RDMA_SENDS (2 * GY_RDMA_CHUNKS + GY_RDMA_RESERVE)
#define GY_RDMA_RECEIVES (GY_RDMA_CHUNKS + GY_RDMA_RESERVE)
#define GY_RDMA_BY_THE_WAY 8u      /* chunks that are credited along with others, before a message of its own is due */
#define GY_RDMA_SIGNAL 16u         /* one request in so many asks for a completion, besides those somebody waits for */
#define GY_RDMA_DIRECT (16u << 10) /* payloads in announced memory are sent from there if they have so many bytes */
#define GY_RDMA_DIRECT_FRAMES 16   /* such frames on their way */
#define GY_RDMA_PIECES 8           /* of one-sided accesses on their way, per link */
#define GY_RDMA_SILENT 1024u       /* bytes of a payload of which nobody is told, at most */
#define GY_RDMA_LOUD 64u           /* progresses for which one loud chunk lets others be expected */
#define GY_RDMA_TAG_BYTES 16u      /* in front of it */
#define GY_RDMA_PULL_LEAST (16u << 10) /* bytes of a chunk that the receiver reads */
#define GY_RDMA_PULLS 2                /* chunks that the receiver reads at once */
#define GY_RDMA_SLOTS 8                /* of the pool for one-sided access, */
#define GY_RDMA_SLOT (32u << 10)       /* and their bytes */
#define GY_RDMA_HELLO_BYTES 448u

/* ---- what the two ends tell each other: rdma/handshake.c, pure ---- */

struct gy_rdma_end { /* of one queue pair */
    uint32_t qp, psn;
    uint64_t ring; /* where the other may write */
    uint32_t key;
    uint16_t lid;
    uint8_t mtu; /* enum ibv_mtu */
    bool ethernet;
    uint8_t reads; /* that it answers at once */
    uint8_t gid[16];
};

struct gy_rdma_hello {
    uint64_t ring_bytes; /* a power of two */
    uint64_t words;      /* where the other reaches struct gy_rdma_words */
    uint64_t secret;     /* from which the sum of a silent frame begins */
    uint32_t words_key;
    int paths;
    struct gy_rdma_end end[GY_RDMA_PATHS];
};

void gy_rdma_hello_encode(const struct gy_rdma_hello *hello, uint8_t wire_p[GY_RDMA_HELLO_BYTES]);
/* False for anything that no honest encoder makes. */
bool gy_rdma_hello_decode(const uint8_t wire[GY_RDMA_HELLO_BYTES], struct gy_rdma_hello *hello_p);

/* ---- a link ---- */

struct gy_rdma_path { /* one queue pair */
    struct ibv_qp *qp;
    int rail;
    uint32_t psn;
    uint32_t posted, finished; /* send requests, of any kind; finished: known from completions */
    uint64_t sent, sent_done;  /* chunks among them */
    uint32_t unsignalled;      /* requests since the last that asks for a completion */
    uint64_t arrived;          /* chunks from the peer */
    uint32_t empty;            /* receive requests to be posted again */
    uint64_t remote_ring;
    uint32_t remote_key;
    bool dirty; /* one-sided writes have gone this way of which nobody knows whether they are in memory */
};

struct gy_rdma_queue { /* a completion queue: one per rail, the context of its events */
    struct gy_rdma_link *link;
    struct ibv_cq *cq;
    bool armed; /* the next completion makes an event */
};

/* A frame whose payload is read from announced memory, by the chunks from `first` to `last`: done when they are. */
struct gy_rdma_direct {
    struct gy_frame_out *frame;
    struct gy_rdma_range *range;
    uint64_t first, last;
    bool begun, whole; /* first, last are valid */
};

/* A piece of a one-sided access that is on its way. access NULL: none. */
struct gy_rdma_piece {
    struct gy_access *access;
    struct gy_rdma_range *range; /* of announced memory, or NULL */
    int slot;                    /* of the pool, −1: none */
    int path;
    uint32_t number; /* of its request on the path */
    unsigned char *place;
    uint32_t bytes;
};

/* A chunk that the peer reads: see read_rendezvous.c. */
struct gy_rdma_pulled {
    const struct gy_frame_out *frame; /* of which it is a piece; compared, not looked into */
    uint64_t end;                     /* its number, and 1: known to be read when so many are back. 0: none */
};

/* A chunk that is read from the peer. */
struct gy_rdma_pull {
    uint32_t place, units; /* in `arrived`, and what is written down there when it is here */
    uint64_t offset;       /* in the ring */
    uint64_t address;      /* there */
    uint32_t key;
    uint32_t number; /* of the request on the path, once posted */
};

/* What the other's device reaches, besides the ring: see polled_write.c. */
struct gy_rdma_words {
    _Atomic uint32_t looks;  /* written by it: the peer looks for silent frames */
    _Atomic uint32_t begun;  /* read by it: chunks up to here may have been silent; little-endian */
    _Atomic uint32_t theirs; /* what our own device has read there */
    uint32_t said;           /* what it writes there */
};

enum gy_rdma_looking { GY_RDMA_LOOKS_NOT, GY_RDMA_LOOKS, GY_RDMA_LOOKS_NO_MORE };

struct gy_rdma_link {
    struct gy_link base;
    struct gy_rdma *rdma;
    struct gy_rdma_link *next;
    struct gy_watch watch; /* of the socket, which tells the peer's end; fd −1: not connected yet, or no more */
    bool made;             /* queue pairs and memory are there */
    bool ready;            /* the peer can receive */
    bool quiet;            /* nothing to be done before a completion comes, or somebody posts or says something */
    bool stopped;          /* everything that was handed over has left, or time is up */
    int64_t ended;         /* when the peer closed, 0: it did not */
    uint8_t hello[GY_RDMA_HELLO_BYTES + 1]; /* what came so far: hello, then one byte when the peer is ready */
    size_t hello_bytes;
    struct gy_rdma_hello theirs;

    int paths;
    struct gy_rdma_path path[GY_RDMA_PATHS];
    struct gy_rdma_queue queue[GY_RDMA_RAILS];

    /* out */
    struct gy_frame_out *unsent; /* the first in base's queue of which something is to be posted */
    bool untried;                /* it waits for the next progress, with all behind it: see gy_frame_out.patient */
    unsigned char *staging;      /* as long as the peer's ring */
    struct ibv_mr *staging_mr[GY_RDMA_RAILS];
    uint64_t out_head, out_tail, out_mask;
    uint64_t chunks, chunks_back; /* sent, and credited */
    struct gy_frame model;        /* the peer remembers this header; epoch 0: none */
    struct ibv_send_wr silent;    /* what silent frames have in common, */
    struct ibv_sge silent_piece;  /* and where the next one lies */
    struct gy_rdma_direct direct[GY_RDMA_DIRECT_FRAMES];
    uint32_t direct_first, direct_count;
    bool may_pull;                   /* chunks may be read by who gets them, either way */
    struct gy_rdma_pulled pulled[2]; /* the last two that the peer was told to read, the newer one behind */
    uint64_t not_before;             /* the stream's place from which chunks may be read again: the peer sends, too */

    /* one-sided */
    struct gy_access *access_first, *access_last; /* not posted to their end */
    struct gy_rdma_piece piece[GY_RDMA_PIECES];
    uint64_t turn; /* pieces so far: over which path the next one goes */

    /* in */
    unsigned char *ring;
    struct ibv_mr *ring_mr[GY_RDMA_RAILS];
    uint64_t in_head, in_tail, in_mask;
    uint64_t next_chunk;                              /* the first that has not arrived */
    uint32_t next_place;                              /* its own in `arrived` */
    uint32_t arrived[GY_RDMA_PATHS * GY_RDMA_CHUNKS]; /* immediates of chunks by number, without credit; 0: not there */
    struct gy_frame remembered;                       /* the header that short frames may leave out; epoch 0: none */
    bool recalled; /* it is that of the frame at in_tail, which is there as a whole */
    /* The receive handler is given frames: what it posts leaves behind the last of them, and so does credit that is awaited. */
    bool digesting;
    struct gy_rdma_words *words;
    struct ibv_mr *words_mr[GY_RDMA_RAILS];
    uint64_t secret;
    enum gy_rdma_looking looking;
    uint32_t repeats;   /* frames that came loudly, and could have been silent, since the last sleep */
    uint32_t loud;      /* progresses that look at the completion queue, too, after a loud chunk */
    uint32_t glances;   /* progresses that did not */
    uint32_t asked_for; /* the number of the request that reads the peer's `begun` */
    struct gy_rdma_pull pull[GY_RDMA_PULLS];
    uint32_t pull_first, pulls, pulls_posted;
    uint64_t told; /* the stream's place behind all chunks that are told; valid while some of them are being read */
    bool awaited;  /* the sender waits for the credit of a chunk that was read */
    uint64_t owed_bytes; /* consumed and not credited yet */
    uint32_t owed_chunks;
};

struct gy_rdma {
    struct gy_transport_env env;
    struct gy_rdma_rail rail[GY_RDMA_RAILS];
    int rails;
    struct gy_watch uevents; /* of the kernel; fd −1: none */
    struct gy_rdma_memory memory;
    struct gy_rdma_exposed *exposed; /* to others, see rdma/rma.c */
    unsigned char *pool; /* GY_RDMA_SLOTS slots for what is put from or got to memory that is not announced */
    struct ibv_mr *pool_mr[GY_RDMA_RAILS];
    uint32_t pool_taken;        /* a bit per slot */
    struct gy_rdma_link *links; /* asked for so far */
    int *parked;                /* [world size] accepted before anybody here asked for the link, −1: none */
    bool (*progress)(struct gy_link *link); /* rdma.c; for callbacks of the poller */
    bool closed;
    bool asleep; /* from arm to disarm: a thread may be, whatever others do meanwhile */
};

/* rdma/connect.c: the socket is there; agrees on queue pairs from then on in callbacks of the poller. */
void gy_rdma_connect(struct gy_rdma_link *link, int fd);
/* Reads what is on the socket; calls no sink. */
void gy_rdma_hear(struct gy_rdma_link *link);
/* Ends it on this side: nothing is read from or written to any memory by a device when this returns. Never blocks for
 * the peer. */
void gy_rdma_disconnect(struct gy_rdma_link *link);

/* The immediate of a chunk: length in units of 64 bytes, what to do with the header at its beginning, credit. */
#define GY_RDMA_UNITS ((1u << 11) - 1)
#define GY_RDMA_REMEMBER (1u << 11) /* keep it */
#define GY_RDMA_REPEAT (1u << 12)   /* it is the one kept, with the next sequence number, and was not sent */
#define GY_RDMA_PULL (GY_RDMA_REMEMBER | GY_RDMA_REPEAT) /* it is not here: the receiver is to read it */
#define GY_RDMA_CREDIT_CHUNKS 13                         /* 6 bits */
#define GY_RDMA_CREDIT_UNITS 19                          /* 13 bits */

/* The path of chunk number `link->chunks`, the next one. */
static inline struct gy_rdma_path *gy_rdma_next_path(struct gy_rdma_link *link)
{
    return link->paths == 1 ? &link->path[0] : &link->path[link->chunks % (uint64_t)link->paths];
}

/* header_elision.c */
bool gy_rdma_send_short(struct gy_link *link, const struct gy_frame *header, const void *payload);

/* read_rendezvous.c */
/* Known when the peer's hello is there; the same on both sides. */
bool gy_rdma_can_pull(const struct gy_rdma_link *link);
/* Bytes of the next chunk, at most: one that others wait for is short. */
uint64_t gy_rdma_pull_ahead(const struct gy_rdma_link *link);
/* True if the next chunk, of link->unsent, is one that a peer may read: asked before what has arrived is collected, */
bool gy_rdma_may_be_pulled(const struct gy_rdma_link *link);
/* and after it: true if the peer should read it. */
bool gy_rdma_is_to_be_pulled(const struct gy_rdma_link *link);
/* Tells the peer of `length` bytes in staging at out_head, a piece of `frame`. False: the link failed. */
bool gy_rdma_offer_chunk(struct gy_rdma_link *link, const struct gy_frame_out *frame, uint64_t length, bool signal);
/* May the peer still be reading some of it? */
bool gy_rdma_is_being_pulled(const struct gy_rdma_link *link, const struct gy_frame_out *frame);
/* Such a chunk was told: at `start` of the stream, to be written down at `place` when it is here. False: against the rules. */
bool gy_rdma_pull_begin(struct gy_rdma_link *link, uint32_t place, uint64_t start, uint32_t units);
/* Posts the read of the oldest one that waits. */
void gy_rdma_pull_post(struct gy_rdma_link *link);
/* A chunk has come that is as large as those that are read. */
void gy_rdma_pull_hear(struct gy_rdma_link *link);
/* Is the oldest one here? Then it is forgotten. */
bool gy_rdma_pull_end(struct gy_rdma_link *link, uint32_t *place_p, uint32_t *units_p);

/* polled_write.c */
/* Does the peer look for the next chunk? Only once it has been asked so may the chunk be silent. */
bool gy_rdma_is_looked_for(struct gy_rdma_link *link);
/* The peer is known: prepares the request that all silent frames are sent by. */
void gy_rdma_silent_prepare(struct gy_rdma_link *link);
/* A frame whose header the peer has in mind, of at most GY_RDMA_SILENT bytes, for which there is room. */
void gy_rdma_send_silent(struct gy_rdma_link *link, const void *payload, uint32_t bytes);
/* Takes what has come silently; calls no sink. */
bool gy_rdma_look(struct gy_rdma_link *link);
/* The same for somebody who waits: so many times. */
bool gy_rdma_glance(struct gy_rdma_link *link, int times);
/* Tells the peer that this rank looks, if that is worth it. */
void gy_rdma_offer_to_look(struct gy_rdma_link *link);
/* Tells it that this rank does not, and is true once nothing can come silently any more; to be asked again until then. */
bool gy_rdma_may_sleep(struct gy_rdma_link *link);

/* Bytes of the stream that a frame takes. */
static inline uint64_t gy_rdma_padded(uint32_t bytes)
{
    return GY_FRAME_BYTES + (((uint64_t)bytes + 63) & ~UINT64_C(63));
}

/* queue_pair.c */
/* Makes sure that the completion of all that was posted will be seen; gy_rdma_idle: it has been. */
void gy_rdma_flush_marks(struct gy_rdma_link *link);
bool gy_rdma_idle(const struct gy_rdma_link *link);
/* Posts a request on a path of which the caller knows that there is room; `signal`: somebody waits for its completion. False:
 * the link failed. */
bool gy_rdma_post(struct gy_rdma_link *link, struct gy_rdma_path *path, struct ibv_send_wr *wr, bool signal);
/* The sentence for a failure on a path; the reason may have been told by an event. */
void gy_rdma_fail(struct gy_rdma_link *link, const struct gy_rdma_path *path, gyre_status status, const char *what,
                  const char *cause);
/* The immediate of a chunk of `length` bytes, with the credit that goes along. */
uint32_t gy_rdma_immediate(struct gy_rdma_link *link, uint64_t length, uint32_t flags);
/* Posts chunk number link->chunks, of `length` bytes at out_head of the stream. False: the link failed. */
bool gy_rdma_post_chunk(struct gy_rdma_link *link, struct ibv_send_wr *wr, uint64_t length, bool signal);
/* Is there room and credit for another chunk, bytes aside? */
bool gy_rdma_has_room(struct gy_rdma_link *link);
/* Posts a receive request for every one that was used: all of them at the beginning, before the peer may send. */
void gy_rdma_replenish(struct gy_rdma_link *link);
void gy_rdma_give_back(struct gy_rdma_link *link); /* all credit that is owed, as far as one message has room for it */
/* Is enough owed for a message of its own? A quarter of the ring, or of the chunks, or what somebody waits for: with what is there
 * behind it, but not later than this progress ends, for there may be no other before the peer has gone on. */
static inline bool gy_rdma_owes(const struct gy_rdma_link *link)
{
    uint32_t quarter = (uint32_t)link->paths * GY_RDMA_CHUNKS / 4;

    return link->owed_bytes >= (link->in_mask + 1) / 4 || link->owed_chunks >= (quarter < 64 ? quarter : 64) ||
           (link->awaited && link->owed_chunks > 0 && (link->in_tail == link->in_head || !link->digesting));
}
static inline void gy_rdma_return_credit(struct gy_rdma_link *link)
{
    if (gy_rdma_owes(link))
        gy_rdma_give_back(link);
}

/* arrival.c */
/* Chunk number path->arrived of its path is there. */
void gy_rdma_chunk_arrived(struct gy_rdma_link *link, struct gy_rdma_path *path, uint32_t immediate);
/* The same of a silent chunk, on a link of one path: a frame whose header is the one in mind, and which lies there in one piece. */
void gy_rdma_silent_arrived(struct gy_rdma_link *link, uint32_t immediate);
/* The stream goes on as far as chunks are there without a gap. */
void gy_rdma_stream_on(struct gy_rdma_link *link, const struct gy_rdma_path *path);
/* Credit for our chunks came back. False: the peer broke the rules, and the link failed. */
bool gy_rdma_take_credit(struct gy_rdma_link *link, const struct gy_rdma_path *path, uint64_t chunks, uint64_t bytes);
/* The peer broke the rules of the protocol: the link fails. */
void gy_rdma_violated(struct gy_rdma_link *link, const struct gy_rdma_path *path, const char *what);

/* send.c */
bool gy_rdma_flush(struct gy_rdma_link *link); /* posts what there is room and credit for */
bool gy_rdma_lends(const struct gy_link *base, const struct gy_frame_out *frame);
bool gy_rdma_reap(struct gy_rdma_link *link); /* gives frames back to their owners */
/* rdma/receive.c */
bool gy_rdma_collect(struct gy_rdma_link *link); /* takes completions; calls no receive handler */
bool gy_rdma_digest(struct gy_rdma_link *link);  /* gives what has arrived to the receive handler */
bool gy_rdma_digestible(const struct gy_rdma_link *link);
/* rdma/rma.c: the slots of the table, and */
void *gy_rdma_expose(void *instance, void *memory, size_t bytes, struct gy_rma_key *key_p);
void gy_rdma_conceal(void *instance, void *exposed);
void gy_rdma_access(struct gy_link *link, struct gy_access *access);
bool gy_rdma_access_flush(struct gy_rdma_link *link); /* posts what there is room for */
bool gy_rdma_access_reap(struct gy_rdma_link *link);  /* tells owners what is done */
void gy_rdma_access_drop(struct gy_rdma_link *link);  /* the queue pairs are gone: forgets all */
/* At the end. `lost`: a forked child that has not got registered pages. */
void gy_rdma_conceal_all(struct gy_rdma *rdma, bool forked, bool lost);

/* rdma/events.c: tells the poller of every descriptor of the rails. `forked`: closes what is this process's only. */
gyre_status gy_rdma_watch(struct gy_rdma *rdma, gy_poller_func completions, struct gy_error *error);
void gy_rdma_unwatch(struct gy_rdma *rdma, bool forked);

#endif

/* Inside the rdma transport, from the top: rdma.c (operations table, progress, sleeping), events.c (device events),
 * connect.c (from a socket to queue pairs). send.c and receive.c move frames; header_elision.c and polled_write.c
 * short frames. rma.c (one-sided), arrival.c (order of chunks), read_rendezvous.c (chunks that the receiver reads),
 * queue_pair.c (requests, credit), handshake.c (its messages). No other folder includes this.
 *
 * A link is a byte stream in each direction, laid out in a ring in the receiver's memory, as between ranks of one
 * host:
 *
 *   sender:    staging  |..[header 64][payload, padded to 64]..|      head: written up to here, tail: free up to here
 *                 │ RDMA write with immediate, one per chunk, to the same offset; announced payloads are sent in place
 *                 ▼
 *   receiver:  ring     |..[header 64][payload, padded to 64]..|      head: arrived up to here, tail: consumed up to
 *                       here
 *
 * Chunk k of a direction uses queue pair k mod n, so a large frame is striped over all of them. Devices deliver in
 * any order: the receiver counts arrivals per queue pair, and the stream advances up to the first missing chunk. The
 * immediate holds the chunk's length, piggybacked credit, and for a short frame that its header is omitted
 * (header_elision.c). A short frame to a polling peer has no immediate (polled_write.c). Some chunks are only
 * announced, and read by the receiver (read_rendezvous.c).
 *
 * Invariants: a receive request is posted for every message that may arrive, so the receiver is always ready. A
 * sender has at most GY_RDMA_CHUNKS · n chunks without returned credit. Credit messages have a reserve of their own
 * (at most 13 are in flight, see GY_RDMA_RESERVE). Remote ranks can write into the ring, read announced chunks in
 * staging, and read and write a page of words of the link (struct gy_rdma_words). They can also access what the
 * program has exposed as a window while it is one, and nothing else. */
#ifndef GY_TRANSPORT_RDMA_INTERNAL_H
#define GY_TRANSPORT_RDMA_INTERNAL_H

#include <stdatomic.h>

#include "transport/link.h"
#include "transport/rdma/devices.h"
#include "transport/rdma/registration_cache.h"

#define GY_RDMA_PATHS 8                  /* queue pairs of a link, at most */
#define GY_RDMA_CHUNK ((64u << 10) + 64) /* bytes, at most: a frame of 64 KiB is one */
#define GY_RDMA_CHUNKS 64u               /* in flight per queue pair */
#define GY_RDMA_RESERVE 16u              /* receive requests for credits, and send requests */
#define GY_RDMA_SENDS (2 * GY_RDMA_CHUNKS + GY_RDMA_RESERVE)
#define GY_RDMA_RECEIVES (GY_RDMA_CHUNKS + GY_RDMA_RESERVE)
#define GY_RDMA_BY_THE_WAY 8u      /* chunks credited by piggybacking before a credit message is due */
#define GY_RDMA_SIGNAL 16u         /* one in this many requests asks for a completion, besides those that are awaited */
#define GY_RDMA_DIRECT (16u << 10) /* payloads of at least this many bytes in announced memory are sent in place */
#define GY_RDMA_DIRECT_FRAMES 16   /* such frames in flight */
#define GY_RDMA_PIECES 8           /* one-sided accesses in flight, per link */
#define GY_RDMA_SILENT 1024u       /* longest payload of a silent frame, in bytes */
#define GY_RDMA_LOUD 64u           /* progress calls during which silent frames are expected after a loud chunk */
#define GY_RDMA_TAG_BYTES 16u      /* in front of the payload */
#define GY_RDMA_PULL_LEAST (16u << 10) /* least bytes of a chunk that the receiver reads */
#define GY_RDMA_PULLS 2                /* concurrent reads of chunks */
#define GY_RDMA_SLOTS 8                /* slots of the pool for one-sided access, */
#define GY_RDMA_SLOT (32u << 10)       /* and their bytes */
#define GY_RDMA_HELLO_BYTES 448u

/* ---- the handshake between the two ends: rdma/handshake.c, pure ---- */

struct gy_rdma_end { /* of one queue pair */
    uint32_t qp, psn;
    uint64_t ring; /* where the peer may write */
    uint32_t key;
    uint16_t lid;
    uint8_t mtu; /* enum ibv_mtu */
    bool ethernet;
    uint8_t reads; /* reads answered concurrently */
    uint8_t gid[16];
};

struct gy_rdma_hello {
    uint64_t ring_bytes; /* a power of two */
    uint64_t words;      /* address of struct gy_rdma_words for the peer */
    uint64_t secret;     /* initial value of a silent frame's sum */
    uint32_t words_key;
    int paths;
    struct gy_rdma_end end[GY_RDMA_PATHS];
};

void gy_rdma_hello_encode(const struct gy_rdma_hello *hello, uint8_t wire_p[GY_RDMA_HELLO_BYTES]);
/* Returns false for input that no correct encoder produces. */
bool gy_rdma_hello_decode(const uint8_t wire[GY_RDMA_HELLO_BYTES], struct gy_rdma_hello *hello_p);

/* ---- a link ---- */

struct gy_rdma_path { /* one queue pair */
    struct ibv_qp *qp;
    int rail;
    uint32_t psn;
    uint32_t posted, finished; /* send requests of any kind; finished: known from completions */
    uint64_t sent, sent_done;  /* chunks among them */
    uint32_t unsignalled;      /* requests since the last that asks for a completion */
    uint64_t arrived;          /* chunks from the peer */
    uint32_t empty;            /* receive requests to be posted again */
    uint64_t remote_ring;
    uint32_t remote_key;
    bool dirty; /* one-sided writes were posted on this path that may not be in memory yet */
};

struct gy_rdma_queue { /* a completion queue: one per rail, the context of its events */
    struct gy_rdma_link *link;
    struct ibv_cq *cq;
    bool armed; /* the next completion makes an event */
};

/* A frame whose payload is sent in place from announced memory, in the chunks `first` to `last`: done when they are. */
struct gy_rdma_direct {
    struct gy_frame_out *frame;
    struct gy_rdma_range *range;
    uint64_t first, last;
    bool begun, whole; /* first, last are valid */
};

/* A piece of a one-sided access in flight. access NULL: none. */
struct gy_rdma_piece {
    struct gy_access *access;
    struct gy_rdma_range *range; /* of announced memory, or NULL */
    int slot;                    /* in the pool, −1: none */
    int path;
    uint32_t number; /* number of its request on the path */
    unsigned char *place;
    uint32_t bytes;
};

/* A chunk that the peer reads: see read_rendezvous.c. */
struct gy_rdma_pulled {
    const struct gy_frame_out *frame; /* the frame that it belongs to; compared, not dereferenced */
    uint64_t end; /* 1 + its number: the read is complete when that many chunks are credited. 0: none */
};

/* A chunk being read from the peer. */
struct gy_rdma_pull {
    uint32_t place, units; /* place in `arrived`, and the value stored there on completion */
    uint64_t offset;       /* in the ring */
    uint64_t address;      /* in the peer's memory */
    uint32_t key;
    uint32_t number; /* number of the request on the path, once posted */
};

/* Words accessed by the peer's device, besides the ring: see polled_write.c. */
struct gy_rdma_words {
    _Atomic uint32_t polls;  /* written by the peer: it polls for silent frames */
    _Atomic uint32_t begun;  /* read by the peer: chunks up to here may have been silent; little-endian */
    _Atomic uint32_t theirs; /* the value that this device has read there */
    uint32_t said;           /* the value that it writes there */
};

enum gy_rdma_polling { GY_RDMA_POLLS_NOT, GY_RDMA_POLLS, GY_RDMA_POLLS_NO_MORE };

struct gy_rdma_link {
    struct gy_link base;
    struct gy_rdma *rdma;
    struct gy_rdma_link *next;
    struct gy_watch watch; /* of the socket, which reports the peer's end; fd −1: not connected yet, or closed */
    bool made;             /* queue pairs and memory exist */
    bool ready;            /* the peer can receive */
    bool quiet;            /* nothing to do before a completion, a post or a message on the socket */
    bool stopped;          /* all posted frames have left, or the timeout has expired */
    int64_t ended;         /* when the peer closed, 0: still open */
    uint8_t hello[GY_RDMA_HELLO_BYTES + 1]; /* received so far: hello, then one byte when the peer is ready */
    size_t hello_bytes;
    struct gy_rdma_hello theirs;

    int paths;
    struct gy_rdma_path path[GY_RDMA_PATHS];
    struct gy_rdma_queue queue[GY_RDMA_RAILS];

    /* out */
    struct gy_frame_out *unsent; /* the first frame in base's queue that is not fully posted */
    bool deferred;               /* it waits for the next progress, with all behind it: see gy_frame_out.coalesce */
    unsigned char *staging;      /* as long as the peer's ring */
    struct ibv_mr *staging_mr[GY_RDMA_RAILS];
    uint64_t out_head, out_tail, out_mask;
    uint64_t chunks, chunks_back; /* sent, and credited */
    struct gy_frame model;        /* the header that the peer stores; epoch 0: none */
    struct ibv_send_wr silent;    /* common part of silent frames' requests, */
    struct ibv_sge silent_piece;  /* and the location of the next one */
    struct gy_rdma_direct direct[GY_RDMA_DIRECT_FRAMES];
    uint32_t direct_first, direct_count;
    bool may_pull;                   /* chunks may be read by their receiver, in both directions */
    struct gy_rdma_pulled pulled[2]; /* the last two chunks that the peer was told to read, the newer one last */
    uint64_t not_before;             /* stream position from which chunks may be read again: the peer is sending, too */

    /* one-sided */
    struct gy_access *access_first, *access_last; /* not fully posted */
    struct gy_rdma_piece piece[GY_RDMA_PIECES];
    uint64_t pieces; /* number of pieces: selects the next path */

    /* in */
    unsigned char *ring;
    struct ibv_mr *ring_mr[GY_RDMA_RAILS];
    uint64_t in_head, in_tail, in_mask;
    uint64_t next_chunk;                              /* the first missing chunk */
    uint32_t next_place;                              /* its index in `arrived` */
    uint32_t arrived[GY_RDMA_PATHS * GY_RDMA_CHUNKS]; /* immediates of chunks by number, without credit; 0: missing */
    struct gy_frame remembered;                       /* the stored header that short frames omit; epoch 0: none */
    bool recalled;                                    /* it belongs to the frame at in_tail, which is complete */
    /* Frames are being delivered to the receive handler: what it posts leaves after the last of them, with awaited
     * credit. */
    bool digesting;
    struct gy_rdma_words *words;
    struct ibv_mr *words_mr[GY_RDMA_RAILS];
    uint64_t secret;
    enum gy_rdma_polling polling;
    uint32_t repeats;   /* loud frames since the last sleep that could have been silent */
    uint32_t loud;      /* progress calls that also poll the completion queue, after a loud chunk */
    uint32_t glances;   /* progress calls that did not */
    uint32_t asked_for; /* the number of the request that reads the peer's `begun` */
    struct gy_rdma_pull pull[GY_RDMA_PULLS];
    uint32_t pull_first, pulls, pulls_posted;
    uint64_t told;       /* stream position after all announced chunks; valid while some of them are being read */
    bool awaited;        /* the sender waits for the credit of a chunk that was read */
    uint64_t owed_bytes; /* consumed and not credited yet */
    uint32_t owed_chunks;
};

struct gy_rdma {
    struct gy_transport_env env;
    struct gy_rdma_rail rail[GY_RDMA_RAILS];
    int rails;
    struct gy_watch uevents; /* of the kernel; fd −1: none */
    struct gy_rdma_memory memory;
    struct gy_rdma_exposed *exposed; /* to other ranks, see rdma/rma.c */
    unsigned char *pool;             /* GY_RDMA_SLOTS slots for puts from and gets to unregistered memory */
    struct ibv_mr *pool_mr[GY_RDMA_RAILS];
    uint32_t pool_taken;                    /* a bit per slot */
    struct gy_rdma_link *links;             /* requested so far */
    int *parked;                            /* [world size] accepted before the link was requested here, −1: none */
    bool (*progress)(struct gy_link *link); /* rdma.c; for callbacks of the poller */
    bool closed;
    bool asleep; /* from arm to disarm: a thread may sleep, while others make progress */
};

/* rdma/connect.c: starts the handshake on the connected socket; it continues in callbacks of the poller. */
void gy_rdma_connect(struct gy_rdma_link *link, int fd);
/* Reads available data from the socket; calls no receive handler. */
void gy_rdma_hear(struct gy_rdma_link *link);
/* Closes this side: when it returns, no device accesses any memory. Never waits for the peer. */
void gy_rdma_disconnect(struct gy_rdma_link *link);

/* The immediate of a chunk: length in units of 64 bytes, treatment of its header, credit. */
#define GY_RDMA_UNITS ((1u << 11) - 1)
#define GY_RDMA_REMEMBER (1u << 11) /* store it */
#define GY_RDMA_REPEAT (1u << 12)   /* it was omitted: the stored one, with the next sequence number */
#define GY_RDMA_PULL (GY_RDMA_REMEMBER | GY_RDMA_REPEAT) /* the receiver reads the chunk */
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
/* True if both ends may read chunks; known after the peer's hello, and the same on both sides. */
bool gy_rdma_can_pull(const struct gy_rdma_link *link);
/* Returns the limit of the next chunk in bytes: a chunk that others wait for is short. */
uint64_t gy_rdma_pull_ahead(const struct gy_rdma_link *link);
/* True if the peer may read the next chunk, of link->unsent. Called before completions are collected, */
bool gy_rdma_may_be_pulled(const struct gy_rdma_link *link);
/* and after it: true if the peer should read it. */
bool gy_rdma_is_to_be_pulled(const struct gy_rdma_link *link);
/* Announces `length` bytes in staging at out_head, a piece of `frame`. Returns false if the link failed. */
bool gy_rdma_offer_chunk(struct gy_rdma_link *link, const struct gy_frame_out *frame, uint64_t length, bool signal);
/* True if the peer may still be reading a part of the frame. */
bool gy_rdma_is_being_pulled(const struct gy_rdma_link *link, const struct gy_frame_out *frame);
/* A chunk was announced at `start` of the stream; its arrival is recorded at `place`. False: protocol violation. */
bool gy_rdma_pull_begin(struct gy_rdma_link *link, uint32_t place, uint64_t start, uint32_t units);
/* Posts the read of the oldest waiting chunk. */
void gy_rdma_pull_post(struct gy_rdma_link *link);
/* A chunk as large as those that are read has arrived. */
void gy_rdma_pull_hear(struct gy_rdma_link *link);
/* True if the oldest read is complete; then removes it. */
bool gy_rdma_pull_end(struct gy_rdma_link *link, uint32_t *place_p, uint32_t *units_p);

/* polled_write.c */
/* True if the peer polls for the next chunk. The chunk may be silent only after this returned true. */
bool gy_rdma_is_polled(struct gy_rdma_link *link);
/* Prepares the request shared by all silent frames, once the peer is known. */
void gy_rdma_silent_prepare(struct gy_rdma_link *link);
/* Sends a frame whose header the peer stores, of at most GY_RDMA_SILENT bytes; there must be room. */
void gy_rdma_send_silent(struct gy_rdma_link *link, const void *payload, uint32_t bytes);
/* Takes silent frames that have arrived; calls no receive handler. */
bool gy_rdma_poll(struct gy_rdma_link *link);
/* The same for a waiting thread: polls up to `times` times. */
bool gy_rdma_glance(struct gy_rdma_link *link, int times);
/* Tells the peer that this rank polls, if that pays. */
void gy_rdma_offer_to_poll(struct gy_rdma_link *link);
/* Tells the peer that this rank stops polling; true once no silent frame can arrive. To be called again until then. */
bool gy_rdma_may_sleep(struct gy_rdma_link *link);

/* Bytes of the stream that a frame takes. */
static inline uint64_t gy_rdma_padded(uint32_t bytes)
{
    return GY_FRAME_BYTES + (((uint64_t)bytes + 63) & ~UINT64_C(63));
}

/* queue_pair.c */
/* Ensures that the completion of all posted requests will be seen; gy_rdma_idle: true if it has been. */
void gy_rdma_flush_marks(struct gy_rdma_link *link);
bool gy_rdma_idle(const struct gy_rdma_link *link);
/* Posts a request on a path that has room; `signal`: its completion is awaited. Returns false if the link failed. */
bool gy_rdma_post(struct gy_rdma_link *link, struct gy_rdma_path *path, struct ibv_send_wr *wr, bool signal);
/* Fails the link with an error message for the path; the reason may come from a device event. */
void gy_rdma_fail(struct gy_rdma_link *link, const struct gy_rdma_path *path, gyre_status status, const char *what,
                  const char *cause);
/* Returns the immediate of a chunk of `length` bytes, with piggybacked credit. */
uint32_t gy_rdma_immediate(struct gy_rdma_link *link, uint64_t length, uint32_t flags);
/* Posts chunk number link->chunks, of `length` bytes at out_head of the stream. Returns false if the link failed. */
bool gy_rdma_post_chunk(struct gy_rdma_link *link, struct ibv_send_wr *wr, uint64_t length, bool signal);
/* True if there is room and credit for another chunk, apart from bytes. */
bool gy_rdma_has_room(struct gy_rdma_link *link);
/* Posts a receive request for every consumed one; initially all, before the peer may send. */
void gy_rdma_replenish(struct gy_rdma_link *link);
void gy_rdma_give_back(struct gy_rdma_link *link); /* returns owed credit, as much as one message holds */
/* True if enough is owed for a message: a quarter of the ring or of the chunks, or awaited credit. Awaited credit
 * leaves with the data behind it, but within this progress call, as there may be no other before the peer continues. */
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
/* Chunk number path->arrived of its path has arrived. */
void gy_rdma_chunk_arrived(struct gy_rdma_link *link, struct gy_rdma_path *path, uint32_t immediate);
/* The same for a silent chunk, on a link of one path: a contiguous frame with the stored header. */
void gy_rdma_silent_arrived(struct gy_rdma_link *link, uint32_t immediate);
/* Advances the stream up to the first missing chunk. */
void gy_rdma_stream_on(struct gy_rdma_link *link, const struct gy_rdma_path *path);
/* Credit for sent chunks has arrived. False: the peer violated the protocol, and the link failed. */
bool gy_rdma_take_credit(struct gy_rdma_link *link, const struct gy_rdma_path *path, uint64_t chunks, uint64_t bytes);
/* Fails the link because the peer violated the protocol. */
void gy_rdma_violated(struct gy_rdma_link *link, const struct gy_rdma_path *path, const char *what);

/* send.c */
bool gy_rdma_flush(struct gy_rdma_link *link); /* posts frames while there is room and credit */
bool gy_rdma_reads_in_place(const struct gy_link *base, const struct gy_frame_out *frame);
bool gy_rdma_reap(struct gy_rdma_link *link); /* returns completed frames to their owners */
/* rdma/receive.c */
bool gy_rdma_collect(struct gy_rdma_link *link); /* polls completions; calls no receive handler */
bool gy_rdma_digest(struct gy_rdma_link *link);  /* delivers arrived frames to the receive handler */
bool gy_rdma_digestible(const struct gy_rdma_link *link);
/* rdma/rma.c: the operations of the table, and */
void *gy_rdma_expose(void *instance, void *memory, size_t bytes, struct gy_rma_key *key_p);
void gy_rdma_conceal(void *instance, void *exposed);
void gy_rdma_access(struct gy_link *link, struct gy_access *access);
bool gy_rdma_access_flush(struct gy_rdma_link *link); /* posts accesses while there is room */
bool gy_rdma_access_reap(struct gy_rdma_link *link);  /* reports completed accesses */
void gy_rdma_access_drop(struct gy_rdma_link *link);  /* the queue pairs are gone: drops all accesses */
/* At the end. `lost`: a forked child without the registered pages. */
void gy_rdma_conceal_all(struct gy_rdma *rdma, bool forked, bool lost);

/* rdma/events.c: adds every descriptor of the rails to the poller. `forked`: closes only this process's objects. */
gyre_status gy_rdma_watch(struct gy_rdma *rdma, gy_poller_func completions, struct gy_error *error);
void gy_rdma_unwatch(struct gy_rdma *rdma, bool forked);

#endif

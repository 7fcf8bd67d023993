/* What a transport is: a table of operations that gives *links* (ordered messages between two ranks).
 *
 * Adding a transport: one file with one global symbol `const struct gy_transport_ops gy_transport_<name>`, one row in
 * registry.c, and the conformance suite (tests/transport/conformance_test.c) runs against it; docs/design.md lists the
 * other lines.
 *
 * A frame is a header and at most GY_FRAME_MAX bytes of payload. Links are FIFO per direction; only a GRANT may overtake
 * payloads. The layer above holds credit for every frame it posts, so a receiver can always take what arrives: a link
 * never needs to refuse.
 *
 *   sender:   gy_frame_out (embedded in its owner) --post--> link queue --> wire; done = true: payload is free again
 *   receiver: header decoded -> sink.place() says where the payload goes -> sink.arrived() when it is all there
 *             (a transport that has the payload in memory skips place and calls arrived with its own pointer) */
#ifndef GY_TRANSPORT_TRANSPORT_H
#define GY_TRANSPORT_TRANSPORT_H

#include <string.h>

#include "bootstrap/world.h"
#include "core/error.h"
#include "membership/overlay.h"

#define GY_FRAME_MAX (1u << 20)
#define GY_FRAME_SHORT 8192u

/* On the wire: little-endian, 64 bytes, see docs/wire.md. Filled by the layer above; `magic` by the encoder. */
struct gy_frame {
    uint16_t magic;  /* GY_FRAME_MAGIC */
    uint8_t version; /* GY_WIRE_VERSION */
    uint8_t kind;    /* enum gy_frame_kind */
    uint32_t epoch;
    uint32_t comm;      /* communicator id */
    uint32_t bytes;     /* payload, <= GY_FRAME_MAX */
    uint64_t sequence;  /* number of the collective on its communicator, from 1 */
    uint64_t value;     /* DATA: iteration of the lane; GRANT: iterations allowed; CREDIT: units given back; WANT: a
                           * sender that has entered asks for the grant that it may have missed; PONG: see executor */
    uint64_t count;     /* shape: element count */
    uint32_t root;      /* shape */
    uint16_t lane;      /* lane of the sender's plan (DATA) or of the receiver's (GRANT) */
    uint8_t collective; /* shape */
    uint8_t dtype;      /* shape */
    uint8_t op;         /* shape */
    uint8_t flags;      /* GY_FRAME_EAGER, and what a transport says to itself */
    uint8_t algorithm;  /* shape: forced algorithms must agree too */
    uint8_t credit;     /* DATA: units of eager frames given back by the way, as by CREDIT */
    uint16_t pace[2];   /* over TCP inside a host: what reading takes, else zero; transport/tcp/zero_copy_policy.c */
    uint64_t taken;     /* and bytes of the link's stream that have been read */
};
#define GY_FRAME_MAGIC 0x7967u /* "gy" */
#define GY_WIRE_VERSION 1
#define GY_FRAME_BYTES 64u
_Static_assert(sizeof(struct gy_frame) == GY_FRAME_BYTES, "in memory as on the wire, but for the order of bytes");
/* Are their first `bytes` equal? On the way of every short message, so in line. */
static inline bool gy_frame_equal(const struct gy_frame *a, const struct gy_frame *b, size_t bytes)
{
    const unsigned char *left = (const unsigned char *)a, *right = (const unsigned char *)b;
    uint64_t difference = 0, x, y;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        memcpy(&x, left + i, 8);
        memcpy(&y, right + i, 8);
        difference |= x ^ y;
    }
    for (size_t i = bytes & ~(size_t)7; i < bytes; i++)
        difference |= left[i] ^ right[i];
    return difference == 0;
}
#define GY_FRAME_EAGER 1u  /* sent against eager credit, to be given back */
#define GY_FRAME_NT 2u     /* its payload goes past the sender's caches: transport/tcp/zero_copy_policy.c */
#define GY_FRAME_SORT 2u   /* two bits from here on: the sort of payloads that `pace` is of */
#define GY_FRAME_TIMED 16u /* what its payload takes is timed */

enum gy_frame_kind {
    GY_FRAME_DATA = 1,
    GY_FRAME_GRANT,
    GY_FRAME_CREDIT,
    GY_FRAME_WANT,
    GY_FRAME_PING,
    GY_FRAME_PONG,
    /* One-sided access: see collectives/rma/window.h. */
    GY_FRAME_PUT,
    GY_FRAME_ACCUMULATE,
    GY_FRAME_GET,
    GY_FRAME_GOT, /* what was asked for by GET */
    GY_FRAME_SIGNAL,
    GY_FRAME_FLUSH,
    GY_FRAME_FLUSHED,
    GY_FRAME_UNIFORM, /* operations up to `value` are complete on the sender and those it has heard of: collectives/lifecycle/uniform_completion.h */
    GY_FRAME_RAILS,   /* where the other connections of this link come in: transport/tcp/striping.c */
    GY_FRAME_KINDS
};

static inline bool gy_is_one_sided(unsigned kind)
{
    return kind >= GY_FRAME_PUT && kind <= GY_FRAME_FLUSHED;
}

/* frame.c: pure, fuzzed. decode returns false for bad magic, version, kind or length. */
void gy_frame_encode(const struct gy_frame *frame, uint8_t wire_p[GY_FRAME_BYTES]);
bool gy_frame_decode(const uint8_t wire[GY_FRAME_BYTES], struct gy_frame *frame_p);
/* "DATA", ...: static. */
const char *gy_frame_kind_name(uint8_t kind);

struct gy_link;

/* An outgoing frame; memory and payload belong to the owner and stay untouched until done. */
struct gy_frame_out {
    struct gy_frame header;
    const void *payload;
    bool patient;              /* may wait for the next progress, so that several leave together */
    bool done;                 /* set by the link when header and payload are no longer needed */
    bool queued;               /* between post and done */
    size_t sent;               /* private to the link */
    struct gy_frame_out *next; /* private to the link */
};

/* One-sided access. What the others need to reach memory that a rank has exposed: as it is exchanged, so that all fields
 * count. */
#define GY_RMA_KEYS 4
struct gy_rma_key {
    uint64_t address;
    uint32_t key[GY_RMA_KEYS]; /* per rail of the owner */
    uint32_t rails;            /* 0: not exposed */
    uint32_t reserved;         /* zero */
};

enum gy_access_kind {
    GY_ACCESS_PUT,
    GY_ACCESS_GET,
    GY_ACCESS_SETTLE, /* what was put before over this link is in the peer's memory when this is done */
};

/* Belongs to its owner, with the memory and the key, and stays untouched until done, or until the transport is closed. */
struct gy_access {
    enum gy_access_kind kind;
    const struct gy_rma_key *key;
    uint64_t offset; /* from the beginning of what is exposed; checked by the caller */
    unsigned char *memory;
    size_t bytes;
    bool done;              /* put: the peer's device has it all; get: it is here */
    bool queued;            /* between access and done */
    unsigned flying;        /* private to the link */
    size_t posted;          /* private to the link */
    struct gy_access *next; /* private to the link */
};

/* Where frames go; given to the transport at open. Calls happen inside link_progress or poller callbacks, in the
 * driving thread. A non-success return breaks the link (error is already set by the receive handler). */
struct gy_receive_handler {
    void *user;
    /* Where `frame->bytes` of payload shall be read to; valid until arrived. Never called for 0 bytes. NULL: protocol
     * violation. */
    void *(*place)(void *user, int peer, const struct gy_frame *frame);
    /* The payload is complete at `payload` (what place returned, or the transport's memory, valid during the call
     * only). */
    gyre_status (*arrived)(void *user, int peer, const struct gy_frame *frame, const void *payload);
    /* The link failed: status and sentence; the peer's death may be the cause. Called once per link. */
    void (*broken)(void *user, int peer, const struct gy_error *error);
};

/* What a transport instance gets from the context. All outlive it. */
struct gy_transport_env {
    struct gy_world *world;
    struct gy_segment *segment; /* shared memory of this host, NULL if there is none: segment.h */
    struct gy_config *config;
    struct gy_poller *poller;
    struct gy_receive_handler handler;
};

struct gy_transport_ops {
    const char *name; /* as GYRE_TRANSPORT has it */
    /* Frames of up to so many bytes may leave before the receiver has granted them their place. More than 8 KiB where what is
     * waited for a grant takes longer than a copy, should one come early. */
    size_t eager;
    /* May this process use it at all? false: the reason in `why`. Does not block, allocates nothing. */
    bool (*available)(char *why, size_t why_bytes);
    /* Makes the instance (malloc'ed by the transport). Opens no connection. */
    gyre_status (*open)(const struct gy_transport_env *env, void **instance_p, struct gy_error *error);
    /* Can it reach `peer`? Pure function of the world: the same answer on both sides. */
    bool (*reaches)(void *instance, int peer);
    /* Gives the link to `peer`, connecting lazily: returns at once, frames may be posted immediately and leave when
     * connected. Owned by the instance. The higher rank dials, the lower accepts. NO_MEMORY, NO_DESCRIPTORS, SYSTEM. */
    gyre_status (*link)(void *instance, int peer, struct gy_link **link_p, struct gy_error *error);
    /* Queues a frame; never blocks, allocates nothing. Tries to send at once. */
    void (*post)(struct gy_link *link, struct gy_frame_out *frame);
    /* Sends a frame of at most `eager` bytes at once, and has no more need of header and payload: true. What the wire did
     * not take of it is the link's own by then, and link->kept until it has left. False: something stands in its way and nothing
     * has happened; post will do. Never blocks. Optional. */
    bool (*send_short)(struct gy_link *link, const struct gy_frame *header, const void *payload);
    /* post takes a short frame to the wire as quickly: send_short is for those who have no frame of their own. */
    bool dialled; /* a link has a descriptor of its own, which tells the peer's end */
    bool socket;  /* it is a socket: the kernel copies and wakes */
    bool posts_quickly;
    /* Sends what can be sent and receives what is there, at most a few frames; returns true if anything moved. Never
     * blocks. */
    bool (*progress)(struct gy_link *link);
    /* Looks whether the peer's host still answers what is under way to it: one that has not for `patience` ns fails the link, of
     * which the next progress tells. To be called some times in as long. */
    void (*check)(struct gy_link *link, int64_t timeout);
    /* Over what a link goes, for sentences: "device mlx5_0 port 1". Nothing where the transport's name says it all. Optional. */
    void (*describe)(const struct gy_link *link, char *text_p, size_t bytes);
    /* Nanoseconds that a short message and its answer take on an idle way to the peer; 0: not known, or not what a link goes
     * by. Optional. */
    int64_t (*round_trip)(const struct gy_link *link);
    /* Prepares to sleep: from now on until the next progress, anything arriving for any link makes the context's poller
     * return. False: something has already arrived, do not sleep. */
    bool (*arm)(void *instance);
    void (*disarm)(void *instance);
    /* The program announces memory that it will send from (gyre_mem_register, gyre_mem_alloc), as often as it likes, and
     * withdraws it. Neither blocks nor fails: what cannot be prepared is sent as any other memory is. Optional. */
    void (*know)(void *instance, const void *memory, size_t bytes);
    void (*forget)(void *instance, const void *memory);
    /* The same for memory of a GPU at `memory`, `offset` bytes into what the descriptor stands for, which stays the caller's.
     * True: frames may be sent and accesses made with it as with any other memory, until it is forgotten. False: its owner
     * has to stage it, for nothing here can touch it. Optional. */
    bool (*know_device)(void *instance, const void *memory, size_t bytes, int dmabuf, uint64_t offset);
    /* Exposes memory to the ranks that this transport reaches, who then read and write it without this process's help, and
     * makes ready to do as much with theirs; 0 bytes: only that. Returns what conceal takes, before the memory is given
     * back, after every rank is through with it; NULL: not by this transport. Optional. */
    void *(*expose)(void *instance, void *memory, size_t bytes, struct gy_rma_key *key_p);
    void (*conceal)(void *instance, void *exposed);
    /* Queues an access to what the peer has exposed; this side has exposed something, too. Never blocks. Accesses of one link
     * begin in order. */
    void (*access)(struct gy_link *link, struct gy_access *access);
    /* Does a device read the payload of this queued frame where it lies? False: the owner may move it, bytes and all, until the
     * frame is done. */
    bool (*lends)(const struct gy_link *link, const struct gy_frame_out *frame);
    /* close: never blocks; no receive handler call and no access to posted payloads after it; unsent frames are dropped (only
     * after failure or when nothing is pending). */
    void (*close)(void *instance);
    /* stop: waits, at most 200 ms (rdma: 800 ms while the peer is there), until what was handed over has left. Before close, on an orderly end. */
    void (*stop)(void *instance);
    /* fini: frees. After close. In a forked child: close descriptors and free without talking to anyone (`forked`). */
    void (*fini)(void *instance, bool forked);
};

extern const struct gy_transport_ops gy_transport_self;
extern const struct gy_transport_ops gy_transport_shm;
extern const struct gy_transport_ops gy_transport_rdma;
extern const struct gy_transport_ops gy_transport_tcp;

/* What a member says in the meeting about how it can be reached (gy_member.reach): two ranks with a bit in common can be
 * joined so. */
enum gy_reach { GY_REACH_INFINIBAND = 1, GY_REACH_ROCE = 2 };
/* Is `name` in the list of GYRE_TRANSPORT? */
bool gy_transport_wanted(const char *list, const char *name);

#endif

/* What a transport is: a table of operations that gives *links* (ordered messages between two ranks). This file is the
 * contract; docs/extending.md lists the steps of adding one, and tests/transport/plain.c is the smallest
 * that connects.
 *
 * A frame is a header and at most GY_FRAME_MAX bytes of payload. Links are FIFO per direction; only a GRANT may
 * overtake payloads. The layer above holds credit for every frame it posts, so a receiver can always take what
 * arrives: a link never needs to refuse.
 *
 *   sender:   gy_frame_out (embedded in its owner) --post--> link queue --> wire; done = true: payload is free again
 *   receiver: header decoded -> handler.place() returns the payload's place -> handler.arrived() when complete
 *             (a transport that has the payload in memory skips place and calls arrived with its own pointer)
 *
 * A transport whose links are connections also keeps these rules:
 *
 * - `link` may be called before the peer has opened its transport. The listener of the world accepts and keeps
 *   connections meanwhile (gy_world_connect, gy_world_on). A transport with a listener of its own tries again.
 * - A connection may arrive before `link` is called for its rank, or without it. Nothing is read from it before that
 *   call, because the layer above has no place for frames yet.
 * - The peer's end, such as a closed or reset connection, fails the link with GYRE_PEER_UNREACHABLE, after all complete
 *   frames before it were delivered. A shortage on this rank is NO_MEMORY, NO_DESCRIPTORS or SYSTEM, never the peer's.
 * - While frames are stuck, `arm` also watches for writability. `post` and `progress` do so if gy_poller_has_sleeper:
 *   another thread may be asleep in the poller, and this one may not return to the link.
 * - There are no timers. What has to be tried again later is tried by `progress`; `arm` returns false meanwhile.
 * - A callback of the poller may call the progress of its link. A receive handler called from there may close the
 *   transport: the link's state and descriptor are read again after each delivery.
 * - Between hosts frames are protected as GYRE_INTEGRITY asks for: see `seals`. */
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
    uint32_t comm;     /* communicator id */
    uint32_t bytes;    /* payload, <= GY_FRAME_MAX */
    uint64_t sequence; /* number of the collective on its communicator, from 1 */
    /* DATA: iteration of the lane; GRANT: iterations allowed; CREDIT: units returned; WANT: a sender that has entered
     * asks for a grant that it may have missed; PONG: see engine/liveness.c */
    uint64_t value;
    uint64_t count;     /* shape: element count */
    uint32_t root;      /* shape */
    uint16_t lane;      /* tag of the lane of the sender (DATA) or of the receiver (GRANT) */
    uint8_t collective; /* shape */
    uint8_t dtype;      /* shape */
    uint8_t op;         /* shape */
    uint8_t flags;      /* GY_FRAME_EAGER; the other bits are private to the transport, which clears them on arrival */
    uint8_t algorithm;  /* shape: forced algorithms must agree too */
    uint8_t credit;     /* DATA: units of eager credit piggybacked, as in CREDIT */
    /* Private to the transport; zero if it has no use for them. tcp inside a host: tcp/zero_copy_policy.c. */
    uint16_t pace[2]; /* read timings */
    uint64_t taken;   /* bytes of the link's stream that have been read */
};
#define GY_FRAME_MAGIC 0x7967u /* "gy" */
#define GY_WIRE_VERSION 1
#define GY_FRAME_BYTES 64u
_Static_assert(sizeof(struct gy_frame) == GY_FRAME_BYTES, "in memory as on the wire, but for the order of bytes");
/* True if their first `bytes` are equal. On the path of every short message, so inline. */
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
#define GY_FRAME_EAGER 1u /* sent against eager credit, to be given back */

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
    GY_FRAME_GOT, /* the answer to GET */
    GY_FRAME_SIGNAL,
    GY_FRAME_FLUSH,
    GY_FRAME_FLUSHED,
    GY_FRAME_UNIFORM, /* operations up to `value` are complete on the sender and all it has heard from */
    GY_FRAME_RAILS,   /* private to tcp, never seen above it: addresses of the link's other connections, striping.c */
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
    bool coalesce;             /* may wait for the next progress, so that several leave together */
    bool done;                 /* set by the link when header and payload are no longer needed */
    bool queued;               /* between post and done */
    size_t sent;               /* private to the link */
    struct gy_frame_out *next; /* private to the link */
};

/* One-sided access. What peers need to access memory that a rank has exposed; exchanged as is, so all fields matter. */
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
    GY_ACCESS_FLUSH, /* done when earlier puts over this link are in the peer's memory */
};

/* Belongs to its owner, with the memory and the key; untouched until done, or until the transport is closed. */
struct gy_access {
    enum gy_access_kind kind;
    const struct gy_rma_key *key;
    uint64_t offset; /* from the start of the exposed memory; checked by the caller */
    unsigned char *memory;
    size_t bytes;
    bool done;              /* put: the peer's device has all of it; get: the data is here */
    bool queued;            /* between access and done */
    unsigned flying;        /* private to the link */
    size_t posted;          /* private to the link */
    struct gy_access *next; /* private to the link */
};

/* Receives frames; given to the transport at open. Calls happen inside progress or poller callbacks, in the driving
 * thread. A non-success return breaks the link (the receive handler has already set error). */
struct gy_receive_handler {
    void *user;
    /* Returns where to store `frame->bytes` of payload; valid until arrived. Never called for 0 bytes. NULL:
     * protocol violation. */
    void *(*place)(void *user, int peer, const struct gy_frame *frame);
    /* The payload is complete at `payload` (what place returned, or the transport's memory, valid during the call
     * only). */
    gyre_status (*arrived)(void *user, int peer, const struct gy_frame *frame, const void *payload);
    /* The link failed: status and message; the peer's failure may be the cause. Called once per link. */
    void (*broken)(void *user, int peer, const struct gy_error *error);
};

/* A transport instance's environment, from the context. All of it outlives the instance. */
struct gy_transport_env {
    struct gy_world *world;
    struct gy_segment *segment; /* shared memory of this host, for transport shm only; NULL if there is none */
    const struct gy_config *config;
    struct gy_poller *poller;
    struct gy_receive_handler handler;
};

/* Every operation is filled: callers do not test for NULL. An optional one of a transport that has nothing to do there
 * is a function of link.h, named beside it. */
struct gy_transport_ops {
    const char *name; /* as GYRE_TRANSPORT has it */
    /* Offset of the field of gyre_counters that counts its payload, such as offsetof(gyre_counters, tcp_bytes). It is
     * other_bytes for a transport without a field of its own. */
    size_t counter;
    /* Frames of up to this many bytes may leave before the receiver has granted a place. More than 8 KiB if waiting
     * for a grant takes longer than the copy of an early frame. Only loopback links use more than
     * GY_EAGER_INTER_HOST (gy_flow_is_loopback). */
    size_t eager;

    /* Properties. The layers above have no other knowledge of a transport: no code compares names or tables. */

    /* A link is a descriptor of its own in the poller, which tells the peer's end (tcp, rdma). Effects:
     * - the peer is gone for good as soon as its link broke after its leave message (engine/liveness.c);
     * - once there is such a link, progress polls the poller more often (gy_context.remote);
     * - between ranks of one host it is a loopback link (gy_flow_is_loopback): `eager` applies in full, at most
     *   LOCAL_AHEAD bytes are granted, one grant covers two messages or more (link/flow_control.c, eager_exchange.c);
     * - a sealed PUT does not go directly to its window, where its tag could not be checked (receive_dispatch.c).
     * False for memory that both ends share, which has no end of its own and needs no polling of descriptors. */
    bool has_descriptor;
    /* That descriptor is a socket: the kernel copies, and wakes the receiver. Effects:
     * - a waiting call polls less often, as each poll is a system call (SPINS_SOCKET of eager_message.c);
     * - inside a host owed credit returns as soon as a message is late (gy_flow_kept_waiting);
     * - if GYRE_TRANSPORT names sockets only, thresholds and tiles inside a host are theirs (gy_context.sockets). */
    bool socket;
    /* post sends a short frame as quickly as send_short, which is then only for callers without a frame of their own.
     * Effects in flow_control.c: a short frame is posted, and frames of several requests are not gathered. */
    bool posts_quickly;
    /* It joins a rank with itself and no others, whatever GYRE_TRANSPORT says. */
    bool to_self;
    /* Frames of its links are protected as GYRE_INTEGRITY says (sealed_frames.h, with the connection's keys). Effects
     * of false: at mac and encrypt it joins only ranks of one host (transport_select.c); at crc its own medium has to
     * detect damage, as the cards of rdma do. */
    bool seals;

    /* True if this process can use the transport; false: the reason in `why`. Does not block or allocate.
     * gy_transport_always_available. */
    bool (*available)(char *why, size_t why_bytes);
    /* Makes the instance (malloc'ed by the transport). Opens no connection. One thread at a time calls
     * the instance: the one that drives the context. */
    gyre_status (*open)(const struct gy_transport_env *env, void **instance_p, struct gy_error *error);
    /* True if it can reach `peer`. A pure function of the world: the same answer on both sides. */
    bool (*reaches)(void *instance, int peer);
    /* Returns the link to `peer`, which connects lazily: frames may be posted immediately and leave when connected.
     * Owned by the instance; the same link at each call. The higher rank connects, the lower accepts. NO_MEMORY,
     * NO_DESCRIPTORS, SYSTEM. */
    gyre_status (*link)(void *instance, int peer, struct gy_link **link_p, struct gy_error *error);
    /* Queues a frame; never blocks, allocates nothing. Tries to send at once, unless frame->coalesce. */
    void (*post)(struct gy_link *link, struct gy_frame_out *frame);
    /* Sends a frame of at most `eager` bytes at once. True: header and payload are no longer needed; the link keeps
     * an unsent rest as link->kept until it has left. False: the frame cannot leave now, and nothing has happened;
     * post it instead. Never blocks. Optional: gy_transport_send_no_short. */
    bool (*send_short)(struct gy_link *link, const struct gy_frame *header, const void *payload);
    /* Sends and receives what is possible, at most a few frames; returns true if anything moved. Reports a new failure
     * (gy_link_report). Never blocks. */
    bool (*progress)(struct gy_link *link);
    /* Checks whether the peer's host still answers data in flight. A host silent for `timeout` ns fails the link,
     * reported by the next progress. Called several times in that period. Optional: gy_transport_check_nothing. */
    void (*check)(struct gy_link *link, int64_t timeout);
    /* Prints the link's path, for messages: "device mlx5_0 port 1". Nothing if the transport's name suffices.
     * Optional: gy_transport_describe_nothing. */
    void (*describe)(const struct gy_link *link, char *text_p, size_t bytes);
    /* Returns the round-trip time of a short message on an idle path in nanoseconds; 0: unknown, or irrelevant.
     * Optional: gy_transport_round_trip_unknown. */
    int64_t (*round_trip)(const struct gy_link *link);
    /* Prepares to sleep: until the next progress, anything arriving for any link makes the context's poller return.
     * False: something has already arrived, or is to be tried again: do not sleep. */
    bool (*arm)(void *instance);
    /* The sleep is over. Called after each arm, whatever it returned. */
    void (*disarm)(void *instance);
    /* The program registers memory that it will send from (gyre_mem_register, gyre_mem_alloc), any number of times,
     * or unregisters it. Neither blocks nor fails: memory that cannot be prepared is sent like any other. Optional:
     * gy_transport_register_nothing, gy_transport_unregister_nothing. */
    void (*register_memory)(void *instance, const void *memory, size_t bytes);
    void (*unregister_memory)(void *instance, const void *memory);
    /* The same for GPU memory at `memory`, `offset` bytes into the descriptor's buffer; the caller keeps the
     * descriptor. True: frames and accesses may use it like other memory, until it is unregistered. False: its owner
     * has to stage it, as the transport cannot access it. Optional: gy_transport_register_no_device. */
    bool (*register_device)(void *instance, const void *memory, size_t bytes, int dmabuf, uint64_t offset);
    /* Exposes memory to the ranks that this transport reaches, which then access it without this process's help, and
     * prepares for accesses to theirs; 0 bytes: only the latter. Returns the argument of conceal, which is called
     * before the memory is freed and after all ranks have finished; NULL: not supported. Optional:
     * gy_transport_expose_nothing, gy_transport_conceal_nothing, and gy_transport_access_nothing below. */
    void *(*expose)(void *instance, void *memory, size_t bytes, struct gy_rma_key *key_p);
    void (*conceal)(void *instance, void *exposed);
    /* Queues an access to the peer's exposed memory; this side has also exposed some. Never blocks. Accesses of one
     * link begin in order. */
    void (*access)(struct gy_link *link, struct gy_access *access);
    /* True if a device reads the payload of this queued frame in place. False: the owner may move it, bytes and all,
     * until the frame is done. Optional: gy_transport_reads_nothing_in_place. */
    bool (*reads_in_place)(const struct gy_link *link, const struct gy_frame_out *frame);
    /* close: never blocks. No receive handler call and no access to posted payloads after it; unsent frames are
     * dropped (only after failure or when nothing is pending). May be called from a receive handler, and twice. */
    void (*close)(void *instance);
    /* stop: waits, at most 200 ms (rdma: 800 ms while the peer is there), until all posted frames have left. Before
     * close, on an orderly end. */
    void (*stop)(void *instance);
    /* fini: frees. After close. In a forked child (`forked`): closes descriptors and frees without communicating. */
    void (*fini)(void *instance, bool forked);
};

extern const struct gy_transport_ops gy_transport_self;
extern const struct gy_transport_ops gy_transport_shm;
extern const struct gy_transport_ops gy_transport_rdma;
extern const struct gy_transport_ops gy_transport_tcp;

/* Published by a member in the bootstrap (gy_member.fabrics): two ranks with a common bit can be joined that way. */
enum gy_fabric { GY_FABRIC_INFINIBAND = 1, GY_FABRIC_ROCE = 2 };
/* True if `name` is in the list of GYRE_TRANSPORT. */
bool gy_transport_wanted(const char *list, const char *name);

#endif

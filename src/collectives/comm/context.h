/* The context: all state of one world, shared by its communicators. Links, segment, overlay and the list of active
 * requests hang off it, and one thread at a time drives it. Two contexts in one process share nothing. */
#ifndef GY_COLLECTIVES_COMM_CONTEXT_H
#define GY_COLLECTIVES_COMM_CONTEXT_H

#include <gyre/page.h>
#include <stdatomic.h>

#include "collectives/comm/memory_registry.h"
#include "collectives/comm/progress_lock.h"
#include "collectives/comm/reduce_op.h"
#include "collectives/comm/shm_slot_alloc.h"
#include "collectives/comm/upcalls.h"
#include "core/config.h"
#include "membership/epoch.h"
#include "membership/overlay.h"
#include "transport/shm/segment.h"
#include "transport/transport.h"

#define GY_TRANSPORTS_MOST 8
#define GY_BUFFER_POWERS 63

/* This rank's state for another rank. */
struct gy_peer {
    int transport;            /* index into ctx->ops, −1: unreachable */
    struct gy_link *link;     /* NULL until a schedule needs it */
    struct gy_frame_out ping; /* asks whether the peer makes progress inside gyre */
    struct gy_frame_out pong; /* the answer */
    bool pong_owed;
    int64_t broken;         /* time of its link's failure, 0: none */
    int64_t left;           /* time when this rank saw its leave message, 0: none */
    int64_t heard;          /* time of its last sign of life inside gyre */
    bool met;               /* a sign of life has arrived; before that, silence is not counted */
    uint64_t heartbeat;     /* last value seen in shared memory */
    struct gy_error why;    /* why the link broke */
    unsigned char *discard; /* discards payloads without a receiver; NULL until the first */
};

struct gy_channel;

/* A frame awaited by a blocking call, and its payload's destination: eager_message.c, eager_exchange.c. */
struct gy_awaited {
    struct gy_frame frame; /* without its credit */
    struct gyre_comm *comm;
    int rank, peer; /* in the communicator, and in the world */
    void *memory;
    const struct gy_operation *operation; /* combines it with the rank's own vector; NULL: plain copy */
    const void *own;
    bool arrived;
};

/* A waiting one-sided call, on the stack of its caller: for errors, gyre-top and the log (rma/wait.c). */
struct gy_one_sided_wait {
    struct gyre_comm *comm;
    const char *call; /* "a flush": the wait is reported as "CALL of window WINDOW" */
    uint32_t window;
    int world; /* the rank that is awaited, −1: any */
    int64_t since, told;
    struct gy_one_sided_wait *next;
};

struct gy_context {
    const struct gy_upcalls *up;
    struct gy_config config;
    struct gy_progress_lock progress_lock;
    struct gy_error error; /* the first failure of the world; communicators print it with their own ranks */
    struct gy_poller *poller;
    struct gy_world *world;
    struct gy_overlay *overlay;
    struct gy_segment *segment;
    struct gyre_page *page; /* for external observers, NULL: none; see status_page.h */
    int page_fd;
    const struct gy_transport_ops *ops[GY_TRANSPORTS_MOST];
    void *instance[GY_TRANSPORTS_MOST];
    int transports;
    bool sockets;          /* GYRE_TRANSPORT allows sockets only, on every rank */
    struct gy_peer *peers; /* [size] */
    int *linked;           /* ranks with a link, [links] */
    int links;
    bool remote;         /* some link has a descriptor: poll often */
    bool oversubscribed; /* more local ranks than cores: the same on all ranks of the host */
    bool closed;         /* transports are closed: after a failure */
    bool outside;        /* no longer takes part in agreements on completion: uniform_completion.c */
    struct gyre_comm *comms;
    struct gy_regions slots;
    unsigned windows; /* one-sided windows, which peers may access at any time */
    bool answers_due; /* some of them owe an answer: gy_rma_answer */
    struct gy_operations operations;
    struct gy_registry registry;
    struct gy_channel *deferred; /* channels of freed communicators, while a link still holds their last frame */
    struct gy_one_sided_wait *one_sided_waits;
    struct gyre_window *deferred_windows; /* likewise */
    struct gyre_request *active_first, *active_last;
    unsigned active; /* requests in that list */
    bool together;   /* several requests advance together: their frames leave after the last of them has run, */
    bool gathered;   /* and some frame waits for that */
    unsigned queued; /* of those, requests queued for region slots and not at the head: they cannot advance */
    struct gyre_request *idle;     /* free list */
    struct gyre_request *orphaned; /* complete, while a link still holds a frame of theirs */
    struct gyre_request *made;     /* all, except those that have outlived their communicator */
    struct gy_awaited *awaited;    /* NULL: no call waits without a request */
    void *kept[GY_BUFFER_POWERS];  /* free scratch buffers of 2^k bytes, linked through their first word */
    uint32_t next_comm;
    uint64_t generation;     /* of the process that made it: see atfork.c */
    int64_t progressed_at;   /* time of the last slow progress iteration */
    int64_t checked;         /* time of the last check whether the peers' hosts answer */
    int64_t called;          /* time of this rank's last unsolicited sign of life */
    unsigned polls;          /* progress calls since the clock was read */
    struct gy_context *next; /* list of atfork.c */
    bool fork_entered;       /* taken by the forking thread: atfork.c */
};

/* Returns the link to `peer`, made at first use. */
gyre_status gy_context_link(struct gy_context *ctx, int peer, struct gy_link **link_p);
/* Queues a frame to a peer that has a link. */
void gy_context_post(struct gy_context *ctx, int peer, struct gy_frame_out *frame);

/* Registers and unregisters memory of the program, for transports that need registration. */
void gy_context_register(struct gy_context *ctx, const void *memory, size_t bytes);
void gy_context_unregister(struct gy_context *ctx, const void *memory);

/* The world is broken (ctx->error says why): closes the transports, completes every request with the error.
 * Idempotent. */
void gy_context_fail(struct gy_context *ctx);

/* Returns memory of a power-of-two size; NULL if out of memory. Buffers are kept for reuse, so a repeated pattern
 * allocates nothing, for any number of requests in flight. */
void *gy_context_buffer_take(struct gy_context *ctx, size_t bytes, size_t *bytes_p);
/* True if `count` free buffers are large enough, so that taking them cannot fail. */
bool gy_context_buffers_wait(const struct gy_context *ctx, size_t bytes, int count);
void gy_context_buffer_give(struct gy_context *ctx, void *memory, size_t bytes);

/* Frees a channel, at once or, when a link still holds its frame, with the world. NULL is allowed. */
void gy_context_free_later(struct gy_context *ctx, struct gy_channel *channel);

#define GY_BUT_WINDOWS UINT64_MAX
/* A communicator is freed, with its windows (0) or without, or one of its windows is. From now on no link stores a
 * frame's payload in memory that was given for it, the library's or the caller's. If memory for partly received
 * frames is lacking, the world fails. */
void gy_context_take_back(struct gy_context *ctx, uint32_t comm, uint64_t window);
/* Returns memory for one payload from the peer that has no receiver; NULL: there is none. */
void *gy_context_discard_buffer(struct gy_context *ctx, int peer);
/* This rank lacks memory for owed or incoming data and cannot continue: all ranks are told. */
void gy_context_no_memory(struct gy_context *ctx, int peer);

/* Number of forks between the first process and this one. A child inherits descriptors and memory but must not use
 * them. */
extern _Atomic uint64_t gy_fork_generation;

#endif

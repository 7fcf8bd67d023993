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

/* What this rank knows of another one. */
struct gy_peer {
    int transport;            /* index into ctx->ops, −1: nothing reaches it */
    struct gy_link *link;     /* NULL until a plan needs it */
    struct gy_frame_out ping; /* asks whether it is alive inside gyre */
    struct gy_frame_out pong; /* answers */
    bool pong_owed;
    int64_t broken; /* when its link broke, 0: it did not */
    int64_t left;   /* when this rank noticed that it said that it leaves, 0: it did not */
    int64_t heard;  /* when it last showed a sign of life inside gyre */
    bool met; /* a sign of life has come: where none can, as its side of the link is not made yet, none is missed */
    uint64_t heartbeat;     /* last value seen in shared memory */
    struct gy_error why;    /* why the link broke */
    unsigned char *discard; /* for payloads that are for nobody any more; NULL until the first */
};

struct gy_channel;
struct gy_eager_queue;

/* A frame that a blocking call waits for, and where its payload goes: eager_message.c, eager_exchange.c. */
struct gy_awaited {
    struct gy_frame frame; /* but for its credit */
    struct gyre_comm *comm;
    int rank, peer; /* of it, and of the world */
    void *memory;
    const struct gy_operation *operation; /* combines it with the rank's own vector; NULL: it is copied */
    const void *own;
    bool arrived;
};

/* A one-sided call that waits, on the stack of its caller: for errors, gyre-top and the log (rma/wait.c). */
struct gy_one_sided_wait {
    struct gyre_comm *comm;
    const char *call; /* "a flush": what is waited for is "CALL of window WINDOW" */
    uint32_t window;
    int world; /* the rank that is awaited, −1: any */
    int64_t since, told;
    struct gy_one_sided_wait *next;
};

struct gy_context {
    const struct gy_upcalls *up;
    struct gy_config config;
    struct gy_progress_lock progress_lock;
    struct gy_error error; /* the first failure of the world; communicators show it in their own words */
    struct gy_poller *poller;
    struct gy_world *world;
    struct gy_overlay *overlay;
    struct gy_segment *segment;
    struct gyre_page *page; /* for those who look from outside, NULL: there is none; see status_page.h */
    int page_fd;
    const struct gy_transport_ops *ops[GY_TRANSPORTS_MOST];
    void *instance[GY_TRANSPORTS_MOST];
    int transports;
    bool sockets;          /* GYRE_TRANSPORT names nothing but sockets, here and on every other rank */
    struct gy_peer *peers; /* [size] */
    int *linked;           /* ranks with a link, [links] */
    int links;
    bool remote;         /* some link has a descriptor: look at the poller often */
    bool oversubscribed; /* more local ranks than cores: the same on all ranks of the host */
    bool closed;         /* transports are closed: after a failure */
    bool outside;        /* takes no part in agreements on ends any more: uniform_completion.c */
    struct gyre_comm *comms;
    struct gy_regions slots;
    unsigned windows; /* one-sided ones, which others may ask for anything at any time */
    bool answers_due; /* some of them could not answer yet: gy_rma_answer */
    struct gy_operations operations;
    struct gy_registry registry;
    struct gy_channel *deferred; /* of freed communicators, while a link still holds their last frame */
    struct gy_one_sided_wait *one_sided_waits;
    struct gyre_window *deferred_windows; /* likewise */
    struct gyre_request *active_first, *active_last;
    unsigned active; /* requests in that list */
    bool together;   /* several of them have their turn: what they send leaves behind the last of them, */
    bool gathered;   /* and there is something */
    unsigned queued; /* those of them that stand in a queue for windows, and not at its head: nothing moves them */
    struct gy_eager_queue
        *eager_queue;          /* direct exchanges that starts have shown; NULL: no memory for it, or no window yet */
    struct gyre_request *idle; /* free list */
    struct gyre_request *orphaned; /* over, and a link still holds a frame of theirs */
    struct gyre_request *made;     /* all, but those that have outlived their communicator */
    struct gy_awaited *awaited;    /* NULL: nobody waits without a request */
    void *kept[GY_BUFFER_POWERS];  /* scratch memory of 2^k bytes, free; each begins with the address of the next */
    uint32_t next_comm;
    uint64_t generation;     /* of the process that made it: see atfork.c */
    int64_t turned;          /* time of the last slow turn */
    int64_t checked;         /* when links were last asked whether their peers' hosts answer */
    int64_t called;          /* when others were last told, unasked, that this rank lives */
    unsigned turns;          /* progress calls since the clock was read */
    struct gy_context *next; /* list of atfork.c */
    bool fork_entered;       /* by the thread that forks: atfork.c */
};

/* The link to `peer`, made when first asked for. */
gyre_status gy_context_link(struct gy_context *ctx, int peer, struct gy_link **link_p);
/* Queues a frame to a peer that has a link. */
void gy_context_post(struct gy_context *ctx, int peer, struct gy_frame_out *frame);

/* The program announces memory, and withdraws it: for transports that register. */
void gy_context_know(struct gy_context *ctx, const void *memory, size_t bytes);
void gy_context_forget(struct gy_context *ctx, const void *memory);

/* The world is broken (ctx->error says why): closes the transports, ends every request. Idempotent. */
void gy_context_fail(struct gy_context *ctx);

/* Power-of-two sized memory; NULL when out of memory. What was in use at once is kept for the next time, so that a
 * repeated pattern allocates nothing, however many requests are in flight. */
void *gy_context_buffer_take(struct gy_context *ctx, size_t bytes, size_t *bytes_p);
/* Do so many wait that are large enough, so that taking them cannot fail? */
bool gy_context_buffers_wait(const struct gy_context *ctx, size_t bytes, int count);
void gy_context_buffer_give(struct gy_context *ctx, void *memory, size_t bytes);

/* Frees a channel, at once or, when a link still holds its frame, with the world. NULL is allowed. */
void gy_context_free_later(struct gy_context *ctx, struct gy_channel *channel);

#define GY_BUT_WINDOWS UINT64_MAX
/* A communicator goes, with its windows (0) or but for them, or one of these: no link stores anything to where its frames were to go
 * from now on, be it memory of the library's or the caller's. Without memory for what is under way the world ends. */
void gy_context_take_back(struct gy_context *ctx, uint32_t comm, uint64_t window);
/* Memory for one payload of the peer's that is for nobody; NULL: there is none. */
void *gy_context_discard_buffer(struct gy_context *ctx, int peer);
/* This rank has no memory for what it owes or is sent, and cannot go on: all are told. */
void gy_context_no_memory(struct gy_context *ctx, int peer);

/* Counts the forks from which this process has come. A child inherits descriptors and memory but no right to use them. */
extern _Atomic uint64_t gy_fork_generation;

#endif

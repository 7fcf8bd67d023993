/* A communicator: the order of operations over the world's ranks, with its schedules, its channels to peers and its
 * place in the shared regions. */
#ifndef GY_COLLECTIVES_COMM_COMMUNICATOR_H
#define GY_COLLECTIVES_COMM_COMMUNICATOR_H

#include "collectives/comm/channel.h"
#include "collectives/comm/context.h"
#include "collectives/comm/flight_recorder.h"
#include "collectives/comm/locality.h"
#include "collectives/comm/tuner_state.h"
#include "collectives/schedule/layout.h"
#include "collectives/schedule/limits.h"
#include "collectives/schedule/schedule.h"
#include "transport/link.h"

#define GY_SCHEDULES_OTHER_ROOTS 32

/* Attributes set by gyre_comm_set. */
struct gy_attributes {
    char name[64];
    char algorithm[256]; /* as GYRE_ALGORITHM */
    bool canonical;      /* as GYRE_ORDER */
    bool uniform;        /* as GYRE_ENDS */
    int64_t timeout_ns;  /* as GYRE_TIMEOUT */
};

/* A frame sent before its request was made: the next collective's, or the next message's to `rank`. */
struct gy_sent_ahead {
    uint64_t sequence; /* 0: there is none */
    int rank;
};

struct gy_attachment;
struct gy_cached_call;
struct gy_verify;

/* State of uniform_completion.c in a communicator. */
struct gy_uniform {
    uint64_t started;  /* operations with uniform completion, launched */
    uint64_t complete; /* all up to this one are complete here; fixed once the world has failed */
    bool linked;       /* links and channels for the exchange exist */
};

struct gyre_comm {
    struct gy_context *ctx;
    struct gy_attributes attributes;
    struct gyre_comm *next; /* in ctx->comms */
    uint32_t id;
    struct gy_group group;
    int rank, size;                   /* of the group */
    struct gy_attachment *attachment; /* to a GPU (collectives/device/attachment.h); NULL: none */
    struct gy_tuned *tuned;           /* the cost cache; NULL: selection by thresholds */
    struct gy_grouping grouping;      /* of its ranks, for hierarchical schedules */
    uint64_t sequence;                /* of the collective started last */
    struct gy_sent_ahead sent_ahead;  /* see eager_exchange.c, eager_message.c and gy_flow_send */
    uint32_t agreements;              /* agreements begun */
    struct gy_channel **channels;     /* [size], NULL until used */

    /* Shared regions. Collectives that use them run one after the other, in start order. */
    int region;                         /* its region of the segment, −1: none */
    struct gy_region_control **control; /* [size] of every member, when there is a region */
    struct gy_rank_control **standing;  /* [size] likewise: what each exposes once per world */
    bool region_reserved;
    uint64_t region_base;    /* the shared counters' value after all started region collectives */
    uint64_t inline_started; /* eager exchanges started: number, and so place and flag value, of the last */
    uint64_t inline_done;    /* ... that are complete here */
    uint64_t inline_seen;    /* ... that every peer is known to have published */
    uint64_t inline_alone;   /* the last one published whose vector shares a place with others */
    uint64_t arrived;        /* sequence of the last operation published to the peers */
    /* Sequence of the last operation in which this rank waited for a peer and compared its signature with all
     * awaited peers'. */
    uint64_t compared;
    struct {
        bool known;
        uint8_t algorithm;   /* the selected algorithm */
        int32_t most;        /* largest contribution in bytes for the eager exchange; −1: none */
        size_t chosen;       /* 1 + the bytes of the last choice of path (shm_blocking.h, eager_exchange.c); 0: none */
        bool offered;        /* the last rooted call of this kind used exposed buffers: shm_rooted_mapped.c */
    } eager[GY_COLLECTIVES]; /* see eager_call.c */
    struct gy_cached_call *call_cache; /* [GY_COLLECTIVES]: the last call of each, reused for an equal one */
    struct gy_tuner tuner;
    uint64_t known[GY_REGION_LANES]; /* lower bound of every peer's counter */
    struct gyre_request *region_first, *region_last;
    struct gyre_request *region_next; /* the first of them that has not begun, or executes its schedule */
    struct gyre_window *windows;      /* one-sided */
    uint32_t windows_made;

    /* Schedules with root 0 (or none) live as long as the communicator; others are evicted when unused. */
    struct gy_schedule *schedules[GY_COLLECTIVES][GY_ALGORITHMS];
    struct {
        struct gy_schedule *schedule;
        unsigned users, used;
    } other[GY_SCHEDULES_OTHER_ROOTS];
    unsigned clock;

    struct gy_uniform completion;
    struct gy_verify *verify; /* see result_check.h; NULL: disabled */
    struct gy_recorder recorder;
    uint64_t sent[GY_TRANSPORTS_MOST]; /* bytes of payload handed to links */
    struct gy_error error;             /* with this communicator's ranks */
    bool refused;                      /* the first call after the failure has been recorded in it */
    struct gy_error ended;             /* why it accepts no more calls in a working world: comm_teardown.h */
    uint64_t shown[GY_COLLECTIVES];    /* selections already printed, a bit per log2 of the size */
};

struct gyre_comm *gy_comm_find(struct gy_context *ctx, uint32_t id);

/* Returns the cached schedule, held until gy_comm_schedule_release. NULL if out of memory. */
struct gy_schedule *gy_comm_schedule(struct gyre_comm *comm, enum gy_collective collective, enum gy_algorithm algorithm,
                                     int root);
/* True if the schedule is cached, so that gy_comm_schedule does not allocate. */
bool gy_comm_has_schedule(const struct gyre_comm *comm, enum gy_collective collective, enum gy_algorithm algorithm,
                          int root);
void gy_comm_schedule_release(struct gyre_comm *comm, struct gy_schedule *schedule);

/* Queues a frame to a member that has a link. */
static inline void gy_comm_post(struct gyre_comm *comm, int rank, struct gy_frame_out *frame)
{
    int peer = gy_group_world(&comm->group, rank);
    comm->sent[comm->ctx->peers[peer].transport] += frame->header.bytes;
    gy_context_post(comm->ctx, peer, frame);
}

/* Sends a short frame to a member that has a link; false: it has to be posted. */
static inline bool gy_comm_send_short(struct gyre_comm *comm, int rank, const struct gy_frame *header,
                                      const void *payload)
{
    const struct gy_context *ctx = comm->ctx;
    const struct gy_peer *peer = &ctx->peers[gy_group_world(&comm->group, rank)];
    if (!ctx->ops[peer->transport]->send_short(peer->link, header, payload))
        return false;
    comm->sent[peer->transport] += header->bytes;
    return true;
}

/* True if posting is as fast. */
static inline bool gy_comm_posts_quickly(const struct gyre_comm *comm, int rank)
{
    const struct gy_context *ctx = comm->ctx;
    return ctx->ops[ctx->peers[gy_group_world(&comm->group, rank)].transport]->posts_quickly;
}

/* True if a part of the last short frame to the member has not left yet. */
static inline bool gy_comm_keeps(const struct gyre_comm *comm, int rank)
{
    return comm->ctx->peers[gy_group_world(&comm->group, rank)].link->kept != NULL;
}

/* Returns the channel to a peer; NULL if out of memory. */
struct gy_channel *gy_comm_channel(struct gyre_comm *comm, int peer);

/* True if the communicator guarantees canonical order. */
static inline bool gy_comm_canonical(const struct gyre_comm *comm)
{
    return comm->attributes.canonical;
}

#endif

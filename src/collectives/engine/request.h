/* A request: one collective in flight on one rank. Its lanes are cursors into the schedule; the executor moves them. */
#ifndef GY_COLLECTIVES_ENGINE_REQUEST_H
#define GY_COLLECTIVES_ENGINE_REQUEST_H

#include "collectives/comm/communicator.h"
#include "collectives/engine/eager_shape.h"

#define GY_SENDS_IN_FLIGHT 4

struct gy_in_flight {
    struct gy_frame_out out;
    int peer;
    int64_t round;
    size_t tile, tiles;
    void *aside; /* the copy of an orphaned send's payload: orphan_sends.c */
};

struct gy_lane_state {
    /* The next iteration to start. */
    int32_t step;       /* index into schedule->step; the lane's end when exhausted */
    int32_t round;      /* inside the step */
    int64_t lane_round; /* through all steps of the lane */
    size_t tile, tiles; /* of the round */
    uint64_t iteration; /* through the whole lane */
    bool exhausted, finished;
    /* What is complete: rounds before done_round, and done_tiles tiles of that one. */
    int64_t done_round;
    size_t done_tiles;
    /* Links: iterations are numbered per peer and tag; pair_base is the number at the start of the step. */
    uint64_t pair_base;
    uint64_t granted;            /* sender: may send below this; receiver: has granted below this (pair numbers) */
    uint64_t ahead;              /* receiver: the number that may be in flight at once */
    bool eager;                  /* the step's frames are eager */
    bool want;                   /* sender: has neither received a grant of this step nor asked for it */
    int64_t wanted;              /* since when; 0: it has not tried to send yet */
    struct gy_frame_out control; /* GRANT or WANT */
    unsigned first_flight, flights;
    int everyone;           /* ranks below this one are known to satisfy the current region need */
    uint64_t everyone_done; /* the least progress of any of them by then */
    int waiting_for;        /* the request's field, for this lane alone; valid if the request waits for a rank */
    /* Most of a lane, and its last field: only sends in flight are valid, so a start clears all but these. */
    struct gy_in_flight flight[GY_SENDS_IN_FLIGHT];
};

/* One call, its arguments checked. The counts of the v-forms are per rank; if a form has one list, both fields name
 * it. */
struct gy_call {
    enum gy_collective collective;
    const void *input;
    void *output;
    size_t count;
    gyre_dtype dtype;
    gyre_op op;
    int root; /* point to point: the other rank */
    bool varying;
    bool unforced; /* gyre's own call, which ignores the user's forced choices: gy_run_own */
    const size_t *in_counts, *in_places, *out_counts, *out_places; /* [size] elements; places NULL: packed */
};

static inline bool gy_buffers_lie_apart(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
    return first + a_bytes <= second || second + b_bytes <= first;
}

/* True if the buffers of a call without lists, of `block` bytes in `count`, need no further check: both are there
 * and do not overlap or, if that is in place, are the same. Those of a gather or scatter differ on the root, and are
 * always checked. */
static inline bool gy_call_has_usual_buffers(const struct gy_call *call, size_t block, int size)
{
    const void *in = call->input, *out = call->output;
    size_t all = block * (size_t)size;
    if (call->collective == GY_BARRIER)
        return true;
    if (!in || !out)
        return false;
    switch (call->collective) {
    case GY_ALL_REDUCE:
    case GY_BROADCAST:
    case GY_REDUCE_TO: return in == out || gy_buffers_lie_apart(in, block, out, block);
    case GY_ALL_GATHER: return gy_buffers_lie_apart(in, block, out, all);
    case GY_REDUCE_SCATTER: return gy_buffers_lie_apart(in, all, out, block);
    case GY_ALL_TO_ALL: return gy_buffers_lie_apart(in, all, out, all);
    default: return false;
    }
}

/* Memory of the context's cache that a request holds. */
struct gy_buffer {
    void *memory;
    size_t bytes;
};

/* What a progress call of the request does. */
enum gy_phase {
    GY_MOVES,
    GY_CONFIRMS, /* complete here, it waits for the message that it is so everywhere: uniform_completion.h */
    GY_DETACHES, /* its communicator has ended, it waits until no peer touches its buffers: comm_teardown.h */
};

struct gyre_request {
    /* What its owner's calls read, and what a start of a short vector writes, lies in as few lines as possible. */
    struct gyre_comm *comm;
    struct gyre_request *next; /* active list, or free list */
    gyre_status status;
    _Atomic bool complete; /* the owner may read it without the lock */
    bool light;            /* an eager exchange that began before it was a request: it holds nothing */
    bool persistent;       /* keeps schedule and buffers from one start to the next */
    bool launched;         /* started since its owner collected it last */
    bool collected;        /* its owner has collected it: it is on the free list, or already reused */
    bool orphaned;         /* complete, but links still have frames of it: orphan_sends.c */
    bool canonical;        /* order of operands */
    bool eager;            /* regions: an eager exchange, see eager_call.c */
    uint64_t record;       /* in the flight recorder */
    struct gy_operation operation;
    struct gy_call_signature shape;
    struct gy_exchange exchange; /* of an eager exchange, as is the next field: */
    struct gy_exchange_kind kind;
    /* Fields of a queued request. What precedes is all that an eager exchange sets that has no other buffers
     * (`light`). */
    struct gyre_request *previous;     /* active list */
    struct gyre_request *region_after; /* queue of the communicator's region collectives */
    struct gy_schedule *schedule;
    const unsigned char *input; /* what the schedule reads: the call's, or its staged copy */
    unsigned char *output;      /* what the schedule writes: the call's, or a float32 copy */
    size_t element;             /* bytes of one */
    int eager_next;             /* awaited peers below this one have published */
    int waiting_for;            /* the rank for which the last attempt waited, in the first waiting lane; -1 */
    enum gy_phase phase;
    bool given_up;       /* orphaned and collected */
    int orphaned_lanes;  /* the request's lanes, when its schedule may be gone; 0: no payload has been
                                         * copied yet */
    bool verified;       /* regions: every peer's signature has been compared with ours */
    bool begun;          /* regions: it has its numbers; an eager exchange: it has been published */
    uint64_t completion; /* its number among those with uniform completion; 0: it is none; see uniform_completion.h */
    bool prefers_slots;  /* by the tuner, which had other variants, too: autotune.h */
    bool claims;         /* write-prefetches lines of slots that it alone reads: autotune.h */
    int64_t idle_since, asked, told; /* clocks: see stall_detector.c */
    struct gy_offer offer;           /* zero_copy.c: what peers use in place */

    const unsigned char *user_input; /* the call's */
    unsigned char *user_output;
    bool widened;             /* the schedule works on float32 copies of narrow floats */
    gyre_dtype dtype;         /* the call's; the operation's is what the schedule works on */
    uint64_t ticket;          /* of an eager message: the number of those to its peer before it */
    int confirmed;            /* regions: ranks below this one have confirmed */
    uint64_t verified_as;     /* 1 + its number among the compared results; 0: it is not compared; see result_check.h */
    struct gy_layout in, out; /* of the vector; all_to_all has two */
    size_t tile;              /* elements per tile */
    uint64_t region_base;
    bool stream;       /* its output exceeds the cache: non-temporal stores */
    bool one_pass;     /* regions: an exchange publishes a tile while it reads another */
    size_t slot_bytes; /* of the schedule's scratch */
    struct gy_buffer scratch, staged, table, wide;
    struct gy_buffer landing[GY_SCHEDULE_LANES]; /* where granted operands of a reduction arrive */
    struct gy_lane_state lane[GY_SCHEDULE_LANES];
    struct gyre_request *next_made; /* list of all of the context, in any state */
    struct gyre_request *next_orphaned;
};

/* Resets a request to its state before the first start. */
void gy_request_reset(struct gyre_request *request);
/* Appends a request to the list of the context, and to its communicator's queue if it uses regions. */
void gy_request_list(struct gyre_request *request);
/* The same for an eager exchange. begun: it has been published. */
void gy_request_queue_up(struct gyre_request *request, bool begun);
/* The same for one that is started again. */
void gy_request_queue(struct gyre_request *request, bool begun);
/* Completes such a request with success, at the head of its queue. */
void gy_request_finish_light(struct gyre_request *request);
/* Returns a request for an eager exchange that was complete when it had started; there is an idle one. */
struct gyre_request *gy_request_ended(struct gyre_comm *comm);
/* The same for one that has to wait. */
struct gyre_request *gy_request_opened(struct gyre_comm *comm);
/* From here on its owner may read it without the lock: its data is visible before. */
static inline void gy_request_set_complete(struct gyre_request *request, gyre_status status)
{
    request->status = status;
    atomic_store_explicit(&request->complete, true, memory_order_release);
}
/* The request has to wait: notes when it began, within a clock tick, if that is not known yet. */
void gy_request_note_beginning(const struct gyre_request *request);
/* True if a request over regions is at the head of its communicator's queue, and its signature has been published. */
static inline bool gy_request_is_first(const struct gyre_request *request)
{
    return request->comm->region_first == request && request->shape.sequence <= request->comm->arrived;
}
/* Counts and records the end of a request. */
void gy_request_record_end(struct gyre_request *request);
/* Sets its lanes to their beginning. */
void gy_request_rewind(struct gyre_request *request);
/* Publishes the signatures of launched operations, as far as there are free places. */
void gy_request_publish_signature(struct gyre_comm *comm);
/* True if the next operation may be published at once, before it is a request: all that is in flight stands in the
 * communicator's queue and has been published. */
bool gy_request_stands_behind(const struct gyre_comm *comm);
/* Completes a request and takes it off the lists; the user still holds it. */
void gy_request_finish(struct gyre_request *request, gyre_status status);
/* This rank's part is complete: ends the request with success, or lets it wait for the others
 * (uniform_completion.h). */
void gy_request_locally_complete(struct gyre_request *request);
/* Returns a request to the free list; it is on no other list and holds nothing. It never had an owner, or was
 * collected: an old handle is told from one in flight. */
static inline void gy_request_rest(struct gy_context *ctx, struct gyre_request *request)
{
    request->collected = true;
    request->next = ctx->idle;
    ctx->idle = request;
}
/* Returns the request to which a frame belongs. Point-to-point sequence numbers count per peer and direction:
 * `sends` says which end of the message is meant. */
struct gyre_request *gy_request_find(struct gyre_comm *comm, uint64_t sequence, int peer, bool sends);

/* True for a collective over links. At most GY_AT_ONCE of them move at every progress call. */
#define GY_AT_ONCE 16u
static inline bool gy_request_is_linked(const struct gyre_request *request)
{
    return !request->schedule->shm && !gy_is_point_to_point(request->schedule->shape.collective);
}

#endif

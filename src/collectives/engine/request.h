/* A request: one collective under way on one rank. Its lanes are cursors into the plan; the executor moves them. */
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
    void *aside; /* of one that is lent: orphan_sends.c */
};

struct gy_lane_state {
    /* The next iteration to start. */
    int32_t step;       /* index into plan->step; the lane's end when exhausted */
    int32_t round;      /* inside the step */
    int64_t lane_round; /* through all steps of the lane */
    size_t tile, tiles; /* of the round */
    uint64_t iteration; /* through the whole lane */
    bool exhausted, finished;
    /* What is complete: rounds before done_round, and done_tiles tiles of that one. */
    int64_t done_round;
    size_t done_tiles;
    /* Links: iterations are numbered per peer and channel; pair_base is the number at the start of the step. */
    uint64_t pair_base;
    uint64_t granted;            /* sender: may send below this; receiver: has allowed below this (pair numbers) */
    uint64_t ahead;              /* receiver: so many may be under way at once */
    bool eager;                  /* the step's frames are small */
    bool want;                   /* sender: has had no grant of this step, nor asked for it */
    int64_t wanted;              /* since when, 0: it has not tried to send yet */
    struct gy_frame_out control; /* GRANT or WANT */
    unsigned first_flight, flights;
    int everyone;           /* ranks below this one are known to satisfy the region need at hand */
    uint64_t everyone_done; /* the least that any of them has done by then */
    int waiting_for;        /* as the request's, of this lane alone; valid where the request misses a rank */
    /* Most of a lane, and the last of it: valid are those that are under way, so that a start clears all but these. */
    struct gy_in_flight flight[GY_SENDS_IN_FLIGHT];
};

/* One call, its arguments checked. The counts of the v-forms are per rank; where a form has one list, both name it. */
struct gy_call {
    enum gy_collective collective;
    const void *input;
    void *output;
    size_t count;
    gyre_dtype dtype;
    gyre_op op;
    int root; /* point to point: the other rank */
    bool varying;
    bool unforced; /* gyre's own, in spite of what the user forces: gy_run_own */
    const size_t *in_counts, *in_places, *out_counts, *out_places; /* [size] elements; places NULL: packed */
};

static inline bool gy_buffers_lie_apart(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
    return first + a_bytes <= second || second + b_bytes <= first;
}

/* Does a call without lists, of so many bytes in `count`, have buffers that need no closer look: both are there and lie apart or, where
 * that is in place, are the same? Those of a gather or scatter are others on the root, and are always looked at. */
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

/* Blocks that have been taken whole: of whom, of how many, and how much of the one that is under way. */
struct gy_taken {
    int ranks, under_way;
    size_t bytes;
    uint64_t of[GY_REGION_RANKS / 64];
};

/* What a request does at its turns. */
enum gy_phase {
    GY_MOVES,
    GY_CONFIRMS, /* complete here, it waits for the word that it is so everywhere: uniform_completion.h */
    GY_DETACHES, /* its communicator has ended, it waits until nobody touches its buffers: comm_teardown.h */
};

struct gyre_request {
    /* What its owner's calls look at, and what a start of a short vector does, lies in as few lines as may be. */
    struct gyre_comm *comm;
    struct gyre_request *next; /* active list, or free list */
    gyre_status status;
    _Atomic bool complete; /* the owner may look from outside */
    bool light;            /* a direct exchange that began before it was a request: it has nothing to give back */
    bool persistent;       /* keeps plan and buffers from one start to the next */
    bool launched;         /* and has been started since its owner collected it last */
    bool collected;        /* its owner has had it: on the free list, or another's by now */
    bool orphaned;         /* it is over, and links still have frames of it: orphan_sends.c */
    bool canonical;        /* order of operands */
    bool eager;            /* regions: a direct exchange, see eager_call.c */
    uint64_t record;       /* in the flight recorder */
    struct gy_operation operation;
    struct gy_call_signature shape;
    struct gy_exchange exchange; /* of a direct exchange; of that, too: */
    struct gy_exchange_kind kind;
    /* Of one that stands in the queue; what is here is all that a direct exchange sets which has no other buffers (`light`). */
    struct gyre_request *previous;    /* active list */
    struct gyre_request *next_window; /* queue of the communicator's region collectives */
    struct gy_plan *plan;
    const unsigned char *input; /* what the plan reads: the call's, or its staged copy */
    unsigned char *output;      /* what the plan writes: the call's, or a float32 copy */
    size_t element;             /* bytes of one */
    int eager_next;             /* peers below this one have published, as far as they are waited for */
    int waiting_for;            /* a rank that the last attempt missed, in the first lane that missed one; −1 */
    enum gy_phase phase;
    bool given_up;                      /* lent, and collected */
    int orphaned_lanes;                 /* of it, when its plan may be gone; 0: nothing has been copied aside yet */
    bool verified;                      /* regions: every peer's arrival has been compared with ours */
    bool begun;                         /* regions: it has its numbers; a direct exchange: it has been shown */
    bool whole;                         /* regions: takes blocks whole from those who offer them, see block_pull.h */
    struct gy_eager_queue *eager_queue; /* that it stands for; NULL: for itself */
    uint64_t completion; /* its number among those that end alike everywhere, 0: it is none; see uniform_completion.h */
    bool prefers_slots;  /* by the clock, which had other ways, too: autotune.h */
    bool claims;         /* lines of slots that it alone reads: autotune.h */
    int64_t idle_since, asked, told; /* clocks: see stall_detector.c */
    struct gy_offer offer;           /* zero_copy.c: what others use in place */

    const unsigned char *user_input; /* the call's */
    unsigned char *user_output;
    bool widened;             /* the plan works on float32 copies of narrow floats */
    gyre_dtype dtype;         /* the call's; the operation's is what the plan works on */
    uint64_t ticket;          /* of an eager message: those to its peer before it */
    int confirmed;            /* regions: ranks below this one have said so */
    uint64_t verified_as;     /* 1 + its number among the results that are compared, 0: it is not; see result_check.h */
    struct gy_layout in, out; /* of the vector; all_to_all has two */
    size_t tile;              /* elements per tile */
    uint64_t region_base;
    bool stream;       /* what it writes outgrows the cache: past it */
    bool one_pass;     /* regions: an exchange shows a tile while it takes another */
    size_t slot_bytes; /* of the plan's scratch */
    struct gy_buffer scratch, staged, table, wide;
    struct gy_buffer landing[GY_PLAN_LANES]; /* where granted operands of a reduction arrive */
    struct gy_lane_state lane[GY_PLAN_LANES];
    struct gy_taken taken;          /* valid where it takes blocks whole */
    struct gyre_request *next_made; /* of the context, whatever becomes of it */
    struct gyre_request *next_orphaned;
};

/* As before its first start. */
void gy_request_reset(struct gyre_request *request);
/* Into the lists: of the context, and of its communicator's where it goes by regions. */
void gy_request_list(struct gyre_request *request);
/* The same of a direct exchange. begun: it has been shown. */
void gy_request_queue_up(struct gyre_request *request, bool begun);
/* The same of one that is started again. */
void gy_request_queue(struct gyre_request *request, bool begun);
/* The end, with success, of such a one, at the head of its queue. */
void gy_request_finish_light(struct gyre_request *request);
/* One of a direct exchange that was over when it had started; there is an idle one. */
struct gyre_request *gy_request_ended(struct gyre_comm *comm);
/* Its owner's of an exchange that has left a note in the eager queue (eager_queue.h); there is an idle one. And the same of one that is started
 * again. */
struct gyre_request *gy_request_opened(struct gyre_comm *comm);
void gy_request_open(struct gyre_request *request);
/* Into the lists, of the one that stands for an eager queue, and out of them, at the head of its queue. */
void gy_request_stand(struct gyre_request *request);
void gy_request_leave(struct gyre_request *request);
/* Its owner may look from outside: what it has brought is there before. */
static inline void gy_request_set_complete(struct gyre_request *request, gyre_status status)
{
    request->status = status;
    atomic_store_explicit(&request->complete, true, memory_order_release);
}
/* It has to wait: when it began, within a tick, if that is not known yet. */
void gy_request_note_beginning(const struct gyre_request *request);
/* Of one that goes by regions: is it at the head of its communicator's queue, and have the peers been shown that this rank has entered it? */
static inline bool gy_request_is_first(const struct gyre_request *request)
{
    return request->comm->region_first == request && request->shape.sequence <= request->comm->arrived;
}
/* Counts and records its end. */
void gy_request_record_end(struct gyre_request *request);
/* Its lanes stand at their beginning. */
void gy_request_rewind(struct gyre_request *request);
/* Shows the peers what this rank has launched, as far as they have room for it. */
void gy_request_publish_signature(struct gyre_comm *comm);
/* May the operation that comes next be shown at once, before it is a request? All that is under way stands in the communicator's queue,
 * and has been shown. */
bool gy_request_stands_behind(const struct gyre_comm *comm);
/* Ends it and takes it off the lists; the user still holds it. */
void gy_request_finish(struct gyre_request *request, gyre_status status);
/* All that it does here is done: ends it with success, or lets it wait for the others (uniform_completion.h). */
void gy_request_locally_complete(struct gyre_request *request);
/* Back to the free list, of one that is on no other list and holds nothing. It was never anybody's, or was collected: an old handle is told from one
 * that is under way. */
static inline void gy_request_rest(struct gy_context *ctx, struct gyre_request *request)
{
    request->collected = true;
    request->next = ctx->idle;
    ctx->idle = request;
}
/* The request to which a frame belongs. Point-to-point sequence numbers count per peer and direction: `sends` says which
 * end of the message is looked for. */
struct gyre_request *gy_request_find(struct gyre_comm *comm, uint64_t sequence, int peer, bool sends);

/* A collective that goes over links. So many of them move at every turn. */
#define GY_AT_ONCE 16u
static inline bool gy_request_is_linked(const struct gyre_request *request)
{
    return !request->plan->shm && !gy_is_point_to_point(request->plan->shape.collective);
}

#endif

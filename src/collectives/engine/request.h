/* A request: one collective under way on one rank. Its lanes are cursors into the plan; the executor moves them. */
#ifndef GY_COLLECTIVES_ENGINE_REQUEST_H
#define GY_COLLECTIVES_ENGINE_REQUEST_H

#include "collectives/comm/communicator.h"
#include "collectives/shm/eager_shape.h"

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
    int everyone;           /* ranks below this one are known to satisfy the window need at hand */
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
    uint64_t of[GY_WINDOW_RANKS / 64];
};

/* What a request does at its turns. */
enum gy_phase {
    GY_MOVES,
    GY_CONFIRMS, /* complete here, it waits for the word that it is so everywhere: uniform_completion.h */
    GY_PARTS,    /* its communicator has ended, it waits until nobody touches its buffers: comm_teardown.h */
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
    bool lent;             /* it is over, and links still have frames of it: orphan_sends.c */
    bool canonical;        /* order of operands */
    bool tiny;             /* windows: a direct exchange, see eager_call.c */
    uint64_t record;       /* in the flight recorder */
    struct gy_operation operation;
    struct gy_arrival shape;
    struct gy_exchange exchange; /* of a direct exchange; of that, too: */
    struct gy_exchange_kind kind;
    /* Of one that stands in the queue; what is here is all that a direct exchange sets which has no other buffers (`light`). */
    struct gyre_request *previous;    /* active list */
    struct gyre_request *next_window; /* queue of the communicator's window collectives */
    struct gy_plan *plan;
    const unsigned char *input; /* what the plan reads: the call's, or its staged copy */
    unsigned char *output;      /* what the plan writes: the call's, or a float32 copy */
    size_t element;             /* bytes of one */
    int tiny_next;              /* peers below this one have published, as far as they are waited for */
    int waiting_for;            /* a rank that the last attempt missed, in the first lane that missed one; −1 */
    enum gy_phase phase;
    bool given_up;            /* lent, and collected */
    int lent_lanes;           /* of it, when its plan may be gone; 0: nothing has been copied aside yet */
    bool verified;            /* windows: every peer's arrival has been compared with ours */
    bool begun;               /* windows: it has its numbers; a direct exchange: it has been shown */
    bool whole;               /* windows: takes blocks whole from those who offer them, see block_pull.h */
    struct gy_bundle *bundle; /* that it stands for; NULL: for itself */
    uint64_t ends;      /* its number among those that end alike everywhere, 0: it is none; see uniform_completion.h */
    bool prefers_slots; /* by the clock, which had other ways, too: autotune.h */
    bool claims;        /* lines of slots that it alone reads: autotune.h */
    int64_t idle_since, asked, told; /* clocks: see stall_detector.c */
    struct gy_offer offer;           /* zero_copy.c: what others use in place */

    const unsigned char *user_input; /* the call's */
    unsigned char *user_output;
    bool widened;             /* the plan works on float32 copies of narrow floats */
    gyre_dtype dtype;         /* the call's; the operation's is what the plan works on */
    uint64_t ticket;          /* of an eager message: those to its peer before it */
    int confirmed;            /* windows: ranks below this one have said so */
    uint64_t verified_as;     /* 1 + its number among the results that are compared, 0: it is not; see result_check.h */
    struct gy_layout in, out; /* of the vector; all_to_all has two */
    size_t tile;              /* elements per tile */
    uint64_t window_base;
    bool stream;       /* what it writes outgrows the cache: past it */
    bool one_pass;     /* windows: an exchange shows a tile while it takes another */
    size_t slot_bytes; /* of the plan's scratch */
    struct gy_buffer scratch, staged, table, wide;
    struct gy_buffer landing[GY_PLAN_LANES]; /* where granted operands of a reduction arrive */
    struct gy_lane_state lane[GY_PLAN_LANES];
    struct gy_taken taken;          /* valid where it takes blocks whole */
    struct gyre_request *next_made; /* of the context, whatever becomes of it */
    struct gyre_request *next_lent;
};

/* Starts a collective; the arguments have been checked. Never blocks. */
gyre_status gy_request_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
/* A request that is started, and completes, any number of times; allocates all that it will need. */
gyre_status gy_request_keep(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
/* It is not under way. */
void gy_request_restart(struct gyre_request *request);
/* The whole of a blocking call, by the shortest way there is. */
gyre_status gy_run(struct gyre_comm *comm, const struct gy_call *call);
/* The same of a call that gyre itself makes (split.c, grow.c, rma/window.c). What the user forces is for the user's calls: one of
 * these goes by gyre's choice, on all ranks alike, so that no setting keeps it from being possible, or from being taken back. */
gyre_status gy_run_own(struct gyre_comm *comm, const struct gy_call *call);
/* A direct exchange that has its numbers and its record, and needs nothing else, becomes an active request. There is an
 * idle one, and a plan. begun: it has been shown. */
struct gyre_request *gy_request_adopt(const struct gy_exchange *it, bool begun);
/* The same of one that is started again. */
void gy_request_queue(struct gyre_request *request, bool begun);
/* The end, with success, of such a one, at the head of its queue. */
void gy_request_finish_light(struct gyre_request *request);
/* One of a direct exchange that was over when it had started; there is an idle one. */
struct gyre_request *gy_request_ended(struct gyre_comm *comm);
/* Its owner's of an exchange that has left a note in the bundle (eager_queue.h); there is an idle one. And the same of one that is started
 * again. */
struct gyre_request *gy_request_opened(struct gyre_comm *comm);
void gy_request_open(struct gyre_request *request);
/* Into the lists, of the one that stands for a bundle, and out of them, at the head of its queue. */
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
/* Counts and records its end. */
void gy_request_record_end(struct gyre_request *request);
/* One with all that it needs, which is not started. */
gyre_status gy_request_make(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
void gy_request_launch(struct gyre_request *request);
/* Its lanes stand at their beginning. */
void gy_request_rewind(struct gyre_request *request);
/* One that has its numbers and its record, and has been shown, becomes an active request, with its lanes where they are. */
void gy_request_enlist(struct gyre_request *request);
/* Shows the peers what this rank has launched, as far as they have room for it. */
void gy_request_arrive(struct gyre_comm *comm);
/* May the operation that comes next be shown at once, before it is a request? All that is under way stands in the communicator's queue,
 * and has been shown. */
bool gy_request_stands_behind(const struct gyre_comm *comm);
/* Ends it and takes it off the lists; the user still holds it. */
void gy_request_finish(struct gyre_request *request, gyre_status status);
/* All that it does here is done: ends it with success, or lets it wait for the others (uniform_completion.h). */
void gy_request_through(struct gyre_request *request);
/* Back to the free list, after completion; also after the end of the communicator. */
void gy_request_recycle(struct gyre_request *request);
/* The same of one that is on no other list and holds nothing. It was never anybody's, or was collected: an old handle is told from one
 * that is under way. */
static inline void gy_request_rest(struct gy_context *ctx, struct gyre_request *request)
{
    request->collected = true;
    request->next = ctx->idle;
    ctx->idle = request;
}
/* orphan_sends.c. It is about to end, without all that it has posted having left: the caller's buffers are free from now on, and the request
 * serves nobody else before links have given its frames back. False: not yet. */
bool gy_request_lend(struct gyre_request *request);
/* Those that are free by now; all: links touch nothing any more. */
void gy_requests_take_back(struct gy_context *ctx, bool all);
/* The request to which a frame belongs. Point-to-point sequence numbers count per peer and direction: `sends` says which
 * end of the message is looked for. */
struct gyre_request *gy_request_find(struct gyre_comm *comm, uint64_t sequence, int peer, bool sends);

/* prepare.c: all that a request needs before it can start. */
/* Chooses, fills, allocates, opens links. On failure nothing is held. */
gyre_status gy_prepare(struct gyre_request *request, struct gyre_comm *comm, const struct gy_call *call);
void gy_prepare_fill(struct gyre_request *request, struct gyre_comm *comm, const struct gy_call *call,
                     const struct gy_arrival *shape);
/* A part of it, once plan, layouts and tile are there: a place on each lane for what it reduces, if that waits for grants. False:
 * there is no memory. */
bool gy_prepare_landings(struct gyre_request *request);
/* At every start: the input aside, multiplied where the operation begins so. At the end: what the operation leaves. */
void gy_prepare_stage(struct gyre_request *request);
void gy_prepare_end(struct gyre_request *request);
/* Bytes of a slot of scratch that holds so many. */
static inline size_t gy_scratch_slot(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}
/* Gives back what gy_prepare took. */
void gy_prepare_undo(struct gyre_request *request);
/* The shape of a call, without its sequence number. */
struct gy_arrival gy_shape_of(const struct gy_call *call, enum gy_algorithm algorithm, int size);

/* executor.c: moves the request's lanes; true if anything moved. */
bool gy_request_advance(struct gyre_request *request);
/* A turn of its lanes alone; *over_p: all that there is to do here is done. */
bool gy_lanes_turn(struct gyre_request *request, bool *over_p);

/* A collective that goes over links. So many of them move at every turn. */
#define GY_AT_ONCE 16u
static inline bool gy_request_is_linked(const struct gyre_request *request)
{
    return !request->plan->window && !gy_is_point_to_point(request->plan->shape.collective);
}
void gy_lane_begin(struct gyre_request *request, int lane);
/* Is iteration (lane_round, tile) of `step` allowed? Notes whom it waits for. */
bool gy_needs_met(struct gyre_request *request, int lane, const struct gy_step *step, int64_t lane_round, size_t tile);
void gy_lane_next(struct gyre_request *request, int lane);
void gy_lane_done(struct gy_lane_state *state, int64_t round, size_t tile, size_t tiles);
/* Elements of the longest range of a step; what decides between eager and granted, and the number of tiles. */
size_t gy_step_longest(const struct gyre_request *request, const struct gy_step *step);
/* The piece of the lane's current iteration, and where an operand of it lies. */
struct gy_piece gy_lane_piece(const struct gyre_request *request, int lane);
unsigned char *gy_operand(const struct gyre_request *request, int lane, enum gy_space space, size_t start);
/* Into the output: past the caches where the whole of it outgrows them. */
void gy_put(const struct gyre_request *request, void *dst, const void *src, size_t bytes);
/* In the input or the output: element `start`, which lies in `block` or after it. */
unsigned char *gy_operand_at(const struct gyre_request *request, enum gy_space space, int32_t block, size_t start);

/* flow_control.c: the steps over links. */
bool gy_flow_send(struct gyre_request *request, int lane);
bool gy_flow_receive(struct gyre_request *request, int lane);
bool gy_flow_reap(struct gyre_request *request, int lane);
/* How many of the request's messages from there may be under way at once. */
uint64_t gy_flow_ahead(const struct gyre_request *request, int peer);
/* Do the messages of the step leave before they are granted? */
bool gy_flow_is_eager(const struct gyre_request *request, int lane, const struct gy_step *step);
/* Eager frames that were consumed and are to be given back: a frame of data takes them along in its header (owed), which counts
 * once it is as good as sent (returned); and what else was consumed, in batches (give_credit). */
uint8_t gy_flow_owed(const struct gyre_comm *comm, int peer, uint64_t sequence);
void gy_flow_returned(struct gyre_comm *comm, int peer, const struct gy_frame *frame);
void gy_flow_give_credit(struct gyre_comm *comm, int peer, const struct gy_frame *frame);
/* Do both ends of a link that is dialled, over TCP or RDMA, lie on this host? */
bool gy_flow_is_near(const struct gyre_comm *comm, int peer);
/* Nothing is there of the short message that a call waits for: what is owed is given back now, if that brings it sooner, as between
 * sockets of a host. */
void gy_flow_kept_waiting(struct gyre_comm *comm, int peer, uint64_t sequence);
void gy_flow_consume(struct gyre_request *request, int lane, const void *payload);
void gy_frame_fill(const struct gyre_request *request, struct gy_frame *frame, enum gy_frame_kind kind, int channel,
                   int peer);
/* Did the peer call what this rank called? False: mismatch, and the world is told. */
bool gy_flow_fits(struct gyre_request *request, int peer, const struct gy_frame *frame);
/* The lane that sends to the peer (or receives from it) on the channel; −1: none. */
int gy_flow_lane(const struct gyre_request *request, unsigned channel, int peer, bool sends);
/* False: the lane's one before is still under way. */
bool gy_flow_control(struct gyre_request *request, int lane, int peer, enum gy_frame_kind kind, uint64_t value);
static inline enum gy_credit_use gy_credit_use_of(uint64_t sequence)
{
    return sequence & GY_POINT_TO_POINT ? GY_FOR_MESSAGES : GY_FOR_COLLECTIVES;
}

/* receive_dispatch.c: what comes over links. */
extern const struct gy_sink gy_flow_sink; /* without `user` */

/* call_check.c. Shows the peers of this host what this rank has entered, and what it offers (NULL: nothing); every collective does, so that
 * a mismatch is found across algorithms. */
void gy_window_arrive(struct gyre_comm *comm, const struct gy_arrival *shape, const struct gy_offer *offer);
/* Compares what both have entered as operation `sequence`; false: mismatch, and the world is told. */
bool gy_window_verify(struct gyre_comm *comm, uint64_t sequence, int peer);

/* slots.c, slot_reduce.c: the steps over shared memory. */
gyre_status gy_window_begin(struct gyre_request *request);
/* May a step on windows go on without looking at the readers of its slot, since it will not write it? */
bool gy_window_idle(const struct gyre_request *request, const struct gy_step *step);
/* Does this rank's own block go into the output in the pass in which it publishes? Where lines of a slot are waited for, as where they
 * are neither claimed nor past the caches, two passes are quicker. */
bool gy_window_keeps_own(const struct gyre_request *request);
bool gy_window_everyone(struct gyre_request *request, int lane, const struct gy_step *step, int window_lane,
                        uint64_t target);
/* Does a step on windows leave its iteration to another lane, which does it in the pass in which it does one of its own? */
bool gy_window_follows(const struct gyre_request *request, const struct gy_step *step);
/* One iteration; false: what it was to read has been withdrawn, and the world's end is near. */
bool gy_window_step(struct gyre_request *request, int lane);
/* The whole of what a lane of its plan gathers, at once: nobody whose operand it reads has put it into slots. False likewise. */
bool gy_window_gather_whole(struct gyre_request *request, int lane);
/* All lanes have finished here; false: others still read what this rank offered. */
bool gy_window_end(struct gyre_request *request);
/* The value of a rank's counters when it is through with the operation, which has begun here. */
uint64_t gy_window_after(const struct gyre_request *request);
/* Elements of a tile where a block has so many bytes. */
size_t gy_window_tile(const struct gyre_comm *comm, const struct gy_plan *plan, size_t block, size_t element);
/* Rings the doorbells of those who sleep; after the store that they wait for. */
void gy_window_wake(const struct gyre_comm *comm);

/* eager_call.c: short vectors, exchanged directly instead of by a plan. The blocking call, start to end without a request;
 * false: this call takes the general path, and nothing has happened yet. */
bool gy_tiny_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);
/* The same for a call that does not block, with a request that holds nothing; false likewise. */
bool gy_tiny_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p);
/* The same of one that has been such an exchange before. */
bool gy_tiny_restart(struct gyre_request *request);
/* The request at the head of the queue, a direct exchange, has its turn, and so have those behind it when it is over. */
bool gy_tiny_advance(struct gyre_request *request);
/* Shows as many of the exchanges in the queue as may be under way at once. */
void gy_tiny_show(struct gyre_comm *comm);
/* Is a call of this shape, of elements of so many bytes, exchanged directly? The same on every rank. */
bool gy_tiny_fits(struct gyre_comm *comm, const struct gy_arrival *shape, size_t element);
/* The algorithm that stands in the shape of a call that is; false: it is not. */
bool gy_tiny_algorithm(struct gyre_comm *comm, const struct gy_call *call, enum gy_algorithm *algorithm_p);

/* Is there nothing unusual about the call: a communicator that is in use, counts that are the same everywhere, an operation of
 * the kernels, nobody who compares or asks to be shown? */
bool gy_tiny_is_plain(const struct gyre_comm *comm, const struct gy_call *call);

/* shm_blocking.c, shm_rooted_mapped.c: blocking calls over windows, start to end. A long all_reduce in memory of gyre_mem_alloc, and a
 * broadcast or reduction to a root in which what is given is used where it lies; false: it takes the general path, and nothing
 * has happened yet. */
bool gy_direct_rooted(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);
bool gy_direct_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);
/* Any plan over windows, of a request that was made and not launched, and is collected when that is over; false likewise. */
bool gy_direct_run(struct gyre_request *request, gyre_status *status_p);

/* eager_message.c: a short message over a link, start to end without a request. The whole of a blocking call; false: it takes the
 * general path, and nothing has happened yet, but for what comm->swapped says. */
bool gy_message_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);
/* Is the short way to and from this rank open? */
bool gy_message_open(const struct gyre_comm *comm, int rank);
/* The header of a call's short vector as one frame, which both ends come to alike; its lane and algorithm are the caller's. */
struct gy_frame gy_message_header(const struct gyre_comm *comm, const struct gy_call *call, uint64_t sequence);
/* Looks for the frame for a while, and takes it; false: it has not come, and nothing has happened. */
bool gy_message_comes(struct gy_awaited *it);
void gy_awaited_take(const struct gy_awaited *awaited, const void *payload);
/* It has happened: counted and recorded as a request's would be, whose vector has so many blocks like the frame's. */
void gy_message_note(struct gyre_comm *comm, const struct gy_frame *frame, size_t blocks);

/* eager_exchange.c: a collective of a short vector between two ranks over their link. The whole of a blocking call; false: it takes the
 * general path, and nothing has happened yet, but for what comm->swapped says. */
bool gy_swap_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p);

/* Ends the world because ranks called different things; both shapes are in the sentence. */
void gy_mismatch(struct gyre_comm *comm, int peer, const struct gy_arrival *theirs, const struct gy_arrival *mine);
bool gy_shape_equal(const struct gy_arrival *a, const struct gy_arrival *b);

/* progress.c */
bool gy_progress(struct gy_context *ctx);
void gy_wait(struct gyre_request *request);
/* Drives until `done` says so; it is asked after every turn. When the world fails all its requests complete. */
void gy_wait_until(struct gy_context *ctx, bool (*done)(const void *), const void *what);
/* The progress thread's part: until nothing is under way, or a caller waits and drives. */
void gy_drive(struct gy_context *ctx);
/* For calls that are over without a wait, once in a while: links and clocks, which nobody else gives a busy caller. */
#define GY_LOOK_EVERY 64 /* a power of two */
void gy_look_around(struct gy_context *ctx);
void gy_progress_links(struct gy_context *ctx, bool all, bool *moved_p);
/* The slow turn: descriptors, the verdict, clocks. True if something moved. */
bool gy_turn(struct gy_context *ctx, int64_t now);
/* stall_detector.c: the stall and arrival clocks of everything that waits. */
/* This rank was away (computing, stopped): nobody could answer it, so its clocks stood still. */
void gy_liveness_excuse(struct gy_context *ctx, int64_t now);
void gy_liveness_check(struct gy_context *ctx, int64_t now);
/* To the ranks of this host: this one runs inside gyre, and waits. */
void gy_liveness_show(struct gy_context *ctx);
/* To those elsewhere, once in a while: the same, by whom cannot look at its links and so answers no question. */
void gy_liveness_call(struct gyre_comm *comm, int64_t now);
/* Has the rank of the world left, and all been read that it may have sent before? by_memory: what is missing comes through
 * shared memory and not by its link; since: when it began to be missed. */
bool gy_liveness_has_gone(struct gy_context *ctx, int peer, bool by_memory, int64_t since, int64_t now);
/* Asks a member, once in a while, whether it still has its part of the window; the answer is a PONG, when it is inside gyre. since:
 * when the wait for it began; *asked: then at first, and this function's own. */
void gy_liveness_ask(const struct gyre_window *window, int rank, int64_t since, int64_t now, int64_t *asked);
/* Tells the rank of the world, unasked, that this one has destroyed the communicator, or else the window, that the frame is for. */
void gy_liveness_disown(struct gy_context *ctx, int peer, const struct gy_frame *frame);
/* Values of a PONG that are no count of operations: its sender has destroyed the communicator, or its part of the window whose number is
 * its `count`, or takes no more part in the communicator, which has ended there. `root`: because of whom. */
#define GY_PONG_DESTROYED UINT64_MAX
#define GY_PONG_WITHDRAWN (UINT64_MAX - 1)
#define GY_PONG_ENDED (UINT64_MAX - 2)
void gy_liveness_ping(struct gy_context *ctx, int peer, const struct gy_frame *ping);
void gy_liveness_pong(struct gy_context *ctx, int peer, const struct gy_frame *pong);

#endif

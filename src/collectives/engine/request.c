/* The life of a request.
 *
 *   free ──take, prepare──▶ launched, active ──▶ ended, held by the user ──▶ free
 *                               ▲                     │
 *                               └──────restart────────┘   persistent: keeps plan and buffers in between */
#include "collectives/engine/request.h"

#include <string.h>

#include "collectives/lifecycle/result_check.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "collectives/schedule/reduction_order.h"
#include "collectives/shm/eager.h"
#include "collectives/shm/eager_queue.h"
#include "collectives/shm/zero_copy.h"
#include "core/clock.h"
#include "core/handle.h"
#include "core/mem.h"

static struct gyre_request *request_take(struct gy_context *ctx)
{
    struct gyre_request *r = ctx->idle;
    if (r) {
        ctx->idle = r->next;
    } else {
        r = gy_alloc(sizeof(*r));
        if (r) {
            gy_handle_add(r, GY_HANDLE_REQUEST);
            r->next_made = ctx->made;
            ctx->made = r;
        }
    }
    if (r) /* the lanes are most of it: those that the plan has are cleared when it starts */
        memset(r, 0, offsetof(struct gyre_request, lane));
    return r;
}

static void active_append(struct gy_context *ctx, struct gyre_request *r)
{
    r->next = NULL;
    r->previous = ctx->active_last;
    if (ctx->active_last)
        ctx->active_last->next = r;
    else
        ctx->active_first = r;
    ctx->active_last = r;
    ctx->active++;
}

static void active_remove(struct gy_context *ctx, struct gyre_request *r)
{
    *(r->previous ? &r->previous->next : &ctx->active_first) = r->next;
    *(r->next ? &r->next->previous : &ctx->active_last) = r->previous;
    r->next = r->previous = NULL;
    ctx->active--;
}

static void window_enqueue(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    r->next_window = NULL;
    if (comm->window_last)
        comm->window_last->next_window = r;
    else
        comm->window_first = r;
    comm->ctx->queued += comm->window_last != NULL;
    comm->window_last = r;
    if (!comm->window_next && !r->begun)
        comm->window_next = r;
}

/* The head, which has been shown: what is behind it can move. */
static void window_dequeue_first(struct gyre_comm *comm)
{
    struct gyre_request *r = comm->window_first;
    comm->window_first = r->next_window;
    if (r->next_window)
        comm->ctx->queued--;
    else
        comm->window_last = NULL;
}

static void window_dequeue(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    if (comm->window_next == r)
        comm->window_next = r->next_window;
    if (comm->window_first == r) {
        window_dequeue_first(comm);
        return;
    }
    struct gyre_request *before = comm->window_first;
    while (before->next_window != r)
        before = before->next_window;
    before->next_window = r->next_window;
    comm->ctx->queued--;
    if (comm->window_last == r)
        comm->window_last = before;
}

/* What the peers that came first have called: their early frames carry the shape. False: something else. */
static bool check_early(struct gyre_request *r)
{
    if (r->plan->shape.collective == GY_SEND_TO) /* what comes from the peer under this number is another message */
        return true;
    bool message = gy_is_point_to_point(r->plan->shape.collective);
    int first = message ? r->plan->shape.root : 0, end = message ? first + 1 : r->comm->size;
    for (int peer = first; peer < end; peer++) { /* other peers number their messages alike */
        struct gy_channel *channel = r->comm->channels[peer];
        struct gy_stashed *early = channel ? gy_channel_any(channel, r->shape.sequence) : NULL;
        if (early && !gy_flow_fits(r, peer, &early->frame))
            return false;
    }
    return true;
}

/* The number of the operation: of the communicator, or of the messages between two ranks in one direction. */
static uint64_t next_sequence(struct gyre_request *r)
{
    enum gy_collective collective = r->plan->shape.collective;
    if (!gy_is_point_to_point(collective))
        return ++r->comm->sequence;
    struct gy_channel *channel = r->comm->channels[r->plan->shape.root];
    return GY_POINT_TO_POINT | (collective == GY_SEND_TO ? ++channel->sent : ++channel->received);
}

static void reset(struct gyre_request *r)
{
    atomic_store_explicit(&r->complete, false, memory_order_relaxed);
    r->verified = r->begun = r->tiny = r->light = false;
    r->phase = GY_MOVES;
    r->tiny_next = r->confirmed = 0;
    r->ends = 0;
    r->status = GYRE_IN_PROGRESS;
    r->waiting_for = -1;
    r->idle_since = r->asked = r->told = 0;
}

static void show_arrival(const struct gyre_request *r)
{
    gy_window_arrive(r->comm, &r->shape, r->light ? NULL : &r->offer);
}

/* In order, few at a time: a place is theirs to look at until the operation in it is complete, however many others are
 * under way. The rest follows as the first ones complete. */
void gy_request_arrive(struct gyre_comm *comm)
{
    const struct gy_context *ctx = comm->ctx;
    const struct gyre_request *first = NULL;
    if (ctx->active - ctx->queued == 1 && comm->window_last && comm->window_last->shape.sequence == comm->arrived + 1) {
        /* all that is under way stands in one queue, and only the last of it is new */
        if (comm->arrived + 1 - comm->window_first->shape.sequence < GY_WINDOW_SHOWN)
            show_arrival(comm->window_last);
        return;
    }
    for (const struct gyre_request *r = comm->ctx->active_first; r; r = r->next) {
        if (r->comm != comm || (r->shape.sequence & GY_POINT_TO_POINT))
            continue;
        first = first ? first : r;
        if (r->shape.sequence - first->shape.sequence >= GY_WINDOW_SHOWN)
            return;
        if (r->shape.sequence > comm->arrived)
            show_arrival(r);
    }
}

bool gy_request_stands_behind(const struct gyre_comm *comm)
{
    const struct gy_context *ctx = comm->ctx;
    if (!ctx->active_first)
        return true;
    const struct gyre_request *last = comm->window_last;
    return ctx->active - ctx->queued == 1 && last && (last->bundle || last->shape.sequence == comm->arrived) &&
           comm->arrived + 1 - comm->window_first->shape.sequence < GY_WINDOW_SHOWN;
}

void gy_request_rewind(struct gyre_request *r)
{
    for (int l = 0; l == 0 || l < r->plan->lanes; l++) /* clocks look at the first one, even where the plan has none */
        memset(&r->lane[l], 0, offsetof(struct gy_lane_state, flight));
    for (int l = 0; l < r->plan->lanes; l++) {
        r->lane[l].step = r->plan->lane[l].first;
        gy_lane_begin(r, l);
    }
}

void gy_request_enlist(struct gyre_request *r)
{
    active_append(r->comm->ctx, r);
    window_enqueue(r);
    if (!check_early(r))
        gy_context_fail(r->comm->ctx);
}

/* From here on the others see it. */
void gy_request_launch(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    struct gy_context *ctx = comm->ctx;
    r->shape.sequence = next_sequence(r);
    r->tiny = r->plan->window && gy_tiny_fits(comm, &r->shape, r->element);
    if (r->tiny) { /* now: the numbers are in the order of the launches, which is the same everywhere */
        r->kind = gy_exchange_kind_of(comm, &r->shape, r->element);
        r->exchange = gy_exchange_of(comm, &r->kind, &r->shape, ++comm->inline_started, r->input, r->output);
        r->tiny_next = r->kind.awaited.first;
    }
    struct gyre_page_record *record = gy_recorder_begin(&comm->recorder, &r->shape);
    gy_recorder_note(record, gy_now());
    r->record = record->serial;
    comm->recorder.page->bytes += r->in.total * r->element;
    if (r->plan->window)
        comm->recorder.page->window_bytes += r->in.total * r->element;
    gy_request_rewind(r);
    if (r->plan->shape.collective == GY_SEND_TO && r->lane[0].eager)
        r->ticket = comm->channels[r->plan->shape.root]->tickets++;
    if (r->staged.memory)
        gy_prepare_stage(r);
    gy_mapped_offer(r);
    if (comm->ended.status != GYRE_SUCCESS) /* while this call looked for a shorter way */
        r->phase = GY_PARTS;
    if (comm->verify)
        gy_verify_launch(r);
    if (comm->attributes.uniform)
        gy_ends_launch(r);
    active_append(ctx, r);
    if (r->plan->window)
        window_enqueue(r);
    if (comm->window_reserved && !gy_is_point_to_point(r->plan->shape.collective))
        gy_request_arrive(comm);
    if (!check_early(r)) /* now: the next turn would take those frames for what they are not */
        gy_context_fail(ctx);
    if (r->tiny && !ctx->closed)
        gy_tiny_show(comm);
    if (!r->complete && !ctx->closed && !(gy_request_is_linked(r) && ctx->active - ctx->queued > GY_AT_ONCE))
        gy_request_advance(r);
    if (!r->complete) /* a thread that sleeps has not armed itself for this one */
        gy_driver_wake(ctx);
}

gyre_status gy_request_make(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p)
{
    struct gy_context *ctx = comm->ctx;
    struct gyre_request *r = request_take(ctx);
    if (!r)
        return gy_error_set(&comm->error, GYRE_NO_MEMORY, -1, "out of memory for a request");
    gyre_status status = gy_prepare(r, comm, call);
    if (status != GYRE_SUCCESS) {
        gy_request_rest(ctx, r);
        return status;
    }
    *request_p = r;
    return GYRE_SUCCESS;
}

gyre_status gy_request_start(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p)
{
    if (gy_tiny_start(comm, call, request_p))
        return GYRE_SUCCESS;
    gyre_status status = gy_request_make(comm, call, request_p);
    if (status == GYRE_SUCCESS)
        gy_request_launch(*request_p);
    return status;
}

gyre_status gy_request_keep(struct gyre_comm *comm, const struct gy_call *call, struct gyre_request **request_p)
{
    gyre_status status = gy_request_make(comm, call, request_p);
    if (status != GYRE_SUCCESS)
        return status;
    struct gyre_request *r = *request_p;
    r->persistent = true;
    (void)gy_recorder_provide(&comm->recorder); /* its starts allocate nothing */
    gy_request_set_complete(r, GYRE_SUCCESS);
    return GYRE_SUCCESS;
}

void gy_request_restart(struct gyre_request *r)
{
    r->launched = true;
    if (gy_tiny_restart(r))
        return;
    reset(r);
    gy_request_launch(r);
}

/* Are others to be shown now that it is over? Behind a direct exchange, when what comes next is not shown yet. */
static bool is_due(const struct gyre_request *r)
{
    const struct gyre_request *head = r->comm->window_first;
    return !r->tiny || !head || head->shape.sequence > r->comm->arrived;
}

/* It is off the lists: what comes behind it has its turn. */
static void let_others(const struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    if (comm->window_reserved && comm->arrived < comm->sequence && is_due(r))
        gy_request_arrive(comm);
}

void gy_request_stand(struct gyre_request *r)
{
    reset(r);
    r->light = r->tiny = r->begun = true;
    active_append(r->comm->ctx, r);
    window_enqueue(r);
}

void gy_request_leave(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    gy_request_set_complete(r, GYRE_SUCCESS);
    active_remove(comm->ctx, r);
    window_dequeue_first(comm);
    let_others(r);
    gy_driver_wake(comm->ctx);
}

void gy_request_open(struct gyre_request *r)
{
    atomic_store_explicit(&r->complete, false, memory_order_relaxed);
    r->light = true;
    r->collected = false;
    r->status = GYRE_IN_PROGRESS;
}

/* An idle one, its owner's. */
static inline struct gyre_request *hand_out(struct gyre_comm *comm)
{
    struct gyre_request *r = comm->ctx->idle;
    comm->ctx->idle = r->next;
    r->comm = comm;
    r->persistent = r->launched = false;
    return r;
}

struct gyre_request *gy_request_opened(struct gyre_comm *comm)
{
    struct gyre_request *r = hand_out(comm);
    gy_request_open(r);
    return r;
}

struct gyre_request *gy_request_ended(struct gyre_comm *comm)
{
    struct gyre_request *r = hand_out(comm);
    r->light = true;
    r->collected = false;
    gy_request_set_complete(r, GYRE_SUCCESS);
    return r;
}

/* A direct exchange. */
static inline void queue(struct gyre_request *r, bool begun)
{
    r->tiny_next = r->kind.awaited.first;
    r->light = r->tiny = true;
    r->begun = begun;
    active_append(r->comm->ctx, r);
    window_enqueue(r);
}

struct gyre_request *gy_request_adopt(const struct gy_exchange *it, bool begun)
{
    struct gyre_comm *comm = it->comm;
    struct gyre_request *r = gy_request_opened(comm);
    /* In two: of more at once compilers make a string instruction, which takes longer than all the rest of this. */
    memset(&r->tiny_next, 0, offsetof(struct gyre_request, offer) - offsetof(struct gyre_request, tiny_next));
    r->offer = (struct gy_offer){0};
    r->plan = comm->plans[it->shape->collective][it->shape->algorithm];
    gy_arrival_copy(&r->shape, it->shape);
    r->input = it->input;
    r->output = it->output;
    r->operation = gy_exchange_operation(it);
    r->element = gy_dtype_bytes(r->operation.dtype);
    r->record = comm->recorder.page->started;
    r->kind = *it->kind;
    gy_exchange_set(&r->exchange, comm, &r->kind, &r->shape, it->number, it->input, it->output);
    r->exchange.claims = it->claims;
    r->exchange.kept = it->kept;
    r->waiting_for = -1;
    r->canonical = gy_comm_canonical(comm);
    queue(r, begun);
    return r;
}

void gy_request_queue(struct gyre_request *r, bool begun)
{
    reset(r);
    queue(r, begun);
}

void gy_request_note_beginning(const struct gyre_request *r)
{
    struct gyre_page_record *record = gy_recorder_at(&r->comm->recorder, r->record);
    if (record && record->began == 0)
        record->began = gy_now_coarse();
}

void gy_request_record_end(struct gyre_request *r)
{
    struct gy_recorder *recorder = &r->comm->recorder;
    struct gyre_page_record *record = gy_recorder_at(recorder, r->record);
    bool good = r->status == GYRE_SUCCESS;
    *(good ? &recorder->page->done : &recorder->page->failed) += 1;
    bool timed = !r->light || recorder->trace || !good;
    int64_t now = timed ? gy_now() : 0;
    gy_recorder_trace(recorder, &r->shape, r->status, record ? record->began : 0, now);
    if (!record)
        return;
    record->ended = now;
    record->state = good ? GYRE_PAGE_DONE : GYRE_PAGE_FAILED;
    record->waited_for = good || r->waiting_for < 0 ? -1 : gy_group_world(&r->comm->group, r->waiting_for);
}

void gy_request_finish_light(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    struct gyre_page_record *record = gy_recorder_at(&comm->recorder, r->record);
    gy_request_leave(r);
    if (!record) {
        gy_request_record_end(r);
        return;
    }
    record->waited_for = -1;
    gy_recorder_done(&comm->recorder, record);
}

void gy_request_finish(struct gyre_request *r, gyre_status status)
{
    if (r->complete)
        return;
    gy_request_set_complete(r, status);
    if (status == GYRE_SUCCESS && r->plan->output_blocks > 0 && !r->tiny)
        gy_prepare_end(r);
    if (status == GYRE_SUCCESS && r->comm->verify)
        gy_verify_finish(r);
    if (status != GYRE_SUCCESS)
        gy_mapped_withdraw(r);
    active_remove(r->comm->ctx, r);
    if (r->plan->window)
        window_dequeue(r);
    if (status == GYRE_SUCCESS)
        let_others(r);
    gy_driver_wake(r->comm->ctx);
    if (r->bundle)
        gy_bundle_end(r->bundle, status);
    else
        gy_request_record_end(r);
    if (!r->persistent && !r->light)
        gy_prepare_undo(r);
}

void gy_request_through(struct gyre_request *r)
{
    if (r->ends)
        gy_ends_confirm(r);
    else
        gy_request_finish(r, GYRE_SUCCESS);
}

void gy_request_recycle(struct gyre_request *r)
{
    if (r->lent) {
        if (r->persistent && r->comm)
            gy_prepare_undo(r);
        r->given_up = r->collected = true;
        return;
    }
    if (!r->comm) { /* its communicator has gone before it was collected */
        gy_handle_remove(r, GY_HANDLE_REQUEST);
        gy_free(r);
        return;
    }
    struct gy_context *ctx = r->comm->ctx;
    if (r->persistent)
        gy_prepare_undo(r);
    gy_request_rest(ctx, r);
}

struct gyre_request *gy_request_find(struct gyre_comm *comm, uint64_t sequence, int peer, bool sends)
{
    for (struct gyre_request *r = comm->ctx->active_first; r; r = r->next) {
        if (r->comm != comm || r->shape.sequence != sequence)
            continue;
        if (!(sequence & GY_POINT_TO_POINT))
            return r;
        if (r->plan->shape.root == peer && (r->plan->shape.collective == GY_SEND_TO) == sends)
            return r;
    }
    return NULL;
}

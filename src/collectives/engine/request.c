/* The life of a request.
 *
 *   free ──take, prepare──▶ launched, active ──▶ ended, held by the user ──▶ free
 *                               ▲                     │
 *                               └──────restart────────┘   persistent: keeps schedule and buffers in between */
#include "collectives/engine/request.h"

#include <string.h>

#include "collectives/engine/call_check.h"
#include "collectives/engine/lane.h"
#include "core/clock.h"

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

static void region_enqueue(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    r->region_after = NULL;
    if (comm->region_last)
        comm->region_last->region_after = r;
    else
        comm->region_first = r;
    comm->ctx->queued += comm->region_last != NULL;
    comm->region_last = r;
    if (!comm->region_next && !r->begun)
        comm->region_next = r;
}

/* Removes the head, which has been published: what is behind it can move. */
static void region_dequeue_first(struct gyre_comm *comm)
{
    struct gyre_request *r = comm->region_first;
    comm->region_first = r->region_after;
    if (r->region_after)
        comm->ctx->queued--;
    else
        comm->region_last = NULL;
}

static void region_dequeue(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    if (comm->region_next == r)
        comm->region_next = r->region_after;
    if (comm->region_first == r) {
        region_dequeue_first(comm);
        return;
    }
    struct gyre_request *before = comm->region_first;
    while (before->region_after != r)
        before = before->region_after;
    before->region_after = r->region_after;
    comm->ctx->queued--;
    if (comm->region_last == r)
        comm->region_last = before;
}

void gy_request_reset(struct gyre_request *r)
{
    atomic_store_explicit(&r->complete, false, memory_order_relaxed);
    r->verified = r->begun = r->eager = r->light = false;
    r->phase = GY_MOVES;
    r->eager_next = r->confirmed = 0;
    r->completion = 0;
    r->status = GYRE_IN_PROGRESS;
    r->waiting_for = -1;
    r->idle_since = r->asked = r->told = 0;
}

static void show_arrival(const struct gyre_request *r)
{
    gy_signature_publish(r->comm, &r->shape, r->light ? NULL : &r->offer);
}

/* Publishes signatures in order, few at a time. Peers may read a place until its operation is complete, however many
 * others are in flight. The rest follows as the first ones complete. */
void gy_request_publish_signature(struct gyre_comm *comm)
{
    const struct gy_context *ctx = comm->ctx;
    const struct gyre_request *first = NULL;
    if (ctx->active - ctx->queued == 1 && comm->region_last && comm->region_last->shape.sequence == comm->arrived + 1) {
        /* all requests in flight stand in one queue, and only the last of it is new */
        if (comm->arrived + 1 - comm->region_first->shape.sequence < GY_REGION_SHOWN)
            show_arrival(comm->region_last);
        return;
    }
    for (const struct gyre_request *r = comm->ctx->active_first; r; r = r->next) {
        if (r->comm != comm || (r->shape.sequence & GY_POINT_TO_POINT))
            continue;
        first = first ? first : r;
        if (r->shape.sequence - first->shape.sequence >= GY_REGION_SHOWN)
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
    const struct gyre_request *last = comm->region_last;
    return ctx->active - ctx->queued == 1 && last && last->shape.sequence == comm->arrived &&
           comm->arrived + 1 - comm->region_first->shape.sequence < GY_REGION_SHOWN;
}

void gy_request_rewind(struct gyre_request *r)
{
    for (int l = 0; l == 0 || l < r->schedule->lanes;
         l++) /* clocks read the first lane, even if the schedule has none */
        memset(&r->lane[l], 0, offsetof(struct gy_lane_state, flight));
    for (int l = 0; l < r->schedule->lanes; l++) {
        r->lane[l].step = r->schedule->lane[l].first;
        gy_lane_begin(r, l);
    }
}

/* True if further signatures are to be published now that this request is complete. Behind an eager exchange they
 * are, when the next one is not published yet. */
static bool is_due(const struct gyre_request *r)
{
    const struct gyre_request *head = r->comm->region_first;
    return !r->eager || !head || head->shape.sequence > r->comm->arrived;
}

/* The request is off the lists: those behind it move on. */
static void let_others(const struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    if (comm->region_reserved && comm->arrived < comm->sequence && is_due(r))
        gy_request_publish_signature(comm);
}

static void leave_as_first(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    gy_request_set_complete(r, GYRE_SUCCESS);
    active_remove(comm->ctx, r);
    region_dequeue_first(comm);
    let_others(r);
    gy_progress_wake(comm->ctx);
}

/* Returns an idle request, which its owner gets. */
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
    atomic_store_explicit(&r->complete, false, memory_order_relaxed);
    r->light = true;
    r->collected = false;
    r->status = GYRE_IN_PROGRESS;
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

/* An eager exchange. */
void gy_request_queue_up(struct gyre_request *r, bool begun)
{
    r->eager_next = r->kind.awaited.first;
    r->light = r->eager = true;
    r->begun = begun;
    active_append(r->comm->ctx, r);
    region_enqueue(r);
}

void gy_request_queue(struct gyre_request *r, bool begun)
{
    gy_request_reset(r);
    gy_request_queue_up(r, begun);
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
    leave_as_first(r);
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
    r->comm->ctx->up->ending(r, status);
    active_remove(r->comm->ctx, r);
    if (r->schedule->shm)
        region_dequeue(r);
    if (status == GYRE_SUCCESS)
        let_others(r);
    gy_progress_wake(r->comm->ctx);
    gy_request_record_end(r);
    r->comm->ctx->up->ended(r);
}

void gy_request_locally_complete(struct gyre_request *r)
{
    if (r->completion)
        r->comm->ctx->up->confirm(r);
    else
        gy_request_finish(r, GYRE_SUCCESS);
}

struct gyre_request *gy_request_find(struct gyre_comm *comm, uint64_t sequence, int peer, bool sends)
{
    for (struct gyre_request *r = comm->ctx->active_first; r; r = r->next) {
        if (r->comm != comm || r->shape.sequence != sequence)
            continue;
        if (!(sequence & GY_POINT_TO_POINT))
            return r;
        if (r->schedule->shape.root == peer && (r->schedule->shape.collective == GY_SEND_TO) == sends)
            return r;
    }
    return NULL;
}

void gy_request_list(struct gyre_request *r)
{
    active_append(r->comm->ctx, r);
    if (r->schedule->shm)
        region_enqueue(r);
}

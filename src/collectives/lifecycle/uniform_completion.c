/* Uniform completion: uniform_completion.h has the protocol and why it is right.
 *
 * Invariants. comm->completion.complete grows only in `raise`, which runs only while the world is whole: what this
 * rank has proposed in an agreement stays true. An agreement instance is entered once. It stays in the agreement,
 * which answers for this rank as long as the world exists, also without the communicator. */
#include "collectives/lifecycle/uniform_completion.h"

#include "collectives/engine/progress.h"
#include "collectives/lifecycle/agree.h"
#include "collectives/link/flow_control.h"
#include "collectives/shm/slots.h"
#include "core/clock.h"
#include "core/mem.h"
#include "membership/agreement.h"

#define STEP (10 * GY_MILLISECOND)
#define LEAVE (300 * GY_MILLISECOND) /* destroying takes under a second */

/* ---- all is well ---- */

static gyre_status open_to(struct gyre_comm *comm, int rank)
{
    struct gy_context *ctx = comm->ctx;
    struct gy_link *link;
    int world = gy_group_world(&comm->group, rank);
    if (gy_context_link(ctx, world, &link) != GYRE_SUCCESS) { /* the others may have entered already, and would wait */
        gy_overlay_report(ctx->overlay, ctx->error.status, ctx->world->rank, ctx->error.text);
        return ctx->error.status;
    }
    if (!gy_comm_channel(comm, rank))
        return gy_error_set(&comm->error, GYRE_NO_MEMORY, -1, "out of memory for a channel to rank %d", world);
    return GYRE_SUCCESS;
}

static int after(const struct gyre_comm *comm, int distance)
{
    return (comm->rank + distance) % comm->size;
}

static int before(const struct gyre_comm *comm, int distance)
{
    return (comm->rank + comm->size - distance) % comm->size;
}

gyre_status gy_uniform_prepare(struct gyre_comm *comm)
{
    gyre_status status = GYRE_SUCCESS;
    for (int d = 1; d < comm->size && !comm->completion.linked && comm->region < 0 && status == GYRE_SUCCESS; d *= 2) {
        status = open_to(comm, after(comm, d));
        if (status == GYRE_SUCCESS)
            status = open_to(comm, before(comm, d));
    }
    comm->completion.linked |= status == GYRE_SUCCESS;
    return status;
}

void gy_uniform_launch(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    if (gy_is_point_to_point(r->schedule->shape.collective) || comm->size == 1)
        return;
    r->completion = ++comm->completion.started;
    if (comm->completion.linked)
        return;
    gyre_status status = gy_uniform_prepare(comm); /* a persistent one, prepared when completion was local */
    if (status == GYRE_NO_MEMORY)
        gy_overlay_report(comm->ctx->overlay, status, comm->ctx->world->rank, comm->error.text);
}

/* Active requests are in the order of their launches. */
static void raise(struct gyre_comm *comm)
{
    uint64_t complete = comm->completion.started;
    for (const struct gyre_request *r = comm->ctx->active_first; r; r = r->next)
        if (r->comm == comm && r->completion && r->phase == GY_MOVES) {
            complete = r->completion - 1;
            break;
        }
    if (complete == comm->completion.complete)
        return;
    comm->completion.complete = complete;
    if (comm->region < 0)
        return;
    atomic_store_explicit(&comm->control[comm->rank]->completion, complete, memory_order_release);
    gy_slot_wake(comm);
}

static bool is_shown(struct gyre_request *r)
{
    const struct gyre_comm *comm = r->comm;
    for (; r->confirmed < comm->size; r->confirmed++)
        if (atomic_load_explicit(&comm->control[r->confirmed]->completion, memory_order_acquire) < r->completion) {
            r->waiting_for = r->confirmed;
            return false;
        }
    return true;
}

/* A queued earlier number holds back a newer one: the next progress sends that. */
static void tell(const struct gyre_request *r, int rank, uint64_t number)
{
    struct gy_channel *channel = r->comm->channels[rank];
    if (number <= channel->completion.told || channel->completion.out.queued)
        return;
    gy_frame_fill(r, &channel->completion.out.header, GY_FRAME_UNIFORM, 0, rank);
    channel->completion.out.header.value = number;
    channel->completion.out.payload = NULL;
    channel->completion.told = number;
    gy_comm_post(r->comm, rank, &channel->completion.out);
}

/* Returns true if this rank's own rounds have been sent, too: no other rank would repeat them. */
static bool is_spread(struct gyre_request *r)
{
    const struct gyre_comm *comm = r->comm;
    uint64_t number = comm->completion.complete;
    int missed = -1;
    for (int d = 1; d < comm->size; d *= 2) {
        int to = after(comm, d), from = before(comm, d);
        tell(r, to, number);
        if (missed < 0 &&
            (comm->channels[to]->completion.told < r->completion || comm->channels[to]->completion.out.queued))
            missed = to;
        uint64_t heard = comm->channels[from]->completion.heard;
        if (missed < 0 && heard < r->completion)
            missed = from;
        number = heard < number ? heard : number;
    }
    r->waiting_for = missed;
    return missed < 0;
}

bool gy_uniform_advance(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    r->waiting_for = -1;
    if (comm->completion.complete < r->completion) /* an earlier one is in flight here, and has clocks of its own */
        return false;
    if (comm->region < 0 && !comm->completion.linked) /* the failure has been reported, and the world ends */
        return false;
    if (!(comm->region >= 0 ? is_shown(r) : is_spread(r)))
        return false;
    gy_request_finish(r, GYRE_SUCCESS);
    return true;
}

void gy_uniform_confirm(struct gyre_request *r)
{
    r->phase = GY_CONFIRMS;
    raise(r->comm);
    gy_uniform_advance(r);
}

/* ---- the world has failed ---- */

/* True after an abort, which ends agreements, too, whatever came before it. */
static bool is_over(const struct gy_context *ctx)
{
    return ctx->outside || ctx->error.status == GYRE_ABORTED || gy_overlay_aborted(ctx->overlay);
}

bool gy_uniform_decides(const struct gyre_request *r)
{
    return r->completion && !is_over(r->comm->ctx);
}

static bool has_pending(const struct gy_context *ctx, const struct gyre_comm *comm)
{
    for (const struct gyre_request *r = ctx->active_first; r; r = r->next)
        if (r->completion && (!comm || r->comm == comm))
            return true;
    return false;
}

bool gy_uniform_pending(const struct gy_context *ctx)
{
    return has_pending(ctx, NULL);
}

/* Ends what was in flight on `comm` (NULL: on all): with success up to `agreed`. */
static void conclude(struct gy_context *ctx, struct gyre_comm *comm, uint64_t agreed, gyre_status failure)
{
    struct gyre_request *next;
    for (struct gyre_request *r = ctx->active_first; r; r = next) {
        next = r->next;
        if (r->completion && (!comm || r->comm == comm))
            gy_request_finish(r, r->completion <= agreed ? GYRE_SUCCESS : failure);
    }
}

/* This rank takes no part any more, and tells the others: its operations in flight fail, with the reason. */
static void go_outside(struct gy_context *ctx, const struct gy_error *why)
{
    ctx->outside = true;
    gy_agreement_quit_uniform(ctx->world->agreement);
    for (struct gyre_comm *comm = ctx->comms; comm; comm = comm->next)
        if (has_pending(ctx, comm))
            comm->error = *why;
    conclude(ctx, NULL, 0, why->status);
}

/* Returns the lowest member. An agreement instance is named by its communicator's number, which communicators that
 * share no rank with it may have, too (split.c), and its lowest member. A world fails once, so that each has at most
 * one instance. */
static uint32_t lowest(const struct gyre_comm *comm)
{
    int least = gy_group_world(&comm->group, 0);
    for (int rank = 1; rank < comm->size; rank++)
        least = gy_group_world(&comm->group, rank) < least ? gy_group_world(&comm->group, rank) : least;
    return (uint32_t)least;
}

/* Returns NULL if this rank has no such communicator. */
static struct gyre_comm *find_comm(struct gy_context *ctx, const struct gy_agreement_view *view)
{
    struct gyre_comm *comm = gy_comm_find(ctx, view->comm & ~GY_AGREEMENT_OF_UNIFORM);
    return comm && lowest(comm) == view->number ? comm : NULL;
}

static bool find(const struct gyre_comm *comm, struct gy_agreement_view *view_p)
{
    uint32_t number = lowest(comm);
    for (int i = 0; gy_agreement_poll(comm->ctx->world->agreement, i, view_p); i++)
        if (view_p->comm == (GY_AGREEMENT_OF_UNIFORM | comm->id) && view_p->number == number)
            return true;
    return false;
}

/* The agreement combines counts by the maximum, but the least number is needed: it gets complements. */
static void enter(struct gy_context *ctx, const struct gy_agreement_view *view)
{
    const struct gyre_comm *comm = find_comm(ctx, view);
    struct gy_agreement_input input = {.kind = GY_AGREEMENT_UNIFORM, .count = comm ? ~comm->completion.complete : 0};
    struct gy_error error = {.rank = -1};
    int size = ctx->world->size;
    int *members = gy_alloc((size_t)size * sizeof(*members));
    for (int rank = 0; members && rank < size; rank++)
        members[rank] = rank;
    if (!members ||
        gy_agreement_enter(ctx->world->agreement, view->comm, view->number, members, size, &input,
                           comm ? comm->attributes.timeout_ns : ctx->config.timeout_ns, &error) != GYRE_SUCCESS) {
        gy_error_set(&error, GYRE_NO_MEMORY, ctx->world->rank, "rank %d has no memory to agree on how operations end",
                     ctx->world->rank);
        go_outside(ctx, &error);
    }
    gy_free(members);
}

static void ask(struct gyre_comm *comm)
{
    struct gy_agreement_view view;
    if (is_over(comm->ctx) || (find(comm, &view) && view.entered))
        return;
    view = (struct gy_agreement_view){.comm = GY_AGREEMENT_OF_UNIFORM | comm->id, .number = lowest(comm)};
    enter(comm->ctx, &view);
}

static void step(struct gy_context *ctx, const struct gy_agreement_view *view)
{
    struct gy_outcome outcome;
    struct gy_error error = {.rank = -1};
    struct gyre_comm *comm = find_comm(ctx, view);
    gyre_status status = gy_agreement_step(ctx->world->agreement, view->comm, view->number, &outcome, &error);
    if (status == GYRE_IN_PROGRESS)
        return;
    if (status != GYRE_SUCCESS) {
        go_outside(ctx, &error);
        return;
    }
    if (comm)
        conclude(ctx, comm, outcome.status == GYRE_SUCCESS ? ~outcome.count : 0, ctx->error.status);
    gy_outcome_free(&outcome);
}

void gy_uniform_step(struct gy_context *ctx)
{
    struct gy_agreement_view view;
    if (!ctx->closed || ctx->outside)
        return;
    if (is_over(ctx)) {
        const struct gy_error *aborted = gy_overlay_aborted(ctx->overlay);
        go_outside(ctx, aborted ? aborted : &ctx->error);
        return;
    }
    for (struct gyre_comm *comm = ctx->comms; comm; comm = comm->next)
        if (has_pending(ctx, comm))
            ask(comm);
    for (int i = 0; !is_over(ctx) && gy_agreement_poll(ctx->world->agreement, i, &view); i++) {
        const struct gyre_comm *comm = view.comm & GY_AGREEMENT_OF_UNIFORM ? find_comm(ctx, &view) : NULL;
        if (!(view.comm & GY_AGREEMENT_OF_UNIFORM) || (view.decided && !(comm && has_pending(ctx, comm))))
            continue;
        if (!view.entered)
            enter(ctx, &view);
        if (!is_over(ctx))
            step(ctx, &view);
    }
}

void gy_uniform_attend(struct gy_context *ctx)
{
    if (ctx->closed && !ctx->outside)
        gy_recovery_poll(ctx);
}

void gy_uniform_wait(struct gy_context *ctx)
{
    gy_agreement_attend(ctx->world->agreement, true);
    gy_uniform_attend(ctx);
    gy_progress_sleep(ctx, gy_overlay_calm(ctx->overlay) ? STEP : GY_MILLISECOND);
}

void gy_uniform_return(struct gy_context *ctx)
{
    gy_agreement_attend(ctx->world->agreement, false);
}

void gy_uniform_settle(struct gy_context *ctx)
{
    while (ctx->closed && !is_over(ctx) && gy_uniform_pending(ctx))
        gy_uniform_wait(ctx);
    gy_uniform_step(ctx); /* after an abort it ends them */
}

static bool is_decided(const void *what)
{
    const struct gyre_comm *comm = what;
    struct gy_agreement_view view;
    return is_over(comm->ctx) || (find(comm, &view) && view.decided);
}

void gy_uniform_refuse(struct gyre_comm *comm, bool block)
{
    if (!comm->attributes.uniform || comm->size == 1 || !comm->ctx->closed)
        return;
    ask(comm);
    if (block)
        gy_wait_until(comm->ctx, is_decided, comm);
}

void gy_uniform_leave(struct gyre_comm *comm)
{
    struct gy_context *ctx = comm->ctx;
    struct gy_agreement_view view;
    int64_t until = gy_now() + LEAVE;
    if (!is_over(ctx) && has_pending(ctx, comm))
        ask(comm);
    while (!is_over(ctx) && find(comm, &view) && view.entered && !view.decided && gy_now() < until)
        gy_uniform_wait(ctx);
    gy_uniform_step(ctx);
    conclude(ctx, comm, 0, GYRE_ABORTED);
}

/* How a communicator ends, and what it waits for: comm_teardown.h. */
#include "collectives/lifecycle/comm_teardown.h"

#include <stdio.h>

#include "collectives/call/call_cache.h"
#include "collectives/engine/liveness.h"
#include "collectives/engine/progress.h"
#include "collectives/link/flow_control.h"
#include "collectives/link/orphan_sends.h"
#include "collectives/shm/slots.h"
#include "collectives/shm/zero_copy.h"
#include "core/clock.h"
#include "core/mem.h"

#define SETTLE (200 * GY_MILLISECOND) /* destroying takes under a second */
#define ENDED (UINT32_C(1) << 30)     /* in the announcement, beside the communicator's number; without it: destroyed */

static bool uniform_alone(const struct gyre_comm *comm)
{
    if (comm->attributes.uniform || comm->verify)
        return false;
    for (const struct gyre_request *r = comm->ctx->active_first; r; r = r->next)
        if (r->comm == comm && r->completion) /* started while completion was uniform */
            return false;
    return true;
}

/* Tells a rank of the end. Without memory for it that rank finds out when it asks (stall_detector.c). */
static void tell(struct gyre_comm *comm, int rank, uint64_t how, int cause)
{
    struct gy_context *ctx = comm->ctx;
    const struct gy_peer *peer = &ctx->peers[gy_group_world(&comm->group, rank)];
    bool knows = comm->channels[rank] && comm->channels[rank]->destroyed;
    struct gy_channel *channel = peer->link && !peer->broken && !knows ? gy_comm_channel(comm, rank) : NULL;
    if (!channel || channel->announce_end.queued)
        return;
    channel->announce_end.header = (struct gy_frame){
        .kind = GY_FRAME_PONG, .epoch = ctx->world->epoch, .comm = comm->id, .value = how, .root = (uint32_t)cause};
    channel->announce_end.payload = NULL;
    gy_comm_post(comm, rank, &channel->announce_end);
}

/* Tells members without a link to this rank that the communicator is gone; otherwise a link they open later would
 * reach no communicator. */
static void announce(struct gyre_comm *comm, uint64_t how, int cause)
{
    struct gy_context *ctx = comm->ctx;
    uint8_t *whom = gy_alloc_zero(1, gy_overlay_marks(ctx->overlay));
    bool any = false;
    for (int rank = 0; rank < comm->size && whom; rank++) {
        size_t world = (size_t)gy_group_world(&comm->group, rank);
        if (rank == comm->rank || ctx->peers[world].link || (comm->channels[rank] && comm->channels[rank]->destroyed))
            continue;
        whom[world / 8] |= (uint8_t)(1u << world % 8);
        any = true;
    }
    if (any)
        gy_overlay_announce(ctx->overlay, comm->id | (how == GY_PONG_ENDED ? ENDED : 0), cause, whom);
    gy_free(whom);
}

static void tell_all(struct gyre_comm *comm, uint64_t how, int cause)
{
    for (int rank = 0; rank < comm->size && !comm->ctx->closed; rank++)
        if (rank != comm->rank)
            tell(comm, rank, how, cause);
    if (comm->region < 0) /* otherwise shared memory shows it */
        announce(comm, how, cause);
}

/* Shows the end in shared memory, and asks each member to check its communicators there. */
static void show(struct gyre_comm *comm, int cause)
{
    if (comm->region < 0)
        return;
    gy_region_end(comm->ctx, comm->region, cause);
    for (int rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank)
            atomic_store_explicit(&comm->standing[rank]->check_ends, 1, memory_order_release);
    gy_slot_wake(comm);
}

void gy_comm_end(struct gyre_comm *comm, gyre_status status, int cause, const char *text)
{
    struct gy_context *ctx = comm->ctx;
    if (comm->ended.status != GYRE_SUCCESS || ctx->closed)
        return;
    if (!uniform_alone(comm)) {
        gy_error_set(&ctx->error, status, cause, "%s", text);
        gy_overlay_report(ctx->overlay, status, cause, text);
        return;
    }
    gy_error_set(&comm->ended, status, cause, "%s", text);
    gy_comm_end_refuse(comm);
    gy_call_cache_forget(comm); /* the cached path does not check for an end */
    gy_context_take_back(ctx, comm->id, GY_BUT_WINDOWS);
    for (struct gyre_request *r = ctx->active_first; r; r = r->next)
        if (r->comm == comm)
            r->phase = GY_DETACHES;
    show(comm, cause);
    tell_all(comm, GY_PONG_ENDED, cause);
}

void gy_comm_announce_end(struct gyre_comm *comm)
{
    struct gy_context *ctx = comm->ctx;
    int cause = comm->ended.status != GYRE_SUCCESS ? comm->ended.rank : ctx->world->rank;
    bool last = ctx->comms == comm && !comm->next; /* the world's own leave message is next */
    if (!ctx->closed && !last)
        tell_all(comm, GY_PONG_DESTROYED, cause);
}

struct settling {
    const struct gyre_comm *comm;
    int64_t deadline;
};

static bool is_pending(const struct gyre_comm *comm)
{
    for (const struct gyre_request *r = comm->ctx->active_first; r; r = r->next)
        if (r->comm == comm)
            return true;
    return false;
}

static bool is_settled(const void *what)
{
    const struct settling *settling = what;
    return !is_pending(settling->comm) || settling->comm->ctx->closed || gy_now() > settling->deadline;
}

bool gy_comm_end_settle(struct gyre_comm *comm)
{
    struct gy_context *ctx = comm->ctx;
    struct settling settling = {comm, gy_now() + SETTLE};
    char text[120];
    if (!is_pending(comm) || ctx->closed)
        return true;
    if (!uniform_alone(comm) || (ctx->comms == comm && !comm->next))
        return false;
    snprintf(text, sizeof(text), "rank %d destroyed its communicator %u with operations under way", ctx->world->rank,
             comm->id);
    gy_comm_end(comm, GYRE_ABORTED, ctx->world->rank, text);
    gy_wait_until(ctx, is_settled, &settling);
    return !is_pending(comm) || ctx->closed;
}

/* The communicator has ended on a member. The rank that detected it has logged it. */
static void follow(struct gyre_comm *comm, int rank, int cause)
{
    const struct gyre_request *r = comm->ctx->active_first;
    char text[480], what[160] = "between two operations on it";
    while (r && r->comm != comm)
        r = r->next;
    if (r)
        gy_shape_print(&r->shape, what, sizeof(what));
    snprintf(text, sizeof(text),
             "rank %d destroyed its communicator; because of that it ended on rank %d, while rank %d was %s%s", cause,
             gy_group_world(&comm->group, rank), comm->ctx->world->rank, r ? "in " : "", what);
    comm->ended.quiet = true;
    gy_comm_end(comm, GYRE_PEER_LEFT, cause, text);
}

void gy_comm_end_heard(struct gyre_comm *comm, int rank, int cause, bool destroyed)
{
    if (!destroyed) {
        follow(comm, rank, cause);
        return;
    }
    struct gy_channel *channel = gy_comm_channel(comm, rank);
    if (!channel)
        return;
    channel->destroyed = true;
    channel->cause = cause;
}

void gy_comm_end_announced(void *user, int world, uint32_t word, int cause)
{
    struct gyre_comm *comm = gy_comm_find(user, word & ~ENDED);
    int rank = comm ? gy_group_rank(&comm->group, world) : -1;
    if (rank >= 0)
        gy_comm_end_heard(comm, rank, cause, !(word & ENDED));
}

int gy_comm_end_cause(const struct gyre_comm *comm, int rank)
{
    const struct gy_channel *channel = comm->channels[rank];
    if (channel && channel->destroyed)
        return channel->cause;
    return comm->region < 0 ? -1
                            : gy_region_cause(comm->ctx, comm->region, comm->id, gy_group_world(&comm->group, rank));
}

/* True if links hold no frame that the request has posted. A peer may not read for long. */
static bool has_flown(struct gyre_request *r)
{
    bool flown = true;
    for (int l = 0; l < r->schedule->lanes; l++) {
        gy_flow_reap(r, l);
        flown &= r->lane[l].flights == 0 && !r->lane[l].control.queued;
    }
    return flown;
}

/* True if the member no longer uses the request's exposed memory. */
static bool is_through(const struct gyre_request *r, int rank)
{
    const struct gyre_comm *comm = r->comm;
    int world = gy_group_world(&comm->group, rank);
    return rank == comm->rank || gy_overlay_has_left(comm->ctx->overlay, world) ||
           gy_region_cause(comm->ctx, comm->region, comm->id, world) >= 0 ||
           (r->begun && gy_mapped_has_done(r, rank, gy_slot_after(r)));
}

static bool is_let_go(struct gyre_request *r)
{
    if (!r->offer.input && !r->offer.output)
        return true;
    for (int rank = 0; rank < r->comm->size; rank++)
        if (!is_through(r, rank)) {
            r->waiting_for = rank;
            return false;
        }
    r->offer.input = r->offer.output = 0; /* nothing is left to separate from them */
    return true;
}

bool gy_comm_end_advance(struct gyre_request *r)
{
    bool linked = !r->eager && !r->schedule->shm;
    if (!is_let_go(r) || (linked && !has_flown(r) && !gy_request_detach_sends(r)))
        return false;
    gy_request_finish(r, r->comm->ended.status);
    return true;
}

static void check_comm(struct gyre_comm *comm)
{
    for (int rank = 0; rank < comm->size && comm->ended.status == GYRE_SUCCESS; rank++) {
        int world = gy_group_world(&comm->group, rank);
        int cause = rank == comm->rank ? -1 : gy_region_cause(comm->ctx, comm->region, comm->id, world);
        if (cause >= 0 && (cause != world || !gy_region_destroyed(comm->ctx, comm->region, comm->id, world)))
            gy_comm_end_heard(comm, rank, cause, false);
    }
}

void gy_comm_end_check(struct gy_context *ctx)
{
    if (!ctx->segment)
        return;
    _Atomic uint32_t *check_ends = &gy_segment_rank(ctx->segment, ctx->world->local)->check_ends;
    if (atomic_load_explicit(check_ends, memory_order_relaxed) == 0)
        return;
    atomic_exchange_explicit(check_ends, 0, memory_order_acquire); /* later changes set it again */
    for (struct gyre_comm *comm = ctx->comms; comm; comm = comm->next)
        if (comm->region >= 0)
            check_comm(comm);
}

gyre_status gy_comm_end_refuse(struct gyre_comm *comm)
{
    comm->error = comm->ended;
    comm->error.quiet = false;
    return comm->ended.status;
}

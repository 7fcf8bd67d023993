/* The end of a one-sided window that not all ranks have destroyed: it ended with its communicator, which one rank
 * destroys alone, and whose world continues.
 *
 *   its owner    takes back what links still store to (context.c), and copies what they have yet to send of it: from
 *                then on its memory belongs to the caller alone
 *                ──▶ answers later frames, and a PING, by a PONG that says so
 *   the others   stop waiting for the owner, since links are FIFO and nothing more comes: PEER_LEFT, on that
 *                communicator alone
 *
 * gyre_window_destroy then waits for no rank, either. So a window may be destroyed on some of the others and not yet
 * on all: their frames are answered likewise. A rank that accesses the memory by its own mapping, or its device,
 * gets no answer: exposure.c. */
#include <string.h>

#include "collectives/engine/liveness.h"
#include "collectives/engine/progress.h"
#include "collectives/engine/request.h"
#include "collectives/rma/window.h"
#include "core/clock.h"
#include "core/mem.h"

/* Bounds the wait for links that read the memory: destroying waits for no peer. A slower device reads what it has
 * pinned. */
#define ORPHANED_MOST (200 * GY_MILLISECOND)

/* ---- the owner ---- */

static bool is_orphaned(const struct gyre_window *window, int peer, const struct gy_reply *reply)
{
    struct gy_context *ctx = window->comm->ctx;
    const struct gy_peer *p = &ctx->peers[gy_group_world(&window->comm->group, peer)];
    return reply->out.queued && !reply->aside && ctx->ops[p->transport]->reads_in_place(p->link, &reply->out);
}

struct orphaned {
    const struct gyre_window *window;
    int64_t deadline;
};

static bool are_back(const void *what)
{
    const struct orphaned *orphaned = what;
    const struct gyre_window *window = orphaned->window;
    if (window->comm->ctx->closed || gy_now() > orphaned->deadline)
        return true;
    for (int peer = 0; peer < window->size; peer++)
        for (int i = 0; window->targets[peer].replies && i < GY_ONE_SIDED_FLIGHT; i++)
            if (is_orphaned(window, peer, &window->targets[peer].replies[i]))
                return false;
    return true;
}

static bool set_aside(struct gy_reply *reply)
{
    struct gy_frame_out *out = &reply->out;
    reply->aside = gy_alloc(out->header.bytes);
    if (!reply->aside)
        return false;
    memcpy(reply->aside, out->payload, out->header.bytes);
    out->payload = reply->aside;
    return true;
}

void gy_rma_set_aside(struct gyre_window *window)
{
    struct gyre_comm *comm = window->comm;
    for (int peer = 0; peer < window->size && !comm->ctx->closed; peer++)
        for (int i = 0; window->targets[peer].replies && i < GY_ONE_SIDED_FLIGHT; i++) {
            struct gy_reply *reply = &window->targets[peer].replies[i];
            if (reply->out.queued && reply->out.header.bytes > 0 && !is_orphaned(window, peer, reply) &&
                !set_aside(reply))
                gy_context_no_memory(comm->ctx, gy_group_world(&comm->group, peer));
        }
    struct orphaned orphaned = {window, gy_now() + ORPHANED_MOST};
    if (!are_back(&orphaned))
        gy_wait_until(comm->ctx, are_back, &orphaned);
}

/* ---- the others ---- */

static bool has_destroyed(const struct gyre_comm *comm, int rank)
{
    return comm->channels[rank] && comm->channels[rank]->destroyed;
}

bool gy_window_has_lost(const struct gyre_window *window, int rank)
{
    const struct gy_target *target = &window->targets[rank];
    return !target->memory && (target->gone || has_destroyed(window->comm, rank));
}

bool gy_window_is_destroyed(struct gyre_comm *comm, uint64_t id)
{
    return id > 0 && id <= comm->windows_made && !gy_window_find(comm, id);
}

gyre_status gy_window_tell_lost(const struct gyre_window *window, int rank)
{
    struct gyre_comm *comm = window->comm;
    int world = gy_group_world(&comm->group, rank);
    comm->error.status = GYRE_SUCCESS; /* the communicator continues, and may hold an earlier error */
    return gy_error_set(
        &comm->error, GYRE_PEER_LEFT, world,
        has_destroyed(comm, rank)
            ? "rank %d destroyed its communicator %u, and its part of window %u with it"
            : "rank %d has left communicator %u's window %u, as a member had destroyed the communicator",
        world, comm->id, window->id);
}

void gy_windows_give_up(struct gyre_comm *comm, int rank, uint64_t id)
{
    for (struct gyre_window *window = comm->windows; window; window = window->next) {
        if (id && window->id != id)
            continue;
        window->targets[rank].gone = true;
        window->targets[rank].flushed = window->targets[rank].flushes;
        for (int i = 0; i < GY_ONE_SIDED_FLIGHT; i++)
            if (window->get[i].from == rank)
                window->get[i].waiting = false;
    }
}

/* True if no signal can come from the member any more. All that it had sent is here: it came before the notice, on
 * the same link. */
static bool is_lost_signaller(const struct gyre_window *window, int rank)
{
    struct gyre_comm *comm = window->comm;
    bool by_memory = window->watchers > 0 && gy_exposed_to(comm, rank);
    if (!by_memory)
        return window->targets[rank].gone || has_destroyed(comm, rank);
    return !gy_exposed_in_use(window) || (comm->region >= 0 && gy_region_destroyed(comm->ctx, comm->region, comm->id,
                                                                                   gy_group_world(&comm->group, rank)));
}

int gy_window_signaller(const struct gyre_window *window, int64_t since, int *lost_p)
{
    struct gyre_comm *comm = window->comm;
    int64_t now = gy_now();
    *lost_p = -1;
    for (int rank = 0; rank < comm->size; rank++) {
        bool by_memory = window->targets[rank].control != NULL;
        if (rank == comm->rank ||
            gy_liveness_has_gone(comm->ctx, gy_group_world(&comm->group, rank), by_memory, since, now))
            continue;
        if (!is_lost_signaller(window, rank))
            return rank;
        *lost_p = *lost_p < 0 ? rank : *lost_p;
    }
    return -1;
}

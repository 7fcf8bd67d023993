/* Observing a communicator: places of its ranks, counters, and a trace. The structs begin with their size as the
 * caller's header knows it. That much of them is written, so that either side may be the older one. */
#include <string.h>

#include "api/check.h"
#include "collectives/lifecycle/agree.h"
#include "transport/registry/registry.h"

/* Copies the fields that both sides know of a struct that begins with its size; the rest of the caller's is zero. */
static void give(void *theirs, size_t their_bytes, const void *ours, size_t our_bytes)
{
    size_t known = gy_min_size(their_bytes, our_bytes);
    memset((char *)theirs + sizeof(size_t), 0, their_bytes - sizeof(size_t));
    memcpy((char *)theirs + sizeof(size_t), (const char *)ours + sizeof(size_t), known - sizeof(size_t));
}

/* A size that no version ever had means that the size was not set. */
static gyre_status check_size(gyre_comm *comm, const char *function, const void *theirs, size_t bytes, size_t least)
{
    if (theirs && bytes >= least && bytes <= 4096)
        return GYRE_SUCCESS;
    return gy_check_fail(comm, GYRE_INVALID_ARGUMENT,
                         theirs ? "%s: size is %zu, set it to the struct's" : "%s: the struct is NULL", function,
                         bytes);
}

static const char *transport_name(const struct gy_context *ctx, int world_rank)
{
    int transport = ctx->peers[world_rank].transport;
    return transport >= 0 ? ctx->ops[transport]->name : "none";
}

static void find_place(const struct gyre_comm *comm, int rank, gyre_rank_place *place)
{
    const struct gy_world *world = comm->ctx->world;
    int mine = gy_group_world(&comm->group, rank);
    const struct gy_member *member = &world->members[mine];
    *place = (gyre_rank_place){.world_rank = mine,
                               .same_host = member->host == world->members[world->rank].host,
                               .process = member->pid,
                               .transport = transport_name(comm->ctx, mine)};
    for (int r = 0; r < comm->size; r++) {
        int host = world->members[gy_group_world(&comm->group, r)].host, first = 0;
        while (world->members[gy_group_world(&comm->group, first)].host != host)
            first++;
        if (first == r) { /* the first rank of its host in this communicator */
            if (host == member->host)
                place->host = place->hosts;
            place->hosts++;
        }
        if (host == member->host) {
            place->local += r < rank;
            place->locals++;
        }
    }
}

gyre_status gyre_comm_topology(gyre_comm *comm, int rank, gyre_rank_place *place_p)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!place_p)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_comm_topology: place_p is NULL");
    if (gy_check_owner(comm) != GYRE_SUCCESS) /* the table of members is gone */
        return GYRE_FORKED;
    gyre_rank_place place;
    gy_progress_enter(comm->ctx);
    gyre_status status = check_size(comm, "gyre_comm_topology", place_p, place_p->size, sizeof(place));
    if (status == GYRE_SUCCESS && (rank < 0 || rank >= comm->size))
        status = gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_comm_topology: %d is not a rank: there are %d", rank,
                               comm->size);
    if (status == GYRE_SUCCESS && place_p) { /* checked: for the analyser */
        find_place(comm, rank, &place);
        give(place_p, place_p->size, &place, sizeof(place));
    }
    gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_comm_failed(gyre_comm *comm, int rank, gyre_failure *failure_p)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!failure_p)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_comm_failed: failure_p is NULL");
    if (gy_check_owner(comm) != GYRE_SUCCESS)
        return GYRE_FORKED;
    gy_progress_enter(comm->ctx);
    gyre_status status = check_size(comm, "gyre_comm_failed", failure_p, failure_p->size, sizeof(*failure_p));
    if (status == GYRE_SUCCESS && (rank < 0 || rank >= comm->size))
        status = gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_comm_failed: %d is not a rank: there are %d", rank,
                               comm->size);
    if (status == GYRE_SUCCESS) {
        gy_recovery_poll(comm->ctx);
        const struct gy_failed_rank *found = gy_overlay_failure(comm->ctx->overlay, gy_group_world(&comm->group, rank));
        bool lives = found->status == GYRE_SUCCESS;
        gyre_failure failure = {.status = found->status, .when = found->when, .why = lives ? "" : found->why};
        if (!failure.why) /* there was no memory for it */
            failure.why = gyre_status_text(found->status);
        give(failure_p, failure_p->size, &failure, sizeof(failure));
    }
    gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_comm_counters(gyre_comm *comm, gyre_counters *counters_p)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!counters_p)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_comm_counters: counters_p is NULL");
    gy_progress_enter(comm->ctx);
    const struct gy_recorder *recorder = &comm->recorder;
    gyre_counters counters = {.started = recorder->page->started,
                              .done = recorder->page->done,
                              .failed = recorder->page->failed,
                              .bytes = recorder->page->bytes,
                              .window_bytes = recorder->page->window_bytes};
    for (int t = 0; t < comm->ctx->transports; t++) {
        void *counter = (char *)&counters + comm->ctx->ops[t]->counter;
        *(uint64_t *)counter += comm->sent[t];
    }
    gyre_status status = check_size(comm, "gyre_comm_counters", counters_p, counters_p->size, sizeof(counters));
    if (status == GYRE_SUCCESS && counters_p)
        give(counters_p, counters_p->size, &counters, sizeof(counters));
    gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_comm_trace(gyre_comm *comm, gyre_trace_func func, void *user)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    gy_progress_enter(comm->ctx);
    comm->recorder.trace = func;
    comm->recorder.trace_user = user;
    gy_progress_leave(comm->ctx);
    return GYRE_SUCCESS;
}

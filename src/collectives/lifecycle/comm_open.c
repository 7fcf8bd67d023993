/* Opens and closes communicators. */
#include "collectives/lifecycle/comm_open.h"

#include <string.h>

#include "collectives/call/call_cache.h"
#include "collectives/call/prepare.h"
#include "collectives/comm/status_page.h"
#include "collectives/engine/request.h"
#include "collectives/lifecycle/comm_teardown.h"
#include "collectives/lifecycle/result_check.h"
#include "collectives/rma/window.h"
#include "collectives/select/cost_cache.h"
#include "collectives/shm/autotune.h"
#include "core/handle.h"
#include "core/mem.h"

bool gy_comm_together(const struct gy_context *ctx, const struct gy_group *group)
{
    const struct gy_world *world = ctx->world;
    if (!ctx->segment || group->size > GY_REGION_RANKS)
        return false;
    for (int r = 0; r < group->size; r++)
        if (world->members[gy_group_world(group, r)].host != world->members[world->rank].host)
            return false;
    /* a slot must hold at least one element, of at most 8 bytes, for every rank */
    return gy_segment_region_bytes(ctx->segment) / (2 * (size_t)GY_REGION_SLOTS) >= 8 * (size_t)group->size;
}

static bool find_controls(struct gyre_comm *comm)
{
    const struct gy_world *world = comm->ctx->world;
    struct gy_segment *segment = comm->ctx->segment;
    comm->control = gy_alloc((size_t)comm->size * sizeof(struct gy_region_control *));
    comm->standing = gy_alloc((size_t)comm->size * sizeof(struct gy_rank_control *));
    bool made = comm->control && comm->standing;
    for (int r = 0; made && r < comm->size; r++) {
        int local = world->members[gy_group_world(&comm->group, r)].local;
        comm->control[r] = gy_segment_region(segment, local, comm->region);
        comm->standing[r] = gy_segment_rank(segment, local);
    }
    return made;
}

gyre_status gy_comm_create(struct gy_context *ctx, uint32_t id, struct gy_group *group, int region,
                           struct gyre_comm **comm_p, struct gy_error *error)
{
    struct gyre_comm *comm = gy_alloc_zero(1, sizeof(*comm));
    if (!comm)
        goto no_memory;
    comm->ctx = ctx;
    comm->id = id;
    comm->size = group->size;
    comm->rank = gy_group_rank(group, ctx->world->rank);
    comm->region = region;
    comm->attributes.canonical = ctx->config.canonical;
    comm->attributes.uniform = ctx->config.uniform;
    comm->attributes.timeout_ns = ctx->config.timeout_ns;
    memcpy(comm->attributes.algorithm, ctx->config.algorithm, sizeof(comm->attributes.algorithm));
    comm->channels = gy_alloc_zero((size_t)comm->size, sizeof(struct gy_channel *));
    if (!comm->channels)
        goto free_comm;
    if (!gy_grouping_make(&comm->grouping, ctx->world, group, ctx->config.hierarchy))
        goto free_channels;
    if (!gy_tuned_make(ctx, group->size, comm->grouping.hosts, &comm->tuned))
        goto free_grouping;
    comm->group = *group;
    if (region >= 0 && !find_controls(comm))
        goto free_controls;
    gy_call_cache_init(comm);
    if (!gy_page_comm_take(comm))
        goto free_controls;
    *group = (struct gy_group){0};
    if (region >= 0)
        gy_region_take(ctx, region, id);
    comm->next = ctx->comms;
    ctx->comms = comm;
    gy_handle_add(comm, GY_HANDLE_COMM);
    if (gy_verify_make(comm, &comm->verify, error) != GYRE_SUCCESS) {
        gy_comm_free(comm);
        return error->status;
    }
    *comm_p = comm;
    return GYRE_SUCCESS;

free_controls:
    gy_free(comm->standing);
    gy_free(comm->control);
free_grouping:
    gy_free(comm->tuned);
    gy_grouping_free(&comm->grouping);
free_channels:
    gy_free(comm->channels);
free_comm:
    gy_free(comm);
no_memory:
    return gy_error_set(error, GYRE_NO_MEMORY, -1, "out of memory for a communicator");
}

gyre_status gy_comm_create_world(struct gy_context *ctx, struct gyre_comm **comm_p, struct gy_error *error)
{
    struct gy_group group = {.size = ctx->world->size};
    return gy_comm_create(ctx, ctx->next_comm++, &group, gy_comm_together(ctx, &group) ? 0 : -1, comm_p, error);
}

/* Leaves requests to their owners, which have not collected them yet: each is freed when it is collected. */
static void leave_requests(struct gyre_comm *comm)
{
    for (struct gyre_request *r, **at = &comm->ctx->made; (r = *at);) {
        if (r->comm != comm || r->collected || !r->complete) {
            at = &r->next_made;
            continue;
        }
        if (r->persistent)
            gy_prepare_undo(r);
        r->comm = NULL;
        *at = r->next_made;
    }
}

void gy_comm_free(struct gyre_comm *comm)
{
    gy_handle_remove(comm, GY_HANDLE_COMM);
    gy_comm_announce_end(comm);
    gy_context_take_back(comm->ctx, comm->id, 0);
    gy_verify_free(comm->verify);
    for (struct gyre_comm **c = &comm->ctx->comms; *c; c = &(*c)->next)
        if (*c == comm) {
            *c = comm->next;
            break;
        }
    while (comm->windows)
        gy_window_free(comm->windows);
    leave_requests(comm);
    for (int p = 0; p < comm->size; p++)
        gy_context_free_later(comm->ctx, comm->channels[p]);
    for (int c = 0; c < GY_COLLECTIVES; c++)
        for (int a = 0; a < GY_ALGORITHMS; a++)
            gy_schedule_free(comm->schedules[c][a]);
    for (int i = 0; i < GY_SCHEDULES_OTHER_ROOTS; i++)
        gy_schedule_free(comm->other[i].schedule);
    if (comm->region >= 0)
        gy_region_retire(comm->ctx, comm->region, comm->id, &comm->group);
    gy_page_comm_give(comm);
    gy_group_free(&comm->group);
    gy_grouping_free(&comm->grouping);
    gy_tuner_free(comm);
    gy_free(comm->tuned);
    gy_call_cache_fini(comm);
    gy_free(comm->standing);
    gy_free(comm->control);
    gy_free(comm->channels);
    gy_free(comm);
}

/* The communicator of the next epoch, in a context of its own: shared by a shrink and a growth, once all have
 * agreed. */
#include "collectives/lifecycle/next_comm.h"

#include "bootstrap/messages.h"
#include "collectives/lifecycle/agree.h"
#include "collectives/lifecycle/comm_open.h"
#include "collectives/lifecycle/context_open.h"
#include "core/mem.h"

struct gy_member *gy_next_members(const struct gyre_comm *comm, const struct gy_outcome *outcome, int more, int *rank_p,
                                  struct gy_error *error)
{
    struct gy_member *members = gy_alloc_zero((size_t)outcome->ranks + (size_t)more, sizeof(*members));
    int next = 0;
    if (!members)
        gy_error_set(error, GYRE_NO_MEMORY, -1, "out of memory for the table of %d members", outcome->ranks);
    if (members && (outcome->count & ~GY_AGREE_GROWS) > GY_OPS_MADE_MOST) {
        gy_error_set(error, GYRE_PROTOCOL, -1, "a rank of communicator %u says that it has made %llu operations",
                     comm->id, (unsigned long long)outcome->count);
        gy_free(members);
        return NULL;
    }
    for (int r = 0; members && r < comm->size; r++) {
        int world = gy_group_world(&comm->group, r), i = 0;
        while (i < outcome->ranks && outcome->rank[i] != world)
            i++;
        if (i == outcome->ranks)
            continue;
        if (world == comm->ctx->world->rank)
            *rank_p = next;
        if (!gy_member_decode(outcome->record[i], &members[next++])) {
            gy_error_set(error, GYRE_PROTOCOL, world, "rank %d said nothing that is understood of its next epoch",
                         world);
            gy_free(members);
            return NULL;
        }
    }
    if (next == outcome->ranks || !members)
        return members;
    gy_error_set(error, GYRE_PROTOCOL, -1, "an agreement on communicator %u names ranks that are not in it", comm->id);
    gy_free(members);
    return NULL;
}

gyre_status gy_next_comm(struct gyre_comm *comm, struct gy_next_world *next, const struct gy_next_plan *plan,
                         int operations, struct gyre_comm **comm_p, struct gy_error *error)
{
    struct gy_context *ctx;
    gyre_status status = gy_context_next(comm->ctx, next, plan, operations, &ctx, error);
    if (status != GYRE_SUCCESS)
        return status;
    status = gy_comm_create_world(ctx, comm_p, error);
    if (status != GYRE_SUCCESS) {
        gy_overlay_give_up(ctx->overlay, error);
        gy_context_free(ctx);
        return status;
    }
    (*comm_p)->attributes = comm->attributes;
    (*comm_p)->attributes.name[0] = '\0';
    if (ctx->error.status != GYRE_SUCCESS)
        (*comm_p)->error = ctx->error;
    return GYRE_SUCCESS;
}

#include "collectives/comm.h"

#include "collectives/request.h"
#include "core/mem.h"

gyre_status gy_comm_create(struct gy_context *ctx, uint32_t id, struct gyre_comm **comm_p, struct gy_error *error)
{
    struct gyre_comm *comm = gy_alloc_zero(1, sizeof(*comm));
    if (!comm)
        goto no_memory;
    comm->ctx = ctx;
    comm->id = id;
    comm->rank = ctx->world->rank;
    comm->size = ctx->world->size;
    bool together = ctx->segment && ctx->world->nlocals == comm->size && comm->size <= GY_WINDOW_RANKS;
    if (together) { /* a slot must hold at least one element, of at most 8 bytes, for every rank */
        size_t slot = gy_segment_window_bytes(ctx->segment) / (2 * (size_t)GY_WINDOW_SLOTS);
        together = slot >= 8 * (size_t)comm->size;
    }
    comm->window = together && id < GY_WINDOW_COMMS ? (int)id : -1;
    comm->channels = gy_alloc_zero((size_t)comm->size, sizeof(struct gy_channel *));
    if (!comm->channels)
        goto free_comm;
    comm->next = ctx->comms;
    ctx->comms = comm;
    *comm_p = comm;
    return GYRE_SUCCESS;

free_comm:
    gy_free(comm);
no_memory:
    return gy_error_set(error, GYRE_NO_MEMORY, ctx->world->rank, "rank %d is out of memory for a communicator",
                        ctx->world->rank);
}

void gy_comm_free(struct gyre_comm *comm)
{
    for (struct gyre_comm **c = &comm->ctx->comms; *c; c = &(*c)->next)
        if (*c == comm) {
            *c = comm->next;
            break;
        }
    for (struct gyre_request *r = comm->ended; r; r = r->next)
        r->comm = NULL; /* freed when their owner collects them */
    for (int p = 0; p < comm->size; p++)
        gy_context_bury(comm->ctx, comm->channels[p]);
    for (int c = 0; c < GY_COLLECTIVES; c++)
        for (int a = 0; a < GY_ALGORITHMS; a++)
            gy_plan_free(comm->plans[c][a]);
    for (int i = 0; i < GY_PLANS_OTHER_ROOTS; i++)
        gy_plan_free(comm->other[i].plan);
    gy_free(comm->channels);
    gy_free(comm);
}

struct gyre_comm *gy_comm_find(struct gy_context *ctx, uint32_t id)
{
    struct gyre_comm *comm = ctx->comms;
    while (comm && comm->id != id)
        comm = comm->next;
    return comm;
}

/* The plans of roots other than 0: the least recently used one that no request holds makes room. */
static struct gy_plan *other_root(struct gyre_comm *comm, const struct gy_plan_shape *shape)
{
    int oldest = -1;
    for (int i = 0; i < GY_PLANS_OTHER_ROOTS; i++) {
        struct gy_plan *plan = comm->other[i].plan;
        if (plan && plan->shape.collective == shape->collective && plan->shape.algorithm == shape->algorithm &&
            plan->shape.root == shape->root) {
            comm->other[i].users++;
            comm->other[i].used = ++comm->clock;
            return plan;
        }
        if (comm->other[i].users == 0 && (oldest < 0 || comm->other[i].used < comm->other[oldest].used))
            oldest = i;
    }
    if (oldest < 0)
        return gy_plan_build(shape); /* all are in use: this one lives as long as its request */
    gy_plan_free(comm->other[oldest].plan);
    comm->other[oldest].plan = gy_plan_build(shape);
    comm->other[oldest].users = comm->other[oldest].plan != NULL;
    comm->other[oldest].used = ++comm->clock;
    return comm->other[oldest].plan;
}

struct gy_plan *gy_comm_plan(struct gyre_comm *comm, enum gy_collective collective, enum gy_algorithm algorithm,
                             int root)
{
    struct gy_plan_shape shape = {collective, algorithm, comm->rank, comm->size, root};
    if (root != 0)
        return other_root(comm, &shape);
    struct gy_plan **plan = &comm->plans[collective][algorithm];
    if (!*plan)
        *plan = gy_plan_build(&shape);
    return *plan;
}

void gy_comm_plan_release(struct gyre_comm *comm, struct gy_plan *plan)
{
    if (plan->shape.root == 0)
        return;
    for (int i = 0; i < GY_PLANS_OTHER_ROOTS; i++)
        if (comm->other[i].plan == plan) {
            comm->other[i].users--;
            return;
        }
    gy_plan_free(plan);
}

struct gy_channel *gy_comm_channel(struct gyre_comm *comm, int peer)
{
    if (!comm->channels[peer])
        comm->channels[peer] = gy_channel_create();
    return comm->channels[peer];
}

#include "collectives/comm/communicator.h"

struct gyre_comm *gy_comm_find(struct gy_context *ctx, uint32_t id)
{
    struct gyre_comm *comm = ctx->comms;
    while (comm && comm->id != id)
        comm = comm->next;
    return comm;
}

static bool is_plan_of(const struct gy_plan *plan, const struct gy_plan_shape *shape)
{
    return plan && plan->shape.collective == shape->collective && plan->shape.algorithm == shape->algorithm &&
           plan->shape.root == shape->root;
}

bool gy_comm_has_plan(const struct gyre_comm *comm, enum gy_collective collective, enum gy_algorithm algorithm,
                      int root)
{
    const struct gy_plan_shape shape = {.collective = collective, .algorithm = algorithm, .root = root};
    if (root == 0)
        return comm->plans[collective][algorithm];
    for (int i = 0; i < GY_PLANS_OTHER_ROOTS; i++)
        if (is_plan_of(comm->other[i].plan, &shape))
            return true;
    return false;
}

/* Returns the plan for a root other than 0; the least recently used plan without a request is evicted. */
static struct gy_plan *other_root(struct gyre_comm *comm, const struct gy_plan_shape *shape)
{
    int oldest = -1;
    for (int i = 0; i < GY_PLANS_OTHER_ROOTS; i++) {
        struct gy_plan *plan = comm->other[i].plan;
        if (is_plan_of(plan, shape)) {
            comm->other[i].users++;
            comm->other[i].used = ++comm->clock;
            return plan;
        }
        if (comm->other[i].users == 0 && (oldest < 0 || comm->other[i].used < comm->other[oldest].used))
            oldest = i;
    }
    if (oldest < 0)
        return gy_plan_build(shape); /* all are in use: this one is freed with its request */
    gy_plan_free(comm->other[oldest].plan);
    comm->other[oldest].plan = gy_plan_build(shape);
    comm->other[oldest].users = comm->other[oldest].plan != NULL;
    comm->other[oldest].used = ++comm->clock;
    return comm->other[oldest].plan;
}

struct gy_plan *gy_comm_plan(struct gyre_comm *comm, enum gy_collective collective, enum gy_algorithm algorithm,
                             int root)
{
    struct gy_plan_shape shape = {collective, algorithm, comm->rank, comm->size, root, comm->grouping.of};
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

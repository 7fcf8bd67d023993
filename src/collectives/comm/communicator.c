#include "collectives/comm/communicator.h"

struct gyre_comm *gy_comm_find(struct gy_context *ctx, uint32_t id)
{
    struct gyre_comm *comm = ctx->comms;
    while (comm && comm->id != id)
        comm = comm->next;
    return comm;
}

static bool is_schedule_of(const struct gy_schedule *schedule, const struct gy_schedule_shape *shape)
{
    return schedule && schedule->shape.collective == shape->collective &&
           schedule->shape.algorithm == shape->algorithm && schedule->shape.root == shape->root;
}

bool gy_comm_has_schedule(const struct gyre_comm *comm, enum gy_collective collective, enum gy_algorithm algorithm,
                          int root)
{
    const struct gy_schedule_shape shape = {.collective = collective, .algorithm = algorithm, .root = root};
    if (root == 0)
        return comm->schedules[collective][algorithm];
    for (int i = 0; i < GY_SCHEDULES_OTHER_ROOTS; i++)
        if (is_schedule_of(comm->other[i].schedule, &shape))
            return true;
    return false;
}

/* Returns the schedule for a root other than 0; the least recently used schedule without a request is evicted. */
static struct gy_schedule *other_root(struct gyre_comm *comm, const struct gy_schedule_shape *shape)
{
    int oldest = -1;
    for (int i = 0; i < GY_SCHEDULES_OTHER_ROOTS; i++) {
        struct gy_schedule *schedule = comm->other[i].schedule;
        if (is_schedule_of(schedule, shape)) {
            comm->other[i].users++;
            comm->other[i].used = ++comm->clock;
            return schedule;
        }
        if (comm->other[i].users == 0 && (oldest < 0 || comm->other[i].used < comm->other[oldest].used))
            oldest = i;
    }
    if (oldest < 0)
        return gy_schedule_build(shape); /* all are in use: this one is freed with its request */
    gy_schedule_free(comm->other[oldest].schedule);
    comm->other[oldest].schedule = gy_schedule_build(shape);
    comm->other[oldest].users = comm->other[oldest].schedule != NULL;
    comm->other[oldest].used = ++comm->clock;
    return comm->other[oldest].schedule;
}

struct gy_schedule *gy_comm_schedule(struct gyre_comm *comm, enum gy_collective collective, enum gy_algorithm algorithm,
                                     int root)
{
    struct gy_schedule_shape shape = {collective, algorithm, comm->rank, comm->size, root, comm->grouping.of};
    if (root != 0)
        return other_root(comm, &shape);
    struct gy_schedule **schedule = &comm->schedules[collective][algorithm];
    if (!*schedule)
        *schedule = gy_schedule_build(&shape);
    return *schedule;
}

void gy_comm_schedule_release(struct gyre_comm *comm, struct gy_schedule *schedule)
{
    if (schedule->shape.root == 0)
        return;
    for (int i = 0; i < GY_SCHEDULES_OTHER_ROOTS; i++)
        if (comm->other[i].schedule == schedule) {
            comm->other[i].users--;
            return;
        }
    gy_schedule_free(schedule);
}

struct gy_channel *gy_comm_channel(struct gyre_comm *comm, int peer)
{
    if (!comm->channels[peer])
        comm->channels[peer] = gy_channel_create();
    return comm->channels[peer];
}

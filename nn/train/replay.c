/* A run with the memberships of another one, undisturbed: before the steps at which ranks died or joined there, as many
 * ranks leave or join here, in order. The bits do not depend on which process a rank is. They depend on the number of
 * ranks, which decides how a batch is divided and, with GYRE_ORDER=canonical, how its gradients are added.
 *
 *     world    0 1 2 3    0 1 2     0 1 2 3
 *     step     0 ──────── 57 ────── 80 ──────── end       "0 4", "57 3", "80 4"
 *
 * At each change all ranks of the world meet, and all get the state, also the ranks that do not take part. These
 * wait for the next change inside the call that makes it. At the end rank 0, which always takes part, sends the
 * result to all. */
#include "elastic/elastic.h"

#include "base/error.h"

#include <string.h>

bool gy_nn_replay_due(const struct gy_nn_elastic *elastic, const struct gyre_nn_position *position)
{
    const struct gyre_nn_elastic *how = &elastic->how;
    return elastic->turn < how->replays && how->replay[elastic->turn].step <= position->step;
}

/* After this all ranks of the world have the same state, and none has a communicator. */
static gyre_status meet(struct gy_nn_elastic *elastic)
{
    gy_nn_elastic_leave(elastic);
    gyre_comm_destroy(elastic->part);
    elastic->part = NULL;
    return gy_nn_elastic_align(elastic, *elastic->comm);
}

static gyre_status change(struct gy_nn_elastic *elastic, int ranks)
{
    gyre_comm *world = *elastic->comm;
    int size = world ? gyre_comm_size(world) : 1, rank = world ? gyre_comm_rank(world) : 0;
    if (ranks > size)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "a membership of %d ranks is to be replayed on %d: start that many",
                          ranks, size);
    gyre_status status = meet(elastic);
    elastic->idle = rank >= ranks;
    if (status != GYRE_SUCCESS || !world)
        return status ? status : gy_nn_elastic_reform(elastic, NULL);
    status = gyre_comm_split(world, elastic->idle ? -1 : 0, rank, &elastic->part);
    if (status != GYRE_SUCCESS)
        return gy_nn_fail_comm(status, world, "changing the membership");
    return elastic->idle ? GYRE_SUCCESS : gy_nn_elastic_reform(elastic, elastic->part);
}

gyre_status gy_nn_replay_turn(struct gy_nn_elastic *elastic, struct gyre_nn_position *position_p)
{
    gyre_status status = GYRE_SUCCESS;
    if (*elastic->comm) /* a rank that takes no part waits without a limit */
        gyre_comm_set(*elastic->comm, "timeout", "100000000");
    while (status == GYRE_SUCCESS &&
           (gy_nn_replay_due(elastic, position_p) || (elastic->idle && elastic->turn < elastic->how.replays))) {
        status = change(elastic, elastic->how.replay[elastic->turn++].ranks);
        *position_p = elastic->position;
    }
    return status;
}

gyre_status gy_nn_replay_end(struct gy_nn_elastic *elastic, struct gyre_nn_train_result *result)
{
    gyre_comm *world = *elastic->comm;
    gyre_nn_model *model = elastic->run->model;
    void *params = gyre_nn_params(model);
    if (!world || gyre_comm_size(world) == 1)
        return GYRE_SUCCESS;
    gyre_status status = gyre_broadcast(world, params, params, gyre_nn_param_count(model), gyre_nn_dtype(model), 0);
    status = status ? status : gyre_broadcast(world, result, result, sizeof(*result), GYRE_UINT8, 0);
    return status ? gy_nn_fail_comm(status, world, "giving the result to who took no part") : status;
}

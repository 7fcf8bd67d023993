/* Which calls use the eager exchange (eager.h). */
#include "collectives/call/eager_fit.h"

#include "collectives/engine/call_check.h"
#include "collectives/select/selector.h"
#include "collectives/shm/eager.h"

#define GY_EAGER_GATHERED 65536 /* bytes of all contributions that one rank reads: beyond this, sharing the work pays */
#define GY_EAGER_ROOTED \
    8192 /* bytes between two ranks: longer vectors are read where they lie, see shm_rooted_mapped.c */

/* Finds the eager limit of the collective. Up to that size the choice is a one-shot or two-shot schedule at every size,
 * and the exchange gives the same result. A forced choice must be visible: vectors longer than a line then use its
 * schedule. */
static void find_out(struct gyre_comm *comm, enum gy_collective collective)
{
    size_t blocks = gy_exchange_blocks(comm, collective), least = blocks > 0 ? blocks : 1;
    bool forced = gy_select_forces(comm, collective);
    size_t room = forced ? GY_REGION_INLINE : GY_REGION_VECTOR;
    bool rooted = collective == GY_BROADCAST || collective == GY_REDUCE_TO;
    if (rooted && comm->size == 2 && !comm->ctx->oversubscribed)
        room = gy_min_size(room, GY_EAGER_ROOTED);
    if (collective == GY_ALL_GATHER || collective == GY_GATHER_TO)
        room = gy_min_size(room, GY_EAGER_GATHERED / (size_t)comm->size);
    enum gy_algorithm first = GY_ALGORITHMS;
    int32_t most = -1;
    for (size_t bytes = 0; bytes * least <= room; bytes = bytes ? 2 * bytes : 1) {
        enum gy_algorithm choice;
        struct gy_error error = {.quiet = true};
        if (gy_select(comm, collective, false, bytes, &choice, &error) != GYRE_SUCCESS)
            break;
        first = bytes == 0 ? choice : first;
        if (choice != first || !(choice == GY_SHM_ONE_SHOT || (choice == GY_SHM_TWO_SHOT && !forced)))
            break;
        most = (int32_t)(bytes * least);
    }
    comm->eager[collective].known = true;
    comm->eager[collective].algorithm = (uint8_t)first;
    comm->eager[collective].most = most;
}

int32_t gy_eager_limit(struct gyre_comm *comm, enum gy_collective collective)
{
    if (!comm->eager[collective].known)
        find_out(comm, collective);
    return comm->eager[collective].most;
}

bool gy_eager_fits(struct gyre_comm *comm, const struct gy_call_signature *shape, size_t element)
{
    if (comm->region < 0 || comm->size < 2 || shape->collective >= GY_SEND_TO || shape->count > GY_REGION_VECTOR)
        return false;
    size_t bytes = shape->count * element * gy_exchange_blocks(comm, shape->collective);
    return (int64_t)bytes <= gy_eager_limit(comm, (enum gy_collective)shape->collective) &&
           shape->algorithm == comm->eager[shape->collective].algorithm;
}

bool gy_eager_algorithm(struct gyre_comm *comm, const struct gy_call *call, enum gy_algorithm *algorithm_p)
{
    if (comm->region < 0 || call->varying || gy_is_point_to_point(call->collective))
        return false;
    int32_t most = gy_eager_limit(comm, call->collective);
    enum gy_algorithm algorithm = (enum gy_algorithm)comm->eager[call->collective].algorithm;
    struct gy_call_signature shape = gy_shape_of(call, algorithm, comm->size);
    if (most < 0 || !gy_eager_fits(comm, &shape, gyre_dtype_size(call->dtype)))
        return false;
    *algorithm_p = algorithm;
    return true;
}

bool gy_eager_is_plain(const struct gyre_comm *comm, const struct gy_call *call)
{
    const struct gy_context *ctx = comm->ctx;
    return comm->region_reserved && !call->varying && !call->unforced && call->op < GYRE_PREMUL_SUM && !comm->verify &&
           !comm->attributes.uniform && ctx->idle && !ctx->config.show_choice;
}

bool gy_eager_is_open(struct gyre_comm *comm, const struct gy_call *call)
{
    enum gy_collective collective = call->collective;
    if (collective >= GY_SEND_TO || call->count > GY_REGION_VECTOR)
        return false;
    size_t bytes = call->count * gy_dtype_bytes(call->dtype) * gy_exchange_blocks(comm, collective);
    return (int64_t)bytes <= gy_eager_limit(comm, collective);
}

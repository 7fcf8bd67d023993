/* A rank's part of a call on memory of a device: arrival.h. */
#include "collectives/device/arrival.h"

#include "collectives/engine/call_check.h"
#include "cuda/kernels/table.h"

void gy_arrival_open(struct gy_arrival *arrival, const struct gyre_comm *comm, const struct gy_call *call)
{
    const bool canonical = gy_comm_canonical(comm);
    const struct gy_op_made *made = gy_operations_find(&comm->ctx->operations, call->op);
    *arrival = (struct gy_arrival){.comm = comm, .call = call, .kernel = -1};
    arrival->shape = gy_shape_of(call, canonical ? GY_CANONICAL : GY_LINEAR, comm->size);
    if (made && made->func)
        return;
    if (made)
        memcpy(&arrival->scalar, made->scalar, sizeof(made->scalar));
    arrival->kernel = gy_kernel_find(GY_KERNEL_fused, call->dtype, made ? GYRE_PREMUL_SUM : call->op, canonical);
}

static bool is_reduction(enum gy_collective collective)
{
    return collective == GY_ALL_REDUCE || collective == GY_REDUCE_TO || collective == GY_REDUCE_SCATTER;
}

int gy_arrival_kernel(const struct gy_arrival *arrival)
{
    return is_reduction(arrival->call->collective) ? arrival->kernel : (int)GY_NUMBER_gy_move;
}

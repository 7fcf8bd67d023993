/* The collective calls: argument checks, then one call down. */
#include "api/check.h"

static gyre_status check(gyre_comm *comm, const struct gy_call *call)
{
    gyre_status status = gy_check_comm(comm);
    return status == GYRE_SUCCESS ? gy_check_call(comm, call) : gy_check_refused(comm, call, status);
}

static gyre_status start(gyre_comm *comm, const struct gy_call *call, gyre_request **request_p)
{
    if (!comm || !request_p)
        return GYRE_INVALID_ARGUMENT;
    gy_driver_enter(comm->ctx);
    gyre_status status = check(comm, call);
    if (status == GYRE_SUCCESS)
        status = gy_request_start(comm, call, request_p);
    gy_driver_leave(comm->ctx);
    return status;
}

static gyre_status blocking(gyre_comm *comm, const struct gy_call *call)
{
    if (!comm)
        return GYRE_INVALID_ARGUMENT;
    gy_driver_enter(comm->ctx);
    gyre_status status = check(comm, call);
    if (status == GYRE_SUCCESS)
        status = gy_run(comm, call);
    gy_driver_leave(comm->ctx);
    return status;
}

static struct gy_call call_of(enum gy_collective collective, const void *input, void *output, size_t count,
                              gyre_dtype dtype, gyre_op op, int root)
{
    return (struct gy_call){collective, input, output, count, dtype, op, root};
}

gyre_status gyre_all_reduce(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                            gyre_op op)
{
    struct gy_call call = call_of(GY_ALL_REDUCE, input, output, count, dtype, op, 0);
    return blocking(comm, &call);
}

gyre_status gyre_all_reduce_start(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                  gyre_op op, gyre_request **request_p)
{
    struct gy_call call = call_of(GY_ALL_REDUCE, input, output, count, dtype, op, 0);
    return start(comm, &call, request_p);
}

gyre_status gyre_reduce_scatter(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                gyre_op op)
{
    struct gy_call call = call_of(GY_REDUCE_SCATTER, input, output, count, dtype, op, 0);
    return blocking(comm, &call);
}

gyre_status gyre_reduce_scatter_start(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                      gyre_op op, gyre_request **request_p)
{
    struct gy_call call = call_of(GY_REDUCE_SCATTER, input, output, count, dtype, op, 0);
    return start(comm, &call, request_p);
}

gyre_status gyre_all_gather(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype)
{
    struct gy_call call = call_of(GY_ALL_GATHER, input, output, count, dtype, GYRE_SUM, 0);
    return blocking(comm, &call);
}

gyre_status gyre_all_gather_start(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                  gyre_request **request_p)
{
    struct gy_call call = call_of(GY_ALL_GATHER, input, output, count, dtype, GYRE_SUM, 0);
    return start(comm, &call, request_p);
}

gyre_status gyre_broadcast(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype, int root)
{
    struct gy_call call = call_of(GY_BROADCAST, input, output, count, dtype, GYRE_SUM, root);
    return blocking(comm, &call);
}

gyre_status gyre_broadcast_start(gyre_comm *comm, const void *input, void *output, size_t count, gyre_dtype dtype,
                                 int root, gyre_request **request_p)
{
    struct gy_call call = call_of(GY_BROADCAST, input, output, count, dtype, GYRE_SUM, root);
    return start(comm, &call, request_p);
}

gyre_status gyre_barrier(gyre_comm *comm)
{
    struct gy_call call = call_of(GY_BARRIER, NULL, NULL, 0, GYRE_INT32, GYRE_SUM, 0);
    return blocking(comm, &call);
}

gyre_status gyre_barrier_start(gyre_comm *comm, gyre_request **request_p)
{
    struct gy_call call = call_of(GY_BARRIER, NULL, NULL, 0, GYRE_INT32, GYRE_SUM, 0);
    return start(comm, &call, request_p);
}

/* Operations of the user's own. */
#include <string.h>

#include "api/check.h"

static gyre_status add(gyre_comm *comm, const struct gy_op_made *made, gyre_op *op_p)
{
    gy_progress_enter(comm->ctx);
    gyre_status status = gy_check_comm(comm);
    if (status == GYRE_SUCCESS) {
        comm->error.status = GYRE_SUCCESS;
        status = gy_operations_add(&comm->ctx->operations, made, op_p, &comm->error);
    }
    gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_op_create(gyre_comm *comm, gyre_reduce_func func, void *user, int commutative, gyre_op *op_p)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!func || !op_p)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_op_create: %s is NULL", func ? "op_p" : "func");
    struct gy_op_made made = {.func = func, .user = user, .commutative = commutative != 0};
    return add(comm, &made, op_p);
}

gyre_status gyre_op_create_premul_sum(gyre_comm *comm, const void *scalar, gyre_dtype dtype, gyre_op *op_p)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!scalar || !op_p)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_op_create_premul_sum: %s is NULL",
                             scalar ? "op_p" : "scalar");
    if (!gy_dtype_valid((int)dtype))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%d is not an element type", (int)dtype);
    struct gy_op_made made = {.commutative = true, .dtype = dtype};
    memcpy(made.scalar, scalar, gyre_dtype_size(dtype));
    return add(comm, &made, op_p);
}

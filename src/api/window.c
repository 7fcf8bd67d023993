/* One-sided calls: argument checks, then one call down. */
#include "collectives/rma/window.h"

#include "api/check.h"

static gyre_status enter(gyre_window *window)
{
    gy_progress_enter(window->comm->ctx);
    return gy_check_comm(window->comm);
}

static gyre_status leave(gyre_window *window, gyre_status status)
{
    gy_progress_leave(window->comm->ctx);
    return status;
}

gyre_status gyre_window_create(gyre_comm *comm, void *memory, size_t bytes, gyre_window **window_p)
{
    if (!gy_check_lives(comm, __func__) || !gy_check_ungrouped(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!window_p || (bytes > 0 && !memory))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_window_create: %s is NULL",
                             window_p ? "memory" : "window_p");
    if (gy_check_device_memory(comm, __func__, memory))
        return GYRE_UNSUPPORTED;
    gy_progress_enter(comm->ctx);
    gyre_status status = gy_check_comm(comm);
    if (status == GYRE_SUCCESS)
        status = gy_window_expose(comm, memory, bytes, window_p);
    gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_window_destroy(gyre_window *window)
{
    if (!window)
        return GYRE_SUCCESS;
    if (!gy_check_window(window, __func__) || !gy_check_ungrouped(window->comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    struct gy_context *ctx = window->comm->ctx;
    gy_progress_enter(ctx);
    gyre_status status = gy_check_comm(window->comm);
    if (status == GYRE_SUCCESS)
        status = gy_window_conceal(window);
    else if (status != GYRE_FORKED)
        gy_window_free(window);
    gy_progress_leave(ctx);
    return status;
}

/* The checks that put, get and accumulate share. */
static gyre_status check_access(gyre_window *window, const void *memory, size_t count, gyre_dtype dtype, int target,
                                size_t offset)
{
    struct gyre_comm *comm = window->comm;
    if (!gy_dtype_valid((int)dtype))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%d is not an element type", (int)dtype);
    if (target < 0 || target >= comm->size)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "target %d is not a rank: there are %d", target, comm->size);
    if (count > 0 && !memory)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "the buffer is NULL");
    size_t room = window->targets[target].bytes;
    if (offset > room || count > (room - offset) / gyre_dtype_size(dtype))
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT,
                             "%zu elements of %s at byte %zu do not lie in the %zu bytes that rank %d exposes", count,
                             gyre_dtype_name(dtype), offset, room, target);
    return GYRE_SUCCESS;
}

gyre_status gyre_window_put(gyre_window *window, const void *source, size_t count, gyre_dtype dtype, int target,
                            size_t offset)
{
    if (!gy_check_window(window, __func__))
        return GYRE_INVALID_ARGUMENT;
    gyre_status status = enter(window);
    if (status == GYRE_SUCCESS)
        status = check_access(window, source, count, dtype, target, offset);
    if (status == GYRE_SUCCESS)
        status = gy_window_put(window, source, count * gyre_dtype_size(dtype), target, offset);
    return leave(window, status);
}

gyre_status gyre_window_get(gyre_window *window, void *destination, size_t count, gyre_dtype dtype, int target,
                            size_t offset)
{
    if (!gy_check_window(window, __func__))
        return GYRE_INVALID_ARGUMENT;
    gyre_status status = enter(window);
    if (status == GYRE_SUCCESS)
        status = check_access(window, destination, count, dtype, target, offset);
    if (status == GYRE_SUCCESS)
        status = gy_window_get(window, destination, count * gyre_dtype_size(dtype), target, offset);
    return leave(window, status);
}

static gyre_status check_operation(gyre_window *window, const struct gy_operation *operation)
{
    if (gy_operation_accumulates(operation))
        return GYRE_SUCCESS;
    if (operation->made || operation->op == GYRE_PREMUL_SUM)
        return gy_check_fail(window->comm, GYRE_INVALID_ARGUMENT,
                             "a pre-multiplied sum is for collectives: multiply, and accumulate that with GYRE_SUM");
    if (operation->op == GYRE_AVERAGE)
        return gy_check_fail(window->comm, GYRE_INVALID_ARGUMENT,
                             "an average is for collectives: accumulate with GYRE_SUM, and divide what comes of it");
    const char *name = gyre_op_name(operation->op);
    return gy_check_fail(window->comm, GYRE_INVALID_ARGUMENT, "%s is not an operation to accumulate %s with",
                         name ? name : "this", gyre_dtype_name(operation->dtype));
}

gyre_status gyre_window_accumulate(gyre_window *window, const void *source, size_t count, gyre_dtype dtype, gyre_op op,
                                   int target, size_t offset)
{
    if (!gy_check_window(window, __func__))
        return GYRE_INVALID_ARGUMENT;
    gyre_status status = enter(window);
    if (status == GYRE_SUCCESS)
        status = check_access(window, source, count, dtype, target, offset);
    struct gy_operation operation = {dtype, op, gy_operations_find(&window->comm->ctx->operations, op)};
    if (status == GYRE_SUCCESS)
        status = check_operation(window, &operation);
    if (status == GYRE_SUCCESS)
        status = gy_window_accumulate(window, source, count, &operation, target, offset);
    return leave(window, status);
}

gyre_status gyre_window_flush(gyre_window *window, int target)
{
    if (!gy_check_window(window, __func__))
        return GYRE_INVALID_ARGUMENT;
    gyre_status status = enter(window);
    if (status == GYRE_SUCCESS && (target < -1 || target >= window->comm->size))
        status = gy_check_fail(window->comm, GYRE_INVALID_ARGUMENT, "target %d is not a rank: there are %d", target,
                               window->comm->size);
    if (status == GYRE_SUCCESS)
        status = gy_window_flush(window, target);
    return leave(window, status);
}

static gyre_status check_signal(gyre_window *window, unsigned index)
{
    return index < GYRE_WINDOW_SIGNALS
               ? GYRE_SUCCESS
               : gy_check_fail(window->comm, GYRE_INVALID_ARGUMENT, "signal %u does not exist: there are %d", index,
                               GYRE_WINDOW_SIGNALS);
}

gyre_status gyre_window_signal(gyre_window *window, int target, unsigned index)
{
    if (!gy_check_window(window, __func__))
        return GYRE_INVALID_ARGUMENT;
    gyre_status status = enter(window);
    if (status == GYRE_SUCCESS)
        status = check_access(window, window, 0, GYRE_UINT8, target, 0);
    if (status == GYRE_SUCCESS)
        status = check_signal(window, index);
    if (status == GYRE_SUCCESS)
        status = gy_window_signal(window, target, index);
    return leave(window, status);
}

gyre_status gyre_window_wait(gyre_window *window, unsigned index, uint64_t value)
{
    if (!gy_check_window(window, __func__))
        return GYRE_INVALID_ARGUMENT;
    gyre_status status = enter(window);
    if (status == GYRE_SUCCESS)
        status = check_signal(window, index);
    if (status == GYRE_SUCCESS)
        status = gy_window_await(window, index, value);
    return leave(window, status);
}

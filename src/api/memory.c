/* Registered memory. */
#include "api/check.h"

static gyre_status add(gyre_comm *comm, const void *memory, size_t bytes)
{
    size_t other;
    gyre_status status = gy_check_comm(comm);
    if (status != GYRE_SUCCESS || gy_registry_add(&comm->ctx->registry, memory, bytes, &other))
        return status;
    if (other != bytes)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT,
                             "%p is registered with %zu bytes already, not with %zu: deregister it first", memory,
                             other, bytes);
    return gy_check_fail(comm, GYRE_NO_MEMORY, "out of memory for a registered range");
}

gyre_status gyre_mem_register(gyre_comm *comm, void *memory, size_t bytes)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    if (!memory || bytes == 0 || bytes > SIZE_MAX - (uintptr_t)memory)
        return gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "gyre_mem_register: there are no %zu bytes at %p", bytes,
                             memory);
    if (gy_check_device_memory(comm, __func__, memory))
        return GYRE_UNSUPPORTED;
    gy_progress_enter(comm->ctx);
    gyre_status status = add(comm, memory, bytes);
    if (status == GYRE_SUCCESS)
        gy_context_register(comm->ctx, memory, bytes);
    gy_progress_leave(comm->ctx);
    return status;
}

gyre_status gyre_mem_deregister(gyre_comm *comm, void *memory)
{
    if (!gy_check_lives(comm, __func__))
        return GYRE_INVALID_ARGUMENT;
    gy_progress_enter(comm->ctx);
    gyre_status status = gy_check_comm(comm);
    if (status == GYRE_SUCCESS && !gy_registry_remove(&comm->ctx->registry, memory))
        status = gy_check_fail(comm, GYRE_INVALID_ARGUMENT, "%p is not registered", memory);
    else if (status == GYRE_SUCCESS)
        gy_context_unregister(comm->ctx, memory);
    gy_progress_leave(comm->ctx);
    return status;
}

/* What a program may replace in the whole process: the destination of log lines, and the memory allocator. */
#include "core/log.h"
#include "core/mem.h"

void gyre_log_set(gyre_log_func func, void *user)
{
    gy_log_set_sink(func, user);
}

gyre_status gyre_allocator_set(const gyre_allocator *allocator)
{
    if (allocator &&
        (allocator->size != sizeof(*allocator) || !allocator->allocate || !allocator->resize || !allocator->release)) {
        gy_log(GY_LOG_ERROR, "gyre_allocator_set: size is not that of gyre_allocator, or a function is NULL");
        return GYRE_INVALID_ARGUMENT;
    }
    if (!gy_mem_set_allocator(allocator)) {
        gy_log(GY_LOG_ERROR,
               "gyre_allocator_set: gyre holds memory already; call it before the first communicator is made");
        return GYRE_INVALID_ARGUMENT;
    }
    return GYRE_SUCCESS;
}

/* One-sided calls: by memory if the target's is mapped, else by a device or by frames. */
#include "collectives/engine/liveness.h"
#include "collectives/engine/progress.h"
#include "collectives/rma/window.h"
#include "core/clock.h"
#include "core/fence.h"

#include <string.h>

gyre_status gy_window_put(struct gyre_window *window, const void *source, size_t bytes, int target, size_t offset)
{
    if (gy_window_by_device(window, target))
        return gy_device_put(window, source, bytes, target, offset);
    if (!window->targets[target].memory)
        return gy_rma_put(window, source, bytes, target, offset);
    if (bytes > 0)
        memmove(window->targets[target].memory + offset, source, bytes);
    return GYRE_SUCCESS;
}

gyre_status gy_window_get(struct gyre_window *window, void *destination, size_t bytes, int target, size_t offset)
{
    if (gy_window_by_device(window, target))
        return gy_device_get(window, destination, bytes, target, offset);
    if (!window->targets[target].memory)
        return gy_rma_get(window, destination, bytes, target, offset);
    if (bytes > 0)
        memmove(destination, window->targets[target].memory + offset, bytes);
    return GYRE_SUCCESS;
}

gyre_status gy_window_accumulate(struct gyre_window *window, const void *source, size_t count,
                                 const struct gy_operation *operation, int target, size_t offset)
{
    struct gy_target *t = &window->targets[target];
    if (!t->memory)
        return gy_rma_accumulate(window, source, count, operation, target, offset);
    if (count == 0)
        return GYRE_SUCCESS;
    gyre_status status = gy_window_lock(window, t->control, false);
    if (status != GYRE_SUCCESS)
        return status;
    gy_combine(operation, t->memory + offset, t->memory + offset, source, count);
    gy_window_unlock(t->control);
    return GYRE_SUCCESS;
}

gyre_status gy_window_signal(struct gyre_window *window, int target, unsigned index)
{
    struct gyre_comm *comm = window->comm;
    struct gy_target *t = &window->targets[target];
    if (!t->control)
        return gy_rma_signal(window, target, index);
    atomic_fetch_add_explicit(&t->control->signal[index].count, 1, memory_order_release);
    if (target != comm->rank)
        gy_segment_wake(comm->ctx->segment, comm->ctx->world->members[gy_group_world(&comm->group, target)].local);
    return GYRE_SUCCESS;
}

gyre_status gy_window_flush(struct gyre_window *window, int target)
{
    gy_store_load_fence();
    if (target >= 0 && window->targets[target].memory)
        return GYRE_SUCCESS;
    return gy_rma_flush(window, target);
}

struct awaited {
    const struct gyre_window *window;
    unsigned index;
    uint64_t value;
    int64_t since, deadline;
    int64_t *asked; /* see gy_liveness_ask */
    struct gy_one_sided_wait *wait;
};

/* Also true if no rank is left that could signal, once all that the departed ranks have sent has been read. */
static bool has_come(const void *what)
{
    const struct awaited *a = what;
    struct gyre_comm *comm = a->window->comm;
    int64_t now = gy_now();
    int lost;
    if (atomic_load_explicit(&a->window->control->signal[a->index].count, memory_order_acquire) >= a->value ||
        comm->ctx->closed || now > a->deadline)
        return true;
    int rank = comm->size > 1 ? gy_window_signaller(a->window, a->since, &lost) : comm->rank;
    if (rank >= 0 && rank != comm->rank)
        gy_liveness_ask(comm, (uint32_t)a->window->id, rank, a->since, now, a->asked);
    gy_one_sided_wait_tell(a->wait, now);
    return rank < 0;
}

gyre_status gy_window_await(struct gyre_window *window, unsigned index, uint64_t value)
{
    struct gy_context *ctx = window->comm->ctx;
    struct gyre_comm *comm = window->comm;
    int64_t now = gy_now(), asked = now;
    int64_t timeout = comm->attributes.timeout_ns;
    struct gy_one_sided_wait wait;
    struct awaited awaited = {window, index, value, now, now + timeout, &asked, &wait};
    int lost = -1;
    gy_one_sided_wait_begin(&wait, window, -1, "a wait for a signal");
    gy_wait_until(ctx, has_come, &awaited);
    bool alone = !ctx->closed && comm->size > 1 && gy_window_signaller(window, now, &lost) < 0;
    uint64_t count = atomic_load_explicit(&window->control->signal[index].count, memory_order_acquire);
    if (count < value && alone && lost < 0)
        gy_window_end_alone(ctx, gy_group_world(&comm->group, comm->rank == 0), "sent a signal", window);
    gy_one_sided_wait_end(&wait); /* now that the error names it */
    if (count >= value)
        return GYRE_SUCCESS;
    if (ctx->closed)
        return ctx->error.status;
    if (alone)
        return gy_window_tell_lost(window, lost);
    comm->error.status = GYRE_SUCCESS; /* the communicator continues, and may hold an earlier error */
    return gy_error_set(&comm->error, GYRE_PEER_LATE, -1,
                        "signal %u of a window has come %llu times and not %llu within %g s (GYRE_TIMEOUT)", index,
                        (unsigned long long)count, (unsigned long long)value, (double)timeout / 1e9);
}

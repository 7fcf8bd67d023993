/* What a one-sided window exposes to the ranks of its host by memory, and for how long.
 *
 *   made ──▶ exposed ──▶ destroyed by all                no peer accesses it any more: memory and control are free
 *                   └──▶ its communicator is destroyed   free when all that may still store there have done so, too
 *                   └──▶ the world fails                 withdrawn, kept as long as the world
 *
 * A peer stores there without asking, and may not have heard that the world has failed, or that the owner's
 * communicator is destroyed. After a failure the owner's memory is separated from it before any call of the owner
 * returns the error. In a world that continues, the owner of a destroyed communicator may use the memory for
 * something else, so it stays shared. When it is freed, its place is not reused while a peer has the window. Each
 * peer counts itself out in the owner's control, with its last access to that. It does not after a failure: ranks
 * may then disagree about how a window ended.
 *
 * Ranks that share a process share its mapping, too, and could not be separated. They reach each other by links,
 * whose frames the owner processes itself, and no more after a failure. */
#include <string.h>

#include "collectives/rma/window.h"
#include "core/log.h"
#include "core/mem.h"

bool gy_exposed_to(const struct gyre_comm *comm, int rank)
{
    const struct gy_world *world = comm->ctx->world;
    const struct gy_member *mine = &world->members[world->rank];
    const struct gy_member *theirs = &world->members[gy_group_world(&comm->group, rank)];
    return comm->ctx->segment && theirs->host == mine->host && theirs->pid != mine->pid;
}

uint64_t gy_exposed_place(const struct gyre_comm *comm, const void *memory, size_t bytes)
{
    uint64_t offset;
    const struct gy_segment *segment = comm->ctx->segment;
    return segment && gy_segment_heap_offset(segment, memory, bytes, &offset) ? offset + 1 : 0;
}

static gyre_status make_control(struct gyre_window *window)
{
    struct gy_context *ctx = window->comm->ctx;
    void *memory = NULL;
    if (ctx->segment) {
        gyre_status status = gy_segment_heap_alloc(ctx->segment, sizeof(*window->control), &memory,
                                                   &window->comm->error);
        if (status != GYRE_SUCCESS)
            return status;
    } else {
        memory = gy_alloc_aligned(64, sizeof(*window->control));
        if (!memory)
            return gy_error_set(&window->comm->error, GYRE_NO_MEMORY, -1, "out of memory for a window's signals");
        memset(memory, 0, sizeof(*window->control));
    }
    window->control = memory;
    return GYRE_SUCCESS;
}

gyre_status gy_exposed_make(struct gyre_window *window)
{
    struct gyre_comm *comm = window->comm;
    gyre_status status = make_control(window);
    bool there = status == GYRE_SUCCESS && gy_exposed_place(comm, window->memory, window->bytes) > 0;
    for (int r = 0; r < comm->size && there; r++)
        window->watchers += gy_exposed_to(comm, r);
    if (window->watchers > 0) {
        gy_segment_heap_expose(comm->ctx->segment, window->memory, window->bytes);
        gy_segment_heap_expose(comm->ctx->segment, window->control, sizeof(*window->control));
    }
    return status;
}

void gy_exposed_leave(const struct gyre_window *window)
{
    if (window->quiet || window->comm->ctx->closed)
        return;
    for (int r = 0; r < window->size; r++)
        if (window->targets[r].control && r != window->comm->rank)
            atomic_fetch_add_explicit(&window->targets[r].control->left, 1, memory_order_release);
}

bool gy_exposed_in_use(const struct gyre_window *window)
{
    return !window->quiet && atomic_load_explicit(&window->control->left, memory_order_acquire) < window->watchers;
}

void gy_exposed_free(struct gy_context *ctx, struct gyre_window *window)
{
    if (window->watchers > 0 && !gy_exposed_in_use(window)) {
        gy_segment_heap_conceal(ctx->segment, window->memory, window->bytes);
        gy_segment_heap_conceal(ctx->segment, window->control, sizeof(*window->control));
    }
    if (!ctx->segment || !gy_segment_heap_free(ctx->segment, window->control))
        gy_free(window->control);
    window->control = NULL;
}

void gy_windows_withdraw(struct gy_context *ctx)
{
    if (ctx->segment && !gy_segment_heap_withdraw_exposed(ctx->segment))
        gy_log(GY_LOG_ERROR, "rank %d: no memory to part its windows from ranks that may still use them",
               ctx->world->rank);
}

#include "collectives/rma/window.h"

#include <stdio.h>
#include <string.h>

#include "collectives/call/blocking.h"
#include "collectives/engine/liveness.h"
#include "collectives/engine/progress.h"
#include "collectives/engine/request.h"
#include "core/clock.h"
#include "core/fence.h"
#include "core/handle.h"
#include "core/mem.h"

/* What each rank sends the others when a window is made. */
struct exposure {
    uint64_t bytes;
    uint64_t memory, control; /* offset on the rank's shared heap + 1; 0: none */
    struct gy_rma_key rma_key;
};

static gyre_status exchange(struct gyre_window *window, struct exposure *all)
{
    struct gyre_comm *comm = window->comm;
    struct exposure mine = {window->bytes,
                            gy_exposed_place(comm, window->memory, window->bytes),
                            gy_exposed_place(comm, window->control, sizeof(*window->control)),
                            {0}};
    _Static_assert(sizeof(mine) % sizeof(int64_t) == 0, "told as integers of 64 bits, without padding");
    gy_window_expose_to_devices(window, &mine.rma_key);
    struct gy_call call = {.collective = GY_ALL_GATHER,
                           .input = &mine,
                           .output = all,
                           .count = sizeof(mine) / sizeof(int64_t),
                           .dtype = GYRE_INT64};
    return gy_run_own(comm, &call);
}

/* Checks another process's offsets: outside of the heap there is no memory of that rank. */
static bool are_places(const struct gy_segment *segment, const struct exposure *told)
{
    return gy_segment_heap_spans(segment, told->memory - 1, told->bytes) &&
           gy_segment_heap_spans(segment, told->control - 1, sizeof(struct gy_exposed_control)) &&
           (told->control - 1) % _Alignof(struct gy_exposed_control) == 0;
}

static gyre_status map_target(struct gyre_window *window, int r, const struct exposure *told)
{
    struct gy_context *ctx = window->comm->ctx;
    int world = gy_group_world(&window->comm->group, r), local = ctx->world->members[world].local;
    struct gy_target *target = &window->targets[r];
    if (!are_places(ctx->segment, told)) {
        char text[300];
        snprintf(
            text, sizeof(text),
            "rank %d says that its %llu bytes of window %u begin at byte %llu of its heap, and what belongs to them "
            "at byte %llu, which cannot be; do all ranks run the same gyre?",
            world, (unsigned long long)told->bytes, window->id, (unsigned long long)told->memory - 1,
            (unsigned long long)told->control - 1);
        gy_window_end_world(ctx, GYRE_PROTOCOL, world, text);
        gy_context_fail(ctx);
        return GYRE_PROTOCOL;
    }
    target->memory = gy_segment_heap_at(ctx->segment, local, told->memory - 1);
    target->control = gy_segment_heap_at(ctx->segment, local, told->control - 1);
    return GYRE_SUCCESS;
}

/* True if what rank r has exposed is reached by loads and stores, and not by frames. */
static bool is_reached_by_memory(const struct gyre_comm *comm, int r, const struct exposure *told)
{
    return gy_exposed_to(comm, r) && told->memory && told->control;
}

static gyre_status map_targets(struct gyre_window *window, const struct exposure *all)
{
    struct gyre_comm *comm = window->comm;
    gyre_status status = GYRE_SUCCESS;
    for (int r = 0; r < comm->size && status == GYRE_SUCCESS; r++) {
        struct gy_target *target = &window->targets[r];
        target->bytes = all[r].bytes;
        if (r == comm->rank) {
            target->memory = window->memory;
            target->control = window->control;
        } else if (is_reached_by_memory(comm, r, &all[r])) {
            status = map_target(window, r, &all[r]);
        } else {
            gy_window_take_key(window, r, &all[r].rma_key);
        }
    }
    return status;
}

/* Opens the links of the window. A frame is delivered only where both ends of its link are open, and the owner of a
 * window cannot know which rank will access it. So the link of two ranks is opened by both if either reaches the
 * other's part by frames, also by the one that needs no frames itself. */
static gyre_status open_links(struct gyre_window *window, const struct exposure *all)
{
    struct gyre_comm *comm = window->comm;
    gyre_status status = GYRE_SUCCESS;
    struct gy_link *link;
    for (int r = 0; r < comm->size && status == GYRE_SUCCESS; r++) {
        bool by_memory = r == comm->rank ? window->memory != NULL
                                         : is_reached_by_memory(comm, r, &all[r]) &&
                                               is_reached_by_memory(comm, r, &all[comm->rank]);
        if (!by_memory)
            status = gy_context_link(comm->ctx, gy_group_world(&comm->group, r), &link);
    }
    if (status != GYRE_SUCCESS) {
        gy_overlay_report(comm->ctx->overlay, status, comm->ctx->world->rank, comm->ctx->error.text);
        gy_context_fail(comm->ctx); /* others may have been using the window for a while */
    }
    return status;
}

gyre_status gy_window_expose(struct gyre_comm *comm, void *memory, size_t bytes, struct gyre_window **window_p)
{
    gyre_status status = GYRE_NO_MEMORY;
    comm->error.status = GYRE_SUCCESS; /* failures of an earlier call do not count for this one */
    struct gyre_window *window = gy_alloc_zero(1, sizeof(*window));
    struct exposure *all = gy_alloc((size_t)comm->size * sizeof(*all));
    struct gy_target *targets = gy_alloc_zero((size_t)comm->size, sizeof(*targets));
    if (!window || !all || !targets) {
        gy_error_set(&comm->error, GYRE_NO_MEMORY, -1, "out of memory for a window");
        goto tell;
    }
    window->comm = comm;
    window->size = comm->size;
    window->targets = targets;
    window->memory = memory;
    window->bytes = bytes;
    gy_windows_free_left(comm->ctx); /* frees what other ranks have left by now */
    status = gy_exposed_make(window);
    if (status != GYRE_SUCCESS)
        goto tell;
    window->id = ++comm->windows_made; /* before a peer can know it: frames may come once one rank has completed */
    window->next = comm->windows;
    comm->windows = window;
    comm->ctx->windows++;
    gy_handle_add(window, GY_HANDLE_WINDOW);
    status = exchange(window, all);
    if (status == GYRE_SUCCESS)
        status = map_targets(window, all);
    if (status == GYRE_SUCCESS)
        status = open_links(window, all);
    gy_free(all);
    if (status != GYRE_SUCCESS) {
        gy_report_shortage(comm, status);
        gy_window_free(window);
        return status;
    }
    *window_p = window;
    return GYRE_SUCCESS;

tell: /* the others wait for this rank */
    gy_report_shortage(comm, status);
    gy_free(window);
    gy_free(all);
    gy_free(targets);
    return status;
}

static void dispose(struct gyre_window *window)
{
    for (int r = 0; r < window->size; r++) {
        struct gy_reply *replies = window->targets[r].replies;
        for (int i = 0; replies && i < GY_ONE_SIDED_FLIGHT; i++)
            gy_free(replies[i].aside);
        gy_free(replies);
    }
    gy_free(window->targets);
    gy_free(window);
}

static void dispose_deferred(struct gy_context *ctx, bool all)
{
    for (struct gyre_window **at = &ctx->deferred_windows, *window; (window = *at);) {
        if (window->control && (all || !gy_exposed_in_use(window)))
            gy_exposed_free(ctx, window);
        if (!all && (window->control || gy_rma_holds(window))) {
            at = &window->next;
            continue;
        }
        *at = window->next;
        dispose(window);
    }
}

void gy_windows_free_left(struct gy_context *ctx)
{
    dispose_deferred(ctx, false);
}

void gy_windows_free_deferred(struct gy_context *ctx)
{
    dispose_deferred(ctx, true);
}

void gy_window_free(struct gyre_window *window)
{
    struct gyre_comm *comm = window->comm;
    gy_handle_remove(window, GY_HANDLE_WINDOW);
    for (struct gyre_window **w = &comm->windows; *w; w = &(*w)->next)
        if (*w == window) {
            *w = window->next;
            break;
        }
    comm->ctx->windows--;
    gy_window_conceal_from_devices(window);
    gy_context_take_back(comm->ctx, comm->id, window->id);
    gy_rma_set_aside(window);
    for (int r = 0; r < comm->size; r++)
        gy_free(window->targets[r].landing);
    gy_exposed_leave(window);
    window->next = comm->ctx->deferred_windows;
    comm->ctx->deferred_windows = window;
    gy_windows_free_left(comm->ctx);
}

gyre_status gy_window_conceal(struct gyre_window *window)
{
    struct gyre_comm *comm = window->comm;
    struct gy_call barrier = {.collective = GY_BARRIER, .dtype = GYRE_INT32};
    comm->error.status = GYRE_SUCCESS; /* failures of an earlier call do not count for this one */
    gyre_status flushed = gy_window_flush(window, -1), status = flushed;
    struct gy_error refused = comm->error; /* by a target: this rank still joins the barrier */
    if (status == GYRE_SUCCESS || status == GYRE_INVALID_ARGUMENT) {
        comm->error.status = GYRE_SUCCESS;
        status = gy_run_own(comm, &barrier);
    }
    bool goes_on = comm->ctx->error.status == GYRE_SUCCESS;
    if (status == GYRE_UNSUPPORTED && goes_on) /* nothing has begun: others may still use the window */
        return status;
    gy_report_shortage(comm, status); /* the window is freed in any case */
    window->quiet = status == GYRE_SUCCESS;
    gy_window_free(window);
    if (status != GYRE_SUCCESS || flushed == GYRE_SUCCESS)
        return status;
    comm->error = refused;
    return flushed;
}

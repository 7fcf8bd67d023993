/* The lock of a one-sided window. Ranks of one host hold it in turn to accumulate there, each for itself or for a
 * rank elsewhere.
 *
 *   lock     0 ──▶ holder + 1 ──▶ 0 ──▶ holder + 1 …    a waiter spins, and then yields
 *   turns         n          n + 1       n + 1          counted by the holder, before it releases the lock
 *
 * Invariant: while a waiter sees the same holder and the same number of turns, it sees one turn without progress.
 * Only that is measured by the stall clock. A holder is reported for its own turn, whichever ranks held the lock
 * before it, and a rank that takes the lock again and again makes progress. All turns together may take the
 * communicator's timeout; then no rank is reported.
 *
 * A holder may be without a core, stopped, or dead: a reported failure or a clock ends the wait. A rank that waits
 * for its own accumulation progresses its links meanwhile, as in every wait. A rank that applies another rank's
 * accumulation is inside the receive handler, where no other frame can arrive. It answers no question there, and so
 * sends its liveness unasked to all ranks that could ask. */
#include <sched.h>
#include <stdio.h>

#include "collectives/engine/liveness.h"
#include "collectives/engine/progress.h"
#include "collectives/engine/request.h"
#include "collectives/rma/window.h"
#include "core/clock.h"
#include "core/topology.h"

#define SPINS 1000
#define AWAY (100 * GY_MILLISECOND) /* a longer pause between two polls: this rank was stopped, or without a core */

struct wait {
    int64_t began, observed; /* 0: not yet */
    uint32_t holder, releases, first;
    int64_t since; /* when this holder and number of turns were first seen */
};

static void observe(struct wait *wait, const struct gy_exposed_control *control, uint32_t holder)
{
    int64_t now = gy_now();
    uint32_t releases = atomic_load_explicit(&control->releases, memory_order_relaxed);
    if (wait->began == 0)
        *wait = (struct wait){.began = now, .observed = now, .since = now, .first = releases};
    int64_t away = now - wait->observed - AWAY;
    if (away > 0) { /* the others may have been stopped as well */
        wait->began += away;
        wait->since += away;
    }
    if (holder != wait->holder || releases != wait->releases)
        wait->since = now;
    wait->observed = now;
    wait->holder = holder;
    wait->releases = releases;
}

static void blame(const struct gyre_window *window, int world)
{
    struct gy_context *ctx = window->comm->ctx;
    char text[200];
    snprintf(text, sizeof(text),
             "rank %d accumulates into window %u and has not moved for %.0f s (GYRE_STALL_TIMEOUT); is it stopped?",
             world, window->id, (double)ctx->config.stall_timeout_ns / 1e9);
    gy_window_end_world(ctx, GYRE_PEER_STALLED, world, text);
}

/* Checks the clocks. Returns GYRE_IN_PROGRESS if the wait continues. */
static gyre_status check_clocks(const struct gyre_window *window, const struct wait *wait)
{
    struct gyre_comm *comm = window->comm;
    int64_t timeout = comm->attributes.timeout_ns;
    if (wait->holder != 0 && wait->observed - wait->since > comm->ctx->config.stall_timeout_ns) {
        blame(window, (int)wait->holder - 1);
        return comm->ctx->error.status;
    }
    if (wait->observed - wait->began <= timeout)
        return GYRE_IN_PROGRESS;
    comm->error.status = GYRE_SUCCESS; /* the communicator continues, and may hold an earlier error */
    return gy_error_set(&comm->error, GYRE_PEER_LATE, -1,
                        "rank %d has not come to accumulate into window %u within %g s (GYRE_TIMEOUT), in which %u "
                        "accumulations of others ended",
                        comm->ctx->world->rank, window->id, (double)timeout / 1e9, wait->releases - wait->first);
}

/* Makes progress between two polls of the lock. Returns false if the world has failed. */
static bool attend(struct gyre_window *window, bool sinking)
{
    struct gy_context *ctx = window->comm->ctx;
    if (gy_overlay_check(ctx->overlay, &ctx->error) != GYRE_SUCCESS)
        return false;
    gy_liveness_show(ctx);
    if (sinking)
        gy_liveness_call(window->comm, gy_now());
    else
        gy_progress_occasional(ctx);
    return !ctx->closed;
}

/* Takes the lock if it is free; else *holder_p is its holder. A rank that sees the holder also sees the turns before
 * it, since the holder took the lock after its release by the one before. */
static bool take(const struct gyre_window *window, struct gy_exposed_control *control, uint32_t *holder_p)
{
    *holder_p = 0;
    return atomic_compare_exchange_weak_explicit(&control->lock, holder_p, (uint32_t)window->comm->ctx->world->rank + 1,
                                                 memory_order_acquire, memory_order_acquire);
}

static gyre_status wait_for_lock(struct gyre_window *window, struct gy_exposed_control *control, bool sinking,
                                 struct gy_one_sided_wait *shown)
{
    struct wait wait = {0};
    for (;;) {
        uint32_t holder;
        if (take(window, control, &holder))
            return GYRE_SUCCESS;
        shown->world = (int)holder - 1;
        if (!attend(window, sinking))
            return window->comm->ctx->error.status;
        observe(&wait, control, holder);
        gy_one_sided_wait_tell(shown, wait.observed);
        gyre_status status = check_clocks(window, &wait);
        if (status != GYRE_IN_PROGRESS)
            return status;
        sched_yield();
    }
}

gyre_status gy_window_lock(struct gyre_window *window, struct gy_exposed_control *control, bool sinking)
{
    struct gy_one_sided_wait shown;
    uint32_t holder;
    for (unsigned spins = 0; spins < SPINS; spins++) {
        if (take(window, control, &holder))
            return GYRE_SUCCESS;
        gy_cpu_relax();
    }
    gy_one_sided_wait_begin(&shown, window, (int)holder - 1, "an accumulation");
    gyre_status status = wait_for_lock(window, control, sinking, &shown);
    if (!sinking && window->comm->ctx->error.status != GYRE_SUCCESS)
        gy_context_fail(window->comm->ctx); /* while its error can name the wait */
    gy_one_sided_wait_end(&shown);
    return status;
}

void gy_window_unlock(struct gy_exposed_control *control)
{
    uint32_t releases = atomic_load_explicit(&control->releases,
                                             memory_order_relaxed); /* written by the holder alone */
    atomic_store_explicit(&control->releases, releases + 1, memory_order_relaxed);
    atomic_store_explicit(&control->lock, 0, memory_order_release);
}

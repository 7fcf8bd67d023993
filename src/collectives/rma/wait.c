/* Blocked one-sided calls have no request and no record in the flight recorder. The context has a list of them, from
 * which error messages, the page of gyre-top and the log read. */
#include <stdio.h>

#include "collectives/comm/status_page.h"
#include "collectives/engine/liveness.h"
#include "collectives/engine/progress.h"
#include "collectives/rma/window.h"
#include "core/clock.h"
#include "core/log.h"

#define TELL_EVERY (60 * GY_SECOND)

void gy_one_sided_wait_begin(struct gy_one_sided_wait *wait, struct gyre_window *window, int world, const char *call)
{
    struct gy_context *ctx = window->comm->ctx;
    int64_t now = gy_now();
    *wait = (struct gy_one_sided_wait){.comm = window->comm,
                                       .call = call,
                                       .window = window->id,
                                       .world = world,
                                       .since = now,
                                       .told = now,
                                       .next = ctx->one_sided_waits};
    ctx->one_sided_waits = wait;
}

void gy_one_sided_wait_tell(struct gy_one_sided_wait *wait, int64_t now)
{
    if (now - wait->told <= TELL_EVERY)
        return;
    wait->told = now;
    if (wait->world >= 0)
        gy_log(GY_LOG_WARN, "waiting for rank %d in %s of window %u for %.0f s", wait->world, wait->call, wait->window,
               (double)(now - wait->since) / 1e9);
    else
        gy_log(GY_LOG_WARN, "waiting in %s of window %u for %.0f s", wait->call, wait->window,
               (double)(now - wait->since) / 1e9);
}

void gy_one_sided_wait_end(struct gy_one_sided_wait *wait)
{
    if (wait->comm->ctx->page)
        wait->comm->ctx->page->waits = 0; /* written anew by the next slow progress */
    for (struct gy_one_sided_wait **at = &wait->comm->ctx->one_sided_waits; *at; at = &(*at)->next)
        if (*at == wait) {
            *at = wait->next;
            return;
        }
}

const struct gy_one_sided_wait *gy_one_sided_wait_of(const struct gyre_comm *comm)
{
    const struct gy_one_sided_wait *wait = comm->ctx->one_sided_waits;
    while (wait && wait->comm != comm)
        wait = wait->next;
    return wait;
}

void gy_window_end_world(struct gy_context *ctx, gyre_status status, int world, const char *text)
{
    gy_error_set(&ctx->error, status, world, "%s", text);
    gy_overlay_report(ctx->overlay, status, world, text);
}

struct bounded {
    struct gy_context *ctx;
    const struct gyre_window *window;
    int rank, world; /* the rank that has to answer */
    bool (*done)(const void *);
    const void *what;
    int64_t since, deadline;
    int64_t *asked; /* see gy_liveness_ask */
    struct gy_one_sided_wait *wait;
};

static bool is_gone(const struct bounded *b)
{
    return gy_liveness_has_gone(b->ctx, b->world, false, b->since, gy_now());
}

/* A device's access never completes once the world is closed: its link has then forgotten it. */
static bool is_over(const void *what)
{
    const struct bounded *b = what;
    int64_t now = gy_now();
    if (b->done(b->what) || b->ctx->closed || is_gone(b) || now > b->deadline)
        return true;
    gy_liveness_ask(b->window->comm, (uint32_t)b->window->id, b->rank, b->since, now, b->asked);
    gy_one_sided_wait_tell(b->wait, now);
    return false;
}

void gy_window_end_alone(struct gy_context *ctx, int world, const char *what, const struct gyre_window *window)
{
    int cause = gy_overlay_left_because(ctx->overlay, world);
    gy_error_set(&ctx->error, GYRE_PEER_LEFT, cause, "rank %d destroyed its communicator before it had %s of window %u",
                 world, what, window->id);
    gy_context_fail(ctx);
}

gyre_status gy_window_until(struct gyre_window *window, bool (*done)(const void *), const void *what, int target,
                            const char *call)
{
    struct gy_context *ctx = window->comm->ctx;
    int world = gy_group_world(&window->comm->group, target);
    int64_t now = gy_now(), asked = now;
    int64_t timeout = window->comm->attributes.timeout_ns;
    struct gy_one_sided_wait wait;
    struct bounded bounded = {ctx, window, target, world, done, what, now, now + timeout, &asked, &wait};
    if (done(what)) /* the usual case, without a wait */
        return ctx->closed ? ctx->error.status : GYRE_SUCCESS;
    gy_one_sided_wait_begin(&wait, window, world, call);
    gy_wait_until(ctx, is_over, &bounded);
    if (!ctx->closed && !done(what)) {
        char text[200];
        if (is_gone(&bounded)) {
            snprintf(text, sizeof(text), "answered %s", call);
            gy_window_end_alone(ctx, world, text, window);
        } else {
            snprintf(text, sizeof(text), "rank %d did not answer %s of window %u within %g s (GYRE_TIMEOUT)", world,
                     call, window->id, (double)timeout / 1e9);
            gy_window_end_world(ctx, GYRE_PEER_LATE, world, text);
            gy_context_fail(ctx);
        }
    }
    gy_one_sided_wait_end(&wait);
    return ctx->closed ? ctx->error.status : GYRE_SUCCESS;
}

/* One-sided calls that wait have no request and no record in the flight recorder. A list of them in the context is what an
 * error message, the page of gyre-top and the log know of them. */
#include "collectives/comm/status_page.h"
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
        wait->comm->ctx->page->waits = 0; /* written anew at the next slow turn */
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

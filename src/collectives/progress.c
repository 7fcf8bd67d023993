/* Progress and waiting. The caller's thread does everything: it advances all active requests of the context, and when
 * nothing moves it spins while every rank has a core, then yields, then sleeps in the kernel. Every wait passes through
 * the slow turn about once a millisecond, where deaths, verdicts and clocks are seen. */
#include <sched.h>
#include <string.h>

#include "collectives/request.h"
#include "core/clock.h"

#define GY_TURN_LOCAL (1 * GY_MILLISECOND)
#define GY_TURN_REMOTE (20 * 1000) /* links with descriptors: connections in the making need the poller */
#define GY_SPIN (100 * 1000)
#define GY_YIELD (1 * GY_MILLISECOND)
#define GY_NAP (50 * GY_MILLISECOND)

void gy_progress_links(struct gy_context *ctx, bool all, bool *moved_p)
{
    int most = all || ctx->links < 8 ? ctx->links : 8;
    for (int i = 0; i < most && !ctx->closed; i++) {
        int peer = ctx->linked[all ? i : (int)((ctx->turns + (unsigned)i) % (unsigned)ctx->links)];
        if (ctx->peers[peer].broken == 0)
            *moved_p |= ctx->ops[ctx->peers[peer].transport]->progress(ctx->peers[peer].link);
    }
}

bool gy_progress(struct gy_context *ctx)
{
    bool moved = false;
    ctx->turns++;
    if (ctx->links > 0)
        gy_progress_links(ctx, (ctx->turns & 15) == 0, &moved);
    struct gyre_request *next;
    for (struct gyre_request *r = ctx->active_first; r && !ctx->closed; r = next) {
        next = r->next;
        if (gy_request_advance(r)) {
            moved = true;
            r->idle_since = 0;
            next = r->complete ? ctx->active_first : next; /* the list has changed under us: the rest gets its turn
                                                            * again */
            if (r->complete)
                break;
        }
    }
    if ((ctx->turns & 255) == 0) {
        int64_t now = gy_now();
        if (now - ctx->turned > (ctx->remote ? GY_TURN_REMOTE * 10 : GY_TURN_LOCAL))
            gy_turn(ctx, now);
    }
    return moved;
}

bool gy_turn(struct gy_context *ctx, int64_t now)
{
    gy_liveness_excuse(ctx, now);
    ctx->turned = now;
    if (ctx->closed)
        return true;
    /* Before anything moves: after an abort nobody touches a buffer. */
    if (gy_overlay_check(ctx->overlay, &ctx->error) != GYRE_SUCCESS) {
        gy_context_fail(ctx);
        return true;
    }
    bool moved = gy_poller_poll(ctx->poller, 0) > 0;
    gy_progress_links(ctx, true, &moved);
    if (gy_overlay_check(ctx->overlay, &ctx->error) == GYRE_SUCCESS)
        gy_liveness_check(ctx, now);
    if (ctx->error.status != GYRE_SUCCESS)
        gy_context_fail(ctx);
    return moved;
}

/* Sleeps until something arrives; everything is looked at once more after the peers can see that we sleep. */
static void nap(struct gy_context *ctx)
{
    bool sleep = true;
    for (int t = 0; t < ctx->transports; t++)
        sleep &= ctx->ops[t]->arm(ctx->instance[t]);
    if (ctx->segment)
        gy_segment_sleep(ctx->segment);
    if (sleep && !gy_progress(ctx) && !ctx->closed)
        gy_poller_poll(ctx->poller, GY_NAP);
    if (ctx->segment)
        gy_segment_awake(ctx->segment);
    for (int t = 0; t < ctx->transports; t++)
        ctx->ops[t]->disarm(ctx->instance[t]);
}

/* Nothing moved: spin, yield or sleep. True if something moved after all. */
static bool idle(struct gy_context *ctx, unsigned turns, int64_t since)
{
    if (turns < 64 && !ctx->crowded) {
        gy_cpu_relax();
        return false;
    }
    if (ctx->crowded && turns < 8) {
        gy_cpu_relax();
        return false;
    }
    int64_t now = gy_now();
    if (now - ctx->turned > (ctx->remote ? GY_TURN_REMOTE : GY_TURN_LOCAL) && gy_turn(ctx, now))
        return true;
    int64_t spin = ctx->config.spin_ns >= 0 ? ctx->config.spin_ns : ctx->crowded ? 0 : GY_SPIN;
    if (now - since < spin)
        gy_cpu_relax();
    else if (now - since < spin + GY_YIELD)
        sched_yield();
    else if (!ctx->closed)
        nap(ctx);
    return false;
}

void gy_wait(struct gyre_request *r)
{
    struct gy_context *ctx = r->comm->ctx;
    unsigned turns = 0;
    int64_t since = 0;
    while (!r->complete) {
        if (gy_progress(ctx)) {
            turns = 0;
            since = 0;
            continue;
        }
        if (r->complete)
            break;
        if (turns++ == 16)
            since = gy_now();
        if (idle(ctx, turns, since ? since : INT64_MAX)) {
            turns = 0;
            since = 0;
        }
    }
}

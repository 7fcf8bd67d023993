/* Progress and waiting. The caller's thread does everything: it advances all active requests of the context. When
 * nothing moves, it spins while every rank has a core, then yields, then sleeps in the kernel. About once a
 * millisecond every wait runs the slow progress, which checks for dead ranks, reported failures and clocks. */
#include "collectives/engine/progress.h"

#include <sched.h>
#include <string.h>

#include "collectives/engine/core_affinity.h"
#include "collectives/engine/liveness.h"
#include "collectives/engine/page_waits.h"
#include "core/clock.h"

#define GY_PROGRESS_LOCAL (1 * GY_MILLISECOND)
#define GY_PROGRESS_REMOTE (20 * 1000) /* links with descriptors: connections being set up need the poller */
#define GY_SPIN (100 * 1000)
#define GY_YIELD (1 * GY_MILLISECOND)
#define GY_NAP (50 * GY_MILLISECOND)
#define GY_CHECKS 8               /* checks of a link within the timeout of a host that does not answer */
#define GY_POLLS 64               /* polls without progress before the clock is read */
#define GY_POLLS_OVERSUBSCRIBED 8 /* if ranks share cores */
#define GY_POLLS_THREAD 2         /* of the progress thread, which polls links */

void gy_progress_links(struct gy_context *ctx, bool all, bool *moved_p)
{
    int most = all || ctx->links < 8 ? ctx->links : 8;
    for (int i = 0; i < most && !ctx->closed; i++) {
        int peer = ctx->linked[all ? i : (int)((ctx->polls + (unsigned)i) % (unsigned)ctx->links)];
        if (ctx->peers[peer].broken == 0)
            *moved_p |= ctx->ops[ctx->peers[peer].transport]->progress(ctx->peers[peer].link);
    }
    if (ctx->answers_due && !ctx->closed)
        ctx->up->answer(ctx);
}

/* Another thread may sleep that waits for no request, whose completion would wake it, but for peers' writes to a
 * one-sided window: this progress may have been such a write. */
static void tell_sleepers(struct gy_context *ctx, bool moved)
{
    if (moved && ctx->windows > 0)
        gy_progress_wake(ctx);
}

/* Sends what several requests have posted in this progress call, in as few pieces as each link allows. */
static bool release(struct gy_context *ctx)
{
    bool moved = false;
    ctx->gathered = false;
    for (int i = 0; i < ctx->links && !ctx->closed; i++) {
        const struct gy_peer *peer = &ctx->peers[ctx->linked[i]];
        if (peer->link->first && peer->broken == 0)
            moved |= ctx->ops[peer->transport]->progress(peer->link);
    }
    return moved;
}

/* Of many collectives over links the oldest move at every call, the others at every sixteenth. The younger wait for
 * credits that the older ones have, and data that moves at once stays in the caches. */
static bool advance_requests(struct gy_context *ctx, bool all)
{
    bool moved = false;
    unsigned able = ctx->active - ctx->queued; /* of queued requests only the heads can move */
    unsigned collectives = 0;
    struct gyre_request *next;
    ctx->together = able > 1 && ctx->links > 0;
    for (struct gyre_request *r = ctx->active_first; r && able > 0 && !ctx->closed; r = next) {
        next = r->next;
        if (r->schedule->shm && r->comm->region_first != r)
            continue;
        able--;
        if (!all && gy_request_is_linked(r) && ++collectives > GY_AT_ONCE)
            continue;
        if (ctx->up->advance(r)) {
            moved = true;
            r->idle_since = 0;
            if (next && next->complete) /* it completed with this one: the rest moves at the next call */
                break;
        }
    }
    ctx->together = false;
    if (ctx->gathered)
        moved |= release(ctx);
    return moved;
}

bool gy_progress(struct gy_context *ctx)
{
    bool moved = false, all = (++ctx->polls & 15) == 0;
    if (ctx->links > 0)
        gy_progress_links(ctx, all, &moved);
    tell_sleepers(ctx, moved);
    moved |= advance_requests(ctx, all);
    if (ctx->config.verify && !ctx->closed)
        moved |= ctx->up->compare(ctx);
    if ((ctx->polls & 255) == 0) {
        int64_t now = gy_now();
        if (now - ctx->progressed_at > (ctx->remote ? GY_PROGRESS_REMOTE * 10 : GY_PROGRESS_LOCAL))
            gy_progress_slow(ctx, now);
    }
    return moved;
}

/* Two checks find a dead host, the second of which is still within the timeout. */
static void check_links(struct gy_context *ctx, int64_t now)
{
    if (now - ctx->checked < ctx->config.peer_timeout_ns / GY_CHECKS)
        return;
    ctx->checked = now;
    for (int i = 0; i < ctx->links; i++) {
        const struct gy_peer *peer = &ctx->peers[ctx->linked[i]];
        if (peer->broken == 0)
            ctx->ops[peer->transport]->check(peer->link, ctx->config.peer_timeout_ns / GY_CHECKS * (GY_CHECKS - 2));
    }
}

bool gy_progress_slow(struct gy_context *ctx, int64_t now)
{
    gy_liveness_restart(ctx, now);
    ctx->progressed_at = now;
    if (ctx->closed)
        return true;
    /* Before anything moves: after an abort no buffer may be touched. */
    if (gy_overlay_check(ctx->overlay, &ctx->error) != GYRE_SUCCESS) {
        gy_context_fail(ctx);
        return true;
    }
    bool moved = false, told = gy_poller_poll(ctx->poller, 0) > 0;
    check_links(ctx, now);
    gy_progress_links(ctx, true, &moved);
    tell_sleepers(ctx, moved);
    if (gy_overlay_check(ctx->overlay, &ctx->error) == GYRE_SUCCESS)
        ctx->up->watch(ctx, now);
    gy_page_update(ctx, now);
    if (ctx->error.status != GYRE_SUCCESS)
        gy_context_fail(ctx);
    return moved || told;
}

void gy_progress_occasional(struct gy_context *ctx)
{
    int64_t now = gy_now();
    if (ctx->links > 0)
        gy_progress(ctx);
    if (now - ctx->progressed_at > GY_MILLISECOND)
        gy_progress_slow(ctx, now);
}

/* Sleeps until something arrives. Polls everything once more after the peers can see that this rank sleeps. */
static void sleep_once(struct gy_context *ctx, bool (*done)(const void *), const void *what)
{
    bool sleep = true;
    for (int t = 0; t < ctx->transports; t++)
        sleep &= ctx->ops[t]->arm(ctx->instance[t]);
    if (ctx->segment)
        gy_segment_sleep(ctx->segment);
    if (sleep && !gy_progress(ctx) && !advance_requests(ctx, true) && !ctx->closed && !(done && done(what)))
        gy_progress_sleep(ctx, gy_overlay_calm(ctx->overlay) ? GY_NAP : GY_MILLISECOND);
    if (ctx->progress_lock.sleepers > 0) /* another thread still sleeps */
        return;
    if (ctx->segment)
        gy_segment_awake(ctx->segment);
    for (int t = 0; t < ctx->transports; t++)
        ctx->ops[t]->disarm(ctx->instance[t]);
}

/* The time without progress. */
struct spinning {
    unsigned polls;
    int64_t since; /* 0: too short to read the clock */
};

/* The next frame of a link takes longer than a few polls, each of which enters the kernel twice. With 64 polls the
 * progress thread spent a third of its core's time on them beside a link of 200 Mbit/s. */
static unsigned most_polls(const struct gy_context *ctx, int64_t spin)
{
    if (spin < 0 && ctx->links > 0)
        return GY_POLLS_THREAD;
    return ctx->oversubscribed ? GY_POLLS_OVERSUBSCRIBED : GY_POLLS;
}

/* Nothing moved: spins, yields or sleeps. Returns true if something moved after all. */
static bool idle(struct gy_context *ctx, struct spinning *spinning, int64_t spin, bool (*done)(const void *),
                 const void *what)
{
    if (spinning->polls++ == 16 && spinning->since == 0)
        spinning->since = gy_now();
    gy_progress_yield(ctx);
    if (spinning->polls < most_polls(ctx, spin)) {
        if (ctx->links == 0) /* a poll of links takes longer than any pause */
            gy_cpu_relax();
        return false;
    }
    int64_t now = gy_now();
    if (spinning->since == 0) /* yields for a millisecond, however few times that is */
        spinning->since = now;
    if (now - ctx->progressed_at > (ctx->remote ? GY_PROGRESS_REMOTE : GY_PROGRESS_LOCAL) && gy_progress_slow(ctx, now))
        return true;
    int64_t idle_for = now - spinning->since;
    if (idle_for < spin && !gy_cores_shared(ctx)) {
        if (ctx->links == 0)
            gy_cpu_relax();
    } else if (idle_for < spin + GY_YIELD)
        sched_yield();
    else if (!ctx->closed) {
        sleep_once(ctx, done, what);
        /* The wake-up may be the report of a failure: the next slow progress may be a whole sleep away. */
        if (gy_overlay_check(ctx->overlay, &ctx->error) != GYRE_SUCCESS)
            gy_context_fail(ctx);
    }
    return false;
}

static void poll_or_idle(struct gy_context *ctx, struct spinning *spinning, int64_t spin, bool (*done)(const void *),
                         const void *what)
{
    if (ctx->closed) /* what still waits, waits for an agreement */
        ctx->up->agree(ctx);
    else if (gy_progress(ctx) || idle(ctx, spinning, spin, done, what))
        *spinning = (struct spinning){0};
}

void gy_wait_until(struct gy_context *ctx, bool (*done)(const void *), const void *what)
{
    struct spinning spinning = {0};
    int64_t spin = ctx->config.spin_ns >= 0 ? ctx->config.spin_ns : ctx->oversubscribed ? 0 : GY_SPIN;
    ctx->progress_lock.waits++;
    while (!done(what))
        poll_or_idle(ctx, &spinning, spin, done, what);
    ctx->progress_lock.waits--;
}

static bool is_complete(const void *request)
{
    return ((const struct gyre_request *)request)->complete;
}

void gy_wait(struct gyre_request *r)
{
    gy_wait_until(r->comm->ctx, is_complete, r);
}

/* The progress thread shares its core with a program that computes: it neither spins nor yields for long. */
void gy_drive(struct gy_context *ctx)
{
    struct spinning spinning = {0};
    while ((ctx->active_first || ctx->windows) && ctx->progress_lock.waits == 0 && !ctx->progress_lock.stop &&
           !ctx->closed)
        poll_or_idle(ctx, &spinning, -GY_YIELD, NULL, NULL);
}

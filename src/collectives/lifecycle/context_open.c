/* Opens contexts: of a world that bootstraps, of one that a joiner joins, of the next epoch. And closes them. */
#include "collectives/lifecycle/context_open.h"

#include <string.h>
#include <sys/epoll.h>

#include "collectives/comm/channel.h"
#include "collectives/comm/status_page.h"
#include "collectives/comm/transport_select.h"
#include "collectives/engine/request.h"
#include "collectives/lifecycle/atfork.h"
#include "collectives/lifecycle/charter.h"
#include "collectives/lifecycle/comm_teardown.h"
#include "collectives/link/orphan_sends.h"
#include "collectives/rma/window.h"
#include "collectives/select/selector.h"
#include "core/clock.h"
#include "core/handle.h"
#include "core/mem.h"
#include "membership/join_address.h"
#include "transport/registry/registry.h"

/* Timeouts grow with the depth in the fd-passing tree, so that a stopped rank is reported by its direct children and
 * not by their descendants. */
static gyre_status make_segment(struct gy_context *ctx, struct gy_error *error)
{
    if (!gy_transport_wanted(ctx->config.transports, "shm"))
        return GYRE_SUCCESS;
    int64_t timeout = gy_overlay_timeout(ctx->world);
    int64_t deadline = gy_now() + timeout;
    if (ctx->world->epoch > 1)
        deadline += timeout / 4 * (1 + __builtin_popcount((unsigned)ctx->world->local));
    gyre_status status = gy_segment_create(ctx->world, deadline, &ctx->segment, error);
    if (status == GYRE_SUCCESS && ctx->segment)
        gy_overlay_attach_notice(ctx->overlay, gy_segment_notice(ctx->segment));
    return status;
}

static void free_kept(struct gy_context *ctx)
{
    for (int power = 0; power < GY_BUFFER_POWERS; power++) {
        while (ctx->kept[power]) {
            void *memory = ctx->kept[power];
            memcpy(&ctx->kept[power], memory, sizeof(void *));
            gy_free(memory);
        }
    }
}

static void free_parts(struct gy_context *ctx)
{
    gy_progress_lock_free(ctx);
    if (ctx->overlay)
        gy_overlay_free(ctx->overlay);
    for (int t = 0; t < ctx->transports; t++) {
        if (!ctx->closed)
            ctx->ops[t]->close(ctx->instance[t]);
        ctx->ops[t]->fini(ctx->instance[t], false);
    }
    while (ctx->deferred) {
        struct gy_channel *next = ctx->deferred->next;
        gy_channel_free(ctx->deferred);
        ctx->deferred = next;
    }
    gy_requests_take_back(ctx, true);
    gy_windows_free_deferred(ctx);
    gy_region_clear(ctx);
    gy_page_free(ctx);
    for (int i = 0; i < ctx->links; i++)
        gy_free(ctx->peers[ctx->linked[i]].discard);
    if (ctx->segment)
        gy_segment_free(ctx->segment);
    if (ctx->world)
        gy_world_free(ctx->world);
    if (ctx->poller)
        gy_poller_free(ctx->poller);
    while (ctx->idle) {
        struct gyre_request *next = ctx->idle->next;
        gy_handle_remove(ctx->idle, GY_HANDLE_REQUEST);
        gy_free(ctx->idle);
        ctx->idle = next;
    }
    gy_operations_free(&ctx->operations);
    gy_registry_free(&ctx->registry);
    free_kept(ctx);
    gy_free(ctx->linked);
    gy_free(ctx->peers);
    gy_free(ctx);
}

static gyre_status make_peers(struct gy_context *ctx, struct gy_error *error)
{
    size_t size = (size_t)ctx->world->size;
    ctx->peers = gy_alloc_zero(size, sizeof(*ctx->peers));
    ctx->linked = gy_alloc_zero(size, sizeof(*ctx->linked));
    if (!ctx->peers || !ctx->linked)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "out of memory for %zu peers", size);
    for (size_t p = 0; p < size; p++)
        ctx->peers[p].transport = -1;
    return GYRE_SUCCESS;
}

/* Makes everything above the overlay. */
static gyre_status furnish(struct gy_context *ctx, struct gy_error *error)
{
    gyre_status status = make_segment(ctx, error);
    if (status == GYRE_SUCCESS)
        status = gy_transports_open(ctx, error);
    if (status == GYRE_SUCCESS)
        status = gy_transports_choose(ctx, error);
    return status;
}

/* Computed from the table that all ranks of the host have, so that the result is the same on all of them: the choice
 * of algorithms depends on it, too. */
static bool is_oversubscribed(const struct gy_world *world)
{
    int cores = 0;
    for (int local = 0; local < world->nlocals; local++) {
        const struct gy_member *member = &world->members[world->locals[local]];
        cores = member->cores > cores ? member->cores : cores;
    }
    return world->nlocals > cores;
}

static gyre_status finish(struct gy_context *ctx, struct gy_error *error)
{
    gyre_status status = gy_progress_lock_create(ctx, ctx->config.progress_thread, error);
    if (status != GYRE_SUCCESS)
        return status;
    gy_overlay_on_announced(ctx->overlay, gy_comm_end_announced, ctx);
    ctx->oversubscribed = is_oversubscribed(ctx->world);
    gy_page_create(ctx);
    gy_fork_watch(ctx);
    return GYRE_SUCCESS;
}

static void give_up(struct gy_context *ctx, const struct gy_error *error)
{
    if (ctx->overlay) /* the others wait for this rank, or soon will */
        gy_overlay_give_up(ctx->overlay, error);
    free_parts(ctx);
}

/* True if there is no segment because another rank did not do its part: the failure is that rank's. Its connection
 * stays open, so that it is stopped if it does not answer. */
static bool is_of_another(const struct gy_context *ctx, gyre_status status, struct gy_error *error)
{
    bool other = ctx->transports == 0 && error->rank >= 0 && error->rank != ctx->world->rank;
    if (status == GYRE_PEER_UNREACHABLE && other)
        error->status = GYRE_PEER_STALLED;
    return other && (status == GYRE_PEER_UNREACHABLE || status == GYRE_NO_MEMORY || status == GYRE_NO_DESCRIPTORS);
}

/* If the failure is that of this rank (dead, stalled, late or unreachable), the others have declared it: this rank
 * is excluded. */
static gyre_status receive_own_failure(const struct gy_context *ctx, struct gy_error *error)
{
    struct gy_error told = *error;
    if (told.rank != ctx->world->rank || told.status < GYRE_PEER_DEAD || told.status > GYRE_PEER_LATE)
        return told.status;
    gy_error_clear(error);
    return gy_error_set(error, GYRE_EXCLUDED, told.rank,
                        "rank %d has been excluded, the others go on without it: %.400s; it can only end, or join anew",
                        told.rank, told.text);
}

/* A world in which a rank has failed already is one, too: survivors continue from here. */
static gyre_status furnish_later(struct gy_context *ctx, struct gy_error *error)
{
    gyre_status status = gy_overlay_create(ctx->world, &ctx->overlay, error);
    if (status == GYRE_SUCCESS)
        status = make_peers(ctx, error);
    if (status != GYRE_SUCCESS)
        return receive_own_failure(ctx, error);
    if (gy_overlay_check(ctx->overlay, &ctx->error) != GYRE_SUCCESS)
        return GYRE_SUCCESS;
    status = furnish(ctx, error);
    bool apart = status == GYRE_PEER_UNREACHABLE && ctx->transports > 0; /* a message that is the same on all ranks */
    if (apart || is_of_another(ctx, status, error))
        gy_overlay_give_up(ctx->overlay, error);
    if (status != GYRE_SUCCESS && gy_overlay_check(ctx->overlay, &ctx->error) != GYRE_SUCCESS &&
        ctx->error.rank != ctx->world->rank) {
        gy_error_clear(error);
        status = GYRE_SUCCESS;
    }
    return status == GYRE_SUCCESS ? status : receive_own_failure(ctx, error);
}

/* Opens the context of a joiner: its world is in a later epoch. */
static gyre_status join(const gyre_config *user, struct gy_context *ctx, struct gy_error *error)
{
    struct gy_charter charter = {0};
    gyre_status status = gy_world_join(user, &ctx->config, ctx->poller, &ctx->world, &charter, error);
    if (status == GYRE_SUCCESS)
        status = gy_charter_follow(ctx, &charter, error);
    return status == GYRE_SUCCESS ? furnish_later(ctx, error) : status;
}

static gyre_status bootstrap(const gyre_config *user, struct gy_context *ctx, struct gy_error *error)
{
    gyre_status status = gy_world_open(user, &ctx->config, ctx->poller, &ctx->world, error);
    if (status == GYRE_SUCCESS)
        status = gy_overlay_create(ctx->world, &ctx->overlay, error);
    if (status == GYRE_SUCCESS)
        status = make_peers(ctx, error);
    return status == GYRE_SUCCESS ? furnish(ctx, error) : status;
}

gyre_status gy_context_create(const gyre_config *user, const struct gy_upcalls *up, struct gy_context **ctx_p,
                              struct gy_error *error)
{
    struct gy_context *ctx = gy_alloc_zero(1, sizeof(*ctx));
    if (!ctx)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "out of memory for a context");
    ctx->up = up;
    gyre_status status = gy_config_read(&ctx->config, error);
    if (status == GYRE_SUCCESS) /* now, like every other setting: a rank that fails later has to tell the others */
        status = gy_select_check(ctx->config.algorithm, error);
    if (status == GYRE_SUCCESS)
        status = gy_transports_survey(&ctx->config, error);
    if (status == GYRE_SUCCESS)
        status = gy_poller_create(&ctx->poller, error);
    if (status == GYRE_SUCCESS)
        status = (user && user->join) || ctx->config.join ? join(user, ctx, error) : bootstrap(user, ctx, error);
    if (status == GYRE_SUCCESS)
        status = finish(ctx, error);
    if (status != GYRE_SUCCESS) {
        give_up(ctx, error);
        return status;
    }
    if (ctx->error.status != GYRE_SUCCESS)
        gy_context_fail(ctx);
    *ctx_p = ctx;
    return GYRE_SUCCESS;
}

/* While the new world is made, the old one answers ranks that have not heard of it yet. */
static void attend_old(void *owner, uint32_t events)
{
    (void)events;
    gy_poller_poll(owner, 0);
}

static gyre_status make_next(struct gy_context *ctx, struct gy_context *old, struct gy_next_world *next,
                             const struct gy_next_plan *plan, struct gy_error *error)
{
    gyre_status status = gy_poller_create(&ctx->poller, error);
    if (status != GYRE_SUCCESS) {
        gy_world_next_cancel(next);
        return status;
    }
    struct gy_watch watch = {
        .fd = gy_poller_fd(old->poller), .events = EPOLLIN, .callback = attend_old, .owner = old->poller};
    status = gy_world_next(old->world, next, plan, &ctx->config, ctx->poller, &ctx->world, error);
    if (status == GYRE_SUCCESS)
        status = gy_poller_add(ctx->poller, &watch, error);
    if (status != GYRE_SUCCESS)
        return status;
    status = furnish_later(ctx, error);
    gy_poller_remove(ctx->poller, &watch);
    return status;
}

gyre_status gy_context_next(struct gy_context *old, struct gy_next_world *next, const struct gy_next_plan *plan,
                            int operations, struct gy_context **ctx_p, struct gy_error *error)
{
    struct gy_context *ctx = gy_alloc_zero(1, sizeof(*ctx));
    struct gy_error found = {.rank = -1};
    if (!ctx) {
        gy_world_next_cancel(next);
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "out of memory for a context");
    }
    ctx->up = old->up;
    ctx->config = old->config;
    gyre_status status = make_next(ctx, old, next, plan, error);
    if (status == GYRE_SUCCESS)
        status = gy_operations_copy(&ctx->operations, &old->operations, operations, error);
    if (status == GYRE_SUCCESS)
        status = finish(ctx, error);
    if (status != GYRE_SUCCESS) {
        give_up(ctx, error);
        return status;
    }
    if (ctx->error.status != GYRE_SUCCESS)
        gy_context_fail(ctx);
    if (ctx->world->rank == 0 && ctx->world->join_address->used &&
        gy_join_address_open(ctx->world, &found) == GYRE_SUCCESS)
        gy_join_address_announce(ctx->world); /* the one before may be gone; otherwise nothing changes */
    *ctx_p = ctx;
    return GYRE_SUCCESS;
}

void gy_context_free(struct gy_context *ctx)
{
    gy_fork_unwatch(ctx);
    gy_progress_lock_free(ctx);
    if (!ctx->closed)
        for (int t = 0; t < ctx->transports; t++)
            ctx->ops[t]->stop(ctx->instance[t]);
    free_parts(ctx);
}

#include "collectives/comm/context.h"
#include "transport/registry/registry.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "collectives/comm/transport_select.h"
#include "collectives/engine/request.h"
#include "collectives/lifecycle/comm_teardown.h"
#include "collectives/lifecycle/grow.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "collectives/rma/window.h"
#include "core/clock.h"
#include "core/handle.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/topology.h"
#include "membership/join_address.h"
#include "transport/link.h"

/* Whoever is stopped is to be named by those who wait for it, and not by those who wait for these, who follow it in the
 * tree by which the segment is handed on: these are more patient. */
static gyre_status make_segment(struct gy_context *ctx, struct gy_error *error)
{
    if (!gy_transport_wanted(ctx->config.transports, "shm"))
        return GYRE_SUCCESS;
    int64_t patience = gy_overlay_patience(ctx->world);
    int64_t deadline = gy_now() + patience;
    if (ctx->world->epoch > 1)
        deadline += patience / 4 * (1 + __builtin_popcount((unsigned)ctx->world->local));
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
    gy_driver_free(ctx);
    if (ctx->overlay)
        gy_overlay_free(ctx->overlay);
    for (int t = 0; t < ctx->transports; t++) {
        if (!ctx->closed)
            ctx->ops[t]->close(ctx->instance[t]);
        ctx->ops[t]->fini(ctx->instance[t], false);
    }
    while (ctx->buried) {
        struct gy_channel *next = ctx->buried->next;
        gy_channel_free(ctx->buried);
        ctx->buried = next;
    }
    gy_requests_take_back(ctx, true);
    gy_windows_free_buried(ctx);
    gy_window_slots_clear(ctx);
    gy_page_free(ctx);
    for (int i = 0; i < ctx->links; i++)
        gy_free(ctx->peers[ctx->linked[i]].scrap);
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
    gy_free(ctx->bundle);
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

/* Everything that stands on the overlay. */
static gyre_status furnish(struct gy_context *ctx, struct gy_error *error)
{
    gyre_status status = make_segment(ctx, error);
    if (status == GYRE_SUCCESS)
        status = gy_transports_open(ctx, error);
    if (status == GYRE_SUCCESS)
        status = gy_transports_choose(ctx, error);
    return status;
}

/* Of the table that all ranks of the host have, so that all of them say the same: the choice of algorithms asks for it, too. */
static bool is_crowded(const struct gy_world *world)
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
    gyre_status status = gy_driver_create(ctx, ctx->config.progress_thread, error);
    if (status != GYRE_SUCCESS)
        return status;
    gy_overlay_on_announced(ctx->overlay, gy_comm_end_announced, ctx);
    ctx->crowded = is_crowded(ctx->world);
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

/* There is no segment because another rank did not do its part: that is its failure. Its connection stands, so that it is
 * stopped where it does not answer. */
static bool is_of_another(const struct gy_context *ctx, gyre_status status, struct gy_error *error)
{
    bool other = ctx->transports == 0 && error->rank >= 0 && error->rank != ctx->world->rank;
    if (status == GYRE_PEER_UNREACHABLE && other)
        error->status = GYRE_PEER_STALLED;
    return other && (status == GYRE_PEER_UNREACHABLE || status == GYRE_NO_MEMORY || status == GYRE_NO_DESCRIPTORS);
}

/* The verdict on a rank of its own that it is dead, stalled, late or out of reach is the others'. */
static gyre_status hear_own_fate(const struct gy_context *ctx, struct gy_error *error)
{
    struct gy_error told = *error;
    if (told.rank != ctx->world->rank || told.status < GYRE_PEER_DEAD || told.status > GYRE_PEER_LATE)
        return told.status;
    gy_error_clear(error);
    return gy_error_set(error, GYRE_EXCLUDED, told.rank,
                        "rank %d has been excluded, the others go on without it: %.400s; it can only end, or join anew",
                        told.rank, told.text);
}

/* A world in which somebody has failed already is one, too: whoever goes on does so from here. */
static gyre_status furnish_later(struct gy_context *ctx, struct gy_error *error)
{
    gyre_status status = gy_overlay_create(ctx->world, &ctx->overlay, error);
    if (status == GYRE_SUCCESS)
        status = make_peers(ctx, error);
    if (status != GYRE_SUCCESS)
        return hear_own_fate(ctx, error);
    if (gy_overlay_check(ctx->overlay, &ctx->error) != GYRE_SUCCESS)
        return GYRE_SUCCESS;
    status = furnish(ctx, error);
    bool apart = status == GYRE_PEER_UNREACHABLE && ctx->transports > 0; /* a sentence that is everybody's */
    if (apart || is_of_another(ctx, status, error))
        gy_overlay_give_up(ctx->overlay, error);
    if (status != GYRE_SUCCESS && gy_overlay_check(ctx->overlay, &ctx->error) != GYRE_SUCCESS &&
        ctx->error.rank != ctx->world->rank) {
        gy_error_clear(error);
        status = GYRE_SUCCESS;
    }
    return status == GYRE_SUCCESS ? status : hear_own_fate(ctx, error);
}

/* A newcomer: its world is in a later epoch. */
static gyre_status join(const gyre_config *user, struct gy_context *ctx, struct gy_error *error)
{
    struct gy_charter charter = {0};
    gyre_status status = gy_world_join(user, &ctx->config, ctx->poller, &ctx->world, &charter, error);
    if (status == GYRE_SUCCESS)
        status = gy_grow_follow(ctx, &charter, error);
    return status == GYRE_SUCCESS ? furnish_later(ctx, error) : status;
}

static gyre_status meet(const gyre_config *user, struct gy_context *ctx, struct gy_error *error)
{
    gyre_status status = gy_world_open(user, &ctx->config, ctx->poller, &ctx->world, error);
    if (status == GYRE_SUCCESS)
        status = gy_overlay_create(ctx->world, &ctx->overlay, error);
    if (status == GYRE_SUCCESS)
        status = make_peers(ctx, error);
    return status == GYRE_SUCCESS ? furnish(ctx, error) : status;
}

gyre_status gy_context_create(const gyre_config *user, struct gy_context **ctx_p, struct gy_error *error)
{
    struct gy_context *ctx = gy_alloc_zero(1, sizeof(*ctx));
    if (!ctx)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "out of memory for a context");
    gyre_status status = gy_config_read(&ctx->config, error);
    if (status == GYRE_SUCCESS) /* now, like every other setting: a rank that fails later has to tell the others */
        status = gy_select_check(ctx->config.algorithm, error);
    if (status == GYRE_SUCCESS)
        status = gy_transports_reach(&ctx->config, error);
    if (status == GYRE_SUCCESS)
        status = gy_poller_create(&ctx->poller, error);
    if (status == GYRE_SUCCESS)
        status = (user && user->join) || ctx->config.join ? join(user, ctx, error) : meet(user, ctx, error);
    explicit_bzero(ctx->config.secret,
                   sizeof(ctx->config.secret)); /* the keys made from it are what is used from now on */
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

/* While the new world is made, the old one answers those who have not heard yet that it shall be. */
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
    if (ctx->world->rank == 0 && ctx->world->house->used && gy_house_open(ctx->world, &found) == GYRE_SUCCESS)
        gy_house_announce(ctx->world); /* the one before may be gone; otherwise nothing changes */
    *ctx_p = ctx;
    return GYRE_SUCCESS;
}

void gy_context_free(struct gy_context *ctx)
{
    gy_fork_unwatch(ctx);
    gy_driver_free(ctx);
    if (!ctx->closed)
        for (int t = 0; t < ctx->transports; t++)
            ctx->ops[t]->stop(ctx->instance[t]);
    free_parts(ctx);
}

gyre_status gy_context_link(struct gy_context *ctx, int peer, struct gy_link **link_p)
{
    struct gy_peer *p = &ctx->peers[peer];
    if (!p->link) {
        gyre_status status = ctx->ops[p->transport]->link(ctx->instance[p->transport], peer, &p->link, &ctx->error);
        if (status != GYRE_SUCCESS) {
            p->link = NULL;
            return status;
        }
        ctx->linked[ctx->links++] = peer;
        ctx->remote |= ctx->ops[p->transport]->dialled;
    }
    *link_p = p->link;
    return GYRE_SUCCESS;
}

void gy_context_post(struct gy_context *ctx, int peer, struct gy_frame_out *frame)
{
    struct gy_peer *p = &ctx->peers[peer];
    frame->done = false;
    frame->queued = false;
    frame->sent = 0;
    frame->next = NULL;
    ctx->ops[p->transport]->post(p->link, frame);
}

void gy_context_know(struct gy_context *ctx, const void *memory, size_t bytes)
{
    for (int t = 0; t < ctx->transports; t++)
        ctx->ops[t]->know(ctx->instance[t], memory, bytes);
}

void gy_context_forget(struct gy_context *ctx, const void *memory)
{
    for (int t = 0; t < ctx->transports; t++)
        ctx->ops[t]->forget(ctx->instance[t], memory);
}

/* The verdict names the rank; over what this rank had to do with it, nobody else knows. */
static void add_way(const struct gy_context *ctx, struct gy_error *error)
{
    int rank = error->rank;
    char way[160] = "";
    if (rank < 0 || rank >= ctx->world->size || !ctx->peers[rank].link)
        return;
    const struct gy_transport_ops *ops = ctx->ops[ctx->peers[rank].transport];
    ops->describe(ctx->peers[rank].link, way, sizeof(way));
    size_t used = strlen(error->text);
    if (way[0] && !strstr(error->text, way))
        snprintf(error->text + used, sizeof(error->text) - used, "; its link here: %s, %s", ops->name, way);
}

/* Writes what this rank was in on the communicator: a request, a one-sided call that waits, or what `what` says already.
 * Returns the world's rank that it waited for, −1: none. */
static int say_where(const struct gyre_comm *comm, const struct gyre_request *r, char *what, size_t bytes)
{
    const struct gy_one_sided_wait *wait = gy_one_sided_wait_of(comm);
    if (r) {
        char shape[180];
        gy_shape_print(&r->shape, shape, sizeof(shape));
        snprintf(what, bytes, "in %s", shape);
        return r->waiting_for >= 0 ? gy_group_world(&comm->group, r->waiting_for) : -1;
    }
    if (!wait)
        return -1;
    snprintf(what, bytes, "in %s of window %u", wait->call, wait->window);
    return wait->world;
}

void gy_context_fail(struct gy_context *ctx)
{
    if (ctx->closed)
        return;
    ctx->closed = true;
    add_way(ctx, &ctx->error);
    gy_page_fail(ctx);
    if (ctx->error.status == GYRE_PEER_LEFT && gy_ends_pending(ctx)) /* how they end is everybody's business */
        gy_overlay_report(ctx->overlay, GYRE_PEER_LEFT, ctx->error.rank, ctx->error.text);
    else if (ctx->error.status == GYRE_PEER_LEFT) /* before links end: whoever waits for us shall know why */
        gy_overlay_leave(ctx->overlay, ctx->error.rank);
    for (int t = 0; t < ctx->transports; t++)
        ctx->ops[t]->close(ctx->instance[t]);
    gy_windows_withdraw(ctx);
    for (struct gyre_comm *comm = ctx->comms; comm; comm = comm->next) {
        struct gyre_request *r = ctx->active_first;
        while (r && r->comm != comm)
            r = r->next;
        char what[200] = "between two operations";
        int awaited = say_where(comm, r, what, sizeof(what));
        if (!comm->refused) {
            comm->error = ctx->error;
            if (awaited >= 0)
                snprintf(comm->error.text, sizeof(comm->error.text), "%.700s; rank %d was %s, waiting for rank %d",
                         ctx->error.text, ctx->world->rank, what, awaited);
            else
                snprintf(comm->error.text, sizeof(comm->error.text), "%.700s; rank %d was %s", ctx->error.text,
                         ctx->world->rank, what);
        }
    }
    struct gyre_request *next;
    for (struct gyre_request *r = ctx->active_first; r; r = next) {
        next = r->next;
        if (!gy_ends_judges(r)) /* how those end that it does judge is agreed on */
            gy_request_finish(r, ctx->error.status);
    }
    if (gy_log_enabled(GY_LOG_INFO))
        for (struct gyre_comm *comm = ctx->comms; comm; comm = comm->next)
            (void)gy_recorder_dump(&comm->recorder, comm->rank, 2);
}

void gy_context_bury(struct gy_context *ctx, struct gy_channel *channel)
{
    if (!channel || !gy_channel_queued(channel)) {
        gy_channel_free(channel);
        return;
    }
    channel->next = ctx->buried;
    ctx->buried = channel;
}

void gy_context_starve(struct gy_context *ctx, int peer)
{
    int own = ctx->world->rank;
    gy_error_set(&ctx->error, GYRE_NO_MEMORY, own, "rank %d has no memory for what is under way to or from rank %d",
                 own, peer);
    gy_overlay_report(ctx->overlay, GYRE_NO_MEMORY, own, ctx->error.text);
    gy_context_fail(ctx);
}

void *gy_context_scrap(struct gy_context *ctx, int peer)
{
    struct gy_peer *p = &ctx->peers[peer];
    if (!p->scrap)
        p->scrap = gy_alloc_aligned(64, GY_FRAME_MAX);
    return p->scrap;
}

/* Only what was given a place by the sink that knows communicators. */
static bool is_of(const struct gy_frame *frame, uint32_t comm, uint64_t window)
{
    bool one_sided = gy_is_one_sided(frame->kind), data = frame->kind == GY_FRAME_DATA;
    if (frame->comm != comm)
        return false;
    return window == 0 ? one_sided || data : window == GY_BUT_WINDOWS ? data : one_sided && frame->sequence == window;
}

void gy_context_take_back(struct gy_context *ctx, uint32_t comm, uint64_t window)
{
    for (int i = 0; i < ctx->links && !ctx->closed; i++) {
        int peer = ctx->linked[i];
        struct gy_link *link = ctx->peers[peer].link;
        if (!link->inbound.active || link->inbound.dropped || !is_of(&link->inbound.frame, comm, window))
            continue;
        unsigned char *scrap = gy_context_scrap(ctx, peer);
        if (scrap)
            gy_link_inbound_drop(link, scrap);
        else
            gy_context_starve(ctx, peer);
    }
}

/* Sizes are rounded up to powers of two, so that a thousand counts use a handful of buffers. */
static int power_of(size_t bytes)
{
    int power = 12;
    while (power < GY_BUFFER_POWERS && (size_t)1 << power < bytes)
        power++;
    return power;
}

bool gy_context_buffers_wait(const struct gy_context *ctx, size_t bytes, int count)
{
    int power = power_of(bytes);
    void *memory = power < GY_BUFFER_POWERS ? ctx->kept[power] : NULL;
    for (; memory && count > 1; count--)
        memcpy(&memory, memory, sizeof(void *));
    return memory != NULL;
}

void *gy_context_buffer_take(struct gy_context *ctx, size_t bytes, size_t *bytes_p)
{
    int power = power_of(bytes);
    if (power == GY_BUFFER_POWERS)
        return NULL;
    void *memory = ctx->kept[power];
    if (memory)
        memcpy(&ctx->kept[power], memory, sizeof(void *));
    else
        memory = gy_alloc_aligned(64, (size_t)1 << power);
    if (memory)
        *bytes_p = (size_t)1 << power;
    return memory;
}

void gy_context_buffer_give(struct gy_context *ctx, void *memory, size_t bytes)
{
    int power = __builtin_ctzll(bytes);
    memcpy(memory, &ctx->kept[power], sizeof(void *));
    ctx->kept[power] = memory;
}

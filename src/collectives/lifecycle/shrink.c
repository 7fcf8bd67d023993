/* Going on after a failure.
 *
 *   old context (failed, or whole)                        new context: next epoch
 *     overlay: fates ── council: JOIN … DECIDE ──────────▶ door, key, job of its own ─▶ overlay ─▶ segment ─▶ transports
 *     links, windows, requests: ended                      links, windows, counters begin anew
 *
 * A failure ends what is under way in a whole context, since one word of shared memory and one flood tell everybody; what
 * goes on after it is the overlay, over which the survivors agree. So the state that has to be renewed is not picked out
 * of the old context, counter by counter: shrink makes another context, and nothing of the old one can reach it
 * (next_epoch.c). The old one waits, failed, until its communicators are destroyed. From it are taken: the settings, the
 * communicator's attributes, and the operations that the user has made.
 *
 * Invariant. Who goes on is decided once, by the council; what fails while the new context is made is a failure in the new
 * epoch: shrink then gives a communicator that has failed already, the same on all ranks, and shrinking that goes on. */
#include "collectives/lifecycle/shrink.h"
#include "transport/registry/registry.h"

#include <stdlib.h>
#include <string.h>

#include "bootstrap/messages.h"
#include "collectives/engine/progress.h"
#include "collectives/engine/request.h"
#include "collectives/lifecycle/comm_open.h"
#include "collectives/lifecycle/context_open.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "membership/agreement.h"

#define STEP (10 * GY_MILLISECOND)
#define NEWS_PATIENCE GY_SECOND

void gy_recover_look(struct gy_context *ctx)
{
    if (!ctx->closed)
        gy_turn(ctx, gy_now());
    gy_poller_poll(ctx->poller, 0);
    gy_overlay_attend(ctx->overlay);
    if (gy_overlay_check(ctx->overlay, &ctx->error) != GYRE_SUCCESS)
        gy_context_fail(ctx);
    gy_ends_step(ctx);
}

/* An abort is the end, whatever came before it. NULL: there is none. */
static const struct gy_error *find_abort(const struct gy_context *ctx)
{
    return ctx->error.status == GYRE_ABORTED ? &ctx->error : gy_overlay_aborted(ctx->overlay);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static gyre_status enter(struct gyre_comm *comm, const struct gy_word *word, struct gy_error *error)
{
    struct gy_context *ctx = comm->ctx;
    int *members = gy_alloc((size_t)comm->size * sizeof(*members));
    if (!members)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "out of memory for the members of an agreement");
    for (int r = 0; r < comm->size; r++)
        members[r] = gy_group_world(&comm->group, r);
    qsort(members, (size_t)comm->size, sizeof(*members), by_number);
    gyre_status status = gy_council_enter(ctx->world->council, comm->id, comm->councils + 1, members, comm->size, word,
                                          comm->attributes.timeout_ns, error);
    if (status == GYRE_SUCCESS) /* else this rank has not been in it, and its next try is the same one to the others */
        comm->councils++;
    gy_free(members);
    return status;
}

static gyre_status hold_one(struct gyre_comm *comm, const struct gy_word *word, struct gy_outcome *outcome_p,
                            struct gy_error *error)
{
    struct gy_context *ctx = comm->ctx;
    struct gy_council *council = ctx->world->council;
    gy_council_attend(council, true);
    gy_recover_look(ctx);
    struct gy_word said = *word;
    if (word->kind != GY_COUNCIL_AGREE)
        said.bits &= ~((gy_ends_pending(ctx) ? GY_RECOVER_PENDING : 0) | (ctx->closed ? GY_RECOVER_FAILED : 0));
    gyre_status status = find_abort(ctx) ? GYRE_IN_PROGRESS : enter(comm, &said, error);
    bool entered = status == GYRE_SUCCESS;
    if (entered)
        status = GYRE_IN_PROGRESS;
    while (status == GYRE_IN_PROGRESS && !find_abort(ctx)) {
        status = gy_council_step(council, comm->id, comm->councils, outcome_p, error);
        if (status != GYRE_IN_PROGRESS)
            break;
        gy_driver_sleep(ctx, gy_overlay_calm(ctx->overlay) ? STEP : GY_MILLISECOND);
        gy_recover_look(ctx);
        if (!ctx->closed)
            gy_progress(ctx);
    }
    if (status != GYRE_SUCCESS && entered)
        gy_council_quit(council, comm->id, comm->councils);
    if (status == GYRE_IN_PROGRESS) {
        const struct gy_error *why = find_abort(ctx);
        return gy_error_set(error, GYRE_ABORTED, why->rank, "%.900s", why->text);
    }
    return status;
}

/* Whom a failure has caught in the middle of growing is in this session with a growing that has failed, and comes to the
 * next one, as this rank does. */
static bool is_failed_growing(const struct gy_word *word, const struct gy_outcome *outcome)
{
    return outcome->status == GYRE_MISMATCH && outcome->count & GY_RECOVER_GROWS && word->kind != GY_COUNCIL_GROW;
}

/* The world has failed when some were here already, with operations under way: who goes on answers no more, so all stay
 * until these have ended, and come once more. All know it by the outcome. */
static bool is_untimely(const struct gyre_comm *comm, const struct gy_word *word, const struct gy_outcome *outcome)
{
    uint64_t says = ~outcome->bits;
    return word->kind != GY_COUNCIL_AGREE && outcome->status == GYRE_SUCCESS && says & GY_RECOVER_PENDING &&
           !(says & GY_RECOVER_AGAIN) && (says & GY_RECOVER_FAILED || outcome->ranks < comm->size);
}

/* The news of the failure come here, too: not where the only one who is missing has left. */
static void settle(struct gy_context *ctx)
{
    int64_t deadline = gy_now() + NEWS_PATIENCE;
    gy_recover_look(ctx);
    while (!ctx->closed && gy_ends_pending(ctx) && gy_now() < deadline) {
        gy_driver_sleep(ctx, GY_MILLISECOND);
        gy_recover_look(ctx);
    }
    gy_ends_settle(ctx);
}

gyre_status gy_recover_hold(struct gyre_comm *comm, const struct gy_word *word, struct gy_outcome *outcome_p,
                            struct gy_error *error)
{
    struct gy_word said = *word;
    gyre_status status;
    while ((status = hold_one(comm, &said, outcome_p, error)) == GYRE_SUCCESS) {
        if (is_untimely(comm, word, outcome_p)) {
            settle(comm->ctx);
            said.bits &= ~GY_RECOVER_AGAIN;
        } else if (!is_failed_growing(word, outcome_p)) {
            break;
        }
        gy_outcome_free(outcome_p);
    }
    if (status == GYRE_SUCCESS && outcome_p->status != GYRE_SUCCESS) {
        status = outcome_p->status;
        gy_outcome_free(outcome_p);
        gy_error_set(error, status, -1,
                     "the ranks of communicator %u did not make the same call: some agree, some shrink or grow it",
                     comm->id);
    }
    return status;
}

gyre_status gy_recover_agree(struct gyre_comm *comm, uint64_t bits, uint64_t *bits_p)
{
    struct gy_word word = {.kind = GY_COUNCIL_AGREE, .bits = bits};
    struct gy_error error = {.rank = -1};
    struct gy_outcome outcome = {0};
    gyre_status status = gy_recover_hold(comm, &word, &outcome, &error);
    if (status != GYRE_SUCCESS) {
        comm->error = error;
        return status;
    }
    *bits_p = outcome.bits;
    gy_outcome_free(&outcome);
    return GYRE_SUCCESS;
}

struct gy_member *gy_recover_table(const struct gyre_comm *comm, const struct gy_outcome *outcome, int more,
                                   int *rank_p, struct gy_error *error)
{
    struct gy_member *members = gy_alloc_zero((size_t)outcome->ranks + (size_t)more, sizeof(*members));
    int next = 0;
    if (!members)
        gy_error_set(error, GYRE_NO_MEMORY, -1, "out of memory for the table of %d members", outcome->ranks);
    if (members && (outcome->count & ~GY_RECOVER_GROWS) > GY_OPS_MADE_MOST) {
        gy_error_set(error, GYRE_PROTOCOL, -1, "a rank of communicator %u says that it has made %llu operations",
                     comm->id, (unsigned long long)outcome->count);
        gy_free(members);
        return NULL;
    }
    for (int r = 0; members && r < comm->size; r++) {
        int world = gy_group_world(&comm->group, r), i = 0;
        while (i < outcome->ranks && outcome->rank[i] != world)
            i++;
        if (i == outcome->ranks)
            continue;
        if (world == comm->ctx->world->rank)
            *rank_p = next;
        if (!gy_member_decode(outcome->record[i], &members[next++])) {
            gy_error_set(error, GYRE_PROTOCOL, world, "rank %d said nothing that is understood of its next epoch",
                         world);
            gy_free(members);
            return NULL;
        }
    }
    if (next == outcome->ranks || !members)
        return members;
    gy_error_set(error, GYRE_PROTOCOL, -1, "an agreement on communicator %u names ranks that are not in it", comm->id);
    gy_free(members);
    return NULL;
}

gyre_status gy_recover_go_on(struct gyre_comm *comm, struct gy_next_world *next, const struct gy_next_plan *plan,
                             int operations, struct gyre_comm **comm_p, struct gy_error *error)
{
    struct gy_context *ctx;
    gyre_status status = gy_context_next(comm->ctx, next, plan, operations, &ctx, error);
    if (status != GYRE_SUCCESS)
        return status;
    status = gy_comm_create_world(ctx, comm_p, error);
    if (status != GYRE_SUCCESS) {
        gy_overlay_give_up(ctx->overlay, error);
        gy_context_free(ctx);
        return status;
    }
    (*comm_p)->attributes = comm->attributes;
    (*comm_p)->attributes.name[0] = '\0';
    if (ctx->error.status != GYRE_SUCCESS)
        (*comm_p)->error = ctx->error;
    return GYRE_SUCCESS;
}

static gyre_status go_on(struct gyre_comm *comm, const struct gy_outcome *outcome, struct gy_next_world *next,
                         struct gyre_comm **comm_p, struct gy_error *error)
{
    struct gy_next_plan plan = {.size = outcome->ranks,
                                .job = outcome->job,
                                .salt = outcome->salt,
                                .looked = gy_council_looked(comm->ctx->world->council)};
    struct gy_member *members = gy_recover_table(comm, outcome, 0, &plan.rank, error);
    if (!members) {
        gy_world_next_cancel(next);
        return error->status;
    }
    plan.members = members;
    gyre_status status = gy_recover_go_on(comm, next, &plan, (int)outcome->count, comm_p, error);
    gy_free(members);
    return status;
}

/* Devices may have come and gone since the last meeting; a setting that names one that has gone is no reason to stay behind. */
static void look_again(const struct gy_context *ctx, struct gy_member *own)
{
    struct gy_config config = ctx->config;
    struct gy_error error = {.quiet = true};

    if (gy_transports_reach(&config, &error) != GYRE_SUCCESS) {
        gy_log(GY_LOG_WARN, "the next world of rank %d goes without RDMA: %s", ctx->world->rank, error.text);
        config.reach = 0;
    }
    own->reach = config.reach;
    own->links = (uint32_t)config.reach_links;
}

gyre_status gy_recover_shrink(struct gyre_comm *comm, struct gyre_comm **comm_p)
{
    struct gy_word word = {.kind = GY_COUNCIL_SHRINK,
                           .bits = UINT64_MAX,
                           .count = (uint64_t)comm->ctx->operations.count,
                           .record_bytes = GY_MEMBER_WIRE};
    struct gy_error error = {.rank = -1};
    struct gy_next_world next = {0};
    struct gy_outcome outcome = {0};
    _Static_assert(GY_MEMBER_WIRE <= GY_COUNCIL_RECORD, "a member's record fits");
    gy_recover_look(comm->ctx);
    gy_ends_settle(comm->ctx); /* who has gone on answers no more */
    gyre_status status = gy_world_next_prepare(comm->ctx->world, &next, &error);
    if (status != GYRE_SUCCESS)
        goto fail;
    look_again(comm->ctx, &next.own);
    gy_member_encode(&next.own, word.record);
    status = gy_recover_hold(comm, &word, &outcome, &error);
    if (status != GYRE_SUCCESS) {
        gy_world_next_cancel(&next);
        goto fail;
    }
    status = go_on(comm, &outcome, &next, comm_p, &error);
    gy_outcome_free(&outcome);
    if (status == GYRE_SUCCESS)
        return GYRE_SUCCESS;
    gy_council_exclude(comm->ctx->world->council, error.text);
fail:
    comm->error = error;
    return status;
}

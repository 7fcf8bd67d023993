/* An agreement among the members of one communicator, whatever has failed: agree itself, and the first step of a
 * shrink and a growth.
 *
 * A rank that a failure has interrupted in a growth and one that shrinks enter the same agreement. That growth has
 * failed, and both continue with the next agreement. */
#include "collectives/lifecycle/agree.h"

#include <stdlib.h>

#include "collectives/engine/progress.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "core/clock.h"
#include "core/mem.h"

#define STEP (10 * GY_MILLISECOND)
#define NEWS_TIMEOUT GY_SECOND

void gy_recovery_poll(struct gy_context *ctx)
{
    if (!ctx->closed)
        gy_progress_slow(ctx, gy_now());
    gy_poller_poll(ctx->poller, 0);
    gy_overlay_attend(ctx->overlay);
    if (gy_overlay_check(ctx->overlay, &ctx->error) != GYRE_SUCCESS)
        gy_context_fail(ctx);
    gy_uniform_step(ctx);
}

/* Returns the abort, which ends everything, whatever came before it. NULL: there is none. */
static const struct gy_error *find_abort(const struct gy_context *ctx)
{
    return ctx->error.status == GYRE_ABORTED ? &ctx->error : gy_overlay_aborted(ctx->overlay);
}

static int by_number(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static gyre_status enter(struct gyre_comm *comm, const struct gy_agreement_input *input, struct gy_error *error)
{
    struct gy_context *ctx = comm->ctx;
    int *members = gy_alloc((size_t)comm->size * sizeof(*members));
    if (!members)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "out of memory for the members of an agreement");
    for (int r = 0; r < comm->size; r++)
        members[r] = gy_group_world(&comm->group, r);
    qsort(members, (size_t)comm->size, sizeof(*members), by_number);
    gyre_status status = gy_agreement_enter(ctx->world->agreement, comm->id, comm->agreements + 1, members, comm->size,
                                            input, comm->attributes.timeout_ns, error);
    if (status == GYRE_SUCCESS) /* otherwise this rank has not been in it, and its next try counts as the same one */
        comm->agreements++;
    gy_free(members);
    return status;
}

static gyre_status hold_one(struct gyre_comm *comm, const struct gy_agreement_input *input,
                            struct gy_outcome *outcome_p, struct gy_error *error)
{
    struct gy_context *ctx = comm->ctx;
    struct gy_agreement *agreement = ctx->world->agreement;
    gy_agreement_attend(agreement, true);
    gy_recovery_poll(ctx);
    struct gy_agreement_input said = *input;
    if (input->kind != GY_AGREEMENT_AGREE)
        said.bits &= ~((gy_uniform_pending(ctx) ? GY_AGREE_PENDING : 0) | (ctx->closed ? GY_AGREE_FAILED : 0));
    gyre_status status = find_abort(ctx) ? GYRE_IN_PROGRESS : enter(comm, &said, error);
    bool entered = status == GYRE_SUCCESS;
    if (entered)
        status = GYRE_IN_PROGRESS;
    while (status == GYRE_IN_PROGRESS && !find_abort(ctx)) {
        status = gy_agreement_step(agreement, comm->id, comm->agreements, outcome_p, error);
        if (status != GYRE_IN_PROGRESS)
            break;
        gy_progress_sleep(ctx, gy_overlay_calm(ctx->overlay) ? STEP : GY_MILLISECOND);
        gy_recovery_poll(ctx);
        if (!ctx->closed)
            gy_progress(ctx);
    }
    if (status != GYRE_SUCCESS && entered)
        gy_agreement_quit(agreement, comm->id, comm->agreements);
    if (status == GYRE_IN_PROGRESS) {
        const struct gy_error *why = find_abort(ctx);
        return gy_error_set(error, GYRE_ABORTED, why->rank, "%.900s", why->text);
    }
    return status;
}

/* A rank that a failure interrupts in a growth is in this agreement with a failed growth. It comes to the next one,
 * as this rank does. */
static bool is_failed_growing(const struct gy_agreement_input *input, const struct gy_outcome *outcome)
{
    return outcome->status == GYRE_MISMATCH && outcome->count & GY_AGREE_GROWS && input->kind != GY_AGREEMENT_GROW;
}

/* The world failed when some ranks were here already, with operations in flight. A rank that continues does not
 * answer any more. So all stay until these operations have ended, and enter once more. The outcome tells all ranks
 * so. */
static bool is_untimely(const struct gyre_comm *comm, const struct gy_agreement_input *input,
                        const struct gy_outcome *outcome)
{
    uint64_t says = ~outcome->bits;
    return input->kind != GY_AGREEMENT_AGREE && outcome->status == GYRE_SUCCESS && says & GY_AGREE_PENDING &&
           !(says & GY_AGREE_AGAIN) && (says & GY_AGREE_FAILED || outcome->ranks < comm->size);
}

/* Waits for the report of the failure to arrive here, too. It does not if the only missing rank has left. */
static void settle(struct gy_context *ctx)
{
    int64_t deadline = gy_now() + NEWS_TIMEOUT;
    gy_recovery_poll(ctx);
    while (!ctx->closed && gy_uniform_pending(ctx) && gy_now() < deadline) {
        gy_progress_sleep(ctx, GY_MILLISECOND);
        gy_recovery_poll(ctx);
    }
    gy_uniform_settle(ctx);
}

gyre_status gy_agree_on(struct gyre_comm *comm, const struct gy_agreement_input *input, struct gy_outcome *outcome_p,
                        struct gy_error *error)
{
    struct gy_agreement_input said = *input;
    gyre_status status;
    while ((status = hold_one(comm, &said, outcome_p, error)) == GYRE_SUCCESS) {
        if (is_untimely(comm, input, outcome_p)) {
            settle(comm->ctx);
            said.bits &= ~GY_AGREE_AGAIN;
        } else if (!is_failed_growing(input, outcome_p)) {
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

gyre_status gy_agree(struct gyre_comm *comm, uint64_t bits, uint64_t *bits_p)
{
    struct gy_agreement_input input = {.kind = GY_AGREEMENT_AGREE, .bits = bits};
    struct gy_error error = {.rank = -1};
    struct gy_outcome outcome = {0};
    gyre_status status = gy_agree_on(comm, &input, &outcome, &error);
    if (status != GYRE_SUCCESS) {
        comm->error = error;
        return status;
    }
    *bits_p = outcome.bits;
    gy_outcome_free(&outcome);
    return GYRE_SUCCESS;
}

/* Continuing after a failure.
 *
 *   old context (failed, or whole)                       new context: next epoch
 *     overlay: failures ── agreement: JOIN … DECIDE ──────▶ listener, key, job of its own ─▶ overlay ─▶ segment
 *                                                           ─▶ transports
 *     links, windows, requests: ended                     links, windows, counters begin anew
 *
 * A failure ends what is in flight in a whole context, since one word of shared memory and one flood tell all ranks.
 * Only the overlay continues, over which the survivors agree. So the state that has to be renewed is not picked out
 * of the old context, counter by counter: shrink makes another context, and nothing of the old one can reach it
 * (next_epoch.c). The old one stays failed until its communicators are destroyed. The new one takes from it the
 * settings, the communicator's attributes, and the operations that the user has made.
 *
 * Invariant. The survivors are decided once, by the agreement. A failure while the new context is made is a failure
 * in the new epoch: shrink then returns a communicator that has failed already, the same on all ranks, which can be
 * shrunk again. */
#include "collectives/lifecycle/shrink.h"

#include "bootstrap/messages.h"
#include "collectives/engine/progress.h"
#include "collectives/engine/request.h"
#include "collectives/lifecycle/agree.h"
#include "collectives/lifecycle/next_comm.h"
#include "collectives/lifecycle/uniform_completion.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "membership/agreement.h"
#include "transport/registry/registry.h"

static gyre_status go_on(struct gyre_comm *comm, const struct gy_outcome *outcome, struct gy_next_world *next,
                         struct gyre_comm **comm_p, struct gy_error *error)
{
    struct gy_next_plan plan = {.size = outcome->ranks,
                                .job = outcome->job,
                                .salt = outcome->salt,
                                .known_running = gy_agreement_polled(comm->ctx->world->agreement)};
    struct gy_member *members = gy_next_members(comm, outcome, 0, &plan.rank, error);
    if (!members) {
        gy_world_next_cancel(next);
        return error->status;
    }
    plan.members = members;
    gyre_status status = gy_next_comm(comm, next, &plan, (int)outcome->count, comm_p, error);
    gy_free(members);
    return status;
}

/* Devices may have come and gone since the last bootstrap; a setting that names a removed one does not exclude this
 * rank. */
static void refresh_member(const struct gy_context *ctx, struct gy_member *own)
{
    struct gy_config config = ctx->config;
    struct gy_error error = {.quiet = true};

    if (gy_transports_survey(&config, &error) != GYRE_SUCCESS) {
        gy_log(GY_LOG_WARN, "the next world of rank %d goes without RDMA: %s", ctx->world->rank, error.text);
        config.fabrics = 0;
    }
    own->fabrics = config.fabrics;
    own->fabric_links = (uint32_t)config.fabric_links;
}

gyre_status gy_shrink(struct gyre_comm *comm, struct gyre_comm **comm_p)
{
    struct gy_agreement_input input = {.kind = GY_AGREEMENT_SHRINK,
                                       .bits = UINT64_MAX,
                                       .count = (uint64_t)comm->ctx->operations.count,
                                       .record_bytes = GY_MEMBER_WIRE};
    struct gy_error error = {.rank = -1};
    struct gy_next_world next = {0};
    struct gy_outcome outcome = {0};
    _Static_assert(GY_MEMBER_WIRE <= GY_AGREEMENT_RECORD, "a member's record fits");
    gy_recovery_poll(comm->ctx);
    gy_uniform_settle(comm->ctx); /* a rank that continues does not answer any more */
    gyre_status status = gy_world_next_prepare(comm->ctx->world, &next, &error);
    if (status != GYRE_SUCCESS)
        goto fail;
    refresh_member(comm->ctx, &next.own);
    gy_member_encode(&next.own, input.record);
    status = gy_agree_on(comm, &input, &outcome, &error);
    if (status != GYRE_SUCCESS) {
        gy_world_next_cancel(&next);
        goto fail;
    }
    status = go_on(comm, &outcome, &next, comm_p, &error);
    gy_outcome_free(&outcome);
    if (status == GYRE_SUCCESS)
        return GYRE_SUCCESS;
    gy_agreement_exclude(comm->ctx->world->agreement, error.text);
fail:
    comm->error = error;
    return status;
}

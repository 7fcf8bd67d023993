/* Growing: joiners are admitted at a point that all members agree on.
 *
 *   rank 0                                         the other ranks
 *     place ───────── broadcast ──────────────────▶ open their listeners, and redirect joiners to rank 0
 *     waits for joiners, calls them
 *     list ────────── broadcast ──────────────────▶
 *     all: an agreement (agreement.h): does every rank have the list, and a listener for the next epoch?
 *       no  ──▶ the same error on all
 *       yes ──▶ rank 0 welcomes those on the list; they and all participants make the next context, as in a shrink
 *
 * Invariant. A rank in this call enters the agreement whatever has happened to it before, so that no survivor waits
 * for a rank that has turned back. What the ranks then do follows from the outcome alone, which is the same for all.
 * If the outcome is a success, every rank has the list. If rank 0 is not in it any more, no rank would welcome the
 * joiners: then growing has failed. If rank 0 dies later, its joiners close their listeners (join_client.c). They
 * and rank 0 are then dead members of the new world, which shrinks.
 *
 * A failure may interrupt some ranks in here and others in a collective before it; those shrink or agree, in the
 * same agreement. That growth has failed, and they continue with the next agreement (agree.c), which all enter. */
#include "collectives/lifecycle/grow.h"

#include <stdio.h>
#include <string.h>

#include "collectives/call/blocking.h"
#include "collectives/engine/progress.h"
#include "collectives/engine/request.h"
#include "collectives/lifecycle/agree.h"
#include "collectives/lifecycle/charter.h"
#include "collectives/lifecycle/next_comm.h"
#include "collectives/select/selector.h"
#include "core/clock.h"
#include "core/mem.h"
#include "membership/agreement.h"
#include "membership/join_address.h"
#include "net/byte_codec.h"
#include "net/handshake.h"

#define STEP (10 * GY_MILLISECOND)
#define HANDSHAKE_TIMEOUT (GY_SECOND / 2) /* for unknown connections, which hold up joiners */
#define CALL_TIMEOUT (5 * GY_SECOND)      /* for a joiner to answer; a machine may be busy */
#define NEWS_TIMEOUT GY_SECOND
#define EVERY_BIT UINT64_MAX

/* The payload of the second broadcast. */
struct list {
    uint8_t count;
    uint8_t status; /* of rank 0 */
    uint8_t records[GY_JOINERS_MOST][GY_MEMBER_WIRE];
};

struct growing {
    struct gyre_comm *comm;
    struct gy_context *ctx;
    struct gy_error error; /* the first error here */
    struct gy_next_world next;
    struct gy_join_server *join_server;
    struct list list;
    struct gy_member joiners[GY_JOINERS_MOST];
};

static bool well(const struct growing *growing)
{
    return growing->error.status == GYRE_SUCCESS;
}

/* True if the old world has not failed. */
static bool check_failures(struct growing *growing)
{
    struct gy_context *ctx = growing->ctx;
    gy_recovery_poll(ctx);
    if (ctx->closed && well(growing))
        gy_error_set(&growing->error, ctx->error.status, ctx->error.rank, "%.900s", ctx->error.text);
    return !ctx->closed;
}

/* In a failed world a request would not complete. */
static bool broadcast(struct growing *growing, void *bytes, size_t count)
{
    struct gy_call call = {
        .collective = GY_BROADCAST, .input = bytes, .output = bytes, .count = count, .dtype = GYRE_UINT8};
    if (!check_failures(growing))
        return false;
    gyre_status status = gy_run_own(growing->comm, &call);
    if (status != GYRE_SUCCESS && check_failures(growing) && well(growing))
        gy_error_set(&growing->error, status, growing->comm->error.rank, "%.900s", growing->comm->error.text);
    return status == GYRE_SUCCESS;
}

/* Opens a listener for the next epoch, and the join address for joiners. */
static void prepare(struct growing *growing)
{
    struct gy_world *world = growing->ctx->world;
    struct sockaddr_storage at;
    struct gy_error *error = &growing->error;
    if (well(growing) && gy_join_address_find(world, &at, error) == GYRE_SUCCESS)
        gy_world_next_prepare_at(&world->members[world->rank], &at, world->config, &growing->next, error);
    if (well(growing))
        gy_join_address_open(world, error);
}

/* Waits for events of the old world, unless it has failed. */
static bool poll(struct growing *growing, int64_t most)
{
    gy_progress_sleep(growing->ctx, most < GY_MILLISECOND ? GY_MILLISECOND : most < STEP ? most : STEP);
    if (check_failures(growing))
        gy_progress(growing->ctx);
    return well(growing);
}

/* Rank 0 waits until `wanted` joiners are at the listener or the time is over; the handshakes of those that have
 * come by then are completed. */
static void await_joiners(struct growing *growing, int wanted, int64_t wait_ns)
{
    struct gy_join_server *join_server = growing->join_server;
    int64_t now = gy_now(), deadline = now + wait_ns, timeout = now + HANDSHAKE_TIMEOUT;
    int most = wanted > 0 && wanted < GY_JOINERS_MOST ? wanted : GY_JOINERS_MOST;
    gy_poller_poll(growing->ctx->poller, 0); /* accepts the connections of the backlog */
    if (timeout < deadline)
        timeout = deadline;
    while (well(growing) && gy_join_server_waiting(join_server) < most) {
        now = gy_now();
        if (now >= deadline && (now >= timeout || !gy_join_server_busy(join_server)))
            break;
        poll(growing, now < deadline ? deadline - now : GY_MILLISECOND);
    }
    gy_join_server_call(join_server, most);
    for (deadline = gy_now() + CALL_TIMEOUT;
         well(growing) && gy_join_server_called(join_server) && gy_now() < deadline;)
        poll(growing, GY_MILLISECOND);
}

static void receive(struct growing *growing, int wanted, int64_t wait_ns)
{
    struct gy_world *world = growing->ctx->world;
    struct list *list = &growing->list;
    if (well(growing)) {
        gy_join_address_announce(world);
        gy_join_server_open(world, NULL, &growing->join_server, &growing->error);
    }
    if (well(growing))
        await_joiners(growing, wanted, wait_ns);
    if (well(growing))
        list->count = (uint8_t)gy_join_server_take(growing->join_server, growing->joiners);
    list->status = (uint8_t)growing->error.status;
    for (int i = 0; i < list->count; i++)
        gy_member_encode(&growing->joiners[i], list->records[i]);
}

/* Decodes rank 0's list of joiners. */
static void read_list(struct growing *growing)
{
    const struct list *list = &growing->list;
    bool good = list->count <= GY_JOINERS_MOST;
    for (int i = 0; good && i < list->count; i++)
        good = gy_member_decode(list->records[i], &growing->joiners[i]);
    if (!well(growing))
        return;
    if (list->status != GYRE_SUCCESS)
        gy_error_set(&growing->error, gy_status_is_failure(list->status) ? list->status : GYRE_PROTOCOL,
                     gy_group_world(&growing->comm->group, 0),
                     "rank 0 could not let joining processes in; see its message");
    else if (!good)
        gy_error_set(&growing->error, GYRE_PROTOCOL, gy_group_world(&growing->comm->group, 0),
                     "rank 0 said a list of joining processes that is not understood");
}

/* Runs until every rank should know the joiners. */
static void await_handshakes(struct growing *growing, int wanted, int64_t wait_ns)
{
    struct gy_world *world = growing->ctx->world;
    uint8_t endpoint[GY_ENDPOINT_WIRE] = {0};
    struct gy_endpoint there;
    struct gy_error ignored = {.rank = -1, .quiet = true};
    bool first = growing->comm->rank == 0;
    if (first && well(growing))
        gy_endpoint_encode(&world->join_address->own.endpoint, endpoint);
    if (!broadcast(growing, endpoint, sizeof(endpoint)))
        return;
    if (first)
        receive(growing, wanted, wait_ns);
    else if (well(growing) &&
             gy_endpoint_decode(endpoint, &there)) /* without it joiners find rank 0's listener, or none */
        gy_join_server_open(world, &there, &growing->join_server, &ignored);
    if (broadcast(growing, &growing->list, sizeof(growing->list)) && !first)
        read_list(growing);
}

/* ---- after the agreement ---- */

/* Every participant has the list, and the outcome says so. */
static gyre_status go_on(struct growing *growing, const struct gy_outcome *outcome, struct gyre_comm **comm_p)
{
    struct gyre_comm *comm = growing->comm;
    int count = growing->list.count;
    uint64_t operations = outcome->count & ~GY_AGREE_GROWS;
    uint8_t salt[GY_KEY_BYTES]; /* derived from the old key, which an eavesdropper on the agreement does not know */
    gy_handshake_derive(growing->ctx->world->key, "gyre salt", outcome->job, outcome->salt, salt);
    struct gy_next_plan plan = {.size = outcome->ranks + count,
                                .job = outcome->job,
                                .salt = salt,
                                .grown = true,
                                .known_running = gy_agreement_polled(growing->ctx->world->agreement)};
    struct gy_member *members = gy_next_members(comm, outcome, count, &plan.rank, &growing->error);
    if (!members)
        goto out;
    memcpy(members + outcome->ranks, growing->joiners, (size_t)count * sizeof(*members));
    plan.members = members;
    if (comm->rank == 0) {
        struct gy_charter charter;
        gy_charter_write(comm, operations, &charter);
        gy_join_server_welcome(growing->join_server, &plan, growing->ctx->world->epoch + 1, &charter);
    }
    gyre_status status = gy_next_comm(comm, &growing->next, &plan, (int)operations, comm_p, &growing->error);
    gy_free(members);
    if (status == GYRE_SUCCESS)
        return status;
out: /* the others continue without this rank */
    gy_agreement_exclude(growing->ctx->world->agreement, growing->error.text);
    return growing->error.status;
}

/* Returns the same status on all ranks, also if several have failed in several ways. */
static gyre_status first_failure(uint64_t bits)
{
    return bits == EVERY_BIT ? GYRE_SUCCESS : (gyre_status)__builtin_ctzll(~bits);
}

static bool takes_part(const struct gy_outcome *outcome, int world)
{
    for (int i = 0; i < outcome->ranks; i++)
        if (outcome->rank[i] == world)
            return true;
    return false;
}

/* Returns the lowest member of the communicator that is not among those that agreed: the same on every rank; -1: all
 * are. */
static int lowest_missing(const struct gyre_comm *comm, const struct gy_outcome *outcome)
{
    for (int r = 0; r < comm->size; r++)
        if (!takes_part(outcome, gy_group_world(&comm->group, r)))
            return gy_group_world(&comm->group, r);
    return -1;
}

/* Sets the agreed reason why no joiners were admitted. A rank that has not failed itself knows only the status that
 * another rank brought to the agreement. If the status is that of a lost peer, the missing member is named. */
static void explain(struct growing *growing, const struct gy_outcome *outcome, gyre_status status)
{
    bool of_peer = status >= GYRE_PEER_DEAD && status <= GYRE_PEER_LEFT;
    int missing = of_peer ? lowest_missing(growing->comm, outcome) : -1;
    struct gy_error own = growing->error;
    gy_error_clear(&growing->error);
    if (missing >= 0) {
        const struct gy_failed_rank *failure = gy_overlay_failure(growing->ctx->overlay, missing);
        gy_error_set(&growing->error, status, missing,
                     "joining processes were not let in, because rank %d failed: %.700s", missing,
                     failure->why ? failure->why : gyre_status_text(status));
        return;
    }
    gy_error_set(&growing->error, status, -1,
                 "joining processes were not let in, because a rank has failed to: %s%s%.800s",
                 gyre_status_text(status), own.status ? "; this rank: " : "", own.status ? own.text : "");
}

static gyre_status conclude(struct growing *growing, const struct gy_outcome *outcome, struct gyre_comm **comm_p)
{
    gyre_status status = first_failure(outcome->bits | GY_AGREE_SAYS);
    int first = gy_group_world(&growing->comm->group, 0);
    if (status == GYRE_SUCCESS && !takes_part(outcome, first)) {
        const struct gy_failed_rank *failure = gy_overlay_failure(growing->ctx->overlay, first);
        status = GYRE_PEER_DEAD;
        return gy_error_set(&growing->error, status, first, "rank %d let joining processes in, and is gone: %.400s",
                            first, failure->why ? failure->why : "the others know why");
    }
    if (status == GYRE_SUCCESS && growing->list.count == 0) {
        *comm_p = NULL;
        return GYRE_SUCCESS;
    }
    if (status == GYRE_SUCCESS)
        return go_on(growing, outcome, comm_p);
    if (growing->error.status != status)
        explain(growing, outcome, status);
    return status;
}

static gyre_status grow(struct growing *growing, int wanted, int64_t wait_ns, struct gyre_comm **comm_p)
{
    struct gyre_comm *comm = growing->comm;
    struct gy_agreement_input input = {.kind = GY_AGREEMENT_GROW,
                                       .count = (uint64_t)growing->ctx->operations.count | GY_AGREE_GROWS,
                                       .record_bytes = GY_MEMBER_WIRE};
    struct gy_error error = {.rank = -1};
    struct gy_outcome outcome = {0};
    prepare(growing);
    await_handshakes(growing, wanted, wait_ns);
    input.bits = well(growing) ? EVERY_BIT : EVERY_BIT & ~(UINT64_C(1) << growing->error.status);
    gy_member_encode(&growing->next.own, input.record);
    gyre_status status = gy_agree_on(comm, &input, &outcome, &error);
    if (status == GYRE_MISMATCH &&
        well(growing)) /* others shrink or agree: the failure behind that is reported here, too */
        for (int64_t deadline = gy_now() + NEWS_TIMEOUT; gy_now() < deadline && poll(growing, GY_MILLISECOND);)
            ;
    if (status != GYRE_SUCCESS) {
        if (status != GYRE_MISMATCH || well(growing))
            growing->error = error;
        return growing->error.status;
    }
    status = conclude(growing, &outcome, comm_p);
    gy_outcome_free(&outcome);
    return status;
}

/* Checks what rank 0 asks for; on other ranks it is ignored. */
static int64_t check_wishes(struct growing *growing, int joiners, double seconds)
{
    if (growing->comm->rank != 0)
        return 0;
    if (joiners < 0 || joiners > GY_JOINERS_MOST || !(seconds >= 0)) {
        gy_error_set(
            &growing->error, GYRE_INVALID_ARGUMENT, -1,
            "gyre_comm_grow: %d joining processes within %g seconds; from 0 to %d can come in, and the time is not "
            "negative",
            joiners, seconds, GY_JOINERS_MOST);
        return 0;
    }
    int64_t most = growing->comm->attributes.timeout_ns / 2;
    int64_t wait_ns = joiners > 0 && seconds < 1e9 ? (int64_t)(seconds * 1e9) : joiners > 0 ? most : 0;
    return wait_ns < most ? wait_ns : most;
}

gyre_status gy_grow(struct gyre_comm *comm, int joiners, double seconds, struct gyre_comm **comm_p)
{
    /* Not on the heap: a rank without memory, too, has to enter the agreement. */
    struct growing growing = {.comm = comm, .ctx = comm->ctx, .error = {.rank = -1}};
    int64_t wait_ns = check_wishes(&growing, joiners, seconds);
    gyre_status status = grow(&growing, joiners, wait_ns, comm_p);
    gy_join_server_close(growing.join_server);
    gy_world_next_cancel(&growing.next);
    if (status != GYRE_SUCCESS)
        comm->error = growing.error;
    return status;
}

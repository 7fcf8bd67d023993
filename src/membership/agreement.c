/* Agreement among the members of a communicator. Any member may fail at any time, the coordinator too.
 *
 *   member                         coordinator: the lowest member alive, as far as each member knows
 *     JOIN(input, accepted) ────────▶ has a JOIN of every member alive, and these have a quorum (quorum.c)
 *     accepted := P ◀──────────────── PROPOSE(P)    P: the proposal of the highest earlier coordinator that any of
 *                                                      them accepted; otherwise the combined inputs
 *     ACCEPT ───────────────────────▶ has an ACCEPT of every member alive, and these have a quorum: P is decided
 *     decided  ◀──────────────────── DECIDE(P), forwarded once by every member that learns it, to all its connections
 *
 * A member that learns of its coordinator's failure joins the next coordinator and reports what it has accepted. The
 * JOIN promises to accept nothing of a lower coordinator. Coordinators are numbered by their ranks. The number only
 * grows, because no failure is taken back.
 *
 * Why all members that return and continue return the same outcome. The algorithm is the synod of Lamport (The
 * Part-Time Parliament, 1998), with coordinators as ballots. Let coordinator c have decided P: set A, all members alive
 * in the view of c, accepted P. A later coordinator d > c proposes after set B, all members alive in the view of d, has
 * joined it. If A and B share a member, that member told d of P: it accepted P before it joined d, and ignores c
 * afterwards. By induction no coordinator between c and d proposed anything else, so d proposes P. If A and B are
 * disjoint, all of A have failed in the view of B. Members of A confirmed dead return nowhere. If a member of A lives,
 * both A and B had a quorum, which quorum.c excludes as long as every confirmed death is real. A member that has
 * decided may return early: it keeps the outcome and answers every ASK (the idea of ERA: Herault and others, 2015).
 *
 * Why it ends. Every failure is seen, or declared by a clock, and makes the set of live members smaller. Between two
 * failures all members agree on the coordinator once the failures have been flooded, and the coordinator gets its
 * answers. A member that misses the outcome, because its coordinator died while sending it, asks all its connections.
 *
 * How a rank drops out. A rank that learns of its own failure, or is missing from the outcome, is EXCLUDED. Members
 * without a quorum for half a second are PARTITIONED, for good. A rank that ends with an error before a decision quits.
 * It sends QUIT to the members that wait for it, and answers every later ASK so. For them it has failed, but its death
 * is not confirmed. A QUIT received before this rank enters the instance is stored and applied on entry. The
 * coordinator also polls members that have not answered. So no member waits for one that has quit, in either order of
 * events. A rank that is excluded, has no quorum, or cannot take part in agreements on uniform completion says so for
 * all such instances, entered or not. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "membership/agreement_internal.h"

#define SHORT_GRACE (GY_SECOND / 2) /* a death may be confirmed a little later than the failure */
#define AWAY (GY_SECOND / 2)        /* between two polls: this rank was stopped, or elsewhere */
#define POLLS (50 * GY_MILLISECOND) /* a waiting rank polls more often, a computing rank less often */
#define ASKED 5                     /* beats after which an asking rank knows what was decided while it was paused */

struct gy_agreement *gy_agreement_make(struct gy_overlay *overlay, const struct gy_world *world)
{
    struct gy_agreement *agreement = gy_alloc_zero(1, sizeof(*agreement));

    if (!agreement)
        return NULL;
    agreement->overlay = overlay;
    agreement->world = world;
    gy_overlay_on_message(overlay, gy_agreement_receive, agreement, gy_agreement_message_most(world->size));
    return agreement;
}

/* ---- the coordinator ---- */

/* Every member enters an agreement that the program requests, so a missing member is only asked: its QUIT may have been
 * sent while there was no connection, or been forgotten. For an agreement on uniform completion, members without an
 * operation in progress learn of it only from this message. It is repeated, as an instance that is not entered may be
 * forgotten. */
static void call(struct gy_agreement *agreement, struct gy_instance *instance, int rank, int64_t now)
{
    struct gy_agreement_peer *peer = &instance->peers[rank];
    bool comes = instance->input.kind != GY_AGREEMENT_UNIFORM || peer->entered;
    int64_t last = comes && peer->called == 0 ? instance->began : peer->called;

    if (now - last < gy_instance_beat_interval(agreement) || !gy_overlay_ensure_connected(agreement->overlay, rank))
        return;
    if (gy_instance_send(agreement, instance, comes ? GY_AGREEMENT_ASK : GY_AGREEMENT_BEAT, rank,
                         agreement->world->rank, NULL))
        peer->called = now;
}

/* True if every live member has joined this coordinator, or has accepted its proposal. Members that have not are
 * watched. */
static bool all_have(struct gy_agreement *agreement, struct gy_instance *instance, bool accepted, int64_t now)
{
    bool all = true;

    for (int i = 0; i < instance->count; i++) {
        int rank = instance->members[i];
        const struct gy_agreement_peer *peer = &instance->peers[rank];

        if (rank == agreement->world->rank || !gy_instance_is_alive(agreement, rank) ||
            (accepted ? peer->accepted : peer->joined))
            continue;
        all = false;
        gy_instance_watch(agreement, instance, rank, now);
        call(agreement, instance, rank, now);
    }
    return all;
}

/* Combines the inputs of all live members that have joined this rank. */
static bool combine(struct gy_agreement *agreement, struct gy_instance *instance)
{
    struct gy_outcome outcome = {.bits = UINT64_MAX};
    const struct gy_agreement_input **words = gy_alloc((size_t)instance->count * sizeof(struct gy_agreement_input *));
    size_t most = gy_outcome_most(instance->count);
    uint8_t *blob = gy_alloc(most);

    outcome.rank = gy_alloc((size_t)instance->count * sizeof(*outcome.rank));
    if (!words || !blob || !outcome.rank) {
        gy_free(words);
        gy_free(blob);
        gy_free(outcome.rank);
        return false;
    }
    for (int i = 0; i < instance->count; i++) {
        int rank = instance->members[i];
        const struct gy_agreement_input *input = rank == agreement->world->rank ? &instance->input
                                                                                : &instance->peers[rank].input;

        if (!gy_instance_is_alive(agreement, rank))
            continue;
        words[outcome.ranks] = input;
        outcome.rank[outcome.ranks++] = rank;
        outcome.bits &= input->bits;
        outcome.count = input->count > outcome.count ? input->count : outcome.count;
        if (input->kind != instance->input.kind)
            outcome.status = GYRE_MISMATCH;
    }
    randombytes_buf(&outcome.job, sizeof(outcome.job));
    randombytes_buf(outcome.salt, sizeof(outcome.salt));
    gy_blob_set(&instance->proposal, (struct gy_blob){blob, gy_outcome_encode(&outcome, words, blob, most)});
    gy_free(words);
    gy_free(outcome.rank);
    return true;
}

static bool propose(struct gy_agreement *agreement, struct gy_instance *instance)
{
    if (instance->best > instance->accepted) {
        if (!gy_blob_copy(&instance->proposal, instance->best_proposal.bytes, instance->best_proposal.size))
            return false;
    } else if (instance->accepted == GY_NOBODY && !combine(agreement, instance)) {
        return false;
    }
    instance->accepted = agreement->world->rank;
    return true;
}

static void lead(struct gy_agreement *agreement, struct gy_instance *instance, int64_t now)
{
    int own = agreement->world->rank;

    instance->promised = own;
    if (instance->accepted != own && (!all_have(agreement, instance, false, now) ||
                                      !gy_instance_has_quorum(agreement, instance) || !propose(agreement, instance)))
        return;
    for (int i = 0; i < instance->count; i++) {
        struct gy_agreement_peer *peer = &instance->peers[instance->members[i]];

        if (instance->members[i] != own && !peer->proposed && peer->joined)
            peer->proposed = gy_instance_send(agreement, instance, GY_AGREEMENT_PROPOSE, instance->members[i], own,
                                              &instance->proposal);
    }
    if (all_have(agreement, instance, true, now) && gy_instance_has_quorum(agreement, instance))
        gy_instance_decide(agreement, instance, own);
}

/* ---- the others ---- */

static void follow(struct gy_agreement *agreement, struct gy_instance *instance, int coordinator, int64_t now)
{
    bool due = now - instance->beat_at >= gy_instance_beat_interval(agreement);

    gy_instance_watch(agreement, instance, coordinator, now);
    if (!due && instance->joined == coordinator)
        return;
    if (!gy_overlay_ensure_connected(agreement->overlay, coordinator))
        return;
    instance->beat_at = now;
    instance->promised = coordinator;
    if (gy_instance_send(agreement, instance, GY_AGREEMENT_JOIN, coordinator, coordinator,
                         instance->accepted == GY_NOBODY ? NULL : &instance->proposal))
        instance->joined = coordinator;
    gy_instance_send_all(agreement, instance, GY_AGREEMENT_ASK, coordinator, coordinator, NULL);
}

/* This rank may have been stopped: then the silence of the others was its own, in all its instances. The proof of a
 * death that it waits for may have arrived meanwhile. So between two polls at most LOOKS of that wait counts. */
static void excuse(struct gy_agreement *agreement, int64_t now)
{
    int64_t since = agreement->stepped ? now - agreement->stepped : 0, away = since - AWAY;

    if (away > 0 && away + AWAY > agreement->away)
        agreement->away = away + AWAY;
    if (away > 0)
        agreement->resumed_at = now;

    for (struct gy_instance *instance = agreement->instances; instance && away > 0; instance = instance->next) {
        if (!instance->entered)
            continue;
        instance->began += away;
        for (int rank = 0; rank < agreement->world->size; rank++)
            if (instance->peers[rank].heard)
                instance->peers[rank].heard += away;
    }
    for (struct gy_instance *instance = agreement->instances; instance && since > POLLS; instance = instance->next)
        instance->short_since += instance->short_since ? since - POLLS : 0;
    agreement->stepped = now;
}

/* This rank has asked since it resumed, and nothing is decided: the other members were stopped too, or wait for another
 * member. They have not gone on without this rank. */
static void forgive_absence(struct gy_agreement *agreement, const struct gy_instance *instance, int64_t now)
{
    if (instance->input.kind != GY_AGREEMENT_UNIFORM &&
        now - agreement->resumed_at > ASKED * gy_instance_beat_interval(agreement))
        agreement->away = 0;
}

void gy_agreement_exclude(struct gy_agreement *agreement, const char *why)
{
    snprintf(agreement->out, sizeof(agreement->out), "%s", why);
}

static gyre_status say_excluded(struct gy_agreement *agreement, const char *how, struct gy_error *error)
{
    int own = agreement->world->rank;

    if (how != agreement->out)
        gy_agreement_exclude(agreement, how);
    return gy_error_set(error, GYRE_EXCLUDED, own,
                        "rank %d has been excluded, the others go on without it: %.400s; it can only end, or join anew",
                        own, agreement->out);
}

/* Too few, and no news that could change it. */
static bool lacks_quorum(struct gy_agreement *agreement, struct gy_instance *instance, int64_t now)
{
    if (gy_instance_has_quorum(agreement, instance)) {
        instance->short_since = 0;
        return agreement->no_quorum;
    }
    for (int i = 0; i < instance->count; i++) { /* true if its death may be confirmed */
        const struct gy_failed_rank *failure = gy_overlay_failure(agreement->overlay, instance->members[i]);

        if (failure->status == GYRE_PEER_DEAD && !failure->proved && instance->short_since == 0)
            gy_overlay_ensure_connected(agreement->overlay, instance->members[i]);
    }
    int64_t changed = gy_overlay_failures_changed(agreement->overlay);
    if (instance->short_since == 0 || changed > instance->short_since)
        instance->short_since = now;
    agreement->no_quorum |= now - instance->short_since > SHORT_GRACE;
    return agreement->no_quorum;
}

static gyre_status report_no_quorum(struct gy_agreement *agreement, const struct gy_instance *instance,
                                    struct gy_error *error)
{
    int alive = 0, doubtful = 0, first = GY_NOBODY;

    for (int i = 0; i < instance->count; i++) {
        const struct gy_failed_rank *failure = gy_overlay_failure(agreement->overlay, instance->members[i]);
        bool doubted = failure->status != GYRE_SUCCESS && !failure->proved;

        alive += failure->status == GYRE_SUCCESS;
        doubtful += doubted;
        if (doubted && first == GY_NOBODY)
            first = instance->members[i];
    }
    return gy_error_set(
        error, GYRE_PARTITIONED, first,
        "rank %d is on the smaller side of a world that is cut in two: %d ranks are left here, and %d that "
        "may go on elsewhere cannot be reached or do not answer (the first is rank %d); only the larger "
        "side goes on, or the one with the lowest rank",
        agreement->world->rank, alive, doubtful, first);
}

gyre_status gy_agreement_step(struct gy_agreement *agreement, uint32_t comm, uint32_t number,
                              struct gy_outcome *outcome_p, struct gy_error *error)
{
    struct gy_instance *instance = gy_instance_find(agreement, comm, number);
    int own = agreement->world->rank, coordinator;
    const struct gy_failed_rank *failure = gy_overlay_failure(agreement->overlay, own);
    int64_t now = gy_now();

    excuse(agreement, now);
    if (agreement->out[0])
        return say_excluded(agreement, agreement->out, error);
    if (gy_overlay_deaf(agreement->overlay)) {
        *error = *gy_overlay_deaf(agreement->overlay);
        return error->status;
    }
    if (failure->status != GYRE_SUCCESS)
        return say_excluded(agreement, failure->why ? failure->why : gyre_status_text(failure->status), error);
    if (!instance->decided && lacks_quorum(agreement, instance, now))
        return report_no_quorum(agreement, instance, error);
    coordinator = gy_instance_coordinator(agreement, instance);
    if (!instance->decided && coordinator == own)
        lead(agreement, instance, now);
    else if (!instance->decided)
        follow(agreement, instance, coordinator, now);
    if (!instance->decided) {
        forgive_absence(agreement, instance, now);
        return GYRE_IN_PROGRESS;
    }
    gy_outcome_read(instance->proposal.bytes, instance->proposal.size, agreement->world->size, &instance->room);
    for (int i = 0; i < instance->room.ranks; i++) {
        if (instance->room.rank[i] == own) {
            *outcome_p = instance->room;
            instance->room = (struct gy_outcome){0};
            return GYRE_SUCCESS;
        }
    }
    return say_excluded(agreement, "they did not wait for it", error);
}

/* What came before this rank knew the members names only these, or it is forgotten. */
static void check_hearsay(const struct gy_agreement *agreement, struct gy_instance *instance)
{
    const struct gy_blob *told = &instance->proposal, *best = &instance->best_proposal;
    int size = agreement->world->size;

    if (instance->decided && !gy_outcome_check(told->bytes, told->size, size, instance->members, instance->count)) {
        instance->decided = false;
        instance->accepted = GY_NOBODY;
    }
    if (instance->best == GY_NOBODY ||
        gy_outcome_check(best->bytes, best->size, size, instance->members, instance->count))
        return;
    instance->best = GY_NOBODY;
    for (int rank = 0; rank < size; rank++)
        instance->peers[rank].joined = false;
}

bool gy_agreement_poll(const struct gy_agreement *agreement, int place, struct gy_agreement_view *view_p)
{
    const struct gy_instance *instance = agreement->instances;

    for (int i = 0; instance && i < place; i++)
        instance = instance->next;
    if (!instance)
        return false;
    *view_p = (struct gy_agreement_view){instance->comm, instance->number, instance->entered, instance->decided};
    return true;
}

gyre_status gy_agreement_enter(struct gy_agreement *agreement, uint32_t comm, uint32_t number, const int *members,
                               int count, const struct gy_agreement_input *input, int64_t timeout_ns,
                               struct gy_error *error)
{
    struct gy_instance *instance;
    struct gy_outcome room = {0};
    int *copy = gy_alloc((size_t)count * sizeof(*copy));

    if (input->kind != GY_AGREEMENT_UNIFORM) /* their numbers are only names, without an order */
        gy_instances_forget(agreement, comm, number);
    instance = copy && gy_outcome_reserve(count, &room) ? gy_instance_make(agreement, comm, number) : NULL;
    if (!instance) {
        gy_free(copy);
        gy_outcome_free(&room);
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "rank %d has no memory for an agreement",
                            agreement->world->rank);
    }
    memcpy(copy, members, (size_t)count * sizeof(*copy));
    instance->members = copy;
    instance->count = count;
    instance->room = room;
    instance->input = *input;
    instance->timeout_ns = timeout_ns;
    instance->began = gy_now();
    excuse(agreement, instance->began);
    if (input->kind != GY_AGREEMENT_UNIFORM)
        agreement->away = 0;
    instance->entered = true;
    check_hearsay(agreement, instance);
    for (int i = 0; i < count; i++)
        gy_instance_check_quit(agreement, instance, members[i]);
    return GYRE_SUCCESS;
}

int64_t gy_agreement_polled(const struct gy_agreement *agreement)
{
    return agreement->stepped - agreement->away;
}

void gy_agreement_attend(struct gy_agreement *agreement, bool waits)
{
    if (agreement->waits == waits)
        return;
    agreement->waits = waits; /* from now on every message says that this rank waits */
    for (struct gy_instance *instance = agreement->instances; instance && !waits; instance = instance->next)
        if (instance->entered && !instance->decided && !instance->quit && instance->input.kind == GY_AGREEMENT_UNIFORM)
            gy_instance_send_all(agreement, instance, GY_AGREEMENT_BEAT, GY_NOBODY, GY_NOBODY, NULL);
}

void gy_agreement_quit(struct gy_agreement *agreement, uint32_t comm, uint32_t number)
{
    struct gy_instance *instance = gy_instance_find(agreement, comm, number);

    if (!instance || instance->decided || instance->quit)
        return;
    instance->quit = true;
    gy_instance_send_all(agreement, instance, GY_AGREEMENT_BEAT, GY_NOBODY, GY_NOBODY, NULL);
    for (int rank = 0; rank < agreement->world->size && !instance->entered;
         rank++) /* members of the instance, as far as known */
        if (instance->peers[rank].entered)
            gy_instance_send(agreement, instance, GY_AGREEMENT_BEAT, rank, GY_NOBODY, NULL);
}

void gy_agreement_quit_uniform(struct gy_agreement *agreement)
{
    agreement->outside = true;
    for (const struct gy_instance *instance = agreement->instances; instance; instance = instance->next)
        if (instance->comm & GY_AGREEMENT_OF_UNIFORM)
            gy_agreement_quit(agreement, instance->comm, instance->number);
}

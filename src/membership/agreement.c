/* Agreement among the members of a communicator, of whom any may fail at any time, those who lead it too.
 *
 *   member                         coordinator: the lowest member that lives, as far as each knows
 *     JOIN(word, accepted) ─────────▶ has one of every member that lives, and these are enough (quorum.c)
 *     accepted := P ◀──────────────── PROPOSE(P)    P: what the highest earlier coordinator proposed, as far as any of them has
 *                                                      accepted it; if none has, their words combined
 *     ACCEPT ───────────────────────▶ has one of every member that lives, and these are enough: P is decided
 *     decided  ◀──────────────────── DECIDE(P), passed on by everybody who did not know, to all that it is connected to
 *
 * A member that learns of its coordinator's failure joins the next one, with what it has accepted. It thereby promises to accept
 * nothing of a lower coordinator any more: coordinators are numbered by their ranks, and only ever go up, since no failure is taken back.
 *
 * Why all who return and go on return the same. It is the synod of Lamport (The Part-Time Parliament, 1998), with coordinators
 * as ballots. Let coordinator c have decided P: everybody who lived in its eyes, set A, accepted P. A later coordinator d > c proposes
 * after everybody who lives in its eyes, set B, has joined it. If A and B share a member, that one told d of P (it
 * accepted P before it joined d: afterwards it hears c no more), and by induction nobody between c and d proposed
 * anything else, so d proposes P. If they share none, all of A have failed in the eyes of B. Those of A who are proved
 * gone return nowhere. If one of A lives, then A and B are two sides that both called themselves enough, which cannot be
 * (quorum.c); what was taken for a proof must have been one. The early return of a member that has decided is
 * safe, because it keeps the outcome and tells whoever asks (the idea of ERA: Herault and others, 2015).
 *
 * Why it ends. Every failure is seen, or judged by a clock, and each makes the set of the living smaller; between two
 * failures all agree on the coordinator as soon as the failures have been passed on, which then gets its answers. Who misses the
 * outcome because its coordinator died while it told it, asks everybody whom it is connected to.
 *
 * Who is out. A rank that learns of its own failure, or finds itself not in the outcome, is EXCLUDED. Members that are too
 * few for half a second are PARTITIONED, for good. Who ends with an error before anything is decided quits, and says so to
 * whoever waits for it, now and whenever it is asked: it has failed in their eyes, without a proof. Who hears that before it
 * enters keeps it until then, and the coordinator asks whom it misses, so that it is waited for by nobody, whichever comes first. Who
 * is out, has too few, or cannot take part in agreements on how operations end says it of all of those, entered or not. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "membership/agreement_internal.h"

#define SHORT_GRACE (GY_SECOND / 2) /* a proof may come a little later than the failure */
#define AWAY (GY_SECOND / 2)        /* between two looks: this rank was stopped, or elsewhere */
#define LOOKS (50 * GY_MILLISECOND) /* who waits looks more often; who computes, less often */
#define ASKED 5                     /* beats after which who asks has been told what was decided while it was away */

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

/* An agreement that a program asks for is entered by all of their own accord, and who is missed there is only asked:
 * that it has ended may have been said when we were not connected, or forgotten. Of one on how operations end, those who
 * have none under way on its communicator know only from here. Again and again, as a instance that is not entered may be
 * forgotten. */
static void call(struct gy_agreement *agreement, struct gy_instance *instance, int rank, int64_t now)
{
    struct gy_tree_position *position = &instance->positions[rank];
    bool comes = instance->input.kind != GY_AGREEMENT_UNIFORM || position->entered;
    int64_t last = comes && position->called == 0 ? instance->began : position->called;

    if (now - last < gy_instance_beat_interval(agreement) || !gy_overlay_reach(agreement->overlay, rank))
        return;
    if (gy_instance_send(agreement, instance, comes ? GY_AGREEMENT_ASK : GY_AGREEMENT_BEAT, rank,
                         agreement->world->rank, NULL))
        position->called = now;
}

/* Of all that live: those who have joined me, or accepted my proposal. Whoever has not is watched. */
static bool all_have(struct gy_agreement *agreement, struct gy_instance *instance, bool accepted, int64_t now)
{
    bool all = true;

    for (int i = 0; i < instance->count; i++) {
        int rank = instance->members[i];
        const struct gy_tree_position *position = &instance->positions[rank];

        if (rank == agreement->world->rank || !gy_instance_is_alive(agreement, rank) ||
            (accepted ? position->accepted : position->joined))
            continue;
        all = false;
        gy_instance_watch(agreement, instance, rank, now);
        call(agreement, instance, rank, now);
    }
    return all;
}

/* The words of all who have joined me and live. */
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
                                                                                : &instance->positions[rank].input;

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
        struct gy_tree_position *position = &instance->positions[instance->members[i]];

        if (instance->members[i] != own && !position->proposed && position->joined)
            position->proposed = gy_instance_send(agreement, instance, GY_AGREEMENT_PROPOSE, instance->members[i], own,
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
    if (!gy_overlay_reach(agreement->overlay, coordinator))
        return;
    instance->beat_at = now;
    instance->promised = coordinator;
    if (gy_instance_send(agreement, instance, GY_AGREEMENT_JOIN, coordinator, coordinator,
                         instance->accepted == GY_NOBODY ? NULL : &instance->proposal))
        instance->joined = coordinator;
    gy_instance_send_all(agreement, instance, GY_AGREEMENT_ASK, coordinator, coordinator, NULL);
}

/* This rank may have been stopped: the silence of the others was its own, in all instances that it takes part in. A proof that
 * it waits for may have come meanwhile: between two looks no more than LOOKS of that wait passes. */
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
            if (instance->positions[rank].heard)
                instance->positions[rank].heard += away;
    }
    for (struct gy_instance *instance = agreement->instances; instance && since > LOOKS; instance = instance->next)
        instance->short_since += instance->short_since ? since - LOOKS : 0;
    agreement->stepped = now;
}

/* It has asked since it woke, and nothing is decided: the others were stopped as well, or wait for somebody. They have not
 * gone on without it. */
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
    for (int i = 0; i < instance->count; i++) { /* may it be proved that it is gone? */
        const struct gy_failed_rank *failure = gy_overlay_failure(agreement->overlay, instance->members[i]);

        if (failure->status == GYRE_PEER_DEAD && !failure->proved && instance->short_since == 0)
            gy_overlay_reach(agreement->overlay, instance->members[i]);
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
        instance->positions[rank].joined = false;
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

    if (input->kind != GY_AGREEMENT_UNIFORM) /* whose numbers are names: none is before another */
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
    agreement->waits = waits; /* that it waits is in all that it says from now on */
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
         rank++) /* who is in it, as far as is known */
        if (instance->positions[rank].entered)
            gy_instance_send(agreement, instance, GY_AGREEMENT_BEAT, rank, GY_NOBODY, NULL);
}

void gy_agreement_quit_uniform(struct gy_agreement *agreement)
{
    agreement->outside = true;
    for (const struct gy_instance *instance = agreement->instances; instance; instance = instance->next)
        if (instance->comm & GY_AGREEMENT_OF_UNIFORM)
            gy_agreement_quit(agreement, instance->comm, instance->number);
}

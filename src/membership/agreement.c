/* Agreement among the members of a communicator, of whom any may fail at any time, those who lead it too.
 *
 *   member                         chair: the lowest member that lives, as far as each knows
 *     JOIN(word, accepted) ─────────▶ has one of every member that lives, and these are enough (quorum.c)
 *     accepted := P ◀──────────────── PROPOSE(P)    P: what the highest earlier chair proposed, as far as any of them has
 *                                                      accepted it; if none has, their words combined
 *     ACCEPT ───────────────────────▶ has one of every member that lives, and these are enough: P is decided
 *     decided  ◀──────────────────── DECIDE(P), passed on by everybody who did not know, to all that it is connected to
 *
 * A member that learns of its chair's failure joins the next one, with what it has accepted. It thereby promises to accept
 * nothing of a lower chair any more: chairs are numbered by their ranks, and only ever go up, since no fate is taken back.
 *
 * Why all who return and go on return the same. It is the synod of Lamport (The Part-Time Parliament, 1998), with chairs
 * as ballots. Let chair c have decided P: everybody who lived in its eyes, set A, accepted P. A later chair d > c proposes
 * after everybody who lives in its eyes, set B, has joined it. If A and B share a member, that one told d of P (it
 * accepted P before it joined d: afterwards it hears c no more), and by induction nobody between c and d proposed
 * anything else, so d proposes P. If they share none, all of A have failed in the eyes of B. Those of A who are proved
 * gone return nowhere. If one of A lives, then A and B are two sides that both called themselves enough, which cannot be
 * (quorum.c); what was taken for a proof must have been one. The early return of a member that has decided is
 * safe, because it keeps the outcome and tells whoever asks (the idea of ERA: Herault and others, 2015).
 *
 * Why it ends. Every failure is seen, or judged by a clock, and each makes the set of the living smaller; between two
 * failures all agree on the chair as soon as the fates have been passed on, which then gets its answers. Who misses the
 * outcome because its chair died while it told it, asks everybody whom it is connected to.
 *
 * Who is out. A rank that learns of its own fate, or finds itself not in the outcome, is EXCLUDED. Members that are too
 * few for half a second are PARTITIONED, for good. Who ends with an error before anything is decided quits, and says so to
 * whoever waits for it, now and whenever it is asked: it has failed in their eyes, without a proof. Who hears that before it
 * enters keeps it until then, and the chair asks whom it misses, so that it is waited for by nobody, whichever comes first. Who
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

struct gy_council *gy_council_make(struct gy_overlay *overlay, const struct gy_world *world)
{
    struct gy_council *council = gy_alloc_zero(1, sizeof(*council));

    if (!council)
        return NULL;
    council->overlay = overlay;
    council->world = world;
    gy_overlay_on_message(overlay, gy_council_hear, council, gy_council_message_most(world->size));
    return council;
}

/* ---- the chair ---- */

/* An agreement that a program asks for is entered by all of their own accord, and who is missed there is only asked:
 * that it has ended may have been said when we were not connected, or forgotten. Of one on how operations end, those who
 * have none under way on its communicator know only from here. Again and again, as a session that is not entered may be
 * forgotten. */
static void call(struct gy_council *council, struct gy_session *session, int rank, int64_t now)
{
    struct gy_seat *seat = &session->seats[rank];
    bool comes = session->word.kind != GY_COUNCIL_ENDS || seat->entered;
    int64_t last = comes && seat->called == 0 ? session->began : seat->called;

    if (now - last < gy_session_beat_interval(council) || !gy_overlay_reach(council->overlay, rank))
        return;
    if (gy_session_say(council, session, comes ? GY_COUNCIL_ASK : GY_COUNCIL_BEAT, rank, council->world->rank, NULL))
        seat->called = now;
}

/* Of all that live: those who have joined me, or accepted my proposal. Whoever has not is watched. */
static bool all_have(struct gy_council *council, struct gy_session *session, bool accepted, int64_t now)
{
    bool all = true;

    for (int i = 0; i < session->count; i++) {
        int rank = session->members[i];
        const struct gy_seat *seat = &session->seats[rank];

        if (rank == council->world->rank || !gy_session_lives(council, rank) ||
            (accepted ? seat->accepted : seat->joined))
            continue;
        all = false;
        gy_session_watch(council, session, rank, now);
        call(council, session, rank, now);
    }
    return all;
}

/* The words of all who have joined me and live. */
static bool combine(struct gy_council *council, struct gy_session *session)
{
    struct gy_outcome outcome = {.bits = UINT64_MAX};
    const struct gy_word **words = gy_alloc((size_t)session->count * sizeof(struct gy_word *));
    size_t most = gy_outcome_most(session->count);
    uint8_t *blob = gy_alloc(most);

    outcome.rank = gy_alloc((size_t)session->count * sizeof(*outcome.rank));
    if (!words || !blob || !outcome.rank) {
        gy_free(words);
        gy_free(blob);
        gy_free(outcome.rank);
        return false;
    }
    for (int i = 0; i < session->count; i++) {
        int rank = session->members[i];
        const struct gy_word *word = rank == council->world->rank ? &session->word : &session->seats[rank].word;

        if (!gy_session_lives(council, rank))
            continue;
        words[outcome.ranks] = word;
        outcome.rank[outcome.ranks++] = rank;
        outcome.bits &= word->bits;
        outcome.count = word->count > outcome.count ? word->count : outcome.count;
        if (word->kind != session->word.kind)
            outcome.status = GYRE_MISMATCH;
    }
    randombytes_buf(&outcome.job, sizeof(outcome.job));
    randombytes_buf(outcome.salt, sizeof(outcome.salt));
    gy_blob_set(&session->proposal, (struct gy_blob){blob, gy_outcome_encode(&outcome, words, blob, most)});
    gy_free(words);
    gy_free(outcome.rank);
    return true;
}

static bool propose(struct gy_council *council, struct gy_session *session)
{
    if (session->best > session->accepted) {
        if (!gy_blob_copy(&session->proposal, session->best_proposal.bytes, session->best_proposal.size))
            return false;
    } else if (session->accepted == GY_NOBODY && !combine(council, session)) {
        return false;
    }
    session->accepted = council->world->rank;
    return true;
}

static void lead(struct gy_council *council, struct gy_session *session, int64_t now)
{
    int own = council->world->rank;

    session->promised = own;
    if (session->accepted != own &&
        (!all_have(council, session, false, now) || !gy_session_enough(council, session) || !propose(council, session)))
        return;
    for (int i = 0; i < session->count; i++) {
        struct gy_seat *seat = &session->seats[session->members[i]];

        if (session->members[i] != own && !seat->proposed && seat->joined)
            seat->proposed = gy_session_say(council, session, GY_COUNCIL_PROPOSE, session->members[i], own,
                                            &session->proposal);
    }
    if (all_have(council, session, true, now) && gy_session_enough(council, session))
        gy_session_decide(council, session, own);
}

/* ---- the others ---- */

static void follow(struct gy_council *council, struct gy_session *session, int chair, int64_t now)
{
    bool due = now - session->beat_at >= gy_session_beat_interval(council);

    gy_session_watch(council, session, chair, now);
    if (!due && session->joined == chair)
        return;
    if (!gy_overlay_reach(council->overlay, chair))
        return;
    session->beat_at = now;
    session->promised = chair;
    if (gy_session_say(council, session, GY_COUNCIL_JOIN, chair, chair,
                       session->accepted == GY_NOBODY ? NULL : &session->proposal))
        session->joined = chair;
    gy_session_say_all(council, session, GY_COUNCIL_ASK, chair, chair, NULL);
}

/* This rank may have been stopped: the silence of the others was its own, in all sessions that it takes part in. A proof that
 * it waits for may have come meanwhile: between two looks no more than LOOKS of that wait passes. */
static void excuse(struct gy_council *council, int64_t now)
{
    int64_t since = council->stepped ? now - council->stepped : 0, away = since - AWAY;

    if (away > 0 && away + AWAY > council->away)
        council->away = away + AWAY;
    if (away > 0)
        council->woke = now;

    for (struct gy_session *session = council->sessions; session && away > 0; session = session->next) {
        if (!session->entered)
            continue;
        session->began += away;
        for (int rank = 0; rank < council->world->size; rank++)
            if (session->seats[rank].heard)
                session->seats[rank].heard += away;
    }
    for (struct gy_session *session = council->sessions; session && since > LOOKS; session = session->next)
        session->short_since += session->short_since ? since - LOOKS : 0;
    council->stepped = now;
}

/* It has asked since it woke, and nothing is decided: the others were stopped as well, or wait for somebody. They have not
 * gone on without it. */
static void forgive_absence(struct gy_council *council, const struct gy_session *session, int64_t now)
{
    if (session->word.kind != GY_COUNCIL_ENDS && now - council->woke > ASKED * gy_session_beat_interval(council))
        council->away = 0;
}

void gy_council_exclude(struct gy_council *council, const char *why)
{
    snprintf(council->out, sizeof(council->out), "%s", why);
}

static gyre_status say_excluded(struct gy_council *council, const char *how, struct gy_error *error)
{
    int own = council->world->rank;

    if (how != council->out)
        gy_council_exclude(council, how);
    return gy_error_set(error, GYRE_EXCLUDED, own,
                        "rank %d has been excluded, the others go on without it: %.400s; it can only end, or join anew",
                        own, council->out);
}

/* Too few, and no news that could change it. */
static bool is_parted(struct gy_council *council, struct gy_session *session, int64_t now)
{
    if (gy_session_enough(council, session)) {
        session->short_since = 0;
        return council->parted;
    }
    for (int i = 0; i < session->count; i++) { /* may it be proved that it is gone? */
        const struct gy_fate *fate = gy_overlay_fate(council->overlay, session->members[i]);

        if (fate->status == GYRE_PEER_DEAD && !fate->proved && session->short_since == 0)
            gy_overlay_reach(council->overlay, session->members[i]);
    }
    int64_t changed = gy_overlay_fates_changed(council->overlay);
    if (session->short_since == 0 || changed > session->short_since)
        session->short_since = now;
    council->parted |= now - session->short_since > SHORT_GRACE;
    return council->parted;
}

static gyre_status say_parted(struct gy_council *council, const struct gy_session *session, struct gy_error *error)
{
    int alive = 0, doubtful = 0, first = GY_NOBODY;

    for (int i = 0; i < session->count; i++) {
        const struct gy_fate *fate = gy_overlay_fate(council->overlay, session->members[i]);
        bool doubted = fate->status != GYRE_SUCCESS && !fate->proved;

        alive += fate->status == GYRE_SUCCESS;
        doubtful += doubted;
        if (doubted && first == GY_NOBODY)
            first = session->members[i];
    }
    return gy_error_set(
        error, GYRE_PARTITIONED, first,
        "rank %d is on the smaller side of a world that is cut in two: %d ranks are left here, and %d that "
        "may go on elsewhere cannot be reached or do not answer (the first is rank %d); only the larger "
        "side goes on, or the one with the lowest rank",
        council->world->rank, alive, doubtful, first);
}

gyre_status gy_council_step(struct gy_council *council, uint32_t comm, uint32_t number, struct gy_outcome *outcome_p,
                            struct gy_error *error)
{
    struct gy_session *session = gy_session_find(council, comm, number);
    int own = council->world->rank, chair;
    const struct gy_fate *fate = gy_overlay_fate(council->overlay, own);
    int64_t now = gy_now();

    excuse(council, now);
    if (council->out[0])
        return say_excluded(council, council->out, error);
    if (gy_overlay_deaf(council->overlay)) {
        *error = *gy_overlay_deaf(council->overlay);
        return error->status;
    }
    if (fate->status != GYRE_SUCCESS)
        return say_excluded(council, fate->why ? fate->why : gyre_status_text(fate->status), error);
    if (!session->decided && is_parted(council, session, now))
        return say_parted(council, session, error);
    chair = gy_session_chair(council, session);
    if (!session->decided && chair == own)
        lead(council, session, now);
    else if (!session->decided)
        follow(council, session, chair, now);
    if (!session->decided) {
        forgive_absence(council, session, now);
        return GYRE_IN_PROGRESS;
    }
    gy_outcome_read(session->proposal.bytes, session->proposal.size, council->world->size, &session->room);
    for (int i = 0; i < session->room.ranks; i++) {
        if (session->room.rank[i] == own) {
            *outcome_p = session->room;
            session->room = (struct gy_outcome){0};
            return GYRE_SUCCESS;
        }
    }
    return say_excluded(council, "they did not wait for it", error);
}

/* What came before this rank knew the members names only these, or it is forgotten. */
static void check_hearsay(const struct gy_council *council, struct gy_session *session)
{
    const struct gy_blob *told = &session->proposal, *best = &session->best_proposal;
    int size = council->world->size;

    if (session->decided && !gy_outcome_check(told->bytes, told->size, size, session->members, session->count)) {
        session->decided = false;
        session->accepted = GY_NOBODY;
    }
    if (session->best == GY_NOBODY || gy_outcome_check(best->bytes, best->size, size, session->members, session->count))
        return;
    session->best = GY_NOBODY;
    for (int rank = 0; rank < size; rank++)
        session->seats[rank].joined = false;
}

bool gy_council_look(const struct gy_council *council, int place, struct gy_council_view *view_p)
{
    const struct gy_session *session = council->sessions;

    for (int i = 0; session && i < place; i++)
        session = session->next;
    if (!session)
        return false;
    *view_p = (struct gy_council_view){session->comm, session->number, session->entered, session->decided};
    return true;
}

gyre_status gy_council_enter(struct gy_council *council, uint32_t comm, uint32_t number, const int *members, int count,
                             const struct gy_word *word, int64_t timeout_ns, struct gy_error *error)
{
    struct gy_session *session;
    struct gy_outcome room = {0};
    int *copy = gy_alloc((size_t)count * sizeof(*copy));

    if (word->kind != GY_COUNCIL_ENDS) /* whose numbers are names: none is before another */
        gy_sessions_forget(council, comm, number);
    session = copy && gy_outcome_reserve(count, &room) ? gy_session_make(council, comm, number) : NULL;
    if (!session) {
        gy_free(copy);
        gy_outcome_free(&room);
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "rank %d has no memory for an agreement", council->world->rank);
    }
    memcpy(copy, members, (size_t)count * sizeof(*copy));
    session->members = copy;
    session->count = count;
    session->room = room;
    session->word = *word;
    session->timeout_ns = timeout_ns;
    session->began = gy_now();
    excuse(council, session->began);
    if (word->kind != GY_COUNCIL_ENDS)
        council->away = 0;
    session->entered = true;
    check_hearsay(council, session);
    for (int i = 0; i < count; i++)
        gy_session_judge_quit(council, session, members[i]);
    return GYRE_SUCCESS;
}

int64_t gy_council_looked(const struct gy_council *council)
{
    return council->stepped - council->away;
}

void gy_council_attend(struct gy_council *council, bool waits)
{
    if (council->waits == waits)
        return;
    council->waits = waits; /* that it waits is in all that it says from now on */
    for (struct gy_session *session = council->sessions; session && !waits; session = session->next)
        if (session->entered && !session->decided && !session->quit && session->word.kind == GY_COUNCIL_ENDS)
            gy_session_say_all(council, session, GY_COUNCIL_BEAT, GY_NOBODY, GY_NOBODY, NULL);
}

void gy_council_quit(struct gy_council *council, uint32_t comm, uint32_t number)
{
    struct gy_session *session = gy_session_find(council, comm, number);

    if (!session || session->decided || session->quit)
        return;
    session->quit = true;
    gy_session_say_all(council, session, GY_COUNCIL_BEAT, GY_NOBODY, GY_NOBODY, NULL);
    for (int rank = 0; rank < council->world->size && !session->entered; rank++) /* who is in it, as far as is known */
        if (session->seats[rank].entered)
            gy_session_say(council, session, GY_COUNCIL_BEAT, rank, GY_NOBODY, NULL);
}

void gy_council_quit_ends(struct gy_council *council)
{
    council->outside = true;
    for (const struct gy_session *session = council->sessions; session; session = session->next)
        if (session->comm & GY_COUNCIL_OF_ENDS)
            gy_council_quit(council, session->comm, session->number);
}

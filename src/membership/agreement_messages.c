/* What members of an agreement say to each other, and what a message does where it is heard. agreement.c has the algorithm
 * and the argument for it; here every message is taken by itself, at any time, also of a session that this rank has not
 * entered yet. Nothing is promised or accepted that could not be kept in memory: it is told again. */
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "membership/agreement_internal.h"

/* ---- saying ---- */

static size_t compose(struct gy_council *council, const struct gy_session *session, enum gy_council_type type,
                      int chair, const struct gy_blob *blob)
{
    bool inside = session->word.kind != GY_COUNCIL_ENDS || council->waits;
    enum gy_council_part part = session->quit       ? GY_PART_QUIT
                                : !session->entered ? GY_PART_NONE
                                : inside            ? GY_PART_TAKES
                                                    : GY_PART_AWAY;
    struct gy_council_message message = {.type = (uint8_t)type,
                                         .comm = session->comm,
                                         .number = session->number,
                                         .chair = chair,
                                         .part = part,
                                         .accepted = session->accepted,
                                         .word = session->word,
                                         .blob = blob ? blob->bytes : NULL,
                                         .blob_bytes = blob ? blob->size : 0};

    return gy_council_encode(&message, council->body, gy_council_message_most(council->world->size));
}

bool gy_session_say(struct gy_council *council, const struct gy_session *session, enum gy_council_type type, int to,
                    int chair, const struct gy_blob *blob)
{
    return gy_overlay_send(council->overlay, to, council->body, compose(council, session, type, chair, blob));
}

void gy_session_say_all(struct gy_council *council, const struct gy_session *session, enum gy_council_type type,
                        int but, int chair, const struct gy_blob *blob)
{
    size_t bytes = compose(council, session, type, chair, blob);

    for (int i = 0; i < session->count; i++) {
        if (session->members[i] != but && session->members[i] != council->world->rank)
            gy_overlay_send(council->overlay, session->members[i], council->body, bytes);
    }
}

void gy_session_decide(struct gy_council *council, struct gy_session *session, int from)
{
    if (session->decided)
        return;
    session->decided = true;
    gy_session_say_all(council, session, GY_COUNCIL_DECIDE, from, session->accepted, &session->proposal);
}

/* ---- hearing ---- */

/* Is this an outcome, and one of the session's members, as far as they are known? */
static bool is_outcome(const struct gy_council *council, const struct gy_session *session,
                       const struct gy_council_message *message, int from)
{
    if (gy_outcome_check(message->blob, message->blob_bytes, council->world->size, session->members, session->count))
        return true;
    gy_log(GY_LOG_WARN, "rank %d told an outcome of an agreement that is not understood", from);
    return false;
}

static void hear_join(struct gy_council *council, struct gy_session *session, int from,
                      const struct gy_council_message *message)
{
    struct gy_seat *seat = &session->seats[from];

    if (session->decided) {
        gy_session_say(council, session, GY_COUNCIL_DECIDE, from, session->accepted, &session->proposal);
        return;
    }
    if (message->chair != council->world->rank)
        return;
    if (message->accepted > session->best) {
        if (!is_outcome(council, session, message, from) ||
            !gy_blob_copy(&session->best_proposal, message->blob, message->blob_bytes))
            return; /* it has not joined before I know what it has accepted: it tells me again */
        session->best = message->accepted;
    }
    if (!seat->joined)
        seat->word = message->word;
    seat->joined = true;
    seat->proposed = seat->accepted; /* what it was told may have been lost on it, for want of memory */
    gy_session_say(council, session, GY_COUNCIL_BEAT, from, council->world->rank, NULL);
}

static void hear_propose(struct gy_council *council, struct gy_session *session, int from,
                         const struct gy_council_message *message)
{
    if (session->decided || session->quit || !session->entered || message->chair != from || from < session->promised ||
        !gy_session_lives(council, from) || !is_outcome(council, session, message, from))
        return;
    if (session->accepted != from && !gy_blob_copy(&session->proposal, message->blob, message->blob_bytes))
        return; /* no memory: not accepted; it is told again */
    session->promised = session->accepted = from;
    gy_session_say(council, session, GY_COUNCIL_ACCEPT, from, from, NULL);
}

static void hear_decide(struct gy_council *council, struct gy_session *session, int from,
                        const struct gy_council_message *message)
{
    if (session->decided || !is_outcome(council, session, message, from) ||
        !gy_blob_copy(&session->proposal, message->blob, message->blob_bytes))
        return;
    session->accepted = message->chair;
    gy_session_decide(council, session, from);
}

/* ASK, or a BEAT that calls: who knows the outcome tells it, and who has quit says so. What one says that has quit as well is
 * no question. */
static void hear_question(struct gy_council *council, struct gy_session *session, int from,
                          const struct gy_council_message *message)
{
    if (session->decided && message->type == GY_COUNCIL_ASK)
        gy_session_say(council, session, GY_COUNCIL_DECIDE, from, session->accepted, &session->proposal);
    else if (!session->decided && session->quit && message->part != GY_PART_QUIT)
        gy_session_say(council, session, GY_COUNCIL_BEAT, from, GY_NOBODY, NULL);
}

/* Would this rank end every agreement of that communicator with an error? Then it need not have come to one, nor remember that it
 * has quit one long ago, to say so. */
static bool takes_no_part(const struct gy_council *council, uint32_t comm)
{
    return council->out[0] || council->parted || (council->outside && comm & GY_COUNCIL_OF_ENDS);
}

/* Of a session that this rank holds nothing of. It may be short of memory: this needs none here. Answered like a question, or who
 * waits for this rank would do so until a clock says otherwise. */
static void deny(struct gy_council *council, int from, const struct gy_council_message *message)
{
    struct gy_council_message denial = {.type = GY_COUNCIL_BEAT,
                                        .comm = message->comm,
                                        .number = message->number,
                                        .chair = GY_NOBODY,
                                        .part = GY_PART_QUIT};
    uint8_t body[32];

    if (message->part != GY_PART_QUIT && message->type != GY_COUNCIL_DECIDE)
        gy_overlay_send(council->overlay, from, body, gy_council_encode(&denial, body, sizeof(body)));
}

void gy_council_hear(void *user, int from, uint8_t *body, size_t bytes)
{
    struct gy_council *council = user;
    struct gy_council_message message;
    struct gy_session *session;
    bool none, over;

    if (!gy_council_decode(body, bytes, council->world->size, &message)) {
        gy_log(GY_LOG_WARN, "rank %d sent a message about an agreement that is not understood", from);
        return;
    }
    none = takes_no_part(council, message.comm);
    session = none || message.type == GY_COUNCIL_ASK ? gy_session_find(council, message.comm, message.number)
                                                     : gy_session_make(council, message.comm, message.number);
    if (!session) {
        if (none)
            deny(council, from, &message);
        return;
    }
    session->quit |= none && !session->entered && !session->decided;
    session->seats[from].heard = gy_now();
    session->seats[from].entered |= message.part != GY_PART_NONE;
    session->seats[from].quit |= message.part == GY_PART_QUIT;
    session->seats[from].away = message.part == GY_PART_AWAY;
    over = session->quit && !session->decided; /* a JOIN is then a question */
    if (message.type == GY_COUNCIL_JOIN && !over)
        hear_join(council, session, from, &message);
    else if (message.type == GY_COUNCIL_PROPOSE)
        hear_propose(council, session, from, &message);
    else if (message.type == GY_COUNCIL_ACCEPT)
        session->seats[from].accepted |= message.chair == council->world->rank;
    else if (message.type == GY_COUNCIL_DECIDE)
        hear_decide(council, session, from, &message);
    else
        hear_question(council, session, from, &message);
    gy_session_judge_quit(council, session, from);
}

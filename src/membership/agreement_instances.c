/* The sessions of a council, and what they hold.
 *
 *   entered      by this rank: its promises and what it has accepted are kept until nobody can ask for them any more
 *   unentered    others speak of it, and this rank has not come to it yet, or is no member: a bounded number */
#include <string.h>

#include "core/mem.h"
#include "membership/agreement_internal.h"

#define UNENTERED_MOST 64 /* sessions that others have begun and this rank has not entered */
#define KEPT 2            /* outcomes of a communicator, for who asks */

void gy_blob_set(struct gy_blob *blob, struct gy_blob to)
{
    gy_free(blob->bytes);
    *blob = to;
}

bool gy_blob_copy(struct gy_blob *blob, const uint8_t *bytes, size_t size)
{
    uint8_t *copy = gy_alloc(size ? size : 1);

    if (!copy)
        return false;
    memcpy(copy, bytes, size);
    gy_blob_set(blob, (struct gy_blob){copy, size});
    return true;
}

static void session_free(struct gy_session *session)
{
    gy_blob_set(&session->proposal, (struct gy_blob){0});
    gy_blob_set(&session->best_proposal, (struct gy_blob){0});
    gy_outcome_free(&session->room);
    gy_free(session->members);
    gy_free(session->seats);
    gy_free(session);
}

void gy_council_free(struct gy_council *council)
{
    while (council && council->sessions) {
        struct gy_session *next = council->sessions->next;

        session_free(council->sessions);
        council->sessions = next;
    }
    if (council)
        gy_free(council->body);
    gy_free(council);
}

struct gy_session *gy_session_find(struct gy_council *council, uint32_t comm, uint32_t number)
{
    struct gy_session *session = council->sessions;

    while (session && (session->comm != comm || session->number != number))
        session = session->next;
    return session;
}

/* Forgets the oldest of those that nobody here has entered: as if nothing had been heard of it, for in it nothing was
 * promised or accepted, and who knows its outcome is asked when it is entered. */
static void forget_unentered(struct gy_council *council)
{
    struct gy_session **oldest = NULL, *session;

    for (struct gy_session **at = &council->sessions; *at; at = &(*at)->next)
        if (!(*at)->entered)
            oldest = at;
    if (!oldest)
        return;
    session = *oldest;
    *oldest = session->next;
    session_free(session);
}

struct gy_session *gy_session_make(struct gy_council *council, uint32_t comm, uint32_t number)
{
    struct gy_session *session = gy_session_find(council, comm, number);
    int unentered = 0;

    if (session)
        return session;
    for (session = council->sessions; session; session = session->next)
        unentered += !session->entered;
    if (!council->body)
        council->body = gy_alloc(gy_council_message_most(council->world->size));
    if (unentered >= UNENTERED_MOST)
        forget_unentered(council);
    session = council->body ? gy_alloc_zero(1, sizeof(*session)) : NULL;
    if (!session)
        return NULL;
    session->seats = gy_alloc_zero((size_t)council->world->size, sizeof(*session->seats));
    if (!session->seats) {
        gy_free(session);
        return NULL;
    }
    session->comm = comm;
    session->number = number;
    session->promised = session->joined = session->accepted = session->best = GY_NOBODY;
    session->next = council->sessions;
    council->sessions = session;
    return session;
}

void gy_sessions_forget(struct gy_council *council, uint32_t comm, uint32_t number)
{
    for (struct gy_session **at = &council->sessions; *at;) {
        struct gy_session *session = *at;

        if (session->comm != comm || session->number + KEPT > number) {
            at = &session->next;
            continue;
        }
        *at = session->next;
        session_free(session);
    }
}

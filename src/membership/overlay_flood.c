/* What is flooded over the overlay: the first failure, and leave messages.
 *
 * Invariants. A failure is adopted once, and queued to every neighbour in the same call, before any socket is closed: a
 * rank that then sees sockets close already knows the failed rank. Each leave message is forwarded once, with the rank
 * that caused the leaving, or its own. Both go to all neighbours but the one they came from; a neighbour that connects
 * later is told when it does. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "membership/overlay_internal.h"
#include "net/byte_codec.h"

#define CLOCKS_APART GY_SECOND /* the clocks of both ends of a lost link may differ by so much: kernels count seconds */

void gy_flood_publish(struct gy_overlay *overlay, gyre_status status, int rank, const char *text)
{
    struct gy_notice *notice = overlay->notice;
    uint64_t none = 0, claim = (uint64_t)(rank + 1) << 8;

    if (!notice || !atomic_compare_exchange_strong(&notice->word, &none, claim))
        return;
    memcpy(notice->text, text, strnlen(text, sizeof(notice->text))); /* what lies behind it is zero */
    atomic_store(&notice->word, claim | (uint64_t)status);
}

size_t gy_flood_encode(const struct gy_error *failure, uint8_t body_p[GY_OVERLAY_BODY])
{
    struct gy_wire wire = gy_wire_over(body_p, GY_OVERLAY_BODY);
    size_t length = strnlen(failure->text, GY_OVERLAY_TEXT);

    gy_wire_put(&wire, (uint64_t)failure->status, 4);
    gy_wire_put(&wire, (uint32_t)failure->rank, 4);
    gy_wire_put_bytes(&wire, failure->text, length);
    return 8 + length;
}

static void send_failure(struct gy_overlay *overlay, enum gy_overlay_kind kind, const struct gy_error *failure,
                         const struct gy_neighbour *from)
{
    uint8_t body[GY_OVERLAY_BODY];
    size_t bytes = gy_flood_encode(failure, body);

    for (int i = 0; i < overlay->count; i++) {
        if (overlay->neighbours[i] != from)
            gy_stream_send(&overlay->neighbours[i]->stream, (uint8_t)kind, body, bytes);
    }
}

static void adopt(struct gy_overlay *overlay, gyre_status status, int rank, const char *text,
                  const struct gy_neighbour *from, enum gy_log_level level)
{
    gy_failure_of_report(overlay, status, rank, text, from); /* before the first failure, on every connection */
    if (overlay->first_failure.status != GYRE_SUCCESS)
        return;
    overlay->first_failure.status = status;
    overlay->first_failure.rank = rank;
    snprintf(overlay->first_failure.text, sizeof(overlay->first_failure.text), "%.*s", GY_OVERLAY_TEXT, text);
    gy_log(level, "%s", overlay->first_failure.text);
    gy_flood_publish(overlay, status, rank, overlay->first_failure.text);
    send_failure(overlay, GY_OVERLAY_FAILURE, &overlay->first_failure, from);
}

void gy_flood_failure(struct gy_overlay *overlay, gyre_status status, int rank, const char *text,
                      const struct gy_neighbour *from)
{
    adopt(overlay, status, rank, text, from, from ? GY_LOG_INFO : GY_LOG_ERROR);
}

void gy_flood_own(struct gy_overlay *overlay, gyre_status status, int rank, const char *text, bool logged)
{
    adopt(overlay, status, rank, text, NULL, logged ? GY_LOG_INFO : GY_LOG_ERROR);
}

void gy_flood_silence(struct gy_overlay *overlay, int rank, const char *text)
{
    for (int i = 0; rank < overlay->world->rank && overlay->world->overlay && i < GY_DOUBTS; i++) {
        struct gy_doubt *doubt = &overlay->doubts[i];

        if (doubt->since)
            continue;
        doubt->since = gy_now();
        doubt->rank = rank;
        snprintf(doubt->text, sizeof(doubt->text), "%s", text);
        overlay->doubted++;
        return;
    }
    gy_flood_failure(overlay, GYRE_PEER_UNREACHABLE, rank, text, NULL);
}

void gy_flood_doubts(struct gy_overlay *overlay)
{
    for (int i = 0; overlay->doubted > 0 && i < GY_DOUBTS; i++) {
        struct gy_doubt *doubt = &overlay->doubts[i];

        if (!doubt->since || gy_now() - doubt->since < CLOCKS_APART)
            continue;
        doubt->since = 0;
        overlay->doubted--;
        gy_flood_failure(overlay, GYRE_PEER_UNREACHABLE, doubt->rank, doubt->text, NULL);
    }
}

void gy_flood_abort(struct gy_overlay *overlay, int rank, const char *text, const struct gy_neighbour *from)
{
    if (overlay->aborted.status != GYRE_SUCCESS)
        return;
    overlay->aborted.status = GYRE_ABORTED;
    overlay->aborted.rank = rank;
    snprintf(overlay->aborted.text, sizeof(overlay->aborted.text), "%.*s", GY_OVERLAY_TEXT, text);
    gy_flood_failure(overlay, GYRE_ABORTED, rank, text, from);
    send_failure(overlay, GY_OVERLAY_ABORT, &overlay->aborted, from);
}

static bool decode(const struct gy_neighbour *from, uint8_t *body, size_t bytes, struct gy_error *failure_p)
{
    struct gy_wire wire = gy_wire_over(body, bytes);
    uint32_t status = (uint32_t)gy_wire_get(&wire, 4), rank = (uint32_t)gy_wire_get(&wire, 4);

    if (wire.bad || bytes > GY_OVERLAY_BODY || !gy_status_is_failure(status) ||
        rank >= (uint32_t)from->overlay->world->size)
        return false;
    failure_p->status = (gyre_status)status;
    failure_p->rank = (int)rank;
    memcpy(failure_p->text, wire.at, bytes - 8);
    failure_p->text[bytes - 8] = '\0';
    return true;
}

void gy_flood_receive_failure(struct gy_neighbour *from, uint8_t *body, size_t bytes)
{
    struct gy_error failure;

    if (decode(from, body, bytes, &failure))
        gy_flood_failure(from->overlay, failure.status, failure.rank, failure.text, from);
}

void gy_flood_receive_abort(struct gy_neighbour *from, uint8_t *body, size_t bytes)
{
    struct gy_error failure;

    if (decode(from, body, bytes, &failure) && failure.status == GYRE_ABORTED)
        gy_flood_abort(from->overlay, failure.rank, failure.text, from);
}

static void send_leave(struct gy_neighbour *to, int rank, bool forwarded)
{
    uint8_t body[GY_OVERLAY_LEAVE_BODY];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));

    gy_wire_put(&wire, (uint32_t)rank, 4);
    gy_wire_put(&wire, (uint32_t)to->overlay->left[rank] - 1, 4);
    if (forwarded)
        gy_stream_post(&to->stream, GY_OVERLAY_LEAVE, body, sizeof(body));
    else
        gy_stream_send(&to->stream, GY_OVERLAY_LEAVE, body, sizeof(body));
}

void gy_flood_leave(struct gy_overlay *overlay, int rank, int cause, const struct gy_neighbour *from)
{
    bool ends = cause == rank && gy_failure_learn(overlay, rank, GYRE_PEER_LEFT, true, "it destroyed its communicator");

    if (overlay->left[rank] && ends) /* it has already said that it could not go on; that it ends now is new */
        gy_failure_flood(overlay, rank, from);
    if (overlay->left[rank])
        return;
    overlay->left[rank] = cause + 1;
    overlay->thinned |= rank != overlay->world->rank;
    for (int i = 0; i < overlay->count; i++) {
        if (overlay->neighbours[i] != from)
            send_leave(overlay->neighbours[i], rank, from != NULL);
    }
}

void gy_flood_catch_up(struct gy_neighbour *neighbour)
{
    struct gy_overlay *overlay = neighbour->overlay;
    uint8_t body[GY_OVERLAY_BODY];

    gy_failure_catch_up(neighbour);
    if (overlay->first_failure.status != GYRE_SUCCESS)
        gy_stream_send(&neighbour->stream, GY_OVERLAY_FAILURE, body, gy_flood_encode(&overlay->first_failure, body));
    if (overlay->aborted.status != GYRE_SUCCESS)
        gy_stream_send(&neighbour->stream, GY_OVERLAY_ABORT, body, gy_flood_encode(&overlay->aborted, body));
    for (int rank = 0; rank < overlay->world->size; rank++) {
        if (overlay->left[rank])
            send_leave(neighbour, rank, false);
    }
}

void gy_flood_receive_leave(struct gy_neighbour *from, uint8_t *body, size_t bytes)
{
    struct gy_wire wire = gy_wire_over(body, bytes);
    uint64_t rank = gy_wire_get(&wire, 4), cause = gy_wire_get(&wire, 4), size = (uint64_t)from->overlay->world->size;

    /* A rank ignores its own leave message when it comes back; no other rank sends one on its behalf. */
    if (!wire.bad && rank < size && cause < size && rank != (uint64_t)from->overlay->world->rank)
        gy_flood_leave(from->overlay, (int)rank, (int)cause, from);
}

/* This rank cannot receive from the neighbour (out of memory or descriptors). The neighbour is not at fault, so this
 * rank declares itself failed, and no rank waits for it. */
static void go_deaf(struct gy_neighbour *neighbour, int errnum)
{
    struct gy_overlay *overlay = neighbour->overlay;
    int own = overlay->world->rank;
    struct gy_error error = {.rank = own,
                             .quiet = overlay->first_failure.status == GYRE_SUCCESS}; /* the first failure is
                                                                                              * logged already */

    if (overlay->deaf.status != GYRE_SUCCESS || overlay->left[own])
        return;
    gy_error_system(&error, errnum, "rank %d cannot hear rank %d any more, and gives up", own, neighbour->rank);
    overlay->deaf = error;
    gy_flood_failure(overlay, error.status, own, error.text, NULL);
    if (gy_failure_learn(overlay, own, GYRE_PEER_LEFT, true, error.text))
        gy_failure_flood(overlay, own, NULL);
    gy_flood_leave(overlay, own, own, NULL);
}

/* True if the end of this connection confirms that the process is gone. Its kernel says so by an end of file on an
 * authenticated connection, by a refused listener, and on this host by a reset; but not while a pidfd says that it
 * runs. A connection that was never authenticated may be closed by a live rank: its listener is oversubscribed, or it
 * has no memory. Between hosts a reset may also come from a rank that declared us failed while the network was cut. */
static bool is_proof(const struct gy_neighbour *neighbour, int errnum, bool local)
{
    if (errnum == ECONNREFUSED)
        return true;
    return neighbour->introduced && neighbour->pidfd.fd < 0 &&
           (errnum == 0 || (local && (errnum == ECONNRESET || errnum == EPIPE)));
}

void gy_flood_death(struct gy_neighbour *neighbour, int errnum)
{
    struct gy_overlay *overlay = neighbour->overlay;
    const struct gy_member *member = &overlay->world->members[neighbour->rank];
    bool local = member->host == overlay->world->members[overlay->world->rank].host;
    bool proved = is_proof(neighbour, errnum, local);
    char text[GY_OVERLAY_TEXT];

    if (gy_error_is_shortage(errnum)) {
        go_deaf(neighbour, errnum);
        return;
    }
    if (overlay->left[neighbour->rank]) {
        if (proved && gy_failure_learn(overlay, neighbour->rank, GYRE_PEER_DEAD, true, "it failed, and then ended"))
            gy_failure_flood(overlay, neighbour->rank, NULL);
        return;
    }
    if (errnum == ETIMEDOUT || errnum == EHOSTUNREACH || errnum == ENETUNREACH || errnum == ENETDOWN) {
        snprintf(text, sizeof(text),
                 "rank %d gives no sign of life for %.1f s: its host or the network is down (%s; seen by rank %d)",
                 neighbour->rank, (double)overlay->world->config->peer_timeout_ns / (double)GY_SECOND, strerror(errnum),
                 overlay->world->rank);
        gy_flood_silence(overlay, neighbour->rank, text);
        return;
    }
    if (errnum == EBADMSG) {
        snprintf(text, sizeof(text),
                 "a message of rank %d to rank %d %s (overlay, GYRE_INTEGRITY); look for a bad network card or a "
                 "stranger on the "
                 "way",
                 neighbour->rank, overlay->world->rank, gy_flaw_text(neighbour->stream.flaw));
        gy_flood_failure(overlay, GYRE_CORRUPTED, neighbour->rank, text, NULL);
        return;
    }
    snprintf(text, sizeof(text), "rank %d died%s (process %d on host %d%s, seen by rank %d)", neighbour->rank,
             overlay->world->overlay ? "" : " or gave up while the ranks connected", member->pid, member->host,
             local ? ", the same host" : "", overlay->world->rank);
    if (gy_failure_learn(overlay, neighbour->rank, GYRE_PEER_DEAD, proved, text))
        gy_failure_flood(overlay, neighbour->rank, NULL);
    gy_flood_failure(overlay, GYRE_PEER_DEAD, neighbour->rank, text, NULL);
}

static void take_notice(struct gy_overlay *overlay, const struct gy_notice *notice, uint64_t word)
{
    uint64_t rank = (word >> 8) - 1;
    char text[GY_OVERLAY_TEXT + 1];

    if (!gy_status_is_failure((uint32_t)(word & 0xff)) || rank >= (uint64_t)overlay->world->size)
        return;
    snprintf(text, sizeof(text), "%.*s", GY_OVERLAY_TEXT, notice->text);
    adopt(overlay, (gyre_status)(word & 0xff), (int)rank, text, NULL, GY_LOG_INFO);
}

bool gy_flood_has_notice(const struct gy_overlay *overlay)
{
    return overlay->notice && (atomic_load_explicit(&overlay->notice->word, memory_order_relaxed) & 0xff) != 0;
}

void gy_flood_read_notice(struct gy_overlay *overlay)
{
    const struct gy_notice *notice = overlay->notice;
    uint64_t word = notice ? atomic_load_explicit(&notice->word, memory_order_acquire) : 0;

    if (word & 0xff) /* every call comes by here */
        take_notice(overlay, notice, word);
}

void gy_overlay_give_up(struct gy_overlay *overlay, const struct gy_error *error)
{
    int own = overlay->world->rank;
    char text[GY_OVERLAY_TEXT];

    if (error->rank >= 0)
        snprintf(text, sizeof(text), "%.*s", GY_OVERLAY_TEXT - 1, error->text);
    else
        snprintf(text, sizeof(text), "rank %d could not make its communicator: %.400s", own, error->text);
    gy_flood_own(overlay, error->status, error->rank >= 0 ? error->rank : own, text, true);
}

const struct gy_error *gy_overlay_aborted(const struct gy_overlay *overlay)
{
    return overlay->aborted.status != GYRE_SUCCESS ? &overlay->aborted : NULL;
}

/* The failed ranks, and whether each failure is confirmed.
 *
 *   first failure   the first failure of the world: ends every operation in progress on every rank
 *   failures        all failures, one per rank: needed by the ranks that go on
 *
 * A failure is confirmed in two cases. Either the kernel of the rank's host has reported that the process is gone: by a
 * pidfd, or, without one, by an end of file without a leave message or a refused listener. Or the rank itself has said
 * that it leaves. A rank that is stalled, late or unreachable may be alive and have declared this rank failed. It is
 * out, but it still counts in the quorum of the ranks that go on (agreement.h).
 *
 * A rank that has been told that it is out declares no failures any more: of two ranks that have lost each other one
 * stays.
 *
 * Invariant. The first failure of a rank stays. Only a confirmed death may follow it, and none follows UNREACHABLE:
 * after a network partition has healed, what is seen of the other side comes too late, as that side may have gone on by
 * then. */
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "membership/overlay_internal.h"
#include "net/byte_codec.h"

#define FAILURE_HEAD 6

const struct gy_failed_rank *gy_overlay_failure(const struct gy_overlay *overlay, int rank)
{
    return &overlay->failures[rank];
}

int64_t gy_overlay_failures_changed(const struct gy_overlay *overlay)
{
    return overlay->suspects > 0 || overlay->doubted ? gy_now() : overlay->failures_changed;
}

bool gy_failure_learn(struct gy_overlay *overlay, int rank, gyre_status status, bool proved, const char *why)
{
    struct gy_failed_rank *failure = &overlay->failures[rank];
    bool first = failure->status == GYRE_SUCCESS;

    if (!first && (!proved || failure->proved || failure->status == GYRE_PEER_UNREACHABLE))
        return false;
    failure->proved = proved;
    overlay->failures_changed = gy_now();
    if (!first)
        return true;
    failure->status = status;
    failure->when = overlay->failures_changed;
    failure->why = gy_alloc(strlen(why) + 1);
    if (failure->why)
        memcpy(failure->why, why, strlen(why) + 1);
    return true;
}

static void send_failure(struct gy_neighbour *to, int rank)
{
    const struct gy_failed_rank *failure = &to->overlay->failures[rank];
    const char *why = failure->why ? failure->why : "";
    size_t length = strnlen(why, GY_OVERLAY_TEXT);
    uint8_t body[FAILURE_HEAD + GY_OVERLAY_TEXT];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));

    gy_wire_put(&wire, (uint32_t)rank, 4);
    gy_wire_put(&wire, failure->status, 1);
    gy_wire_put(&wire, failure->proved, 1);
    gy_wire_put_bytes(&wire, why, length);
    gy_stream_send(&to->stream, GY_OVERLAY_RECORD, body, FAILURE_HEAD + length);
}

void gy_failure_flood(struct gy_overlay *overlay, int rank, const struct gy_neighbour *from)
{
    for (int i = 0; i < overlay->count; i++) {
        if (overlay->neighbours[i] != from)
            send_failure(overlay->neighbours[i], rank);
    }
}

void gy_failure_receive(struct gy_neighbour *from, uint8_t *body, size_t bytes)
{
    struct gy_overlay *overlay = from->overlay;
    struct gy_wire wire = gy_wire_over(body, bytes);
    uint32_t rank = (uint32_t)gy_wire_get(&wire, 4), status = (uint32_t)gy_wire_get(&wire, 1);
    bool proved = gy_wire_get(&wire, 1) != 0;
    char why[GY_OVERLAY_TEXT + 1];

    if (wire.bad || bytes > FAILURE_HEAD + GY_OVERLAY_TEXT || rank >= (uint32_t)overlay->world->size ||
        status < GYRE_PEER_DEAD || status > GYRE_PEER_LEFT)
        return;
    memcpy(why, wire.at, bytes - FAILURE_HEAD);
    why[bytes - FAILURE_HEAD] = '\0';
    proved &= (int)rank != overlay->world->rank; /* we live, but not with them */
    if (gy_failure_learn(overlay, (int)rank, (gyre_status)status, proved, why))
        gy_failure_flood(overlay, (int)rank, from);
}

void gy_failure_catch_up(struct gy_neighbour *neighbour)
{
    for (int rank = 0; rank < neighbour->overlay->world->size; rank++) {
        const struct gy_failed_rank *failure = &neighbour->overlay->failures[rank];

        if (failure->status != GYRE_SUCCESS &&
            failure->status != GYRE_PEER_LEFT) /* leave messages are flooded separately */
            send_failure(neighbour, rank);
    }
}

void gy_failure_of_report(struct gy_overlay *overlay, gyre_status status, int rank, const char *why,
                          const struct gy_neighbour *from)
{
    if (status == GYRE_MEETING_FAILED) /* it took part in bootstrap, and did not connect afterwards */
        status = GYRE_PEER_LATE;
    if (status != GYRE_PEER_DEAD && status != GYRE_PEER_UNREACHABLE && status != GYRE_PEER_STALLED &&
        status != GYRE_PEER_LATE)
        return;
    if (!from && overlay->failures[overlay->world->rank].status != GYRE_SUCCESS)
        return;
    if (gy_failure_learn(overlay, rank, status, false, why) && !from)
        gy_failure_flood(overlay, rank, NULL);
}

void gy_overlay_declare_failed(struct gy_overlay *overlay, int rank, gyre_status status, const char *why)
{
    if (!gy_failure_learn(overlay, rank, status, false, why))
        return;
    gy_log(GY_LOG_ERROR, "%s", why);
    gy_failure_flood(overlay, rank, NULL);
}

void gy_failures_free(struct gy_overlay *overlay)
{
    for (int rank = 0; overlay->failures && rank < overlay->world->size; rank++)
        gy_free(overlay->failures[rank].why);
    gy_free(overlay->failures);
}

/* Who counts in a session, who is waited for, and how long.
 *
 * Enough. Those who live go on if they are more than half of the electorate, or just half and have its lowest rank. The
 * electorate is every member of whom it is not proved that it is gone. Two sides that cannot see each other are then
 * never both enough: whoever lives on one side is in the other side's electorate, so with A and B alive on the sides,
 * |A| + |B| is at most either electorate, and both cannot be more than half; if both are just half, the electorates are
 * A and B together, and have one lowest rank.
 *
 * Silence. The chair waits for members, members wait for their chair; everybody else is waited for by nobody.
 *   has it entered the session?   no: legal, until GYRE_TIMEOUT                                 -> PEER_LATE
 *                                 yes: it beats every second; silent for GYRE_STALL_TIMEOUT     -> PEER_STALLED
 *                                 yes, and says that it may be computing: silent for GYRE_TIMEOUT -> PEER_LATE
 *                                 it has ended it with an error, and says so (agreement.c)        -> PEER_LATE */
#include <stdio.h>

#include "core/clock.h"
#include "membership/agreement_internal.h"

#define REACH_AFTER (20 * GY_MILLISECOND)

bool gy_session_lives(const struct gy_council *council, int rank)
{
    return gy_overlay_fate(council->overlay, rank)->status == GYRE_SUCCESS;
}

int gy_session_chair(const struct gy_council *council, const struct gy_session *session)
{
    for (int i = 0; i < session->count; i++)
        if (gy_session_lives(council, session->members[i]))
            return session->members[i];
    return GY_NOBODY;
}

bool gy_session_enough(const struct gy_council *council, const struct gy_session *session)
{
    int electorate = 0, alive = 0;
    bool lowest_lives = false;

    for (int i = 0; i < session->count; i++) {
        const struct gy_fate *fate = gy_overlay_fate(council->overlay, session->members[i]);
        bool lives = fate->status == GYRE_SUCCESS;

        if (fate->proved)
            continue;
        lowest_lives |= electorate == 0 && lives;
        electorate++;
        alive += lives;
    }
    return 2 * alive > electorate || (2 * alive == electorate && lowest_lives);
}

int64_t gy_session_beat_interval(const struct gy_council *council)
{
    int64_t quarter = council->world->config->stall_timeout_ns / 4;

    return quarter < GY_SECOND ? quarter : GY_SECOND;
}

void gy_session_watch(struct gy_council *council, struct gy_session *session, int rank, int64_t now)
{
    const struct gy_seat *seat = &session->seats[rank];
    const struct gy_config *config = council->world->config;
    int64_t silent = now - (seat->heard > session->began ? seat->heard : session->began);
    char text[300];

    if (now - session->began > REACH_AFTER)
        gy_overlay_reach(council->overlay, rank);
    if (seat->entered && !seat->away && silent > config->stall_timeout_ns) {
        snprintf(text, sizeof(text),
                 "rank %d takes part in an agreement and has said nothing for %.0f s (GYRE_STALL_TIMEOUT); is it "
                 "stopped?",
                 rank, (double)silent / 1e9);
        gy_overlay_condemn(council->overlay, rank, GYRE_PEER_STALLED, text);
    } else if ((!seat->entered && now - session->began > session->timeout_ns) ||
               (seat->away && silent > session->timeout_ns)) {
        snprintf(text, sizeof(text), "rank %d did not come %s an agreement within %g s (GYRE_TIMEOUT)", rank,
                 seat->entered ? "back to" : "to", (double)session->timeout_ns / 1e9);
        gy_overlay_condemn(council->overlay, rank, GYRE_PEER_LATE, text);
    }
}

/* It has ended alone: who waits for it would do so for ever. What it has accepted may have been decided with it, so that
 * nothing is proved. */
void gy_session_judge_quit(struct gy_council *council, const struct gy_session *session, int rank)
{
    char text[160];

    if (!session->seats[rank].quit || !session->entered || session->decided || session->quit)
        return;
    snprintf(text, sizeof(text), "rank %d has ended an agreement with an error, and takes no part in it any more",
             rank);
    gy_overlay_condemn(council->overlay, rank, GYRE_PEER_LATE, text);
}

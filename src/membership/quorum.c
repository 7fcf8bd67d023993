/* Quorum of an instance, the ranks that are waited for, and the timeouts.
 *
 * Quorum. The live members go on if they are more than half of the electorate, or exactly half and have its lowest
 * rank. The electorate is every member whose death is not confirmed. So two sides that cannot see each other never both
 * have a quorum. A live rank of one side is in the other side's electorate. So with A and B alive on the sides,
 * |A| + |B| is at most either electorate, and both cannot be more than half. If both are exactly half, each electorate
 * is A and B together, and has one lowest rank.
 *
 * Silence. The coordinator waits for members, members wait for their coordinator; no other waiting happens.
 *   has it entered the instance?   no: legal, until GYRE_TIMEOUT                                 -> PEER_LATE
 *                                 yes: it beats every second; silent for GYRE_STALL_TIMEOUT     -> PEER_STALLED
 *                                 yes, and says that it may be computing: silent for GYRE_TIMEOUT -> PEER_LATE
 *                                 it has ended it with an error, and says so (agreement.c)        -> PEER_LATE */
#include <stdio.h>

#include "core/clock.h"
#include "membership/agreement_internal.h"

#define REACH_AFTER (20 * GY_MILLISECOND)

bool gy_instance_is_alive(const struct gy_agreement *agreement, int rank)
{
    return gy_overlay_failure(agreement->overlay, rank)->status == GYRE_SUCCESS;
}

int gy_instance_coordinator(const struct gy_agreement *agreement, const struct gy_instance *instance)
{
    for (int i = 0; i < instance->count; i++)
        if (gy_instance_is_alive(agreement, instance->members[i]))
            return instance->members[i];
    return GY_NOBODY;
}

bool gy_instance_has_quorum(const struct gy_agreement *agreement, const struct gy_instance *instance)
{
    int electorate = 0, alive = 0;
    bool lowest_lives = false;

    for (int i = 0; i < instance->count; i++) {
        const struct gy_failed_rank *failure = gy_overlay_failure(agreement->overlay, instance->members[i]);
        bool lives = failure->status == GYRE_SUCCESS;

        if (failure->proved)
            continue;
        lowest_lives |= electorate == 0 && lives;
        electorate++;
        alive += lives;
    }
    return 2 * alive > electorate || (2 * alive == electorate && lowest_lives);
}

int64_t gy_instance_beat_interval(const struct gy_agreement *agreement)
{
    int64_t quarter = agreement->world->config->stall_timeout_ns / 4;

    return quarter < GY_SECOND ? quarter : GY_SECOND;
}

void gy_instance_watch(struct gy_agreement *agreement, struct gy_instance *instance, int rank, int64_t now)
{
    const struct gy_agreement_peer *peer = &instance->peers[rank];
    const struct gy_config *config = agreement->world->config;
    int64_t silent = now - (peer->heard > instance->began ? peer->heard : instance->began);
    char text[300];

    if (now - instance->began > REACH_AFTER)
        gy_overlay_ensure_connected(agreement->overlay, rank);
    if (peer->entered && !peer->away && silent > config->stall_timeout_ns) {
        snprintf(text, sizeof(text),
                 "rank %d takes part in an agreement and has said nothing for %.0f s (GYRE_STALL_TIMEOUT); is it "
                 "stopped?",
                 rank, (double)silent / 1e9);
        gy_overlay_declare_failed(agreement->overlay, rank, GYRE_PEER_STALLED, text);
    } else if ((!peer->entered && now - instance->began > instance->timeout_ns) ||
               (peer->away && silent > instance->timeout_ns)) {
        snprintf(text, sizeof(text), "rank %d did not come %s an agreement within %g s (GYRE_TIMEOUT)", rank,
                 peer->entered ? "back to" : "to", (double)instance->timeout_ns / 1e9);
        gy_overlay_declare_failed(agreement->overlay, rank, GYRE_PEER_LATE, text);
    }
}

/* The member has ended the instance alone: a rank that waits for it would do so for ever. What it accepted may have
 * been decided with it, so its death is not confirmed. */
void gy_instance_check_quit(struct gy_agreement *agreement, const struct gy_instance *instance, int rank)
{
    char text[160];

    if (!instance->peers[rank].quit || !instance->entered || instance->decided || instance->quit)
        return;
    snprintf(text, sizeof(text), "rank %d has ended an agreement with an error, and takes no part in it any more",
             rank);
    gy_overlay_declare_failed(agreement->overlay, rank, GYRE_PEER_LATE, text);
}

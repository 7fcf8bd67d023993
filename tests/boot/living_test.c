/* Living: what looks like a death over the overlay and is none, and two ranks that lose each other, one of which is
 * out. */
#include <errno.h>
#include <string.h>

#include "core/mem.h"
#include "membership/overlay_internal.h"
#include "ranks.h"

/* Rank 1 has no memory for a message of rank 0: rank 1 fails, and no other rank. */
static void live_deaf(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay)
{
    static const uint8_t message[GY_OVERLAY_BODY + 1];
    int64_t until = gy_now() + 20 * GY_SECOND;

    if (rank->rank == 1)
        gy_alloc_fail_at(1); /* the next that it asks for is room for this message */
    ranks_reach(rank, poller, overlay, STAGE_READY);
    if (rank->rank == 0)
        CHECK(gy_overlay_send(overlay, 1, message, sizeof(message)), "rank 0 is not connected to rank 1");
    while (gy_now() < until && (rank->status == GYRE_SUCCESS || gy_overlay_failure(overlay, 1)->status == GYRE_SUCCESS))
        ranks_poll(rank, poller, overlay);
    for (int i = 0; i < rank->size; i++)
        rank->found[i] = gy_overlay_failure(overlay, i)->status;
    rank->found[7] = gy_overlay_deaf(overlay) != NULL;
    ranks_reach(rank, poller, overlay, STAGE_TOLD); /* no rank leaves before all have checked */
}

static void deaf(void)
{
    struct rank *ranks = ranks_watch(3, live_deaf);

    ranks_run(ranks, 3);
    for (int i = 0; i < 3; i++) {
        CHECK(ranks[i].status == GYRE_NO_MEMORY && ranks[i].error.rank == 1, "rank %d: %d, blames %d: %s", i,
              ranks[i].status, ranks[i].error.rank, ranks[i].error.text);
        CHECK(ranks[i].found[0] == GYRE_SUCCESS && ranks[i].found[1] == GYRE_PEER_LEFT, "rank %d: fates %ld %ld", i,
              ranks[i].found[0], ranks[i].found[1]);
        CHECK(ranks[i].found[7] == (i == 1), "rank %d is deaf: %ld", i, ranks[i].found[7]);
    }
    printf("ok: who cannot hear gives up, and blames nobody: %s\n", ranks[0].error.text);
}

/* Rank 0 has lost its connection to rank 1, which has not noticed, and connects to it again. */
static void live_reconnect(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay)
{
    int64_t until = gy_now() + GY_SECOND / 2;
    int other = 1 - rank->rank, kept = -1;

    ranks_reach(rank, poller, overlay, STAGE_READY);
    if (rank->rank == 0) {
        struct gy_neighbour *ours = gy_neighbour_find(overlay, other, true);

        CHECK(ours && ours->connected, "rank 0 has not connected to rank 1");
        kept = dup(ours->stream.fd); /* so that rank 1 sees no end */
        ours->ended = true;
    }
    while (gy_now() < until || (gy_now() < until + 20 * GY_SECOND && !gy_overlay_ensure_connected(overlay, other))) {
        gy_overlay_ensure_connected(overlay, other);
        ranks_poll(rank, poller, overlay);
    }
    rank->found[0] = gy_overlay_ensure_connected(overlay, other);
    rank->found[1] = gy_overlay_failure(overlay, other)->status;
    if (kept >= 0)
        close(kept);
}

static void reconnected(void)
{
    struct rank *ranks = ranks_watch(2, live_reconnect);

    for (int i = 0; i < 2; i++)
        ranks[i].together = true;
    ranks_run(ranks, 2);
    for (int i = 0; i < 2; i++)
        CHECK(ranks[i].status == GYRE_SUCCESS && ranks[i].found[0] && ranks[i].found[1] == GYRE_SUCCESS,
              "rank %d: %d, connected %ld, fate %ld: %s", i, ranks[i].status, ranks[i].found[0], ranks[i].found[1],
              ranks[i].error.text);
    puts("ok: a rank that connects again is heard again");
}

/* Ranks 0 and 1 have lost each other, and rank 2 has both: one of them is out, the same for all. `choice`: rank 0 finds
 * it two seconds later, when rank 1 has said so. */
static void live_parted(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay)
{
    bool later = rank->choice == 1;
    int kept = -1, other = 1 - rank->rank;
    struct gy_neighbour *lost = NULL;
    int64_t until;

    ranks_reach(rank, poller, overlay, STAGE_READY);
    if (rank->rank < 2) {
        lost = gy_neighbour_find(overlay, other, true);
        lost = lost ? lost : gy_neighbour_find(overlay, other, false);
        CHECK(lost && lost->connected, "rank %d is not connected to rank %d", rank->rank, other);
        kept = dup(lost->stream.fd); /* so that the other sees no end */
        gy_stream_close(&lost->stream);
    }
    ranks_reach(rank, poller, overlay, STAGE_TOLD);
    for (until = gy_now() + 2 * GY_SECOND; later && rank->rank == 0 && gy_now() < until;)
        ranks_poll(rank, poller, overlay);
    if (lost)
        gy_neighbour_end(lost, ETIMEDOUT);
    for (until = gy_now() + (later ? 4 : 2) * GY_SECOND; gy_now() < until;)
        ranks_poll(rank, poller, overlay);
    rank->found[0] = gy_overlay_failure(overlay, 0)->status;
    rank->found[1] = gy_overlay_failure(overlay, 1)->status;
    if (kept >= 0)
        close(kept);
}

static void parted(bool later)
{
    struct rank *ranks = ranks_watch(3, live_parted);
    int out = later ? 0 : 1;

    for (int i = 0; i < 3; i++) {
        ranks[i].choice = later;
        ranks[i].together = true;
    }
    ranks_run(ranks, 3);
    for (int i = 0; i < 3; i++)
        CHECK(ranks[i].found[out] == GYRE_PEER_UNREACHABLE && ranks[i].found[1 - out] == GYRE_SUCCESS &&
                  ranks[i].error.rank == out,
              "rank %d: fates %ld %ld, blames %d: %s", i, ranks[i].found[0], ranks[i].found[1], ranks[i].error.rank,
              ranks[i].error.text);
    printf("ok: of two that have lost each other one is out: %s\n", ranks[2].error.text);
}

/* Rank 2 leaves after rank 0, and all ranks that are still connected to it compute for a while. Rank 7, which is not
 * connected to it, waits for it and finds its listener closed. It must receive the leave message, and report no
 * death until then. */
static void live_unheard(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay)
{
    const struct rank *ranks = rank - rank->rank;
    bool computes = rank->rank < 5 || rank->rank == 6;
    int64_t until;

    ranks_reach(rank, poller, overlay, STAGE_READY);
    if (rank->rank == 0)
        return;
    while (!gy_overlay_has_left(overlay, 0))
        ranks_poll(rank, poller, overlay);
    atomic_store(&rank->stage, STAGE_TOLD);
    for (int i = 1; i < rank->size; i++)
        while (atomic_load(&ranks[i].stage) < STAGE_TOLD)
            usleep(1000); /* or it would hear the leave message now */
    if (rank->rank == 2)
        return;
    while (atomic_load(&ranks[2].stage) < STAGE_ENDED)
        usleep(1000);
    for (until = gy_now() + GY_SECOND / 2; gy_now() < until;
         computes ? (void)usleep(1000) : ranks_poll(rank, poller, overlay))
        if (rank->rank == 7)
            gy_overlay_connect_on_demand(overlay, 2);
    until = gy_now() + 20 * GY_SECOND;
    while (rank->status == GYRE_SUCCESS && !gy_overlay_has_left(overlay, 2) && gy_now() < until)
        ranks_poll(rank, poller, overlay);
    rank->found[0] = gy_overlay_has_left(overlay, 2);
    for (until = gy_now() + 20 * GY_SECOND; !gy_overlay_calm(overlay) && gy_now() < until;)
        ranks_poll(rank, poller, overlay);
    rank->found[1] = gy_overlay_calm(overlay);
    atomic_store(&rank->stage, STAGE_ASKED);
    while (atomic_load(&ranks[7].stage) < STAGE_ASKED) /* so long there is a rank that can be asked */
        ranks_poll(rank, poller, overlay);
}

static void unheard(void)
{
    struct rank *ranks = ranks_watch(8, live_unheard);

    ranks_run(ranks, 8);
    for (int i = 0; i < 8; i++) {
        CHECK(ranks[i].status == GYRE_SUCCESS, "rank %d took a goodbye for: %s", i, ranks[i].error.text);
        CHECK(i == 0 || i == 2 || ranks[i].found[0], "rank %d heard no goodbye", i);
        CHECK(i == 0 || i == 2 || ranks[i].found[1], "rank %d suspects somebody who has left", i);
    }
    puts("ok: who finds a closed door waits for those who know why");
}

static void await_stage(const struct rank *rank, int stage)
{
    while (atomic_load(&rank->stage) < stage)
        usleep(1000);
}

/* Rank 7 waits for rank 2, which has left, and is connected to all ranks that could tell but rank 4. Rank 4 leaves,
 * too, while it is being asked, and the ranks that could tell of that have left before. That does not concern rank 7
 * until it waits for rank 4 itself. */
static void live_witness(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay)
{
    const struct rank *ranks = rank - rank->rank;
    int64_t until;

    ranks_reach(rank, poller, overlay, STAGE_READY);
    while (rank->rank != 0 && !gy_overlay_has_left(overlay, 0))
        ranks_poll(rank, poller, overlay);
    atomic_store(&rank->stage, STAGE_TOLD);
    for (int i = 1; i < rank->size && rank->rank != 0; i++)
        await_stage(&ranks[i], STAGE_TOLD);
    if (rank->rank == 0 || rank->rank == 2)
        return;
    await_stage(&ranks[2], STAGE_ENDED);
    for (until = gy_now() + GY_SECOND / 5; rank->rank == 7 && gy_now() < until; ranks_poll(rank, poller, overlay))
        gy_overlay_connect_on_demand(overlay, 2);
    atomic_store(&rank->stage, STAGE_ASKED);
    await_stage(&ranks[7], STAGE_ASKED);
    for (int i = 3; i < 7 && rank->rank == 4; i += i == 3 ? 2 : 1)
        await_stage(&ranks[i], STAGE_ENDED);
    if (rank->rank > 2 && rank->rank < 7)
        return;
    for (until = gy_now() + 20 * GY_SECOND; rank->rank == 7 && atomic_load(&ranks[4].stage) < STAGE_ENDED;)
        ranks_poll(rank, poller, overlay);
    await_stage(&ranks[4], STAGE_ENDED);
    if (rank->rank == 7)
        for (int64_t later = gy_now() + GY_SECOND / 5; rank->status == GYRE_SUCCESS && gy_now() < later;)
            ranks_poll(rank, poller, overlay);
    rank->found[0] = rank->status;
    while (rank->status == GYRE_SUCCESS && gy_now() < until) {
        if (rank->rank == 7)
            gy_overlay_connect_on_demand(overlay, 4);
        ranks_poll(rank, poller, overlay);
    }
}

static void witness(void)
{
    struct rank *ranks = ranks_watch(8, live_witness);

    ranks_run(ranks, 8);
    CHECK(ranks[7].found[0] == GYRE_SUCCESS, "rank 7 did not wait for: %s", ranks[7].error.text);
    CHECK(ranks[7].status == GYRE_PEER_DEAD && ranks[7].error.rank == 4, "%d, blames %d: %s", ranks[7].status,
          ranks[7].error.rank, ranks[7].error.text);
    puts("ok: whose door is closed is dead only to those who wait for it");
}

int main(void)
{
    ranks_begin(230);
    setenv("GYRE_LOG", "warn", 0);
    deaf();
    reconnected();
    parted(false);
    parted(true);
    unheard();
    witness();
    puts("nobody who lives was taken for dead");
    return 0;
}

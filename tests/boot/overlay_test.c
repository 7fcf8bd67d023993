/* Deaths and leave messages over the overlay, with ranks as processes: one is killed, or leaves, or aborts. The
 * others print when gy_overlay_check told them, and the rank it named. Early: one dies between the bootstrap and its
 * overlay, and another comes to its own only when all the rest have failed because of that; only the dead one may be
 * blamed. The time by which a busy machine makes sleepers late (fault_noise.c) is allowed thrice beside the 100 ms,
 * as in fault_times.c. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "../system/fault_noise.h"
#include "bootstrap/world.h"
#include "membership/overlay_internal.h"
#include "ranks.h"

enum what { KILL, KILL_WITH_CHILD, LEAVE, ABORT, EARLY, EARLY_DEAD, EARLY_LATE, OWN_BODY, AWAIT };

/* The number of ranks that announced their leave; the time of the first failure; set by the test: begin to wait only
 * when the rank is dead. */
enum found { FOUND_LEFT, FOUND_WHEN, FOUND_LATE };

#define PATIENCE (60 * GY_SECOND) /* of waits for what happens at once; the harness has less */

/* A leave message, or for too long none: a rank that leaves may have been late. */
static bool heard(const struct rank *rank, const struct gy_overlay *overlay)
{
    for (int i = 0; i < rank->size; i++)
        if (gy_overlay_has_left(overlay, i))
            return true;
    return gy_now() > rank->found[FOUND_WHEN] + 20 * GY_SECOND;
}

static bool is_connected(struct gy_overlay *overlay, int rank)
{
    const struct gy_neighbour *ours = gy_neighbour_find(overlay, rank, true);
    const struct gy_neighbour *theirs = gy_neighbour_find(overlay, rank, false);

    return (ours && ours->connected) || (theirs && theirs->connected);
}

/* All ranks watch; the one whose `choice` says so leaves or aborts after a second. */
static void watch(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay)
{
    int64_t until = gy_now() + rank->timeout, pause = gy_now() + GY_SECOND;

    rank->found[FOUND_WHEN] = gy_now();
    if (rank->victim && rank->choice == KILL_WITH_CHILD && fork() == 0) { /* holds every socket: only the pidfd tells */
        prctl(PR_SET_PDEATHSIG, 0);
        sleep(2);
        _exit(0);
    }
    atomic_store(&rank->stage, STAGE_READY);
    while (rank->status == GYRE_SUCCESS && (gy_now() < until || (rank->choice == LEAVE && !heard(rank, overlay)))) {
        if (gy_now() >= pause && rank->choice == LEAVE + 100)
            return;
        if (rank->choice >= AWAIT + 100 && gy_now() >= pause + (rank->found[FOUND_LATE] ? GY_SECOND : 0)) {
            gy_overlay_connect_on_demand(overlay, rank->choice - AWAIT - 100);
            if (is_connected(overlay, rank->choice - AWAIT - 100))
                atomic_store(&rank->stage, STAGE_TOLD);
        }
        if (gy_now() >= pause && rank->choice == ABORT + 100)
            gy_overlay_report(overlay, GYRE_ABORTED, rank->rank, "rank 1 was told to abort");
        rank->status = gy_overlay_check(overlay, &rank->error);
        gy_poller_poll(poller, GY_MILLISECOND);
    }
    rank->found[FOUND_WHEN] = gy_now();
    for (int i = 0; i < rank->size; i++)
        rank->found[FOUND_LEFT] += gy_overlay_has_left(overlay, i);
}

static struct rank *begin(int size, int choice, int64_t timeout)
{
    struct rank *ranks = ranks_watch(size, watch);

    for (int i = 0; i < size; i++) {
        ranks[i].choice = choice;
        ranks[i].timeout = timeout;
    }
    return ranks;
}

static void killed(int size, int victim, bool with_child)
{
    struct rank *ranks = begin(size, with_child ? KILL_WITH_CHILD : KILL, PATIENCE);
    int64_t when, noise, worst = 0;

    ranks[victim].victim = true;
    ranks_start(ranks, size, true);
    ranks_await(ranks, size, STAGE_READY);
    while (atomic_load(&ranks[victim].stage) < STAGE_READY)
        usleep(500);
    fault_noise_begin();
    usleep(20000);
    when = gy_now();
    kill(ranks[victim].pid, SIGKILL);
    ranks_end(ranks, size);
    noise = fault_noise(when, gy_now());
    fault_noise_end();
    for (int i = 0; i < size; i++) {
        if (i == victim)
            continue;
        CHECK(ranks[i].status == GYRE_PEER_DEAD && ranks[i].error.rank == victim, "rank %d: %d, blames %d: %s", i,
              ranks[i].status, ranks[i].error.rank, ranks[i].error.text);
        worst = ranks[i].found[FOUND_WHEN] - when > worst ? ranks[i].found[FOUND_WHEN] - when : worst;
    }
    CHECK(worst < 100 * GY_MILLISECOND + 3 * noise, "told after %.1f ms, while sleepers came %.1f ms late",
          (double)worst / 1e6, (double)noise / 1e6);
    printf("ok: %d ranks, rank %d killed%s: all know within %.2f ms: %s\n", size, victim,
           with_child ? " while its forked child sleeps" : "", (double)worst / 1e6, ranks[victim ? 0 : 1].error.text);
}

/* All ranks leave but two that are no neighbours. One waits for the other, and no rank is left to report the other's
 * death. */
static void died_last(int size, int victim, int last, bool late)
{
    struct rank *ranks = begin(size, LEAVE + 100, PATIENCE);
    int64_t when, noise;

    ranks[victim].choice = KILL;
    ranks[victim].victim = true;
    ranks[last].choice = AWAIT + 100 + victim;
    ranks[last].found[FOUND_LATE] = late;
    ranks_start(ranks, size, true);
    ranks_await(ranks, size, STAGE_READY);
    for (int i = 0; i < size; i++)
        if (i != victim && i != last)
            ranks_await(&ranks[i], 1, STAGE_ENDED);
    if (!late) /* they know each other */
        ranks_await(&ranks[last], 1, STAGE_TOLD);
    fault_noise_begin();
    usleep(20000);
    when = gy_now();
    kill(ranks[victim].pid, SIGKILL);
    ranks_end(ranks, size);
    noise = fault_noise(when, gy_now());
    fault_noise_end();
    CHECK(ranks[last].status == GYRE_PEER_DEAD && ranks[last].error.rank == victim, "%d, blames %d: %s",
          ranks[last].status, ranks[last].error.rank, ranks[last].error.text);
    CHECK(late || ranks[last].found[FOUND_WHEN] - when < 100 * GY_MILLISECOND + 3 * noise, "told after %.1f ms",
          (double)(ranks[last].found[FOUND_WHEN] - when) / 1e6);
    printf("ok: %d ranks, all have left but rank %d, that waits for rank %d: %s\n", size, last, victim,
           ranks[last].error.text);
}

static void left(int size, int leaver)
{
    struct rank *ranks = begin(size, LEAVE, 2 * GY_SECOND);

    ranks[leaver].choice = LEAVE + 100;
    ranks_run(ranks, size);
    for (int i = 0; i < size; i++) {
        CHECK(ranks[i].status == GYRE_SUCCESS, "rank %d took a goodbye for: %s", i, ranks[i].error.text);
        CHECK(i == leaver || ranks[i].found[FOUND_LEFT] >= 1, "rank %d heard no goodbye", i);
    }
    printf("ok: %d ranks, rank %d left, and nobody called it dead\n", size, leaver);
}

static void aborted(int size, int who)
{
    struct rank *ranks = begin(size, ABORT, PATIENCE);

    ranks[who].choice = ABORT + 100;
    ranks_run(ranks, size);
    for (int i = 0; i < size; i++)
        CHECK(ranks[i].error.rank == who, "rank %d blames %d", i, ranks[i].error.rank);
    ranks_expect(ranks, size, GYRE_ABORTED, "was told to abort");
}

/* Rank 0 has its say in memory, and then neither checks nor polls: the others have the whole error message from
 * there. */
static struct gy_notice *notice; /* of all ranks */

static void live_notice(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay)
{
    const struct rank *ranks = rank - rank->rank;
    int64_t until = gy_now() + 20 * GY_SECOND;

    gy_overlay_attach_notice(overlay, notice);
    atomic_store(&rank->stage, STAGE_READY);
    for (int i = 0; i < rank->size; i++)
        while (atomic_load(&ranks[i].stage) < STAGE_READY)
            gy_poller_poll(poller, GY_MILLISECOND);
    if (rank->rank == 0)
        gy_overlay_report(overlay, GYRE_MISMATCH, 2, "rank 2 called one thing, rank 0 another");
    while (rank->rank != 0 && rank->status == GYRE_SUCCESS && gy_now() < until)
        rank->status = gy_overlay_check(overlay, &rank->error);
    atomic_store(&rank->stage, STAGE_TOLD);
    for (int i = 0; i < rank->size; i++)
        while (atomic_load(&ranks[i].stage) < STAGE_TOLD)
            usleep(1000);
    rank->status = gy_overlay_check(overlay, &rank->error);
}

/* A rank died that was about to write the notice: all have the error message all the same. */
static void live_claimed(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay)
{
    int64_t until = gy_now() + 20 * GY_SECOND;

    gy_overlay_attach_notice(overlay, notice);
    ranks_reach(rank, poller, overlay, STAGE_READY);
    if (rank->rank == 0)
        gy_overlay_report(overlay, GYRE_MISMATCH, 2, "rank 2 called one thing, rank 0 another");
    while (rank->status == GYRE_SUCCESS && gy_now() < until)
        ranks_poll(rank, poller, overlay);
}

static void noticed(bool claimed)
{
    struct rank *ranks = begin(3, OWN_BODY, 0);

    notice = mmap(NULL, sizeof(*notice), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(notice != MAP_FAILED, "no memory to share");
    for (int i = 0; i < 3; i++)
        ranks[i].body = claimed ? live_claimed : live_notice;
    atomic_store(&notice->word, claimed ? UINT64_C(2) << 8 : 0);
    ranks_start(ranks, 3, true);
    ranks_end(ranks, 3);
    for (int i = 0; i < 3; i++)
        CHECK(ranks[i].status == GYRE_MISMATCH && ranks[i].error.rank == 2 &&
                  strcmp(ranks[i].error.text, "rank 2 called one thing, rank 0 another") == 0,
              "rank %d: %d, blames %d: %s", i, ranks[i].status, ranks[i].error.rank, ranks[i].error.text);
    munmap(notice, sizeof(*notice));
    puts(claimed ? "ok: who dies while it tells keeps no other from it"
                 : "ok: the sentence is read where the verdict is");
}

gyre_status __real_gy_overlay_create(struct gy_world *world, struct gy_overlay **overlay_p, struct gy_error *error);
gyre_status __wrap_gy_overlay_create(struct gy_world *world, struct gy_overlay **overlay_p, struct gy_error *error);

gyre_status __wrap_gy_overlay_create(struct gy_world *world, struct gy_overlay **overlay_p, struct gy_error *error)
{
    if (rank_self->choice == EARLY_DEAD)
        kill(getpid(), SIGKILL);
    if (rank_self->choice == EARLY_LATE)
        usleep(500000);
    return __real_gy_overlay_create(world, overlay_p, error);
}

/* In a world of two no rank can tell the survivor. */
static void died_early(int size, int victim)
{
    struct rank *ranks = begin(size, EARLY, PATIENCE);
    int64_t when, noise;

    ranks[victim].choice = EARLY_DEAD;
    ranks[victim].victim = true;
    if (size > 2)
        ranks[(victim + size / 2 + 1) % size].choice = EARLY_LATE;
    fault_noise_begin();
    when = gy_now();
    ranks_run(ranks, size);
    noise = fault_noise(when, gy_now());
    fault_noise_end();
    for (int i = 0; i < size; i++) {
        CHECK(i == victim || ranks[i].error.rank == victim, "rank %d blames %d: %s", i, ranks[i].error.rank,
              ranks[i].error.text);
        CHECK(i == victim || ranks[i].when - when < 5 * GY_SECOND + 20 * noise, "rank %d was told late", i);
    }
    ranks_expect(ranks, size, GYRE_PEER_DEAD, "died");
}

/* It has met, and does nothing more. */
static void stand(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay)
{
    const struct rank *ranks = rank - rank->rank;

    (void)poller, (void)overlay;
    for (int i = 0; i < rank->size - 1; i++)
        while (atomic_load(&ranks[i].stage) < STAGE_READY)
            usleep(1000);
}

/* How it has come out of connecting, or what it heard then: the last one may still have been meeting when it was
 * connected to, and have answered. */
static void connected(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay)
{
    const struct rank *ranks = rank - rank->rank;
    int64_t until = gy_now() + 20 * GY_SECOND;

    while ((rank->status = gy_overlay_check(overlay, &rank->error)) == GYRE_SUCCESS && gy_now() < until)
        gy_poller_poll(poller, GY_MILLISECOND);
    rank->found[FOUND_WHEN] = gy_now();
    atomic_store(&rank->stage, STAGE_READY);
    for (int i = 0; i < rank->size - 1; i++)
        while (atomic_load(&ranks[i].stage) < STAGE_READY)
            gy_poller_poll(poller, GY_MILLISECOND);
}

/* The last rank of a later epoch does not connect. Rank 0 waits for 2 s, names it and goes on. So do the others,
 * which would have waited for 30 s. */
static void stopped(int size)
{
    struct rank *ranks = begin(size, OWN_BODY, 0);

    for (int i = 0; i < size; i++) {
        ranks[i].body = i < size - 1 ? connected : stand;
        ranks[i].overlay = i < size - 1;
        ranks[i].later = true;
    }
    ranks[0].setting[0] = "GYRE_STALL_TIMEOUT";
    ranks[0].setting[1] = "2";
    ranks_run(ranks, size);
    for (int i = 0; i < size - 1; i++) {
        CHECK(ranks[i].status == GYRE_PEER_STALLED && ranks[i].error.rank == size - 1, "rank %d: %d, blames %d: %s", i,
              ranks[i].status, ranks[i].error.rank, ranks[i].error.text);
        CHECK(ranks[i].found[FOUND_WHEN] - ranks[0].found[FOUND_WHEN] < 10 * GY_SECOND, "rank %d: %.1f s later", i,
              (double)(ranks[i].found[FOUND_WHEN] - ranks[0].found[FOUND_WHEN]) / (double)GY_SECOND);
    }
    puts("ok: who goes on does not wait for one that is out");
}

static void promptly(void)
{
    killed(8, 3, false);
    killed(8, 0, false);
    killed(8, 7, false);
    killed(2, 1, false);
    killed(24, 5, false);
    killed(8, 2, true);
    left(5, 2);
    aborted(6, 1);
    noticed(false);
    noticed(true);
    died_last(8, 2, 7, false);
    died_last(8, 2, 7, true);
}

static void rightly(void)
{
    died_early(2, 0);
    died_early(2, 1);
    for (int victim = 0; victim < 9; victim += 2)
        died_early(9, victim);
    stopped(4);
}

/* Argument: promptly, what has to be known in time; rightly, what takes its time. */
int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    ranks_begin(230);
    setenv("GYRE_LOG", "warn", 0);
    (strcmp(what, "rightly") == 0 ? rightly : promptly)();
    puts("every death, goodbye and abort as expected");
    return 0;
}

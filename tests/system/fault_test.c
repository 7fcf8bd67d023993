/* Faults: what the survivors are told, and how soon. The first argument is the scenario, the second the number of
 * ranks:
 *
 *   kills           SIGKILL of every rank in turn, at a random moment, in a random mix of collectives;
 *                   GYRE_TEST_KILLS times (40)
 *   mixed           the same with the ranks on two hosts (GYRE_HOST_ID)
 *   many            the same with small collectives, a few times: for worlds of 64
 *   computing       a third of the ranks is outside of gyre when it happens
 *   distant         the failed rank's name can only come from ranks that compute, and until then a link breaks
 *   forked          the victim's forked child sleeps on
 *   boot, destroy   kills during these
 *   stop            SIGSTOP: PEER_STALLED
 *   straggler       computing for longer than the stall timeout (GYRE_TEST_STRAGGLER_S, 6 s) is no error
 *
 * Checked on every survivor: the status, the failed rank's name, the operation and its sequence number, and the time
 * from just before the kill to the call's return (the rule of the deadline: fault_times.c). After every round no
 * process, no file and no socket is left (fault_traces.c). */
#include <ctype.h>
#include <signal.h>

#include "fault_calls.h"
#include "fault_noise.h"
#include "fault_ranks.h"
#include "fault_times.h"
#include "fault_traces.h"
#include "support/rank.h"

#define COMPUTE_NS INT64_C(20000000)
#define DISTANT_NS INT64_C(400000000)
/* More ranks than this share their cores with so many others that the deadline is theirs to keep: a second then. */
#define CROWD 32
#define OVERSUBSCRIBED_NS INT64_C(1000000000)
#define HANG_S 60 /* when they are told is judged by itself; only a hang takes so long */
/* A rank that was killed before its HELLO is missing when the bootstrap's time is over. That time is long, so that
 * no other rank is missing on a busy machine, and passes at once when all the others have had these naps to
 * bootstrap. */
#define MEETING_NS INT64_C(60000000000)
#define MEETING_NAPS 1000

static uint64_t chance;
static double straggler_seconds;

/* The number after the first "rank " of the error message that is not the speaker itself, −1: none. */
static int culprit_of(const char *text, int speaker)
{
    for (const char *found = text; (found = strstr(found, "rank ")); found += 5) {
        if (isdigit((unsigned char)found[5]) && atoi(found + 5) != speaker)
            return atoi(found + 5);
    }
    return -1;
}

/* The call that failed is the one after those that were finished. */
static void check_sentence(const struct fault_round *round, int rank)
{
    const struct fault_report *report = fault_ranks_report(rank);
    char call[64];
    snprintf(call, sizeof call, "%s #%llu (", fault_call_name(round->seed, report->calls + 1),
             (unsigned long long)report->calls + 1);
    REQUIRE(culprit_of(report->text, -1) == round->victim, "rank %d does not begin with the culprit", rank);
    REQUIRE(strstr(report->text, call), "rank %d does not name its call, %s", rank, call);
}

/* `since`: when it happened, or when this rank could see it. */
static void check_survivor(const struct fault_round *round, int rank, gyre_status wanted, int64_t since, int64_t noise)
{
    const struct fault_report *report = fault_ranks_report(rank);
    int64_t took = report->when_ns > since ? report->when_ns - since : 0;
    REQUIRE(report->status == wanted, "rank %d got %s, not %s", rank, gyre_status_name(report->status),
            gyre_status_name(wanted));
    check_sentence(round, rank);
    int64_t waited = fault_ranks_waited(rank);
    bool in_time = fault_times_count(took, noise, waited) ||
                   (round->ranks > CROWD && took < OVERSUBSCRIBED_NS + 3 * noise + waited);
    REQUIRE(
        in_time,
        "rank %d was told after %.1f ms, while sleepers came at most %.1f ms late, and others' turns on the cores took "
        "%.1f ms",
        rank, (double)took / 1e6, (double)noise / 1e6, (double)waited / 1e6);
}

static void sleep_ns(int64_t ns)
{
    nanosleep(&(struct timespec){ns / 1000000000, ns % 1000000000}, NULL);
}

/* ---- SIGKILL ---- */

static bool computes(const struct fault_round *round, int rank)
{
    return rank % 3 == 1 && rank != round->victim;
}

static void before_computing(const struct fault_round *round, int rank, uint64_t number)
{
    (void)number;
    if (computes(round, rank))
        sleep_ns(COMPUTE_NS);
}

/* With _Fork gyre cannot close its descriptors in the child, so every socket stays open: only the pidfd tells. */
static void before_forked(const struct fault_round *round, int rank, uint64_t number)
{
    if (rank == round->victim && number == 3 && (round->seed % 2 ? fork() : _Fork()) == 0)
        for (;;)
            pause();
}

static void round_kill(struct fault_round *round, uint64_t spread_us)
{
    fault_ranks_start(round);
    fault_ranks_wait_calls(3);
    usleep((useconds_t)fault_draw(&chance, spread_us));
    int64_t hit = fault_ranks_hit(SIGKILL);
    fault_ranks_wait_reports(HANG_S);
    int64_t noise = fault_noise(hit, rank_now_ns());
    for (int i = 0; i < round->ranks; i++) {
        int64_t entered = fault_ranks_report(i)->entered_ns; /* a computing rank sees it at its next call */
        bool late = round->before == before_computing && computes(round, i) && entered > hit;
        if (i == round->victim)
            continue;
        if (!late)
            fault_times_count_end(fault_ranks_report(i)->when_ns - fault_ranks_ended());
        check_survivor(round, i, GYRE_PEER_DEAD, late ? entered : hit, noise);
    }
    fault_ranks_end();
}

/* ---- the name comes late ---- */

/* Sixteen ranks in a binary tree over tcp. Rank 0 is killed; rank 2, its neighbour in the overlay, is told and closes
 * its links; rank 5, its child in the tree, is a neighbour of neither, and all of its neighbours compute. */
static void before_distant(const struct fault_round *round, int rank, uint64_t number)
{
    (void)round;
    if (number == 5 && rank != 0 && rank != 2 && rank != 5)
        sleep_ns(DISTANT_NS);
}

static void round_distant(void)
{
    struct fault_round round = {.ranks = 16, .victim = 0, .before = before_distant};
    fault_ranks_start(&round);
    fault_ranks_wait_calls(4);
    sleep_ns(DISTANT_NS / 4);
    int64_t hit = fault_ranks_hit(SIGKILL), back = 0;
    fault_ranks_wait_reports(HANG_S);
    int64_t noise = fault_noise(hit, rank_now_ns());
    for (int i = 1; i < round.ranks; i++) {
        int64_t entered = fault_ranks_report(i)->entered_ns;
        back = i != 2 && i != 5 && (back == 0 || entered < back) ? entered : back;
    }
    for (int i = 1; i < round.ranks; i++) {
        int64_t entered = fault_ranks_report(i)->entered_ns;
        check_survivor(&round, i, GYRE_PEER_DEAD, entered > back ? entered : back, noise);
    }
    fault_ranks_end();
}

/* ---- the meeting and the end ---- */

/* How long an unharmed job takes from the first fork to its first call. */
static int64_t time_of_boot(int ranks)
{
    struct fault_round round = {.ranks = ranks, .victim = -1, .calls = 1};
    int64_t begin = rank_now_ns();
    fault_ranks_start(&round);
    fault_ranks_wait_calls(1);
    int64_t took = rank_now_ns() - begin;
    fault_ranks_end();
    return took;
}

/* A rank that was killed before its HELLO can only be missing, and that is known at the bootstrap's deadline. */
static void check_edge(const struct fault_round *round, int rank, bool must_fail)
{
    const struct fault_report *report = fault_ranks_report(rank);
    gyre_status status = report->status;
    bool legal = status == GYRE_PEER_DEAD || status == GYRE_PEER_UNREACHABLE ||
                 (status == GYRE_PEER_LEFT && !must_fail) || (status == GYRE_MEETING_FAILED && !report->met);
    if (status == GYRE_SUCCESS && !must_fail)
        return;
    REQUIRE(legal, "rank %d got %s", rank, gyre_status_name(status));
    REQUIRE(culprit_of(report->text, rank) == round->victim, "rank %d blames rank %d", rank,
            culprit_of(report->text, rank));
}

static void round_boot(int ranks, int victim, int64_t boot_ns)
{
    struct fault_round round = {.ranks = ranks, .victim = victim};
    fault_ranks_start(&round);
    sleep_ns((int64_t)fault_draw(&chance, (uint64_t)boot_ns * 5 / 4));
    int64_t hit = fault_ranks_hit(SIGKILL);
    bool told = fault_ranks_wait_naps(MEETING_NAPS);
    if (!told)
        fault_ranks_pass_time(MEETING_NS);
    fault_ranks_wait_reports(HANG_S);
    for (int i = 0; i < ranks; i++) {
        if (i == victim)
            continue;
        check_edge(&round, i, true);
        if (told)
            (void)fault_times_count(fault_ranks_report(i)->when_ns - hit, 0, 0); /* printed, not judged */
    }
    fault_ranks_end();
}

static void round_destroy(int ranks, int victim)
{
    struct fault_round round = {.ranks = ranks, .victim = victim, .seed = fault_draw(&chance, 1u << 20), .calls = 20};
    fault_ranks_start(&round);
    fault_ranks_wait_calls(19);
    usleep((useconds_t)fault_draw(&chance, 3000));
    fault_ranks_hit(SIGKILL);
    fault_ranks_wait_reports(HANG_S);
    for (int i = 0; i < ranks; i++) {
        if (i != victim)
            check_edge(&round, i, false);
    }
    fault_ranks_end(); /* destroy does not wait: all end in time */
}

/* ---- alive, but ---- */

static void round_stop(int ranks)
{
    struct fault_round round = {.ranks = ranks, .victim = (int)fault_draw(&chance, (uint64_t)ranks), .seed = 1};
    fault_ranks_start(&round);
    fault_ranks_wait_calls(3);
    fault_ranks_hit(SIGSTOP);
    fault_ranks_wait_reports(HANG_S);
    for (int i = 0; i < ranks; i++) {
        /* One that is stopped outside of a call is late, not stalled: both name it; GYRE_TIMEOUT is set as short. */
        gyre_status status = fault_ranks_report(i)->status;
        if (i == round.victim)
            continue;
        REQUIRE(status == GYRE_PEER_STALLED || status == GYRE_PEER_LATE, "rank %d got %s", i, gyre_status_name(status));
        check_sentence(&round, i);
    }
    fault_ranks_end();
}

static void before_straggler(const struct fault_round *round, int rank, uint64_t number)
{
    if (rank == round->ranks - 1 && number == 5)
        sleep_ns((int64_t)(straggler_seconds * 1e9));
}

static void round_straggler(int ranks)
{
    struct fault_round round = {.ranks = ranks, .victim = -1, .seed = 1, .calls = 10, .before = before_straggler};
    fault_ranks_start(&round);
    fault_ranks_wait_reports(straggler_seconds + HANG_S);
    for (int i = 0; i < ranks; i++)
        REQUIRE(fault_ranks_report(i)->status == GYRE_SUCCESS && fault_ranks_report(i)->calls == 10,
                "a straggler became an error on rank %d", i);
    fault_ranks_end();
    printf("%s s outside of gyre, and nobody minded\n", getenv("GYRE_TEST_STRAGGLER_S") ?: "6");
}

/* ---- */

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static bool run(const char *scenario, int ranks)
{
    struct fault_round round = {.ranks = ranks};
    bool mixed = strcmp(scenario, "mixed") == 0, many = strcmp(scenario, "many") == 0;
    bool computing = strcmp(scenario, "computing") == 0, forked = strcmp(scenario, "forked") == 0;
    bool boot = strcmp(scenario, "boot") == 0, destroy = strcmp(scenario, "destroy") == 0;
    if (strcmp(scenario, "stop") == 0)
        return round_stop(ranks), true;
    if (strcmp(scenario, "straggler") == 0)
        return round_straggler(ranks), true;
    if (strcmp(scenario, "distant") == 0)
        return round_distant(), true;
    if (!mixed && !many && !computing && !forked && !boot && !destroy && strcmp(scenario, "kills") != 0)
        return false;
    uint64_t rounds = number_of("GYRE_TEST_KILLS", many ? 3 : computing || forked ? 8 : boot || destroy ? 12 : 40);
    int64_t boot_ns = boot ? time_of_boot(ranks) : 0;
    int shift = (int)fault_draw(&chance, (uint64_t)ranks);
    round.hosts = mixed ? 2 : 0;
    round.before = computing ? before_computing : forked ? before_forked : NULL;
    for (uint64_t i = 0; i < rounds; i++) {
        round.victim = (int)((i + (uint64_t)shift) % (uint64_t)ranks); /* every rank as often as any other */
        round.seed = many ? 0 : 1 + fault_draw(&chance, 1u << 20);
        if (boot)
            round_boot(ranks, round.victim, boot_ns);
        else if (destroy)
            round_destroy(ranks, round.victim);
        else
            round_kill(&round, computing ? 60000 : 30000);
    }
    printf("%s: %llu kills of %d ranks\n", scenario, (unsigned long long)rounds, ranks);
    return true;
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 1 ? argv[1] : "kills", *seconds = getenv("GYRE_TEST_STRAGGLER_S");
    int ranks = argc > 2 ? atoi(argv[2]) : 4;
    CHECK(ranks >= 2 && ranks <= FAULT_RANKS_MOST);
    straggler_seconds = seconds ? atof(seconds) : 6;
    chance = number_of("GYRE_TEST_SEED", (uint64_t)rank_now_ns());
    printf("seed %llu\n", (unsigned long long)chance);
    fault_traces_begin();
    if (!run(scenario, ranks))
        rank_fail("%s is no scenario: see the head of fault_test.c", scenario);
    fault_times_print(scenario);
    fault_traces_end();
    return 0;
}

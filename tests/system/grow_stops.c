/* The scenarios of grow_test.c in which a process is stopped, where a random moment or a count of its calls has it, and
 * woken when the others have gone on. */
#include "system/grow_world.h"

void grow_freeze(int ranks)
{
    grow_begin(ranks);
    uint64_t before = mortals.alive;
    int joiner = grow_start(grow_run);
    usleep((useconds_t)mortals_draw(20000)); /* wherever it is then; it may even be a member already */
    kill(mortals.pids[joiner], SIGSTOP);
    sleep(1);
    kill(mortals.pids[joiner], SIGCONT);
    grow_await();
    int member = grow_with_rank((int)mortals_draw((uint64_t)ranks));
    kill(mortals.pids[member], SIGSTOP);
    mortals_forget(member);
    grow_await();
    kill(mortals.pids[member], SIGCONT);
    mortals_reap(member, false);
    if (atomic_load(&grow_page->of[member].ended) != GYRE_EXCLUDED)
        mortals_give_up("a member that was stopped is not excluded");
    grow_start(grow_run);
    grow_await();
    if (mortals.alive == before)
        mortals_give_up("nobody has come in");
    grow_end();
}

/* Woken it is out, or comes in. */
static void await_failure(int victim, bool joiner)
{
    uint64_t with = mortals.alive | UINT64_C(1) << victim;
    int64_t limit = rank_now_ns() + MORTALS_HANG_NS;
    mortals_wake(victim);
    while (!mortals_has_ended(victim) && !(joiner && atomic_load(&grow_page->of[victim].mask) == with)) {
        if (rank_now_ns() > limit)
            mortals_give_up("one that was stopped is not told that it is out");
        usleep(500);
    }
    if (!mortals_has_ended(victim)) {
        mortals.alive = with;
        return;
    }
    mortals_reap(victim, false);
    if (atomic_load(&grow_page->of[victim].ended) != GYRE_EXCLUDED)
        mortals_give_up("one that was stopped is not excluded");
}

void grow_halt(int ranks, int rounds)
{
    const char *member = getenv("GYRE_TEST_MEMBER");
    int first = getenv("GYRE_TEST_AT") ? atoi(getenv("GYRE_TEST_AT")) : 0, stops = 0;
    grow_begin(ranks);
    for (int i = 0; i < rounds; i++) {
        bool joiner = first ? !member : i % 2 == 0;
        int rank = member ? atoi(member) : (int)mortals_draw((uint64_t)ranks);
        int victim = joiner ? mortals.started : grow_with_rank(rank);
        int calls = first ? first + i : 1 + (int)mortals_draw(joiner ? 40 : 60);
        mortals_stop_at(victim, calls);
        grow_start(grow_run);
        bool stopped = mortals_await_stop(victim, grow_has_summed);
        if (getenv("GYRE_TEST_VERBOSE"))
            printf("%d: %s %d at call %d: %s\n", i, joiner ? "newcomer" : "member", victim, calls,
                   stopped ? "stopped" : "through");
        stops += stopped;
        if (stopped) {
            mortals_forget(victim);
            grow_await_going_on();
            await_failure(victim, joiner);
        }
        grow_await();
        grow_check_order();
        while (__builtin_popcountll(mortals.alive) > ranks) {
            mortals_kill(grow_with_rank((int)mortals_draw((uint64_t)ranks)));
            grow_await();
        }
    }
    printf("%d of %d were stopped\n", stops, rounds);
    grow_end();
}

/* Rank 0 is stopped where the world has grown and not all joiners have been told. */
void grow_host_halts(int ranks, int joiners)
{
    grow_begin(ranks);
    for (int welcomes = 1; welcomes <= joiners; welcomes++) {
        int victim = grow_with_rank(0);
        mortals_stop_at_welcome(victim, welcomes);
        for (int i = 0; i < joiners; i++)
            grow_start(grow_run);
        int64_t limit = rank_now_ns() + MORTALS_HANG_NS;
        for (; !mortals_has_stopped(victim); usleep(500))
            if (rank_now_ns() > limit)
                mortals_give_up("rank 0 welcomes nobody");
        int64_t stopped = rank_now_ns();
        mortals_forget(victim);
        grow_await_going_on();
        printf("welcome %d of %d: all others are together after %.1f s\n", welcomes, joiners,
               (double)(rank_now_ns() - stopped) / 1e9);
        await_failure(victim, false);
        grow_await();
        grow_check_order();
        while (__builtin_popcountll(mortals.alive) > ranks) {
            mortals_kill(grow_with_rank((int)mortals_draw((uint64_t)ranks)));
            grow_await();
        }
    }
    grow_end();
}

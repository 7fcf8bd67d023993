/* The tuner (collectives/shm/autotune.h) finds the fastest variant, keeps it, and finds another one when that has
 * become faster. It reads a clock of the test's own: no interruption of the machine's is in the time of a call. */
#include <criterion/criterion.h>
#include <string.h>

#include "collectives/engine/request.h"
#include "collectives/shm/autotune.h"
#include "core/clock.h"

int64_t __wrap_gy_now(void); /* the linker puts it in the place of gy_now */

#define BYTES 65536
#define LONG_BYTES (4 << 20)

/* One of two ways. */
static bool of_two(struct gy_tuner_entry *choice, size_t bytes, bool slots, int64_t ns)
{
    return gy_tuner_record(choice, 2, bytes, slots, ns) == 1;
}

/* A call by the variant that the arbiter has set, which takes `kernel` or `slots` nanoseconds. True if it was a part
 * of a measurement phase. */
static bool call(struct gy_tuner_entry *choice, bool *slots, int64_t through_kernel, int64_t through_slots)
{
    if (!gy_tuner_should_measure(choice, BYTES))
        return false;
    bool tried = choice->measuring;
    *slots = of_two(choice, BYTES, *slots, *slots ? through_slots : through_kernel);
    return tried;
}

static int calls(struct gy_tuner_entry *choice, bool *slots, int number, int64_t through_kernel, int64_t through_slots)
{
    int tried = 0;
    for (int i = 0; i < number; i++)
        tried += call(choice, slots, through_kernel, through_slots);
    return tried;
}

Test(tuner, the_quicker_one_is_kept)
{
    for (int quick = 0; quick < 2; quick++) {
        struct gy_tuner_entry choice = {0};
        bool slots = false;
        calls(&choice, &slots, 100, quick ? 2000 : 1000, quick ? 1000 : 2000);
        cr_assert_eq(slots, quick);
        cr_assert_leq(calls(&choice, &slots, 100000, quick ? 2000 : 1000, quick ? 1000 : 2000), 1000);
        cr_assert_eq(slots, quick);
    }
}

Test(tuner, one_that_is_as_quick_changes_nothing)
{
    struct gy_tuner_entry choice = {0};
    bool slots = false;
    calls(&choice, &slots, 5000, 1000, 970);
    cr_assert_not(slots);
}

/* Where the arbiter shares its core a tenth of the calls may contain another rank's time slice. */
Test(tuner, among_oversubscribed_ranks_a_way_has_to_be_clearly_quicker)
{
    for (int64_t second = 700; second <= 900; second += 200) {
        struct gy_tuner_entry choice = {.oversubscribed = true};
        bool slots = false;
        calls(&choice, &slots, 5000, 1000, second);
        cr_expect_eq(slots, second == 700, "%d", (int)second);
    }
}

Test(tuner, what_has_become_quicker_is_found)
{
    struct gy_tuner_entry choice = {0};
    bool slots = false;
    calls(&choice, &slots, 100, 2000, 1000);
    cr_assert(slots);
    calls(&choice, &slots, 5000, 1000, 2000);
    cr_assert_not(slots);
}

/* The sender reads the outcome before the arbiter has changed it, or does not follow it at all. */
Test(tuner, a_way_that_is_not_taken_decides_nothing)
{
    struct gy_tuner_entry choice = {0};
    for (int i = 0; i < 5000; i++)
        if (gy_tuner_should_measure(&choice, BYTES))
            cr_assert_not(of_two(&choice, BYTES, true, 1));
}

Test(tuner, a_clock_that_goes_backwards_or_far_is_slow)
{
    struct gy_tuner_entry choice = {0};
    bool slots = false;
    calls(&choice, &slots, 100, 1000, -1);
    cr_assert_not(slots);
    choice = (struct gy_tuner_entry){0};
    calls(&choice, &slots, 100, 1000, INT64_MAX);
    cr_assert_not(slots);
}

/* Calls until the arbiter uses variant 1. */
static int calls_until_slots(struct gy_tuner_entry *choice, size_t bytes, int64_t through_kernel, int64_t through_slots)
{
    bool slots = false;
    int number = 0;
    for (; number < 5000 && (choice->used != 1 || choice->measuring); number++)
        if (gy_tuner_should_measure(choice, bytes))
            slots = of_two(choice, bytes, slots, slots ? through_slots : through_kernel);
    return number;
}

/* Not after the 512 calls or more that lie between two trials, although the way in use is compared with itself
 * alone. */
Test(tuner, a_way_that_has_become_slow_is_left_at_once)
{
    struct gy_tuner_entry choice = {0};
    bool slots = false;
    calls(&choice, &slots, 100, 1000, 1200);
    cr_assert_not(slots);
    cr_expect_leq(calls_until_slots(&choice, BYTES, 1600, 1200), 100);
    cr_expect_eq(choice.used, 1);
}

/* So does one that was right for the small end of an octave and is wrong for its large end. */
Test(tuner, a_way_that_is_slow_at_the_other_end_of_the_octave_is_left_at_once)
{
    struct gy_tuner_entry choice = {0};
    bool slots = false;
    calls(&choice, &slots, 100, 1000, 1200);
    cr_assert_not(slots);
    cr_expect_geq(calls_until_slots(&choice, 2 * BYTES - 4, 2900, 2400), 400, "less than half as long again");
    choice = (struct gy_tuner_entry){0};
    calls(&choice, &slots, 100, 1000, 1200);
    cr_expect_leq(calls_until_slots(&choice, 2 * BYTES - 4, 3100, 2400), 100);
}

/* What comes and goes is not run after, even where every trial finds it gone: trials are a small part of the calls. */
Test(tuner, late_calls_that_come_again_and_again_begin_few_trials)
{
    struct gy_tuner_entry choice = {0};
    bool slots = false;
    int tried = 0;
    for (int i = 0; i < 100000; i++)
        tried += call(&choice, &slots, choice.measuring || !choice.decided ? 1000 : 3000,
                      choice.measuring ? 1500 : 4500);
    cr_expect_lt(tried, 100000 / 25, "%d of 100000", tried);
}

/* Among oversubscribed ranks a late call has another rank's turn in it. */
Test(tuner, oversubscribed_ranks_are_not_watched)
{
    struct gy_tuner_entry choice = {.oversubscribed = true};
    bool slots = false;
    calls(&choice, &slots, 100, 1000, 1200);
    cr_assert_not(slots);
    cr_expect_eq(calls(&choice, &slots, 300, 5000, 1200), 0);
}

/* Two calls may find cold caches; the third that takes ten times as long as the way in use ends its part of the
 * trial. */
Test(tuner, a_short_call_that_is_hopeless_is_the_last_of_its_way)
{
    struct gy_tuner_entry choice = {0};
    bool slots = false;
    int slow = 0;
    for (int i = 0; i < 100; i++) {
        slow += slots;
        call(&choice, &slots, 1000, 10000);
    }
    cr_assert(choice.decided);
    cr_expect_eq(slow, 3);
}

/* After a few calls of a size of which a program makes few, and in a few more where the other one has become
 * quicker. */
Test(tuner, long_calls_find_the_quicker_one_soon)
{
    struct gy_tuner_entry choice = {0};
    bool slots = false;
    int slow = 0;
    for (int i = 0; i < 10; i++) {
        slow += !slots;
        if (gy_tuner_should_measure(&choice, LONG_BYTES))
            slots = of_two(&choice, LONG_BYTES, slots, slots ? 300000 : 1800000);
    }
    cr_assert(slots);
    cr_assert_leq(slow, 4);
    for (int i = 0; i < 300; i++)
        if (gy_tuner_should_measure(&choice, LONG_BYTES))
            slots = of_two(&choice, LONG_BYTES, slots, slots ? 1800000 : 300000);
    cr_assert_not(slots);
}

/* Calls by the variants that the arbiter has set, of which variant w takes took[w] nanoseconds. Returns how many
 * used another variant than `best`. */
static int calls_of_three(struct gy_tuner_entry *choice, size_t bytes, int number, const int64_t *took, int best)
{
    int others = 0;
    for (int i = 0; i < number; i++) {
        int w = choice->measuring ? choice->tried : choice->used;
        others += w != best;
        if (gy_tuner_should_measure(choice, bytes))
            cr_assert_leq(gy_tuner_record(choice, 3, bytes, w, took[w]), 2);
    }
    return others;
}

/* Whichever it is, whatever has been it before; and what the trials cost is a small part of the whole. */
Test(tuner, the_quickest_of_three_is_kept)
{
    static const int64_t base = 100000;
    for (int first = 0; first < 3; first++)
        for (int best = 0; best < 3; best++) {
            struct gy_tuner_entry choice = {0};
            int64_t before[] = {3 * base, 3 * base, 3 * base}, after[] = {2 * base, 4 * base, 3 * base};
            before[first] = base;
            after[best] = base;
            calls_of_three(&choice, BYTES, 100, before, first);
            cr_assert_eq(choice.used, first);
            calls_of_three(&choice, BYTES, 5000, after, best);
            cr_assert_eq(choice.used, best);
            cr_assert_leq(calls_of_three(&choice, BYTES, 20000, after, best), 400);
        }
}

/* The less it costs, the sooner it is tried again. */
Test(tuner, a_trial_that_costs_little_comes_again_soon)
{
    static const int64_t close[] = {1000, 1100, 1050}, apart[] = {1000, 9000, 1100};
    struct gy_tuner_entry choice = {0};
    calls_of_three(&choice, BYTES, 100, close, 0);
    uint32_t soon = choice.pause;
    choice = (struct gy_tuner_entry){0};
    calls_of_three(&choice, BYTES, 100, apart, 0);
    cr_assert_lt(soon, choice.pause);
}

/* Calls of one size by the variants that an arbiter of four has set, of which variant w takes took[w] nanoseconds.
 * went[w] of them use w. */
static void calls_of_four(struct gy_tuner_entry *choice, size_t bytes, int number, const int64_t *took, int *went)
{
    for (int i = 0; i < number; i++) {
        int w = choice->measuring ? choice->tried : choice->used;
        went[w]++;
        if (gy_tuner_should_measure(choice, bytes))
            gy_tuner_record(choice, GY_TUNER_VARIANTS, bytes, w, took[w]);
    }
}

/* Of two that are as near the shorter one, and never in the place of what has been found or is being tried. */
Test(tuner, an_octave_goes_by_the_nearest_that_has_decided)
{
    struct gy_tuner_entry octaves[GY_TUNER_OCTAVES] = {0};
    octaves[3] = (struct gy_tuner_entry){.decided = true, .used = 2};
    octaves[7] = (struct gy_tuner_entry){.decided = true, .used = 1};
    octaves[8] = (struct gy_tuner_entry){.measuring = true, .used = 3};
    gy_tuner_spread(octaves);
    for (int o = 0; o < GY_TUNER_OCTAVES; o++)
        cr_expect_eq(octaves[o].used, o == 8 ? 3 : o <= 5 ? 2 : 1, "octave %d", o);
    octaves[3].used = 0;
    octaves[9] = (struct gy_tuner_entry){.decided = true, .used = 3};
    gy_tuner_spread(octaves);
    cr_expect(octaves[0].used == 0 && octaves[5].used == 0 && octaves[6].used == 1 &&
              octaves[GY_TUNER_OCTAVES - 1].used == 3);
}

/* What was far behind there long calls do without until the second trial, which finds it out if that was wrong. Short
 * calls, and those of octaves further away, try everything. */
Test(tuner, a_first_phase_skips_what_is_far_behind_in_a_neighbour)
{
    static const int64_t near[] = {1000, 300, 410, 2000}, here[] = {9000, 9000, 7500, 3000};
    struct gy_tuner_entry octaves[GY_TUNER_OCTAVES] = {0};
    int went[GY_TUNER_VARIANTS] = {0};
    calls_of_four(&octaves[6], 1 << 19, 100, near, went);
    cr_assert(octaves[6].decided && octaves[6].used == 1);
    gy_tuner_spread(octaves);
    struct gy_tuner_entry longer = octaves[8], shorter = octaves[5], further = octaves[9];

    memset(went, 0, sizeof(went));
    calls_of_four(&longer, LONG_BYTES, 30, here, went);
    cr_expect(went[0] == 0 && went[3] == 0, "%d and %d calls went far behind", went[0], went[3]);
    cr_expect(longer.decided && longer.used == 2, "the way that was near is in use");
    calls_of_four(&longer, LONG_BYTES, 40, here, went);
    cr_expect_eq(longer.used, 3, "the second trial finds out");

    memset(went, 0, sizeof(went));
    calls_of_four(&shorter, 1 << 18, 50, here, went);
    cr_expect_eq(shorter.used, 3);
    memset(went, 0, sizeof(went));
    calls_of_four(&further, 2 * LONG_BYTES, 20, here, went);
    cr_expect_eq(further.used, 3);
}

/* Where ranks share cores a call may be slow because of others, and its way has another one. */
Test(tuner, a_long_call_that_is_hopeless_is_the_last_of_its_way)
{
    static const int64_t took[] = {1000, 2500, 1200, 10000};
    for (int oversubscribed = 0; oversubscribed < 2; oversubscribed++) {
        struct gy_tuner_entry choice = {.oversubscribed = oversubscribed};
        int went[GY_TUNER_VARIANTS] = {0};
        calls_of_four(&choice, LONG_BYTES, 30, took, went);
        cr_expect(choice.decided && choice.used == 0);
        cr_expect_eq(went[1], oversubscribed ? 3 : 1);
        cr_expect_eq(went[2], 3);
        cr_expect_eq(went[3], oversubscribed ? 3 : 1);
    }
}

/* A rank that never goes the other way, as its buffers do not allow it, is not waited for. */
Test(tuner, a_way_that_is_never_taken_is_given_up)
{
    struct gy_tuner_entry choice = {0};
    int told = 0, second = 0;
    for (int i = 0; i < 2000; i++)
        if (gy_tuner_should_measure(&choice, BYTES)) {
            second += of_two(&choice, BYTES, false, 1000);
            told++;
        }
    cr_assert(!choice.used && !choice.measuring);
    cr_assert_leq(second, 100);
    cr_assert_leq(told, 100);
}

/* Nor one whose call says nothing of how it has gone: the other question waits until this trial is over. */
Test(tuner, a_call_that_tells_nothing_ends_a_trial)
{
    struct gy_tuner_entry choice = {0};
    int asked = 0;
    for (int i = 0; i < 2000; i++)
        if (gy_tuner_should_measure(&choice, BYTES)) {
            cr_assert_eq(gy_tuner_discard(&choice), 0);
            asked++;
        }
    cr_assert_not(choice.measuring);
    cr_assert_leq(asked, 100);
}

/* Calls of another size take as long as they like; and a size that does not come again leaves the way as it was. */
Test(tuner, a_trial_compares_calls_of_one_size)
{
    struct gy_tuner_entry choice = {0};
    bool slots = false;
    for (int i = 0; i < 500; i++) { /* one trial, which a call of BYTES begins */
        call(&choice, &slots, 1000, 2000);
        if (gy_tuner_should_measure(&choice, BYTES + 8)) /* short where those of the trial go through slots */
            slots = of_two(&choice, BYTES + 8, slots, slots ? 1 : 100000);
    }
    cr_assert_not(slots);
    choice = (struct gy_tuner_entry){0};
    for (int i = 0; !gy_tuner_should_measure(&choice, BYTES); i++)
        cr_assert_lt(i, 100);
    for (int i = 0; i < 8; i++)
        slots = of_two(&choice, BYTES, false, 1000);
    cr_assert(slots); /* tried, with no call of the size to come */
    for (int i = 0; i < 100; i++)
        if (gy_tuner_should_measure(&choice, BYTES + 8))
            slots = of_two(&choice, BYTES + 8, slots, 1000);
    cr_assert_not(slots);
}

static int64_t now = 1;

int64_t __wrap_gy_now(void)
{
    return now;
}

/* A blocking call, or a request, of rank 0 of two whose results are written for so many nanoseconds past the caches or
 * into them. */
static bool streams(struct gyre_comm *comm, bool blocking, bool slots, int64_t nontemporal, int64_t into)
{
    struct gy_schedule schedule = {.shape.collective = GY_ALL_REDUCE};
    struct gyre_request r = {.comm = comm, .schedule = &schedule, .element = 4, .prefers_slots = slots};
    if (blocking)
        gy_tuner_begin(comm);
    bool stream = gy_tuner_streams(&r, 4 << 20);
    now += stream ? nontemporal : into;
    if (blocking)
        gy_tuner_end(comm, true);
    return stream;
}

/* Past the caches at first, or beside slots that the clock has chosen into them; the other way from the next trial on
 * where that has become quicker, and back; requests follow. */
static void expect_written_the_quicker_way(bool slots)
{
    struct gy_region_control control[2] = {0};
    struct gy_region_control *controls[2] = {&control[0], &control[1]};
    struct gy_context ctx = {0};
    struct gyre_comm comm = {.ctx = &ctx, .size = 2, .control = controls};
    cr_assert_eq(streams(&comm, true, slots, 0, 0), !slots);
    for (int turn = 0; turn < 3; turn++) {
        bool nontemporal = turn != 1;
        int slow = 0, followed = 0;
        for (int i = 0; i < 1000; i++)
            slow += streams(&comm, true, slots, nontemporal ? 20000 : 200000, nontemporal ? 200000 : 20000) !=
                    nontemporal;
        cr_expect_leq(slow, turn == 0 ? 20 : 300, "turn %d: %d of 1000 calls went the slower way", turn, slow);
        for (int i = 0; i < 100; i++)
            followed += streams(&comm, false, slots, 0, 0) == nontemporal;
        cr_expect_eq(followed, 100, "turn %d: %d of 100", turn, followed);
    }
    gy_tuner_free(&comm);
}

Test(tuner, results_are_written_the_quicker_way)
{
    expect_written_the_quicker_way(false);
    expect_written_the_quicker_way(true);
}

/* A call of two ranks whose arbiter is this one, and the other one publishes as it has been told: it takes took[g]
 * nanoseconds. */
static enum gy_shm_variant given(struct gyre_comm *comm, enum gy_collective collective, size_t bytes,
                                 const int64_t *took)
{
    struct gy_schedule schedule = {.shape.collective = collective};
    struct gyre_request r = {.comm = comm, .schedule = &schedule, .element = 1, .in.total = bytes};
    struct gy_entry *entry = &comm->control[1]->entry[++comm->sequence % GY_CALL_SIGNATURES];
    gy_tuner_begin(comm);
    enum gy_shm_variant giving = gy_tuner_input(&r, false);
    entry->offer = (struct gy_offer){.peer_input = giving == GY_SHM_MAP,
                                     .nontemporal = giving == GY_SHM_SLOT_NT,
                                     .claimed = giving == GY_SHM_SLOT_PREFETCHW};
    atomic_store(&entry->offered, comm->sequence);
    now += took[giving];
    gy_tuner_end(comm, true);
    return giving;
}

/* Whichever of the four that is, and whichever comes first. */
Test(tuner, what_is_given_goes_the_quickest_way)
{
    static const enum gy_collective collectives[] = {GY_ALL_GATHER, GY_ALL_REDUCE};
    for (unsigned c = 0; c < 2; c++)
        for (int quick = GY_SHM_MAP; quick <= GY_SHM_SLOT_PREFETCHW; quick++) {
            struct gy_region_control control[2] = {0};
            struct gy_region_control *controls[2] = {&control[0], &control[1]};
            struct gy_context ctx = {0};
            struct gyre_comm comm = {.ctx = &ctx, .size = 2, .control = controls};
            int64_t took[] = {200000, 200000, 200000, 200000};
            int settled = 0;
            took[quick] = 20000;
            cr_assert_eq(given(&comm, collectives[c], LONG_BYTES, took), c == 0 ? GY_SHM_MAP : GY_SHM_SLOT);
            for (int i = 0; i < 5000 && settled < 30; i++)
                settled = (int)given(&comm, collectives[c], LONG_BYTES, took) == quick ? settled + 1 : 0;
            cr_expect_eq(settled, 30, "collective %d, way %d", collectives[c], quick);
            for (size_t bytes = BYTES; bytes <= LONG_BYTES << 6; bytes *= 8) /* and all ranks at once at other sizes */
                cr_expect_eq((int)given(&comm, collectives[c], bytes, took), quick, "%zu bytes of collective %d", bytes,
                             collectives[c]);
            gy_tuner_free(&comm);
        }
}

/* Calls over slots in any case decide only that. A rank that reads the outcome alone follows it, also where ranks
 * share cores. */
static void expect_shown_the_quicker_way(enum gy_shm_variant quick, bool oversubscribed)
{
    struct gy_region_control control[2] = {0};
    struct gy_region_control *controls[2] = {&control[0], &control[1]};
    struct gy_context ctx = {.oversubscribed = oversubscribed};
    struct gyre_comm comm = {.ctx = &ctx, .size = 2, .control = controls}, other = comm;
    const struct gy_call_signature shape = {.collective = GY_ALL_GATHER};
    int settled = 0;
    other.rank = 1;
    for (int i = 0; i < 20000 && settled < 100; i++) {
        gy_tuner_begin(&comm);
        enum gy_shm_variant giving = gy_tuner_exchange(&comm, &shape, 8192);
        now += giving == quick ? 20000 : 200000;
        gy_tuner_end(&comm, true);
        settled = giving == quick ? settled + 1 : 0;
    }
    cr_expect_eq(settled, 100);
    cr_expect_eq(gy_tuner_exchange(&other, &shape, 8192), quick);
    gy_tuner_free(&comm);
}

Test(tuner, an_exchange_is_shown_the_quicker_way)
{
    for (enum gy_shm_variant quick = GY_SHM_SLOT; quick <= GY_SHM_SLOT_PREFETCHW; quick++) {
        expect_shown_the_quicker_way(quick, false);
        if (quick < GY_SHM_SLOT_PREFETCHW) /* which is nothing for ranks that share cores */
            expect_shown_the_quicker_way(quick, true);
    }
}

/* Of eight calls by the slower variant one is the fastest of all: the arbiter came last. Where ranks share cores
 * that is no reason to stay with it; elsewhere the times include no time slices of other ranks. Equal times are two. */
Test(tuner, one_lucky_call_of_oversubscribed_ranks_does_not_decide)
{
    for (int oversubscribed = 0; oversubscribed < 2; oversubscribed++)
        for (int lucky = 0; lucky < 12; lucky++) {
            struct gy_tuner_entry choice = {.oversubscribed = oversubscribed};
            int used = 0;
            while (!gy_tuner_should_measure(&choice, 65536))
                continue;
            for (int call = 0; choice.measuring && call < 64; call++)
                used = gy_tuner_record(&choice, 2, 65536, choice.tried,
                                       choice.tried    ? 33000
                                       : call == lucky ? 23000
                                                       : 120000);
            bool counts = lucky >= GY_REGION_SLOTS && lucky < 8;
            cr_expect_eq(used, oversubscribed || !counts, "call %d", lucky);
            cr_expect(!oversubscribed || choice.least[1] == 33000);
        }
}

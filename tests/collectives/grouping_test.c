/* Groupings of GYRE_HIERARCHY, and the size of the schedules that are made on them. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/comm/locality.h"
#include "collectives/schedule/schedule.h"
#include "core/mem.h"

#define WORLD 9

/* Ranks of three hosts, interleaved, of which `world` (or all) are the communicator. */
static void expect(const char *setting, const int *world, int size, const int *groups, int count, int smallest,
                   int largest)
{
    bool seen[3] = {false};
    int hosts = 0;
    struct gy_member members[WORLD] = {{.host = 0}};
    struct gy_world all = {.size = WORLD, .members = members};
    struct gy_group group;
    struct gy_grouping grouping;
    for (int r = 0; r < WORLD; r++)
        members[r] = (struct gy_member){.host = r % 3, .binding = (uint16_t)(r == 6 ? 2 : r == 4 || r == 7 ? 0 : 1)};
    cr_assert(gy_group_make(&group, world, size, WORLD));
    cr_assert(gy_grouping_make(&grouping, &all, &group, setting));
    for (int r = 0; r < size; r++) {
        int host = (world ? world[r] : r) % 3;
        hosts += !seen[host];
        seen[host] = true;
    }
    cr_expect_eq(grouping.hosts, hosts, "%s: %d hosts instead of %d", setting, grouping.hosts, hosts);
    for (int r = 0; groups && r < size; r++)
        cr_expect_eq(grouping.of[r], groups[r], "%s: rank %d is in group %d", setting, r, grouping.of[r]);
    cr_expect_eq(grouping.of != NULL, groups != NULL);
    cr_expect(grouping.groups == count && grouping.smallest == smallest && grouping.largest == largest, "%s", setting);
    cr_expect_eq(gy_grouping_nested(&grouping), count > 1 && largest > 1);
    bool paired = groups != NULL;
    for (int r = 0; groups && r + 1 < size; r += 2)
        paired = paired && groups[r] == groups[r + 1];
    cr_expect_eq(grouping.paired, paired, "%s", setting);
    gy_grouping_free(&grouping);
    gy_group_free(&group);
}

Test(grouping, hosts_places_sizes_and_off)
{
    const int some[] = {8, 4, 5, 1};
    expect("host", NULL, WORLD, (const int[]){0, 1, 2, 0, 1, 2, 0, 1, 2}, 3, 3, 3);
    expect("host", some, 4, (const int[]){0, 1, 0, 1}, 2, 2, 2);
    expect("numa", NULL, WORLD, (const int[]){0, 1, 2, 0, 3, 2, 4, 3, 2}, 5, 1, 3);
    expect("cache", some, 4, (const int[]){0, 1, 0, 2}, 3, 1, 2);
    expect("off", NULL, WORLD, NULL, 0, 0, 0);
    expect("off", (const int[]){7, 1, 4}, 3, NULL, 0, 0, 0);
    expect("9", NULL, WORLD, (const int[WORLD]){0}, 1, 9, 9);
    expect("1", NULL, WORLD, (const int[]){0, 1, 2, 3, 4, 5, 6, 7, 8}, 9, 1, 1);
    expect("2,1", NULL, WORLD, (const int[]){0, 0, 1, 2, 2, 3, 4, 4, 5}, 6, 1, 2);
    expect("4", some, 4, (const int[]){0, 1, 1, 2}, 3, 1, 2);
    expect("4", NULL, 8, (const int[]){0, 0, 0, 0, 1, 1, 1, 1}, 2, 4, 4);
}

/* Of the table that all ranks have since they met, and not of the rank's own cores: they choose alike. */
Test(grouping, more_ranks_than_cores)
{
    const struct {
        int hosts, cores[4], size;
        bool oversubscribed;
        int known; /* cores */
    } cases[] = {{1, {2, 2, 2, 2}, 4, true, 2},  {1, {2, 2, 2, 2}, 2, false, 2}, {1, {1, 3, 1, 1}, 4, true, 3},
                 {1, {1, 1, 1, 4}, 4, false, 4}, {1, {1, 1, 1, 1}, 4, false, 1}, /* a single core */
                 {2, {2, 2, 2, 2}, 4, false, 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gy_member members[4];
        struct gy_world all = {.size = 4, .members = members};
        struct gy_group group;
        struct gy_grouping grouping;
        for (int r = 0; r < 4; r++)
            members[r] = (struct gy_member){.host = r % cases[i].hosts, .cores = (uint16_t)cases[i].cores[r]};
        cr_assert(gy_group_make(&group, (const int[]){3, 1, 0, 2}, cases[i].size, 4));
        cr_assert(gy_grouping_make(&grouping, &all, &group, "host"));
        cr_expect_eq(grouping.oversubscribed, cases[i].oversubscribed, "case %zu", i);
        cr_expect_eq(grouping.cores, cases[i].known, "case %zu: %d cores", i, grouping.cores);
        gy_grouping_free(&grouping);
        gy_group_free(&group);
    }
}

/* Loops are found: the steps do not grow with what a group moves, but with its members and, where there are few,
 * groups. */
Test(grouping, schedules_of_large_worlds_are_small)
{
    enum { SIZE = 512 };
    static int runs[SIZE], interleaved[SIZE];
    for (int r = 0; r < SIZE; r++) {
        runs[r] = r / 8;
        interleaved[r] = r % 64;
    }
    for (int c = 0; c < GY_COLLECTIVES; c++)
        for (int a = 0; a < GY_ALGORITHMS; a++)
            for (int i = 0; i < (gy_is_hierarchical((enum gy_algorithm)a) ? 2 : 0); i++) {
                struct gy_schedule_shape shape = {(enum gy_collective)c, (enum gy_algorithm)a, 77, SIZE, 5, runs};
                shape.groups = i ? interleaved : runs;
                struct gy_schedule *schedule = gy_schedule_exists(shape.collective, shape.algorithm, SIZE)
                                                   ? gy_schedule_build(&shape)
                                                   : NULL;
                cr_expect(!schedule || schedule->steps < 420, "%s %s: %d steps", gy_collective_name(shape.collective),
                          gy_algorithm_name(shape.algorithm), schedule->steps);
                gy_schedule_free(schedule);
            }
}

/* A scratch slot per block, of which a world can have more than 32767. */
Test(grouping, more_slots_than_16_bits_can_count)
{
    enum { SIZE = 40000 };
    static int groups[SIZE];
    for (int r = 0; r < SIZE; r++)
        groups[r] = r < SIZE - 1 ? r : r - 1; /* one rank each, but the last two */
    struct gy_schedule_shape shape = {GY_REDUCE_SCATTER, GY_HIERARCHICAL, 5, SIZE, 0, groups};
    struct gy_schedule *schedule = gy_schedule_build(&shape);
    cr_assert_not_null(schedule);
    bool used[SIZE] = {false};
    int reduced = 0;
    cr_assert_eq(schedule->scratch_slots, SIZE);
    for (int s = 0; s < schedule->steps; s++)
        for (int round = 0; round < schedule->step[s].rounds; round++) {
            const struct gy_step *step = &schedule->step[s];
            int block = gy_range_block(step->range, schedule->blocks, round);
            int64_t slot = ((int64_t)step->slot0 + (int64_t)step->slot_stride * round) % SIZE;
            if (step->kind != GY_RECV_REDUCE || step->dst != GY_SCRATCH)
                continue;
            cr_assert(slot == block && !used[slot], "block %d has slot %ld", block, (long)slot);
            used[slot] = true;
            reduced++;
        }
    cr_assert_eq(reduced, SIZE - 2, "of all but the rank's own, and of the one that it sends first");
    gy_schedule_free(schedule);
}

/* Whichever allocation fails, there is no schedule, and nothing is left behind (AddressSanitizer). */
Test(grouping, schedules_without_memory)
{
    static const int groups[] = {0, 0, 1, 1, 1, 2, 2};
    for (int c = 0; c < GY_COLLECTIVES; c++)
        for (int a = 0; a < GY_ALGORITHMS; a++) {
            struct gy_schedule_shape shape = {(enum gy_collective)c, (enum gy_algorithm)a, 3, 7, 2, groups};
            struct gy_schedule *schedule = NULL;
            if (!gy_is_hierarchical(shape.algorithm) || !gy_schedule_exists(shape.collective, shape.algorithm, 7))
                continue;
            uint64_t failed = 0;
            for (uint64_t nth = 1; !schedule; nth++, failed++) {
                gy_alloc_fail_at(nth);
                schedule = gy_schedule_build(&shape);
                gy_alloc_fail_at(0);
                cr_assert_lt(nth, 1000);
            }
            cr_expect_gt(failed, 4);
            gy_schedule_free(schedule);
        }
}

/* The statistics of a launch, and what is expected of each collective. */
#include <criterion/criterion.h>

#include "collective.h"
#include "samples.h"

static struct gy_stamps stamps[2];

static void stamp(int rank, int call, int64_t start, int64_t end)
{
    stamps[rank].start[call] = start;
    stamps[rank].end[call] = end;
}

Test(samples, a_call_is_from_latest_start_to_latest_end)
{
    stamp(0, 0, 1000, 9000); /* rank 1 comes late: 4 to 9 */
    stamp(1, 0, 4000, 8000);
    stamp(0, 1, 20000, 21000);
    stamp(1, 1, 20000, 23000); /* 20 to 23 */
    stamp(0, 2, 30000, 31000); /* 30 to 31 */
    stamp(1, 2, 29000, 30500);
    struct gy_samples samples = gy_samples_make(stamps, 2, 3);
    cr_assert_float_eq(samples.least_us, 1, 1e-9);
    cr_assert_float_eq(samples.median_us, 3, 1e-9);
    cr_assert_float_eq(samples.low_us, 2, 1e-9);
    cr_assert_float_eq(samples.high_us, 4, 1e-9);
    cr_assert_float_eq(samples.mean_us, 3, 1e-9);
    cr_assert_float_eq(samples.wall_us, 10, 1e-9);                 /* 1 to 31 by three */
    cr_assert_float_eq(gy_samples_period(stamps, 2, 3), 13, 1e-9); /* 4, 20, 30: 16 and 10 */
    samples = gy_samples_make_osu(stamps, 2, 3);                   /* 8 and 4, 1 and 3, 1 and 1.5: each rank its own */
    cr_assert_float_eq(samples.median_us, 2, 1e-9);
    cr_assert_float_eq(samples.least_us, 1.25, 1e-9);
    cr_assert_float_eq(samples.mean_us, 9.25 / 3, 1e-9);
}

Test(samples, quantiles_interpolate)
{
    double even[] = {4, 1, 3, 2}, one[] = {7};
    cr_assert_float_eq(gy_samples_quantile(even, 4, 0.5), 2.5, 1e-9);
    cr_assert_float_eq(gy_samples_quantile(even, 4, 0.25), 1.75, 1e-9);
    cr_assert_float_eq(gy_samples_quantile(even, 4, 1), 4, 1e-9);
    cr_assert_float_eq(gy_samples_quantile(one, 1, 0.25), 7, 1e-9);
}

Test(collective, every_row_is_whole)
{
    enum gy_kind kind;
    for (int i = 0; i < GY_KINDS; i++) {
        cr_assert(gy_collective_find(gy_collectives[i].name, &kind));
        cr_assert_eq((int)kind, i);
        cr_assert(gy_collectives[i].bus_factor && gy_collectives[i].sent);
        cr_assert(i == GY_BARRIER || gy_collectives[i].expect);
    }
    cr_assert_not(gy_collective_find("all_reduces", &kind));
}

Test(collective, sizes_are_of_the_whole_vector)
{
    cr_assert_eq(gy_collective_count(GY_ALL_REDUCE, 4096, 4), 1024);
    cr_assert_eq(gy_collective_count(GY_ALL_GATHER, 4096, 4), 256);
    cr_assert_eq(gy_collective_count(GY_REDUCE_SCATTER, 4, 4), 1);
    cr_assert_eq(gy_collective_bytes(GY_REDUCE_SCATTER, 1, 4), 16);
    cr_assert_eq(gy_collective_input(GY_REDUCE_SCATTER, 256, 4), 1024);
    cr_assert_eq(gy_collective_output(GY_REDUCE_SCATTER, 256, 4), 256);
    cr_assert_eq(gy_collective_count(GY_ALL_TO_ALL, 4096, 4), 256);
    cr_assert_eq(gy_collective_input(GY_ALL_TO_ALL, 256, 4), 1024);
    cr_assert_eq(gy_collective_output(GY_ALL_TO_ALL, 256, 4), 1024);
    cr_assert_eq(gy_collective_count(GY_BARRIER, 4096, 4), 0);
}

/* all_to_all gives rank 1 block 1 of every rank; reduce gives rank 0 the sum, and no other rank anything. */
Test(collective, blocks_and_roots)
{
    static float blocks[3 * 200], sum[200];
    struct gy_world world = {.rank = 1, .size = 3}, root = {.rank = 0, .size = 3};
    struct gy_call exchanged = {.output = blocks, .count = 200}, reduced = {.output = sum, .count = 200};
    for (size_t i = 0; i < 200; i++) {
        for (size_t rank = 0; rank < 3; rank++) {
            blocks[rank * 200 + i] = gy_collective_value((int)rank, 200 + i);
            sum[i] += gy_collective_value((int)rank, i);
        }
    }
    cr_assert_eq(gy_collective_wrong(GY_ALL_TO_ALL, &exchanged, world), 0);
    cr_assert_gt(gy_collective_wrong(GY_ALL_TO_ALL, &exchanged, root), 0);
    cr_assert_eq(gy_collective_wrong(GY_REDUCE, &reduced, root), 0);
    sum[17] += 1;
    cr_assert_eq(gy_collective_wrong(GY_REDUCE, &reduced, root), 1);
    cr_assert_eq(gy_collective_wrong(GY_REDUCE, &reduced, world), 0);
}

/* What a serial all_gather of three ranks would give is right; one element moved is not. */
Test(collective, a_wrong_element_is_counted)
{
    static float output[3 * 200];
    struct gy_world world = {.rank = 1, .size = 3};
    struct gy_call call = {.output = output, .count = 200};
    for (size_t rank = 0; rank < 3; rank++) {
        for (size_t i = 0; i < 200; i++)
            output[rank * 200 + i] = gy_collective_value((int)rank, i);
    }
    cr_assert_eq(gy_collective_wrong(GY_ALL_GATHER, &call, world), 0);
    output[399] += 1;
    cr_assert_eq(gy_collective_wrong(GY_ALL_GATHER, &call, world), 1);
    for (size_t i = 0; i < 200; i++)
        output[i] = gy_collective_value(0, 200 + i) + gy_collective_value(1, 200 + i) + gy_collective_value(2, 200 + i);
    cr_assert_eq(gy_collective_wrong(GY_REDUCE_SCATTER, &call, world), 0);
    cr_assert_neq(gy_collective_wrong(GY_ALL_REDUCE, &call, world), 0);
}

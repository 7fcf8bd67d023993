/* The choice by thresholds, asked for communicators that this machine need not have. */
#include <criterion/criterion.h>

#include "collectives/comm.h"
#include "collectives/context.h"

static enum gy_algorithm choice(const struct gyre_comm *comm, enum gy_collective collective, size_t bytes)
{
    struct gy_error error = {.quiet = true};
    enum gy_algorithm algorithm = GY_ALGORITHMS;
    cr_assert_eq(gy_select(comm, collective, false, bytes, &algorithm, &error), GYRE_SUCCESS);
    return algorithm;
}

/* Of two cores one can do no more than the root does while the other ranks show what they have; of more several can help it. */
Test(selector, a_root_reduces_by_itself_on_two_cores)
{
    static struct gy_context ctx;
    for (int cores = 2; cores <= 4; cores++)
        for (int size = 2; size <= 16; size++)
            for (size_t bytes = 32768; bytes <= (size_t)16 << 20; bytes *= 2) {
                struct gyre_comm comm = {.ctx = &ctx, .size = size};
                comm.grouping = (struct gy_grouping){.groups = 1,
                                                     .smallest = size,
                                                     .largest = size,
                                                     .hosts = 1,
                                                     .cores = cores,
                                                     .crowded = size > cores};
                bool alone = size == 2 || (size > cores && (cores == 2 || bytes <= 131072));
                cr_expect_eq(choice(&comm, GY_REDUCE_TO, bytes), alone ? GY_DIRECT_ONE_SHOT : GY_DIRECT_TWO_SHOT,
                             "%d ranks on %d cores, %zu bytes", size, cores, bytes);
            }
}

/* The choice by thresholds, asked for communicators that this machine need not have. */
#include <criterion/criterion.h>

#include "collectives/comm/communicator.h"
#include "collectives/comm/context.h"
#include "collectives/select/cost_cache.h"
#include "collectives/select/selector.h"

static enum gy_algorithm choice(const struct gyre_comm *comm, enum gy_collective collective, size_t bytes)
{
    struct gy_error error = {.quiet = true};
    enum gy_algorithm algorithm = GY_ALGORITHMS;
    cr_assert_eq(gy_select(comm, collective, false, bytes, &algorithm, &error), GYRE_SUCCESS);
    return algorithm;
}

/* Of two cores one can do no more than the root does while the other ranks show what they have; of more several can
 * help it. */
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
                                                     .oversubscribed = size > cores};
                bool alone = size == 2 || (size > cores && (cores == 2 || bytes <= 131072));
                cr_expect_eq(choice(&comm, GY_REDUCE_TO, bytes), alone ? GY_SHM_ONE_SHOT : GY_SHM_TWO_SHOT,
                             "%d ranks on %d cores, %zu bytes", size, cores, bytes);
            }
}

/* Blocks of a few bytes of pairs that are on one host: halving and doubling folds what is no power of two inside hosts,
 * so that it sends less between them than Bruck's algorithm, in as many rounds; not where a pair is on two hosts, and
 * not what is longer. */
Test(selector, short_blocks_are_folded_inside_hosts)
{
    static struct gy_context ctx;
    for (int hosts = 2; hosts <= 7; hosts++)
        for (int members = 1; members <= 4; members++)
            for (int paired = 0; paired < 2; paired++) {
                int of[28];
                struct gyre_comm comm = {.ctx = &ctx, .size = hosts * members, .region = -1};
                comm.grouping = (struct gy_grouping){.of = of,
                                                     .groups = hosts,
                                                     .smallest = members,
                                                     .largest = members,
                                                     .hosts = hosts,
                                                     .paired = paired};
                bool power = (comm.size & (comm.size - 1)) == 0, folds = power || (paired && members > 1);
                enum gy_algorithm shorter = choice(&comm, GY_ALL_GATHER, 64), longer = choice(&comm, GY_ALL_GATHER, 65);
                cr_expect_eq(shorter, folds ? GY_HALVING_DOUBLING : GY_BRUCK, "%d x %d: %s", hosts, members,
                             gy_algorithm_name(shorter));
                cr_expect_eq(longer, power ? GY_HALVING_DOUBLING : GY_BRUCK, "%d x %d: %s", hosts, members,
                             gy_algorithm_name(longer));
            }
}

/* A described cluster has a core for each rank: by its formula help with a reduction always pays over shared memory,
 * where ranks that share cores were measured to lose by it. */
Test(selector, described_ranks_have_cores_of_their_own)
{
    static struct gy_context ctx;
    const struct gy_cluster cluster = gy_cluster_default();
    for (int cores = 2; cores <= 8; cores += 6)
        for (size_t bytes = 65536; bytes <= (size_t)4 << 20; bytes *= 8) {
            struct gy_tuned tuned = {.cluster = &cluster, .ranks = 8, .ranks_per_host = 8, .tile = 262144};
            struct gyre_comm comm = {.ctx = &ctx, .size = 8, .tuned = &tuned};
            comm.grouping = (struct gy_grouping){
                .groups = 1, .smallest = 8, .largest = 8, .hosts = 1, .cores = cores, .oversubscribed = cores < 8};
            cr_expect_eq(choice(&comm, GY_REDUCE_TO, bytes), cores < 8 ? GY_SHM_ONE_SHOT : GY_SHM_TWO_SHOT,
                         "%d cores, %zu bytes", cores, bytes);
        }
}

/* Each call has an algorithm: of every collective, in every order of operands, with counts of its own, with or without
 * shared memory. */
Test(selector, every_call_has_an_algorithm)
{
    static struct gy_context ctx;
    for (int c = 0; c < GY_COLLECTIVES; c++)
        for (int i = 0; i < 17 * 2 * 2 * 2 * 3; i++) {
            struct gyre_comm comm = {.ctx = &ctx, .size = 1 + i % 17, .region = i / 17 % 2 ? -1 : 0};
            enum gy_operand_order order = (enum gy_operand_order)(i / 136);
            bool blocked = c == GY_REDUCE_SCATTER || (c >= GY_GATHER_TO && c <= GY_ALL_TO_ALL) || c == GY_ALL_GATHER;
            comm.grouping = (struct gy_grouping){.hosts = 1, .cores = 2, .oversubscribed = i / 68 % 2};
            for (size_t bytes = 0; bytes <= (size_t)1 << 24; bytes = bytes * 4 + 1) {
                struct gy_error error = {.quiet = true};
                enum gy_algorithm algorithm = GY_ALGORITHMS;
                gyre_status status = gy_select_ordered(&comm, (enum gy_collective)c, blocked && i / 34 % 2, bytes,
                                                       order, &algorithm, &error);
                cr_assert_eq(status, GYRE_SUCCESS, "%s", error.text);
                cr_assert(gy_schedule_exists((enum gy_collective)c, algorithm, comm.size));
            }
        }
}

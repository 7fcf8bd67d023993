/* The choice by cost: what is cheap on which cluster, the same again from the cache, and nothing where nothing is
 * known. */
#include <criterion/criterion.h>
#include <math.h>

#include "collectives/schedule/tile.h"
#include "collectives/select/cost_cache.h"
#include "collectives/select/cost_model.h"

#define ROW(constant, name, builder, serves, counts, flags) | ((flags)&GY_OVER_SHM ? 0 : 1u << (constant))
static const unsigned links = 0 GY_ALGORITHM_ROWS(ROW); /* bits of the algorithms over links */
#undef ROW

static struct gy_cost_case case_of(const struct gy_cluster *cluster, enum gy_algorithm algorithm, int ranks,
                                   size_t total)
{
    return (struct gy_cost_case){cluster, GY_ALL_REDUCE, algorithm, ranks, 0, 1, total, 65536, 4};
}

/* What is taken instead of what certainly costs more. */
static enum gy_algorithm cheapest(struct gy_tuned *tuned, enum gy_collective collective, size_t bytes)
{
    for (int a = 0; a < GY_ALGORITHMS; a++) {
        enum gy_algorithm chosen = gy_tuned_choose(tuned, collective, bytes, links, (enum gy_algorithm)a);
        if (chosen != (enum gy_algorithm)a)
            return chosen;
    }
    return GY_ALGORITHMS;
}

Test(tuned, latency_decides_small_and_bandwidth_large)
{
    struct gy_cluster cluster = gy_cluster_default();
    for (int ranks = 4; ranks <= 64; ranks *= 2) {
        struct gy_tuned tuned = {.cluster = &cluster, .ranks = ranks, .ranks_per_host = 1, .tile = 262144};
        cr_assert_eq(cheapest(&tuned, GY_ALL_REDUCE, 4), GY_RECURSIVE_DOUBLING);
        enum gy_algorithm large = cheapest(&tuned, GY_ALL_REDUCE, (size_t)1 << 30);
        cr_assert(large == GY_RING || large == GY_HALVING_DOUBLING || large == GY_CANONICAL);
        cr_assert_eq(cheapest(&tuned, GY_ALL_REDUCE, (size_t)1 << 30), large);
    }
}

/* A slow network makes rounds cheap beside bytes, and the other way round. */
Test(tuned, the_cluster_decides)
{
    struct gy_cluster slow = gy_cluster_default(), far = slow;
    slow.bandwidth = 1e6;
    far.latency = 1e-2;
    struct gy_tuned on_slow = {.cluster = &slow, .ranks = 16, .ranks_per_host = 1, .tile = 262144}, on_far = on_slow;
    on_far.cluster = &far;
    cr_assert_eq(cheapest(&on_far, GY_ALL_REDUCE, 32768), GY_RECURSIVE_DOUBLING);
    cr_assert_neq(cheapest(&on_slow, GY_ALL_REDUCE, 32768), GY_RECURSIVE_DOUBLING);
}

static double cost_of(const struct gy_cluster *cluster, int algorithm, int ranks, size_t bytes)
{
    struct gy_cost_case it = case_of(cluster, (enum gy_algorithm)algorithm, ranks, bytes / 4);
    return gy_schedule_exists(GY_ALL_REDUCE, it.algorithm, ranks) ? gy_cost(&it) : -1;
}

/* What is taken instead of another one costs least of all whose cost is known, in every class of sizes; and what stays
 * costs little more than that, or its cost is not known. */
static void check_class(const struct gy_cluster *cluster, struct gy_tuned *tuned, size_t bytes)
{
    double least = -1;
    for (int a = 0; a < GY_ALGORITHMS; a++) {
        double cost = links & (1u << a) ? cost_of(cluster, a, tuned->ranks, bytes) : -1;
        least = cost >= 0 && (least < 0 || cost < least) ? cost : least;
    }
    for (int a = 0; a < GY_ALGORITHMS; a++) {
        if (gy_is_over_shm((enum gy_algorithm)a))
            continue;
        enum gy_algorithm chosen = gy_tuned_choose(tuned, GY_ALL_REDUCE, bytes, links, (enum gy_algorithm)a);
        double cost = cost_of(cluster, a, tuned->ranks, bytes),
               its = cost_of(cluster, (int)chosen, tuned->ranks, bytes);
        bool stays = chosen == (enum gy_algorithm)a;
        cr_assert(stays ? cost <= GY_TUNED_DOUBT * least : cost > GY_TUNED_DOUBT * least && its <= least,
                  "%d ranks, %zu bytes: %s instead of %s", tuned->ranks, bytes, gy_algorithm_name(chosen),
                  gy_algorithm_name((enum gy_algorithm)a));
    }
}

Test(tuned, only_what_certainly_costs_more_is_replaced)
{
    struct gy_cluster cluster = gy_cluster_default();
    for (int ranks = 2; ranks <= 33; ranks++) {
        struct gy_tuned tuned = {.cluster = &cluster, .ranks = ranks, .ranks_per_host = 1, .tile = 262144};
        for (size_t bytes = 4; bytes <= (size_t)64 << 20; bytes *= 4)
            check_class(&cluster, &tuned, bytes);
    }
}

/* Bytes that the busiest of all hosts cannot but send or receive, whatever the algorithm. */
static double least_bytes(enum gy_collective collective, int hosts, double bytes)
{
    switch (collective) {
    case GY_ALL_REDUCE: return 2 * bytes * (hosts - 1) / hosts;
    case GY_REDUCE_SCATTER:
    case GY_ALL_GATHER: return bytes * (hosts - 1) / hosts;
    default: return bytes;
    }
}

/* A burst is for free once, however many hops and trees there are, and never costs anything; and what a link has to
 * carry beyond it is never for free, not where every vector is one tile either. */
static void check_bursts(struct gy_cost_case it)
{
    struct gy_cluster cluster = *it.cluster;
    int hosts = it.ranks / (int)it.ranks_per_host;
    double least = least_bytes(it.collective, hosts, (double)(it.total * it.element)), before = 0;
    it.cluster = &cluster;
    for (int b = 0; b <= 4; b++) {
        cluster.burst = b > 0 ? 4096.0 * (double)(1 << (2 * b)) : 0;
        double cost = gy_cost(&it);
        if (cost < 0)
            return;
        cr_assert(cost * cluster.bandwidth >= 0.999 * (least - cluster.burst) && cost > 0 &&
                      (b == 0 || cost <= before * 1.000001),
                  "%s of %zu bytes by %s, %d hosts of %g, burst %g: %g s, before that %g",
                  gy_collective_name(it.collective), it.total * it.element, gy_algorithm_name(it.algorithm), hosts,
                  it.ranks_per_host, cluster.burst, cost, before);
        before = cost;
    }
}

Test(tuned, no_cost_is_below_what_the_links_take, .timeout = 60)
{
    static const enum gy_collective collectives[] = {GY_ALL_REDUCE, GY_BROADCAST, GY_REDUCE_TO, GY_REDUCE_SCATTER,
                                                     GY_ALL_GATHER};
    struct gy_cluster cluster = gy_cluster_default();
    cluster.bandwidth = 24e6;
    for (size_t c = 0; c < GY_ARRAY_LENGTH(collectives); c++)
        for (int a = 0; a < GY_ALGORITHMS; a++)
            for (int hosts = 2; hosts <= 8; hosts++)
                for (int members = 1; members <= 2; members++)
                    for (size_t bytes = 2048; bytes <= (size_t)8 << 20; bytes *= 8) {
                        int ranks = hosts * members;
                        struct gy_cost_case it = {&cluster, collectives[c], (enum gy_algorithm)a, ranks, 0,
                                                  members,  bytes / 4,      (size_t)64 << 10,     4};
                        if (gy_schedule_exists(it.collective, it.algorithm, ranks) && links & (1u << a) &&
                            gy_is_hierarchical(it.algorithm) == (members > 1))
                            check_bursts(it);
                    }
}

/* The ranks of two trees share their links between two children, and the root its own between both trees. Four hosts
 * around shapers that pass 32 KiB at once took 3.1, 15.9 and 31 ms for broadcasts of 64, 256 and 512 KiB by two
 * trees. A chain took 1.9, 11.0 and 22. */
Test(tuned, two_trees_cost_more_than_a_short_chain_over_slow_links)
{
    struct gy_cluster cluster = gy_cluster_default();
    cluster.bandwidth = 24e6;
    cluster.burst = 32 << 10;
    for (int hosts = 4; hosts <= 5; hosts++)
        for (int members = 1; members <= 2; members++)
            for (size_t bytes = (size_t)(64 * members) << 10; bytes <= 512 << 10; bytes *= 2) {
                int ranks = hosts * members;
                size_t tile = gy_tile_bytes(GY_BROADCAST, ranks, members, bytes, 262144) / 4;
                enum gy_algorithm chain = members > 1 ? GY_HIERARCHICAL : GY_RING,
                                  trees = members > 1 ? GY_HIERARCHICAL_TREE : GY_DOUBLE_TREE;
                struct gy_cost_case one = {&cluster, GY_BROADCAST, chain, ranks, 0, members, bytes / 4, tile, 4},
                                    two = one;
                two.algorithm = trees;
                cr_assert_gt(gy_cost(&two), 1.05 * gy_cost(&one), "%d hosts of %d, %zu bytes: %g and %g s", hosts,
                             members, bytes, gy_cost(&two), gy_cost(&one));
            }
}

/* Several ranks on each host: over slow links no byte shall cross more often than once per host, and a short vector
 * goes the way with the fewest messages. Alone on their hosts ranks gain nothing by it, and the same cost is no reason
 * to change. */
Test(tuned, hierarchies_where_links_are_slow)
{
    struct gy_cluster cluster = gy_cluster_default();
    cluster.bandwidth = 25e6;
    for (int hosts = 2; hosts <= 16; hosts *= 2) {
        struct gy_tuned many = {.cluster = &cluster, .ranks = 4 * hosts, .ranks_per_host = 4, .tile = 262144};
        struct gy_tuned one = {.cluster = &cluster, .ranks = hosts, .ranks_per_host = 1, .tile = 262144};
        enum gy_algorithm large = cheapest(&many, GY_ALL_REDUCE, (size_t)16 << 20);
        cr_assert(gy_is_hierarchical(large), "%d hosts: %s", hosts, gy_algorithm_name(large));
        large = cheapest(&one, GY_ALL_REDUCE, (size_t)16 << 20);
        cr_assert(!gy_is_hierarchical(large), "%d hosts of one rank: %s", hosts, gy_algorithm_name(large));
        enum gy_algorithm flat = cheapest(&many, GY_BROADCAST, (size_t)16 << 20);
        cr_assert(gy_is_hierarchical(flat), "%d hosts, broadcast: %s", hosts, gy_algorithm_name(flat));
    }
}

/* A ring of hosts takes what the same ring of single ranks takes and, before and after it, what the hosts do inside;
 * faster copies inside make that less, and nothing else does. */
Test(tuned, a_hierarchy_costs_its_levels)
{
    struct gy_cluster cluster = gy_cluster_default(), quick = cluster;
    quick.local_copy = 10 * cluster.copy;
    for (size_t total = 1024; total <= (size_t)4 << 20; total *= 16) {
        struct gy_cost_case outside = case_of(&cluster, GY_RING, 4, total);
        struct gy_cost_case both = case_of(&cluster, GY_HIERARCHICAL, 16, total);
        both.ranks_per_host = 4;
        double slow = gy_cost(&both), least = 2 * cluster.local_latency;
        cr_assert(slow > gy_cost(&outside) / 4 + least && slow > 0, "%zu elements: %g s", total, slow);
        both.cluster = &quick;
        cr_assert_lt(gy_cost(&both), slow);
        both.ranks = 4;
        both.ranks_per_host = 1;
        cr_assert_float_eq(gy_cost(&both), gy_cost(&outside), 1e-12, "ranks alone on their hosts have one level");
    }
}

/* A chain's cost grows with its ranks, and finding it does not: no schedule is built of every rank. */
Test(tuned, a_chain_of_a_million_ranks, .timeout = 20)
{
    struct gy_cluster cluster = gy_cluster_default();
    double before = 0, more = 0;
    for (int ranks = 2; ranks <= 1 << 20; ranks *= 2) {
        struct gy_cost_case it = {&cluster, GY_BROADCAST, GY_RING, ranks, ranks / 3, 1, 1000, 65536, 4};
        double cost = gy_cost(&it);
        cr_assert(cost > before && (ranks < 8 || fabs((cost - before) / more - 2) < 0.01), "%d ranks: %g s", ranks,
                  cost);
        more = cost - before;
        before = cost;
    }
}

/* Through five hosts on slow links a vector takes little more than from one to the next, since they hand it on in short
 * tiles: whether each of them is one rank, or several that have a slice each. With the longest tiles it takes twice as
 * long. */
Test(tuned, short_tiles_keep_a_chain_full)
{
    const size_t bytes = 512 << 10, most = 256 << 10;
    struct gy_cluster cluster = gy_cluster_default();
    cluster.bandwidth = 24e6;
    for (int members = 1; members <= 4; members *= 2)
        for (int c = 0; c < 2; c++) {
            enum gy_collective collective = c ? GY_REDUCE_TO : GY_BROADCAST;
            enum gy_algorithm algorithm = members > 1 ? GY_HIERARCHICAL : GY_RING;
            size_t tile = gy_tile_bytes(collective, 5 * members, members, bytes, most);
            struct gy_cost_case it = {&cluster, collective, algorithm, 5 * members, 0, members, bytes / 4, tile / 4, 4};
            double once = (double)bytes / cluster.bandwidth, cost = gy_cost(&it);
            cr_assert(cost > once && cost < 1.35 * once, "%d members: %g of %g s", members, cost, once);
            it.tile = most / 4;
            cr_assert_gt(gy_cost(&it), 1.9 * once);
        }
}

/* Of what other ranks do not hand on tiles are as long as they may be; of what they do, from GY_TILE_LEAST up. */
Test(tuned, tiles_are_within_their_bounds)
{
    const size_t most = 256 << 10;
    for (int c = 0; c < GY_COLLECTIVES; c++)
        for (int ranks = 1; ranks <= 64; ranks *= 2)
            for (size_t bytes = 1; bytes <= (size_t)1 << 30; bytes *= 8) {
                enum gy_collective collective = (enum gy_collective)c;
                size_t tile = gy_tile_bytes(collective, ranks, 1, bytes, most);
                bool rooted = collective == GY_BROADCAST || collective == GY_REDUCE_TO;
                cr_assert_eq(gy_tile_bytes(collective, ranks, 1, bytes, 8192), 8192);
                cr_assert_leq(tile, most);
                cr_assert(tile == most || (rooted && ranks > 2 && tile >= GY_TILE_LEAST));
                cr_assert(!rooted || tile == GY_TILE_LEAST || ranks <= 2 || tile * (size_t)ranks * 16 <= bytes);
                for (int members = 1; members <= 1024; members = members * 4 + 1)
                    cr_assert_geq(gy_tile_bytes(collective, ranks, members, bytes, most), GY_EAGER_BYTES);
            }
}

/* In one host rings of shared memory have one tile. Over sockets tiles are never shorter than that; of two ranks they
 * are as long as frames may be, or half of what is reduced to one of both; and slots that were asked to be short have
 * their way. */
Test(tuned, tiles_in_a_host_are_long_over_sockets)
{
    const size_t rings = GY_HOST_TILE;
    for (int c = 0; c < GY_COLLECTIVES; c++)
        for (int ranks = 2; ranks <= 64; ranks *= 2)
            for (size_t bytes = 1; bytes <= (size_t)1 << 30; bytes *= 8) {
                enum gy_collective collective = (enum gy_collective)c;
                size_t tile = gy_tile_in_host(collective, ranks, bytes, rings, true);
                bool rooted = collective == GY_BROADCAST || collective == GY_REDUCE_TO;
                cr_assert_eq(gy_tile_in_host(collective, ranks, bytes, rings, false), rings);
                cr_assert_eq(gy_tile_in_host(collective, ranks, bytes, 4096, true), 4096);
                cr_assert(tile >= rings && tile <= GY_FRAME_MAX);
                cr_assert(tile == GY_FRAME_MAX || (collective == GY_REDUCE_TO && tile >= GY_TILE_HALF) ||
                          (rooted && ranks > 2));
                cr_assert(collective != GY_REDUCE_TO || tile <= GY_TILE_HALF || 2 * tile <= bytes);
                cr_assert(!rooted || tile == rings || ranks <= 2 || tile * (size_t)ranks * 16 <= bytes);
            }
}

/* A tree of all ranks hangs on none of them: what goes up comes down again, between two ranks, too. */
Test(tuned, two_trees_of_two_ranks_take_two_hops)
{
    struct gy_cluster c = gy_cluster_default();
    struct gy_cost_case it = case_of(&c, GY_DOUBLE_TREE, 2, 2);
    cr_assert_geq(gy_cost(&it), 1.999 * (c.send_overhead + c.latency + c.receive_overhead));
}

Test(tuned, sizes_beyond_all_classes_and_none)
{
    struct gy_cluster cluster = gy_cluster_default();
    struct gy_tuned tuned = {.cluster = &cluster, .ranks = 5, .ranks_per_host = 5, .tile = 131072};
    cr_assert_neq(cheapest(&tuned, GY_ALL_REDUCE, 0), GY_ALGORITHMS);
    cr_assert_neq(cheapest(&tuned, GY_ALL_REDUCE, SIZE_MAX), GY_ALGORITHMS);
    cr_assert_eq(cheapest(&tuned, GY_ALL_TO_ALL, 4096), GY_ALGORITHMS, "no closed form is known for it");
    cr_assert_eq(gy_tuned_choose(&tuned, GY_BROADCAST, 4096, 0, GY_BINOMIAL), GY_BINOMIAL, "nothing else may be used");
}

Test(tuned, a_file_is_read_and_a_bad_one_named)
{
    const char *why = NULL;
    struct gy_cluster cluster = gy_cluster_default();
    cr_assert(gy_cluster_set(&cluster, "bandwidth = 25M", &why));
    cr_assert_eq((long)cluster.bandwidth, 25000000);
    static const char *const wrong[] = {"bandwidth",    "bandwidth = ", "speed = 3",     "latency = fast",
                                        "latency = -1", "latency = 1q", "latency = nan", "bandwidth = 0",
                                        "hosts = 1e9",  "latency = 1 2"};
    for (size_t i = 0; i < GY_ARRAY_LENGTH(wrong); i++) {
        why = NULL;
        cr_assert(!gy_cluster_set(&cluster, wrong[i], &why) && why && *why, "%s", wrong[i]);
    }
    cr_assert(!gy_cluster_read("/nowhere/at/all", &cluster, &why));
}

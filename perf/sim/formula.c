/* The closed form: what all ranks take, from the plans of a few of them.
 *
 *   in lockstep   every rank does the same at the same time (rings, and powers of two for the algorithms that double):
 *                     rounds · (overheads + latency + a tile's copies) + the longer of what its link and its thread take
 *   pipelined     trees and chains: the longest way of one tile to the root or from it, and the other tiles behind it at
 *                 the pace of the rank that has most to do
 *
 * It is held against the simulation where both can be had (test perf.sim), and speaks alone beyond. Where the two part by
 * more than the test allows there is no closed form: formula() gives NaN. */
#include <math.h>

#include "case.h"
#include "collectives/channel.h"
#include "collectives/layout.h"

/* What a rank has on its hands in one plan. */
struct share {
    double sends, receives, reductions; /* messages; of the whole plan */
    double sent, received, reduced;     /* bytes */
    double rounds;                      /* messages one after another: of the longest lane */
    double granted;                     /* steps that wait for a grant */
    double tiles;                       /* of the step with the most */
};

static struct share share_of(const struct sim_case *it, int rank)
{
    struct share share = {.tiles = 1};
    struct gy_plan_shape shape = {
        .collective = it->collective, .algorithm = it->algorithm, .rank = rank, .size = it->ranks, .root = it->root};
    struct gy_plan *plan = gy_plan_build(&shape);
    for (int l = 0; plan && l < plan->lanes; l++) {
        double rounds = 0, granted = 0;
        for (int s = 0; s < plan->lane[l].count; s++) {
            const struct gy_step *step = &plan->step[plan->lane[l].first + s];
            struct gy_layout layout = {.total = it->total, .blocks = plan->blocks};
            size_t longest = gy_layout_longest(&layout, step->range.width);
            double tiles = (double)gy_layout_tiles(longest, it->tile) * step->rounds;
            double bytes = (double)it->total * SIM_ELEMENT * step->range.width / plan->blocks * step->rounds;
            share.tiles = fmax(share.tiles, tiles / step->rounds);
            rounds += step->rounds;
            granted += longest * SIM_ELEMENT > GY_EAGER_BYTES;
            share.sends += step->kind == GY_SEND ? tiles : 0;
            share.sent += step->kind == GY_SEND ? bytes : 0;
            share.receives += step->kind == GY_RECV || step->kind == GY_RECV_REDUCE ? tiles : 0;
            share.received += step->kind == GY_RECV || step->kind == GY_RECV_REDUCE ? bytes : 0;
            share.reduced += step->kind == GY_RECV_REDUCE || step->kind == GY_REDUCE ? bytes : 0;
        }
        share.rounds = fmax(share.rounds, rounds);
        share.granted = fmax(share.granted, granted);
    }
    gy_plan_free(plan);
    return share;
}

/* What the thread and the link of a rank take for its share; `alike` of a host's ranks use the link at once. */
static double thread_time(const struct cluster *c, const struct share *share)
{
    return share->sends * c->send_overhead + share->receives * c->receive_overhead +
           (share->sent + share->received) / c->copy + share->reduced / c->reduce;
}

static double link_time(const struct cluster *c, const struct share *share)
{
    double slowed = fmax(share->sent, share->received) * c->ranks_per_host - c->burst;
    return fmax(0, slowed) / c->bandwidth;
}

/* From one rank to the next, beside the bytes. */
static double hop(const struct cluster *c)
{
    return c->send_overhead + c->latency + c->receive_overhead;
}

/* A tile's way through the memories at both ends. */
static double fill(const struct cluster *c, double tile, bool reduces)
{
    return 2 * tile / c->copy + (reduces ? tile / c->reduce : 0);
}

static double in_lockstep(const struct sim_case *it, const struct share *share)
{
    const struct cluster *c = it->cluster;
    double messages = fmax(1, fmax(share->sends, share->receives)), bytes = fmax(share->sent, share->received);
    double tile = bytes / messages, rounds = share->rounds, hops = rounds + share->granted;
    if (it->algorithm != GY_RING) {
        double thread = thread_time(c, share) - rounds * (c->send_overhead + c->receive_overhead);
        double link = link_time(c, share) + rounds * fill(c, tile, share->reduced > 0);
        return hops * hop(c) + fmax(thread, link);
    }
    /* A ring's rounds follow each other tile by tile: the link has no pause while the first tile goes on. */
    double path = hop(c) + tile * c->ranks_per_host / c->bandwidth + fill(c, tile, share->reduced > 0);
    double link = link_time(c, share) / rounds;
    double pace = fmax(fmax(link, thread_time(c, share) / rounds), path);
    return share->granted * hop(c) + path + (rounds - 1) * pace + (messages / rounds - 1) * tile / c->bandwidth;
}

/* ---- trees and chains ---- */

/* The plan's lanes that do this, in the first of its trees; the other end of one of them, or −1. */
static int lanes_of(const struct gy_plan *plan, enum gy_step_kind kind, int *peer_p)
{
    int lanes = 0;
    *peer_p = -1;
    for (int l = 0; l < plan->lanes; l++) {
        const struct gy_step *step = &plan->step[plan->lane[l].first];
        bool second = plan->shape.algorithm == GY_DOUBLE_TREE && plan->lane[l].channel >= 4;
        if (step->kind != kind || second)
            continue;
        *peer_p = step->peer;
        lanes++;
    }
    return lanes;
}

static int parent_of(const struct gy_plan *plan)
{
    int parent;
    lanes_of(plan, plan->shape.collective == GY_REDUCE_TO ? GY_SEND : GY_RECV, &parent);
    return parent;
}

static int children_of(const struct gy_plan *plan)
{
    int child;
    return lanes_of(plan, plan->shape.collective == GY_BROADCAST ? GY_SEND : GY_RECV_REDUCE, &child);
}

/* How long one tile needs from here to the root, or from the root to here: at every rank on the way its children, one
 * after the other, share the link. */
static double climb(const struct sim_case *it, int rank, double tile, bool reduces)
{
    const struct cluster *c = it->cluster;
    double time = 0;
    for (int steps = 0; rank != it->root && steps < it->ranks; steps++) {
        struct gy_plan_shape shape = {it->collective, it->algorithm, rank, it->ranks, it->root};
        struct gy_plan *plan = gy_plan_build(&shape);
        int parent = plan ? parent_of(plan) : -1;
        gy_plan_free(plan);
        if (parent < 0)
            break; /* the root of a tree whose root is not the call's */
        shape.rank = rank = parent;
        plan = gy_plan_build(&shape);
        int children = plan ? children_of(plan) : 1;
        gy_plan_free(plan);
        time += hop(c) + fill(c, tile, reduces) + (children > 1 ? children - 1 : 0) * fill(c, tile, reduces) / 2 +
                (children > 1 ? children : 1) * fmax(0, tile - c->burst) * c->ranks_per_host / c->bandwidth;
    }
    return time;
}

static double pipelined(const struct sim_case *it, const struct share *share)
{
    const struct cluster *c = it->cluster;
    double whole = (double)it->total * SIM_ELEMENT / (it->algorithm == GY_DOUBLE_TREE ? 2 : 1);
    double tile = fmin((double)it->tile * SIM_ELEMENT, whole), tiles = ceil(fmax(1, whole / tile));
    double slowest = 0;
    for (int i = 0; i < 64; i++) { /* some of all, the ends among them */
        int rank = i < 32 ? (int)((double)i / 32 * it->ranks)
                          : it->ranks - 1 - (int)((double)(i - 32) / 32 * it->ranks);
        slowest = fmax(slowest, climb(it, rank, tile, share->reduced > 0));
    }
    bool twice = it->collective == GY_ALL_REDUCE;
    double all = fmax(link_time(c, share), thread_time(c, share));
    return (twice ? 2 : 1) * slowest + hop(c) + all * (tiles - 1) / tiles;
}

/* The one of a few ranks that has most to do. */
static struct share heaviest(const struct sim_case *it)
{
    const int sample[] = {0, 1, 2, it->ranks / 2, it->ranks - 1};
    struct share most = {0};
    double weight = -1;
    for (size_t i = 0; i < sizeof(sample) / sizeof(sample[0]); i++) {
        if (sample[i] >= it->ranks)
            continue;
        struct share share = share_of(it, sample[i]);
        double its = thread_time(it->cluster, &share) + link_time(it->cluster, &share);
        if (its > weight) {
            weight = its;
            most = share;
        }
    }
    return most;
}

double formula(const struct sim_case *it)
{
    if (it->ranks == 1)
        return (double)it->total * SIM_ELEMENT / it->cluster->copy;
    bool power = (it->ranks & (it->ranks - 1)) == 0;
    struct share most = heaviest(it);
    bool tree = it->algorithm != GY_RING;
    if (it->collective == GY_REDUCE_TO && tree)
        return NAN; /* how a parent takes turns between its children decides, up to a third */
    switch (it->algorithm) {
    case GY_RING:
        if (it->collective == GY_BROADCAST || it->collective == GY_REDUCE_TO)
            return pipelined(it, &most);
        return in_lockstep(it, &most);
    case GY_BRUCK: return in_lockstep(it, &most);
    case GY_HALVING_DOUBLING:
    case GY_RECURSIVE_DOUBLING:
    case GY_CANONICAL: return power ? in_lockstep(it, &most) : NAN;
    case GY_BINARY_TREE:
    case GY_DOUBLE_TREE: return pipelined(it, &most);
    default: return NAN;
    }
}

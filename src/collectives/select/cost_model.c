/* The closed form: the time of all ranks, from the schedules of a few of them.
 *
 *   in lockstep   every rank does the same at the same time (rings, and powers of two for the algorithms that double):
 *                     rounds · (overheads + latency + a tile's copies) + the longer of link time and thread time
 *   pipelined     trees and chains: the longest path of one tile to or from the root, then the other tiles at
 *                 the pace of the busiest rank
 *   hierarchical  the time of the schedule between hosts for one slice (each host has one per rank). The first and the
 *                 last lot of pieces inside a host are added, the other lots overlap with it
 *
 * The model is compared with the simulation where both exist (test `sim`), and is used alone beyond. Where they
 * differ by more than the test allows there is no closed form: gy_cost returns −1. All ranks must compute identical
 * results, so only the four arithmetic operations are used, and no library function. */
#include "collectives/select/cost_model.h"

#include "collectives/comm/channel.h"
#include "collectives/schedule/layout.h"

static double longer(double a, double b)
{
    return a > b ? a : b;
}

static double shorter(double a, double b)
{
    return a < b ? a : b;
}

static double bytes_of(const struct gy_cost_case *it)
{
    return (double)it->total * (double)it->element;
}

/* The work of one rank in a schedule. */
struct share {
    double sends, receives;         /* messages of the whole schedule */
    double sent, received, reduced; /* bytes */
    double rounds;                  /* sequential messages of the longest lane; 0: no memory for the schedule */
    double granted;                 /* steps that wait for a grant */
};

static struct share share_of(const struct gy_cost_case *it, int rank)
{
    struct share share = {0};
    struct gy_schedule_shape shape = {
        .collective = it->collective, .algorithm = it->algorithm, .rank = rank, .size = it->ranks, .root = it->root};
    struct gy_schedule *schedule = gy_schedule_build(&shape);
    for (int l = 0; schedule && l < schedule->lanes; l++) {
        double rounds = 0, granted = 0;
        for (int s = 0; s < schedule->lane[l].count; s++) {
            const struct gy_step *step = &schedule->step[schedule->lane[l].first + s];
            struct gy_layout layout = {.total = it->total, .blocks = schedule->blocks};
            size_t longest = gy_layout_longest(&layout, step->range.width);
            double tiles = (double)gy_layout_tiles(longest, it->tile) * step->rounds;
            double bytes = bytes_of(it) * step->range.width / schedule->blocks * step->rounds;
            rounds += step->rounds;
            granted += !gy_eager_leaves(schedule, l, step->peer, longest * it->element, GY_EAGER_INTER_HOST);
            share.sends += step->kind == GY_SEND ? tiles : 0;
            share.sent += step->kind == GY_SEND ? bytes : 0;
            share.receives += step->kind == GY_RECV || step->kind == GY_RECV_REDUCE ? tiles : 0;
            share.received += step->kind == GY_RECV || step->kind == GY_RECV_REDUCE ? bytes : 0;
            share.reduced += step->kind == GY_RECV_REDUCE || step->kind == GY_REDUCE ? bytes : 0;
        }
        share.rounds = longer(share.rounds, rounds);
        share.granted = longer(share.granted, granted);
    }
    gy_schedule_free(schedule);
    return share;
}

/* Time of a rank's thread and link for its share; all ranks of a host use its link at once. */
static double thread_time(const struct gy_cluster *c, const struct share *share)
{
    return share->sends * c->send_overhead + share->receives * c->receive_overhead +
           (share->sent + share->received) / c->copy + share->reduced / c->reduce;
}

static double link_bytes(const struct gy_cost_case *it, const struct share *share)
{
    return longer(share->sent, share->received) * it->ranks_per_host;
}

/* Link time of `bytes` on a host's link after a pause. */
static double slowed(const struct gy_cluster *c, double bytes)
{
    return longer(0, bytes - c->burst) / c->bandwidth;
}

static double link_time(const struct gy_cost_case *it, const struct share *share)
{
    return slowed(it->cluster, link_bytes(it, share));
}

/* Time from one rank to the next, without the bytes. */
static double hop(const struct gy_cluster *c)
{
    return c->send_overhead + c->latency + c->receive_overhead;
}

/* Time of a tile in the memories at both ends. */
static double fill(const struct gy_cluster *c, double tile, bool reduces)
{
    return 2 * tile / c->copy + (reduces ? tile / c->reduce : 0);
}

static double in_lockstep(const struct gy_cost_case *it, const struct share *share)
{
    const struct gy_cluster *c = it->cluster;
    double messages = longer(1, longer(share->sends, share->receives)), bytes = longer(share->sent, share->received);
    double tile = bytes / messages, rounds = share->rounds, hops = rounds + share->granted;
    if (it->algorithm != GY_RING) {
        double thread = thread_time(c, share) - rounds * (c->send_overhead + c->receive_overhead);
        double link = link_time(it, share) + rounds * fill(c, tile, share->reduced > 0);
        return hops * hop(c) + longer(thread, link);
    }
    /* A ring's rounds follow each other tile by tile: the link does not pause while the first tile is forwarded. */
    double start = hop(c) + fill(c, tile, share->reduced > 0);
    double path = start + tile * it->ranks_per_host / c->bandwidth;
    double link = link_bytes(it, share) / c->bandwidth / rounds, thread = thread_time(c, share) / rounds;
    double pace = longer(longer(link, thread), path);
    double at_once = shorter(c->burst, link_bytes(it, share)) / c->bandwidth;
    at_once = shorter(at_once, rounds * (pace - longer(thread, start))); /* of the link's time in a round */
    double rest = (messages / rounds - 1) * tile * it->ranks_per_host / c->bandwidth; /* of the first round */
    return share->granted * hop(c) + path + (rounds - 1) * pace + rest - at_once;
}

/* ---- trees and chains ---- */

/* Counts the schedule's lanes of this kind: in the first tree, and in all; the peer of a lane of the first, or −1. */
static struct lanes {
    int first, all, peer;
} lanes_of(const struct gy_schedule *schedule, enum gy_step_kind kind)
{
    struct lanes lanes = {.peer = -1};
    for (int l = 0; l < schedule->lanes; l++) {
        const struct gy_step *step = &schedule->step[schedule->lane[l].first];
        if (step->kind != kind)
            continue;
        lanes.all++;
        if (schedule->shape.algorithm == GY_DOUBLE_TREE && schedule->lane[l].tag >= 4)
            continue;
        lanes.peer = step->peer;
        lanes.first++;
    }
    return lanes;
}

static int parent_of(const struct gy_schedule *schedule)
{
    return lanes_of(schedule, schedule->shape.collective == GY_REDUCE_TO ? GY_SEND : GY_RECV).peer;
}

static struct lanes children_of(const struct gy_schedule *schedule)
{
    return lanes_of(schedule, schedule->shape.collective == GY_BROADCAST ? GY_SEND : GY_RECV_REDUCE);
}

/* Time of one tile between this rank and the root: at every rank on the path its children, those in the other tree
 * included, share the link one after the other. */
static double climb(const struct gy_cost_case *it, int rank, double tile, bool reduces)
{
    const struct gy_cluster *c = it->cluster;
    double time = 0;
    int root = it->collective == GY_ALL_REDUCE ? -1 : it->root; /* a tree of all ranks has a root of its own */
    for (int steps = 0; rank != root && steps < it->ranks; steps++) {
        struct gy_schedule_shape shape = {it->collective, it->algorithm, rank, it->ranks, it->root, NULL};
        struct gy_schedule *schedule = gy_schedule_build(&shape);
        int parent = schedule ? parent_of(schedule) : -1;
        gy_schedule_free(schedule);
        if (parent < 0)
            break;
        shape.rank = rank = parent;
        schedule = gy_schedule_build(&shape);
        struct lanes children = schedule ? children_of(schedule) : (struct lanes){1, 1, 0};
        gy_schedule_free(schedule);
        time += hop(c) + fill(c, tile, reduces) + longer(0, children.first - 1) * fill(c, tile, reduces) / 2 +
                slowed(c, longer(1, children.all) * tile * it->ranks_per_host);
    }
    return time;
}

/* The same in a chain, where every rank has one child: the last rank is N − 1 hops away. */
static double chain(const struct gy_cost_case *it, double tile, bool reduces)
{
    const struct gy_cluster *c = it->cluster;
    return (it->ranks - 1) * (hop(c) + fill(c, tile, reduces) + slowed(c, tile * it->ranks_per_host));
}

static double pipelined(const struct gy_cost_case *it, const struct share *share)
{
    const struct gy_cluster *c = it->cluster;
    double whole = bytes_of(it) / (it->algorithm == GY_DOUBLE_TREE ? 2 : 1);
    double tile = shorter((double)it->tile * (double)it->element, whole), tiles = longer(1, whole / tile);
    double slowest = it->algorithm == GY_RING ? chain(it, tile, share->reduced > 0) : 0;
    for (int i = 0; i < 64 && it->algorithm != GY_RING; i++) { /* a sample of the ranks, with the ends */
        int rank = i < 32 ? (int)((double)i / 32 * it->ranks)
                          : it->ranks - 1 - (int)((double)(i - 32) / 32 * it->ranks);
        slowest = longer(slowest, climb(it, rank, tile, share->reduced > 0));
    }
    bool twice = it->collective == GY_ALL_REDUCE;
    double first = link_bytes(it, share) / tiles; /* sent with the first tile, the burst included */
    double link = longer(0, link_time(it, share) - slowed(c, first));
    double thread = thread_time(c, share) * (tiles - 1) / tiles;
    return longer((twice ? 2 : 1) * slowest + longer(link, thread), link_time(it, share)) + hop(c);
}

/* A binomial tree: the root sends or receives the whole vector log2 N times in sequence; the ranks on the longest
 * path forward it meanwhile, tile by tile. A receiver grants long before its turn, so only the first message waits
 * for a grant. */
static double binomial(const struct gy_cost_case *it, const struct share *share)
{
    const struct gy_cluster *c = it->cluster;
    double rounds = 0, bytes = bytes_of(it), tile = shorter((double)it->tile * (double)it->element, bytes);
    for (int reached = 1; reached < it->ranks; reached *= 2)
        rounds++;
    double hops = rounds + (share->granted > 0);
    bool reduces = share->reduced > 0;
    return hops * hop(c) + (reduces ? rounds : 1) * fill(c, tile, reduces) +
           slowed(c, rounds * bytes * it->ranks_per_host);
}

/* Returns the largest share among a few ranks. */
static struct share heaviest(const struct gy_cost_case *it)
{
    const int sample[] = {0, 1, 2, it->ranks / 2, it->ranks - 1};
    struct share most = {0};
    double weight = -1;
    for (size_t i = 0; i < sizeof(sample) / sizeof(sample[0]); i++) {
        if (sample[i] >= it->ranks)
            continue;
        struct share share = share_of(it, sample[i]);
        double its = thread_time(it->cluster, &share) + link_time(it, &share);
        if (its > weight) {
            weight = its;
            most = share;
        }
    }
    return most;
}

/* Time over shared memory of one host: copies and reductions of the rank's thread, and one wait for all ranks per
 * step. */
static double through_shm(const struct gy_cost_case *it)
{
    struct gy_schedule_shape shape = {.collective = it->collective, .algorithm = it->algorithm, .size = it->ranks};
    struct gy_schedule *schedule = gy_schedule_build(&shape);
    const struct gy_cluster *c = it->cluster;
    double time = schedule ? 0 : -1;
    for (int s = 0; schedule && s < schedule->steps; s++) {
        const struct gy_step *step = &schedule->step[s];
        double bytes = bytes_of(it) * step->range.width / schedule->blocks;
        bool reduces = step->kind == GY_REDUCE_PUBLISHED;
        time += c->local_latency + (reduces ? bytes * (it->ranks - 1) / c->reduce : bytes / c->copy);
    }
    gy_schedule_free(schedule);
    return time;
}

static double over_links(const struct gy_cost_case *it)
{
    bool power = (it->ranks & (it->ranks - 1)) == 0;
    bool chain = it->collective == GY_BROADCAST || it->collective == GY_REDUCE_TO;
    struct share most = heaviest(it);
    if (most.rounds == 0)
        return -1;
    if (it->collective == GY_REDUCE_TO && it->algorithm != GY_RING && it->algorithm != GY_BINOMIAL)
        return -1; /* the order in which a parent serves its children changes the time by up to a third */
    switch (it->algorithm) {
    case GY_RING: return chain ? pipelined(it, &most) : in_lockstep(it, &most);
    case GY_BINOMIAL: return chain ? binomial(it, &most) : -1;
    case GY_BRUCK: return it->collective == GY_ALL_GATHER ? in_lockstep(it, &most) : -1;
    case GY_HALVING_DOUBLING:
    case GY_RECURSIVE_DOUBLING:
    case GY_CANONICAL: return power ? in_lockstep(it, &most) : -1;
    case GY_BINARY_TREE:
    case GY_DOUBLE_TREE: return pipelined(it, &most);
    default: return -1;
    }
}

/* ---- hierarchies: every host is a group, and all have the same number of ranks ---- */

#define CHUNKS 8 /* as in hierarchical_slices.c */

/* The cluster as seen inside one host: no link in between. */
static struct gy_cluster inside_of(const struct gy_cluster *cluster, double ranks)
{
    struct gy_cluster inside = *cluster;
    inside.latency = cluster->local_latency;
    inside.copy = cluster->local_copy > 0 ? cluster->local_copy : cluster->copy;
    inside.bandwidth = inside.copy * ranks;
    return inside;
}

/* A rank's time while slices are exchanged inside its host: of m parts of the vector it sends and receives m − 1; to
 * or from a root only one of the two. */
static double exchange_inside(const struct gy_cost_case *it, const struct gy_cluster *inside, bool reduces, bool rooted)
{
    double members = it->ranks_per_host, slice = bytes_of(it) / members, tile = (double)it->tile * (double)it->element;
    struct share share = {.sends = (members - 1) * longer(1, slice / tile), .sent = (members - 1) * slice};
    if (!rooted) {
        share.receives = share.sends;
        share.received = share.sent;
    }
    share.reduced = reduces ? share.sent : 0;
    return thread_time(inside, &share);
}

/* Returns the number of lots in which the outer schedule's pieces move inside. */
static double chunks_of(const struct gy_cost_case *outside)
{
    bool whole = outside->algorithm == GY_HALVING_DOUBLING;
    bool chain = outside->algorithm == GY_RING &&
                 (outside->collective == GY_BROADCAST || outside->collective == GY_REDUCE_TO);
    bool tree = outside->algorithm == GY_DOUBLE_TREE;
    return whole || chain ? 1 : tree ? 2 : shorter(CHUNKS, outside->ranks);
}

static double bootstrap_inside(const struct gy_cost_case *it, const struct gy_cluster *inside, double outside)
{
    double others = it->ranks_per_host > 1 ? it->ranks_per_host - 2 : 0;
    return 2 * (hop(inside) + others * longer(inside->send_overhead, inside->receive_overhead)) + outside;
}

static double hierarchical(const struct gy_cost_case *it)
{
    double members = it->ranks_per_host, between = 0, busy = 0, chunks = 1;
    struct gy_cluster inside = inside_of(it->cluster, members);
    struct gy_cost_case outside = *it;
    outside.algorithm = it->algorithm == GY_HIERARCHICAL_HALVING || it->collective == GY_BARRIER ? GY_HALVING_DOUBLING
                        : it->algorithm == GY_HIERARCHICAL_TREE                                  ? GY_DOUBLE_TREE
                                                                                                 : GY_RING;
    outside.ranks = (int)((it->ranks + members - 1) / members);
    outside.total = (size_t)longer((double)it->total / members, 1);
    outside.root = 0;
    if (outside.ranks > 1) {
        outside.ranks_per_host = it->collective == GY_BARRIER ? 1 : members;
        struct share most = heaviest(&outside);
        between = over_links(&outside);
        busy = thread_time(it->cluster, &most);
        chunks = chunks_of(&outside);
    }
    if (between < 0 || members <= 1)
        return between;
    if (it->collective == GY_BARRIER)
        return bootstrap_inside(it, &inside, between);
    bool reduces = it->collective == GY_ALL_REDUCE || it->collective == GY_REDUCE_TO ||
                   it->collective == GY_REDUCE_SCATTER;
    double before = 0, after = 0;
    if (it->collective != GY_ALL_GATHER)
        before = exchange_inside(it, &inside, reduces, it->collective == GY_BROADCAST);
    if (it->collective != GY_REDUCE_SCATTER)
        after = exchange_inside(it, &inside, false, it->collective == GY_REDUCE_TO);
    double ends = (before + after) / chunks, meanwhile = before + after - ends;
    double hops = ((before > 0) + (after > 0)) * hop(&inside);
    return hops + ends + longer(between, busy + meanwhile);
}

double gy_cost(const struct gy_cost_case *it)
{
    struct gy_cluster inside = inside_of(it->cluster, it->ranks_per_host);
    struct gy_cost_case alone = *it;
    if (it->ranks == 1)
        return bytes_of(it) / it->cluster->copy;
    if (gy_is_over_shm(it->algorithm))
        return through_shm(it);
    if (gy_is_hierarchical(it->algorithm))
        return hierarchical(it);
    if (it->ranks_per_host < it->ranks)
        return over_links(it);
    alone.cluster = &inside;
    return over_links(&alone);
}

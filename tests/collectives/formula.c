/* What an algorithm costs, from the textbook: elements over links, elements through shared memory, messages one
 * after another. */
#include <stdio.h>

#include "checker.h"

struct cost {
    size_t sent, written, read;
    int depth;
};

static int floor_log2(int n)
{
    int k = 0;
    while (n >> (k + 1) != 0)
        k++;
    return k;
}

/* Elements of rank r's block. */
static size_t block(const struct gy_schedule_shape *shape, size_t total, const size_t *starts, int r)
{
    size_t n = (size_t)shape->size, b = (size_t)r;
    return starts ? starts[r + 1] - starts[r] : total * (b + 1) / n - total * b / n;
}

/* P = 2^k cores, E = n − P folded ranks; every exchange moves whole vectors summed over the ranks: (P − 1) per
 * direction. A path of k exchanges ends at the complement of the core where it began, so in one direction a folded
 * core's delay reaches another only when 2E > P. */
static struct cost halving_doubling(const struct gy_schedule_shape *shape, size_t total, const size_t *starts)
{
    int n = shape->size, k = floor_log2(n), folded = n - (1 << k);
    size_t cores = (size_t)1 << k, extra = (size_t)folded, odd = 0;
    for (int i = 0; i < folded; i++)
        odd += block(shape, total, starts, 2 * i + 1);
    int folds = folded > 0 ? 2 : 0;
    switch (shape->collective) {
    case GY_ALL_REDUCE: return (struct cost){2 * (cores - 1) * total + 2 * extra * total, 0, 0, 2 * k + folds};
    case GY_BARRIER: return (struct cost){0, 0, 0, (1 << k) == n ? k : k + 1};
    default:
        return (struct cost){(cores - 1) * total + extra * total + odd, 0, 0, k + (folds > 0) + (2 * folded > 1 << k)};
    }
}

/* Groups of 2^b ranks by the bits of n. What moves towards the first group is a vector less than there are ranks. A
 * group is ready when it has halved (b) and the next group's fold has come (one more); then each direction once
 * more. */
static struct cost canonical(const struct gy_schedule_shape *shape, size_t total, const size_t *starts)
{
    int n = shape->size, bits = floor_log2(n), pieces = 1 << bits, ready = 0, place = 0, depth = 0;
    for (int b = 0; b <= bits; b++)
        if (n >> b & 1)
            ready = b > ready + 1 || (n & ((1 << b) - 1)) == 0 ? b : ready + 1;
    for (int b = bits; b >= 0; b--)
        if (n >> b & 1) {
            depth = ready + place + b > depth ? ready + place + b : depth;
            place++;
        }
    size_t moved = (size_t)(n - 1) * total;
    if (shape->collective == GY_ALL_REDUCE)
        return (struct cost){2 * moved, 0, 0, depth};
    bool leaves = false;
    for (int i = 0; i < pieces; i++) {
        int piece = 0;
        for (int k = 0; k < bits; k++)
            piece |= (i >> k & 1) << (bits - 1 - k);
        size_t P = (size_t)pieces, q = (size_t)piece;
        size_t begin = total * q / P, end = total * (q + 1) / P;
        if (shape->collective == GY_REDUCE_TO) {
            moved += i == shape->root ? 0 : end - begin;
            leaves = true;
            continue;
        }
        for (int b = piece * n / pieces; b < (piece + 1) * n / pieces; b++) {
            moved += b == i ? 0 : block(shape, total, starts, b);
            leaves = leaves || b != i;
        }
    }
    return (struct cost){moved, 0, 0, ready + leaves};
}

/* Over slots no rank publishes what only itself would read. */
static struct cost over_shm(const struct gy_schedule_shape *shape, size_t total, const size_t *starts)
{
    size_t n = (size_t)shape->size, others = n - 1, sums = shape->algorithm == GY_SHM_ONE_SHOT;
    size_t not_roots = total - block(shape, total, starts, shape->root); /* of the vector, all but the root's slice */
    switch (shape->collective) {
    case GY_BARRIER: return (struct cost){0};
    case GY_BROADCAST: return (struct cost){0, total, others * total, 0};
    case GY_ALL_REDUCE: return (struct cost){0, n * total, (sums ? n : 2) * others * total, 0};
    case GY_REDUCE_TO:
        return sums ? (struct cost){0, others * total, others * total, 0}
                    : (struct cost){0, others * total + not_roots, others * total + not_roots, 0};
    case GY_ALL_GATHER: return (struct cost){0, total, others * total, 0};
    case GY_GATHER_TO:
    case GY_SCATTER_FROM: return (struct cost){0, not_roots, not_roots, 0};
    default: return (struct cost){0, others * total, others * total, 0}; /* reduce_scatter, all_to_all */
    }
}

/* Messages one after another in the binomial tree of ranks [lo, lo + n); the elements that the roots of its parts send,
 * in blocks of one rank. */
static int binomial_depth(int lo, int n, int root, size_t *blocks_p)
{
    if (n == 1)
        return 0;
    int half = 1;
    while (2 * half < n)
        half *= 2;
    bool right = root >= lo + half && root < lo + n; /* the part that stays */
    *blocks_p += (size_t)(right ? half : n - half);
    int left = binomial_depth(lo, half, root, blocks_p) + right;
    int other = binomial_depth(lo + half, n - half, root, blocks_p) + !right;
    return left > other ? left : other;
}

static struct cost binomial(const struct gy_schedule_shape *shape, size_t total)
{
    size_t blocks = 0, n = (size_t)shape->size;
    int depth = binomial_depth(0, shape->size, shape->root, &blocks);
    bool whole = shape->collective == GY_REDUCE_TO || shape->collective == GY_BROADCAST;
    return (struct cost){whole ? (n - 1) * total : blocks * (total / n), 0, 0, depth};
}

/* In each group of 2^b ranks each rank sends b vectors; those of the next group send one to each rank of it, and get
 * one. */
static struct cost recursive_doubling(int n, size_t total)
{
    size_t vectors = 0, behind = 0;
    int ready = 0, groups = 0;
    for (int b = 0; n >> b != 0; b++)
        if (n >> b & 1) {
            vectors += ((size_t)b << b) + (behind ? ((size_t)1 << b) + behind : 0);
            ready = groups > 0 && ready + 1 > b ? ready + 1 : b;
            behind = (size_t)1 << b;
            groups++;
        }
    return (struct cost){vectors * total, 0, 0, ready + groups - 1};
}

/* The last message, of what is missing, waits for the step that brought the last block in it. */
static int bruck_depth(int n)
{
    int before = floor_log2(n - 1), missing = n - (1 << before), last = missing == 1 ? 1 : 2 + floor_log2(missing - 1);
    return last > before ? last : before;
}

/* Blocks that have to go i ranks on travel once for every bit of i. */
static struct cost bruck(const struct gy_schedule_shape *shape, size_t total)
{
    size_t others = (size_t)shape->size - 1, bits = 0;
    int messages = floor_log2(shape->size - 1) + 1;
    if (shape->collective == GY_ALL_GATHER)
        return (struct cost){others * total, 0, 0, bruck_depth(shape->size)};
    for (size_t i = 1; i <= others; i++)
        bits += (size_t)__builtin_popcountll(i);
    return (struct cost){bits * total, 0, 0, messages};
}

/* Height of the in-order tree of n positions. */
static int in_order_height(int n)
{
    int top = 1;
    while (2 * top <= n)
        top *= 2;
    int below = top > 1 ? 1 + in_order_height(top - 1) : 0, above = n > top ? 1 + in_order_height(n - top) : 0;
    return below > above ? below : above;
}

/* Of hierarchical algorithms; at_most: the depth, where groups differ. */
struct grouped_cost {
    struct cost cost;
    size_t crossed; /* elements between groups */
    bool at_most;
};

struct groups {
    int count, smallest, largest, slices, place; /* place: of the root in its group */
};

static struct groups look_at(const struct gy_schedule_shape *shape)
{
    struct groups groups = {.count = 0, .smallest = shape->size};
    for (int seen = 0, g = 0; seen < shape->size; groups.count = ++g) {
        int members = 0;
        for (int r = 0; r < shape->size; r++) {
            bool inside = (shape->groups ? shape->groups[r] : 0) == g;
            if (inside && r == shape->root)
                groups.place = members;
            members += inside;
        }
        groups.smallest = members < groups.smallest ? members : groups.smallest;
        groups.largest = members > groups.largest ? members : groups.largest;
        seen += members;
    }
    return groups;
}

/* L slices, G groups: any traffic outside moves G − 1 vectors between groups in each direction. Inside, every rank
 * but one of a group sends each element once to be reduced, and gets it once. Ranks that own no slice get, or send,
 * their block through an owner; a root sends or gets all the slices but its own one. */
static struct grouped_cost hierarchical(const struct gy_schedule_shape *shape, size_t total)
{
    struct groups groups = look_at(shape);
    size_t n = (size_t)shape->size, slices = (size_t)groups.smallest, place = (size_t)groups.place;
    size_t other_groups = (size_t)groups.count - 1, without = n - slices * (size_t)groups.count;
    size_t own = place < slices ? total * (place + 1) / slices - total * place / slices : 0;
    bool both = shape->collective == GY_ALL_REDUCE, to_root = shape->collective == GY_REDUCE_TO;
    bool alike = groups.smallest == groups.largest, inside = groups.largest > 1;
    int outside = groups.count - 1, levels = outside == 0 ? 0 : floor_log2(groups.count), ways = both ? 2 : 1;
    struct gy_schedule_shape of_groups = {.collective = shape->collective, .size = groups.count};
    of_groups.algorithm = GY_HALVING_DOUBLING;
    if (shape->algorithm == GY_HIERARCHICAL_TREE && outside > 0)
        outside = both ? in_order_height(groups.count) : 1 + in_order_height(groups.count - 1);
    else if (shape->algorithm == GY_HIERARCHICAL_HALVING && outside > 0)
        outside = levels + (1 << levels < groups.count);
    else if (shape->collective == GY_BARRIER && outside > 0)
        outside = halving_doubling(&of_groups, 0, NULL).depth;
    struct cost cost = {.sent = (size_t)ways * (n - 1) * total};
    bool scatters = shape->collective == GY_REDUCE_SCATTER, gathers = shape->collective == GY_ALL_GATHER;
    if (scatters && n > 1)
        cost.sent += without * (total / n);
    if (to_root)
        cost.sent += total - own;
    cost.depth = ways * outside + inside * (scatters || gathers ? 1 + (without > 0) : 2);
    bool short_broadcast = shape->collective == GY_BROADCAST && groups.count == 1 && groups.largest == 2;
    return (struct grouped_cost){cost, (size_t)ways * other_groups * total, !alike || short_broadcast};
}

static struct cost cost_of(const struct gy_schedule_shape *shape, size_t total, const size_t *starts)
{
    size_t others = (size_t)shape->size - 1;
    int n = shape->size, height = floor_log2(n);
    bool both = shape->collective == GY_ALL_REDUCE, empty = shape->collective == GY_BARRIER;
    if (n == 1 && !gy_is_point_to_point(shape->collective))
        return (struct cost){0};
    switch (shape->algorithm) {
    case GY_RING: return (struct cost){(both ? 2 : 1) * others * total, 0, 0, (both ? 2 : 1) * (n - 1)};
    case GY_HALVING_DOUBLING: return halving_doubling(shape, total, starts);
    case GY_BINARY_TREE:
        return (struct cost){empty ? 0 : (both ? 2 : 1) * others * total, 0, 0, (both || empty ? 2 : 1) * height};
    case GY_LINEAR:
        return (struct cost){gy_is_point_to_point(shape->collective) ? total
                                                                     : total - block(shape, total, starts, shape->root),
                             0, 0, 1};
    case GY_RECURSIVE_DOUBLING: return recursive_doubling(n, total);
    case GY_BINOMIAL: return binomial(shape, total);
    case GY_BRUCK: return bruck(shape, total);
    case GY_DOUBLE_TREE:
        return (struct cost){(both ? 2 : 1) * others * total, 0, 0,
                             both ? 2 * in_order_height(n) : 1 + in_order_height(n - 1)};
    case GY_CANONICAL: return canonical(shape, total, starts);
    case GY_HIERARCHICAL:
    case GY_HIERARCHICAL_HALVING:
    case GY_HIERARCHICAL_TREE: return hierarchical(shape, total).cost;
    case GY_PAIRWISE: return (struct cost){others * total, 0, 0, 1};
    case GY_SHM_ONE_SHOT:
    case GY_SHM_TWO_SHOT: return over_shm(shape, total, starts);
    case GY_ALGORITHMS: break;
    }
    return (struct cost){.depth = -1};
}

bool gy_checker_formula(const struct gy_schedule_shape *shape, size_t total, const size_t *starts,
                        const struct gy_checker_report *report, char *text, size_t text_bytes)
{
    struct cost want = cost_of(shape, total, starts);
    struct grouped_cost grouped = gy_is_hierarchical(shape->algorithm) ? hierarchical(shape, total)
                                                                       : (struct grouped_cost){.crossed = 0};
    size_t crossed = shape->groups && shape->size > 1 ? grouped.crossed : 0;
    bool at_most = grouped.at_most;
    snprintf(text, text_bytes,
             "sent %zu (formula %zu), shm written %zu (%zu), shm read %zu (%zu), depth %d (%d), "
             "between groups %zu (%zu)",
             report->sent, want.sent, report->shm_written, want.written, report->shm_read, want.read, report->depth,
             want.depth, report->crossed, crossed);
    return report->sent == want.sent && report->shm_written == want.written && report->shm_read == want.read &&
           (report->depth == want.depth || (at_most && report->depth < want.depth)) && report->crossed == crossed;
}

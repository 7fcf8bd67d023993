/* Algorithm selection: a pure function of collective, size in bytes, world size, locality and configuration. Every
 * rank shares these; the configuration is compared when the world is made. */
#include "collectives/select/selector.h"

#include <stdio.h>
#include <string.h>

#include "collectives/select/cost_cache.h"
#include "core/log.h"

/* Names of some algorithms of a collective, for an error message. */
struct names {
    char text[256];
    size_t length;
};

static void add_name(struct names *names, enum gy_algorithm algorithm)
{
    size_t room = sizeof(names->text) - names->length;
    int n = snprintf(names->text + names->length, room, "%s%s", names->length ? ", " : "",
                     gy_algorithm_name(algorithm));
    if (n > 0)
        names->length += gy_min_size((size_t)n, room - 1);
}

static gyre_status fail_missing(enum gy_collective collective, const char *algorithm, struct gy_error *error)
{
    struct names names = {.length = 0};
    for (int a = 0; a < GY_ALGORITHMS; a++)
        if (gy_schedule_exists(collective, (enum gy_algorithm)a, 1))
            add_name(&names, (enum gy_algorithm)a);
    return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1, "GYRE_ALGORITHM: %s has no algorithm %s; it has %s",
                        gy_collective_name(collective), algorithm, names.text);
}

/* Returns the algorithm that GYRE_ALGORITHM forces for a collective; GY_ALGORITHMS: none. */
static gyre_status forced(const char *setting, enum gy_collective collective, enum gy_algorithm *algorithm_p,
                          struct gy_error *error)
{
    *algorithm_p = GY_ALGORITHMS;
    while (*setting) {
        size_t length = strcspn(setting, ",");
        char item[64], *colon;
        if (length >= sizeof(item))
            return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1, "GYRE_ALGORITHM: an item is too long: %.80s",
                                setting);
        memcpy(item, setting, length);
        item[length] = '\0';
        setting += length + (setting[length] == ',');
        if (!item[0])
            continue;
        enum gy_collective which;
        enum gy_algorithm algorithm;
        colon = strchr(item, ':');
        if (colon)
            *colon = '\0';
        if (!colon || !gy_collective_find(item, &which))
            return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                                "GYRE_ALGORITHM: \"%s%s%s\" is not collective:algorithm, such as all_reduce:ring", item,
                                colon ? ":" : "", colon ? colon + 1 : "");
        if (!gy_algorithm_find(colon + 1, &algorithm) || !gy_schedule_exists(which, algorithm, 1))
            return fail_missing(which, colon + 1, error);
        if (which == collective)
            *algorithm_p = algorithm;
    }
    return GYRE_SUCCESS;
}

bool gy_select_forces(const struct gyre_comm *comm, enum gy_collective collective)
{
    enum gy_algorithm algorithm;
    struct gy_error error = {.quiet = true};
    return comm->attributes.algorithm[0] &&
           (forced(comm->attributes.algorithm, collective, &algorithm, &error) != GYRE_SUCCESS ||
            algorithm != GY_ALGORITHMS);
}

gyre_status gy_select_check(const char *setting, struct gy_error *error)
{
    enum gy_algorithm algorithm;
    return forced(setting, GY_BARRIER, &algorithm, error);
}

/* Over shared memory; bytes of a call's count. */
enum { ALONE_CORES = 2, ALONE_VECTOR = 128 * 1024 };

/* Over links. */
enum {
    SHORT_VECTOR = 8192, /* the whole is sent log2 N times, in half as many messages as in parts, and without a grant */
    PAIR_VECTOR = 32 * 1024,  /* of two ranks: one message instead of two, no more bytes, but twice the reduction */
    LONG_VECTOR = 128 * 1024, /* long enough for a pipeline */
    LONG_CHAIN = 1 << 20,     /* keeps a chain full most of the time; of two ranks long enough for a pipeline */
    WHOLE_MOST = 1 << 20,     /* of two ranks between sockets of a host: reduced whole, as that saves a second step */
    SMALL_BLOCK = 1024,       /* may be sent log2 N times */
    LONG_PIECE = 65536,       /* of a vector in a ring */
    SHORT_RING = 12288,       /* the same if halving and doubling has no power of two */
    TINY_BLOCK = 256,         /* may be sent log2 N / 2 times, and copied as often */
    PAIRED_BLOCK = 64,        /* so short that only the number of messages matters */
    OVERSUBSCRIBED_VECTOR = 32 * 1024, /* sent whole along a tree */
    EAGER_PIECE = 32 * 1024,           /* sent without a grant, over TCP */
    CHAIN_RANKS = 4,
    SHORT_CHAIN = 5,          /* ranks: a chain this short passes the first tile as fast as a tree */
    CHAIN_SHARE = 256 * 1024, /* bytes of a vector per rank of a longer chain: filling it then costs little */
    LINEAR_RANKS = 8,
    BRUCK_RANKS = 16
};

static bool is_power(int number)
{
    return (number & (number - 1)) == 0;
}

/* True if a root should reduce alone, reading all other vectors, because help costs more than it saves. Of two ranks
 * the other could reduce half, but the root would have to copy that half. On shared cores helpers wait for time
 * slices. This includes long vectors on two cores: N ranks publish and the root adds one vector each time, and help
 * would add the root's copies. */
static bool root_reduces(size_t bytes, int size, const struct gy_grouping *grouping)
{
    return size == 2 || (grouping->oversubscribed && (grouping->cores <= ALONE_CORES || bytes <= ALONE_VECTOR));
}

static enum gy_algorithm choose_shm(enum gy_collective collective, size_t bytes, int size,
                                    const struct gy_grouping *grouping)
{
    if (collective == GY_BARRIER)
        return GY_SHM_ONE_SHOT;
    if (gy_is_point_to_point(collective))
        return GY_LINEAR;
    if (collective == GY_GATHER_TO || collective == GY_SCATTER_FROM || collective == GY_ALL_TO_ALL)
        return GY_SHM_TWO_SHOT;
    if (collective == GY_REDUCE_TO && root_reduces(bytes, size, grouping))
        return GY_SHM_ONE_SHOT;
    /* One-shot reads all ranks' whole vectors; two-shot reads slices but synchronises twice. */
    size_t small = size <= 2 ? 16384 : size <= 4 ? 8192 : 4096;
    return bytes <= small ? GY_SHM_ONE_SHOT : GY_SHM_TWO_SHOT;
}

/* True if a chain of tiles beats two trees from or to a root. In a chain each link carries one incoming and one
 * outgoing flow; in a double tree it carries four, which takes a tenth to a half longer over slow links. But the
 * last rank of a chain is N − 1 hops away. */
static bool chain_pays(size_t bytes, int size, bool hosts)
{
    return size <= CHAIN_RANKS || (hosts && (size <= SHORT_CHAIN || bytes >= (size_t)size * CHAIN_SHARE));
}

/* Returns the bytes from which parts beat a binomial tree, whose root sends or receives the whole log2 N times.
 * Between hosts tiles are short (tile.h), and halves need no grant. */
static size_t worth_parts(int size, bool hosts)
{
    if (hosts)
        return size <= CHAIN_RANKS ? EAGER_PIECE : EAGER_PIECE / 2;
    return size == 3 ? EAGER_PIECE : LONG_PIECE;
}

/* From or to a root. */
static enum gy_algorithm choose_rooted(size_t bytes, int size, bool hosts)
{
    if (size == 2)
        return bytes >= LONG_CHAIN ? GY_RING : GY_BINOMIAL;
    if (bytes >= (hosts ? LONG_PIECE : LONG_VECTOR) && chain_pays(bytes, size, hosts))
        return GY_RING;
    return bytes >= worth_parts(size, hosts) ? GY_DOUBLE_TREE : GY_BINOMIAL;
}

/* To a root in a guaranteed order, which chains and trees of tiles do not keep. Between two hosts a binomial tree
 * crosses once. */
static enum gy_algorithm choose_ordered(size_t bytes, int size, int hosts)
{
    size_t parts = size == 2 ? LONG_VECTOR : hosts == 2 ? LONG_PIECE : worth_parts(size, hosts > 1);
    return bytes >= parts ? GY_CANONICAL : GY_BINOMIAL;
}

/* Three ranks on shared cores: a ring forwards on the third rank while its neighbours wait; blocks that need no
 * grant are sent to each owner directly. */
static enum gy_algorithm choose_oversubscribed_three(enum gy_collective collective, size_t bytes)
{
    switch (collective) {
    case GY_ALL_REDUCE: return GY_CANONICAL;
    case GY_ALL_GATHER:
        if (bytes > EAGER_PIECE && bytes <= 2 * OVERSUBSCRIBED_VECTOR)
            return GY_BRUCK;
        return bytes <= SHORT_VECTOR ? GY_HALVING_DOUBLING : bytes <= EAGER_PIECE ? GY_HIERARCHICAL : GY_RING;
    case GY_REDUCE_SCATTER:
        return bytes <= SHORT_VECTOR ? GY_HALVING_DOUBLING : bytes <= EAGER_PIECE ? GY_HIERARCHICAL : GY_RING;
    default: return GY_RING;
    }
}

/* Returns the bytes from which a few ranks on shared cores use a ring or a chain: moving the data then takes longer
 * than a time slice. SIZE_MAX: never. */
static size_t long_oversubscribed(enum gy_collective collective, int size)
{
    switch (collective) {
    case GY_REDUCE_TO: return 0;
    case GY_BROADCAST: return LONG_CHAIN / 2;
    case GY_ALL_REDUCE: return 2 * LONG_CHAIN;
    case GY_ALL_GATHER: return LONG_CHAIN / (size_t)size;
    case GY_REDUCE_SCATTER: return 2 * LONG_CHAIN / (size_t)size;
    default: return SIZE_MAX;
    }
}

/* More ranks than cores, all on one host. A rank that waits for a message first waits for another rank's time slice,
 * so fewer sequential messages win over fewer bytes. A ring or a chain takes N − 1 time slices where pairwise
 * exchange takes log2 N; a binary tree has fewer messages than an exchange. GY_ALGORITHMS: as elsewhere. The figures
 * are from perf/choice/run. */
static enum gy_algorithm choose_oversubscribed(enum gy_collective collective, size_t bytes, int size)
{
    bool power = is_power(size), rooted = collective == GY_BROADCAST || collective == GY_REDUCE_TO;
    size_t whole = collective == GY_ALL_REDUCE || rooted ? OVERSUBSCRIBED_VECTOR : 0;
    if (collective == GY_BARRIER || bytes <= whole) /* the root of a chain of three is finished after one send */
        return collective == GY_BROADCAST && size == 3 ? GY_RING : GY_BINARY_TREE;
    if (rooted && size <= CHAIN_RANKS && bytes <= 2 * OVERSUBSCRIBED_VECTOR)
        return GY_DOUBLE_TREE; /* its halves leave without a grant */
    if (size == 3 && (whole || collective == GY_ALL_GATHER || collective == GY_REDUCE_SCATTER))
        return choose_oversubscribed_three(collective, bytes);
    if (size <= CHAIN_RANKS && bytes >= long_oversubscribed(collective, size))
        return GY_RING;
    switch (collective) {
    case GY_BROADCAST:
    case GY_REDUCE_TO: return GY_BINARY_TREE;
    case GY_ALL_REDUCE: return power ? GY_HALVING_DOUBLING : GY_ALGORITHMS;
    case GY_ALL_GATHER:
    case GY_REDUCE_SCATTER: return power || bytes <= OVERSUBSCRIBED_VECTOR / 2 ? GY_HALVING_DOUBLING : GY_ALGORITHMS;
    default: return GY_ALGORITHMS;
    }
}

/* Rank counts that are no power of two. Folded ranks first send a partner their whole vector and receive the whole
 * result, so halving and doubling sends twice the bytes of others: only for vectors not longer than a header. A
 * ring's N − 1 steps are few for few ranks; for many they pay for long pieces only, as for any count. */
static enum gy_algorithm choose_uneven(enum gy_collective collective, size_t bytes, int size)
{
    bool few = size <= BRUCK_RANKS;
    size_t piece = size == 3 ? SHORT_VECTOR : few ? SHORT_RING : LONG_PIECE;
    switch (collective) {
    case GY_ALL_GATHER: return bytes <= EAGER_PIECE ? GY_BRUCK : GY_RING;
    case GY_REDUCE_SCATTER:
        if (bytes >= (few ? SHORT_VECTOR : LONG_PIECE))
            return GY_RING;
        return bytes > SHORT_VECTOR / 2 ? GY_CANONICAL : GY_HALVING_DOUBLING;
    default: return bytes >= (size_t)size * piece ? GY_RING : GY_CANONICAL;
    }
}

static enum gy_algorithm choose_links(enum gy_collective collective, enum gy_operand_order order, size_t bytes,
                                      int size, int hosts)
{
    bool canonical = order != GY_ORDER_ANY;
    switch (collective) {
    case GY_BROADCAST: return choose_rooted(bytes, size, hosts > 1);
    case GY_REDUCE_TO: return canonical ? choose_ordered(bytes, size, hosts) : choose_rooted(bytes, size, hosts > 1);
    case GY_BARRIER: return GY_HALVING_DOUBLING;
    case GY_ALL_TO_ALL: return bytes <= TINY_BLOCK && size >= BRUCK_RANKS ? GY_BRUCK : GY_PAIRWISE;
    case GY_GATHER_TO:
    case GY_SCATTER_FROM: return bytes <= SMALL_BLOCK && size > LINEAR_RANKS ? GY_BINOMIAL : GY_LINEAR;
    case GY_SEND_TO:
    case GY_RECEIVE_FROM: return GY_LINEAR;
    default: break;
    }
    if (collective == GY_ALL_REDUCE && bytes <= (size == 2 ? PAIR_VECTOR : SHORT_VECTOR))
        return GY_RECURSIVE_DOUBLING;
    if (collective != GY_ALL_GATHER && canonical)
        return GY_CANONICAL;
    if (!is_power(size))
        return choose_uneven(collective, bytes, size);
    /* A ring sends 2(N−1) messages of bytes/N each, to neighbours only; halving-doubling 2·log2 N. */
    return bytes >= (size_t)size * LONG_PIECE ? GY_RING : GY_HALVING_DOUBLING;
}

/* Several hosts, more than one rank on some. A hierarchical schedule sends 2(G − 1) vectors between hosts instead of up
 * to 2(N − 1), in fewer sequential messages. GY_ALGORITHMS: no gain. */
static enum gy_algorithm choose_groups(const struct gy_grouping *grouping, enum gy_collective collective, size_t bytes)
{
    size_t pieces = (size_t)grouping->groups * (size_t)grouping->smallest, slice = bytes / (size_t)grouping->smallest;
    bool few = grouping->groups <= CHAIN_RANKS;
    size_t piece = is_power(grouping->groups) || grouping->groups > BRUCK_RANKS ? LONG_PIECE : SHORT_RING;
    switch (collective) {
    case GY_BARRIER: return GY_HIERARCHICAL;
    case GY_ALL_REDUCE:
        if (bytes <= SHORT_VECTOR)
            return GY_ALGORITHMS;
        /* Two groups exchange the same bytes by either schedule; a ring's lots, one after another, took a third longer
         * over slow links. */
        if (grouping->groups == 2 && bytes < 2 * LONG_CHAIN)
            return GY_HIERARCHICAL_HALVING;
        return bytes >= (few ? 1 : pieces) * piece ? GY_HIERARCHICAL : GY_HIERARCHICAL_HALVING;
    case GY_ALL_GATHER:
        /* Without a power of two, pairs inside a host are folded: two messages more there, but fewer between hosts
         * than Bruck's. */
        if (bytes <= PAIRED_BLOCK && grouping->paired)
            return GY_HALVING_DOUBLING;
        return bytes > SMALL_BLOCK ? GY_HIERARCHICAL : GY_ALGORITHMS;
    case GY_REDUCE_SCATTER: return bytes > SMALL_BLOCK ? GY_HIERARCHICAL : GY_ALGORITHMS;
    case GY_BROADCAST:
    case GY_REDUCE_TO:
        if (bytes < (grouping->groups == 2 ? LONG_PIECE : EAGER_PIECE))
            return GY_ALGORITHMS;
        return (grouping->groups == 2 || bytes > LONG_PIECE) && chain_pays(slice, grouping->groups, true)
                   ? GY_HIERARCHICAL
                   : GY_HIERARCHICAL_TREE;
    default: return GY_ALGORITHMS;
    }
}

/* Two ranks of a host. A vector from one to the other is sent in two halves, which need no grant if the whole would.
 * With sockets only, the whole needs no grant up to the size where halves would need one. An all_reduce then
 * exchanges whole vectors: one step instead of two, while reducing twice as much takes less time. */
static enum gy_algorithm choose_pair(const struct gyre_comm *comm, enum gy_collective collective, size_t bytes)
{
    bool pair = comm->size == 2 && comm->region < 0 && comm->grouping.of && comm->grouping.groups == 1;
    bool sockets = comm->ctx->sockets, halves = !sockets && bytes <= 2 * EAGER_PIECE;
    if (!pair || bytes <= EAGER_PIECE)
        return GY_ALGORITHMS;
    switch (collective) {
    case GY_BROADCAST: return halves ? GY_HIERARCHICAL : GY_ALGORITHMS;
    case GY_REDUCE_TO: return halves ? GY_DOUBLE_TREE : GY_ALGORITHMS;
    case GY_ALL_REDUCE: return sockets && bytes <= WHOLE_MOST ? GY_RECURSIVE_DOUBLING : GY_ALGORITHMS;
    default: return GY_ALGORITHMS;
    }
}

static bool reduces(enum gy_collective collective)
{
    return collective == GY_ALL_REDUCE || collective == GY_REDUCE_SCATTER || collective == GY_REDUCE_TO;
}

bool gy_algorithm_keeps(enum gy_collective collective, enum gy_algorithm algorithm, enum gy_operand_order order)
{
    if (!reduces(collective) || order == GY_ORDER_ANY)
        return true;
    return gy_algorithm_has(algorithm, GY_KEEPS_ORDER);
}

static bool usable(const struct gyre_comm *comm, enum gy_collective collective, bool varying,
                   enum gy_operand_order order, enum gy_algorithm algorithm)
{
    if ((varying && !gy_algorithm_takes_counts(collective, algorithm)) ||
        !gy_algorithm_keeps(collective, algorithm, order))
        return false;
    if (gy_is_hierarchical(algorithm) && !comm->grouping.of)
        return false;
    return gy_schedule_exists(collective, algorithm, comm->size) && (!gy_is_over_shm(algorithm) || comm->region >= 0);
}

static const char *const orders[] = {[GY_ORDER_ANY] = "",
                                     [GY_ORDER_RANKS] = " in rank order, as the operation does not commute",
                                     [GY_ORDER_CANONICAL] = " in canonical order"};

/* A forced algorithm is never replaced: the error message lists the available ones. */
static gyre_status fail_forced(const struct gyre_comm *comm, enum gy_collective collective, bool varying,
                               enum gy_operand_order order, enum gy_algorithm choice, struct gy_error *error)
{
    struct names names = {.length = 0};
    for (int a = 0; a < GY_ALGORITHMS; a++)
        if (usable(comm, collective, varying, order, (enum gy_algorithm)a))
            add_name(&names, (enum gy_algorithm)a);
    return gy_error_set(error, GYRE_UNSUPPORTED, -1,
                        "GYRE_ALGORITHM forces %s:%s, which does not exist for %d ranks%s%s%s; there is %s",
                        gy_collective_name(collective), gy_algorithm_name(choice), comm->size,
                        varying && !gy_algorithm_takes_counts(collective, choice) ? " with counts of their own" : "",
                        gy_algorithm_keeps(collective, choice, order) ? "" : orders[order],
                        gy_is_hierarchical(choice) && !comm->grouping.of ? " with GYRE_HIERARCHY=off"
                        : gy_is_over_shm(choice) && comm->region < 0
                            ? " without shared memory (ranks on several hosts, or shm switched off)"
                            : "",
                        names.length ? names.text : "none");
}

gyre_status gy_select(const struct gyre_comm *comm, enum gy_collective collective, bool varying, size_t bytes,
                      enum gy_algorithm *algorithm_p, struct gy_error *error)
{
    enum gy_operand_order order = gy_comm_canonical(comm) ? GY_ORDER_CANONICAL : GY_ORDER_ANY;
    return gy_select_ordered(comm, collective, varying, bytes, order, algorithm_p, error);
}

/* Returns an algorithm that is cheaper on the described cluster than the choice by thresholds. GYRE_TUNING does not
 * cover orders and counts, which leave few algorithms. */
static enum gy_algorithm choose_tuned(const struct gyre_comm *comm, enum gy_collective collective, size_t bytes,
                                      enum gy_algorithm otherwise)
{
    unsigned allowed = 0;
    if (collective == GY_REDUCE_SCATTER || collective == GY_ALL_GATHER || collective == GY_ALL_TO_ALL ||
        collective == GY_GATHER_TO || collective == GY_SCATTER_FROM)
        bytes *= (size_t)comm->size;
    for (int a = 0; a < GY_ALGORITHMS; a++) {
        bool shm = gy_is_over_shm((enum gy_algorithm)a);
        if (gy_is_hierarchical((enum gy_algorithm)a) && !gy_grouping_nested(&comm->grouping))
            continue;
        if (shm == (comm->region >= 0) && usable(comm, collective, false, GY_ORDER_ANY, (enum gy_algorithm)a))
            allowed |= 1u << a;
    }
    return gy_tuned_choose(comm->tuned, collective, bytes, allowed, otherwise);
}

/* True if GYRE_TUNING describes what the choice depends on. It assumes a core per rank, and groups that are hosts. */
static bool is_described(const struct gyre_comm *comm, enum gy_collective collective)
{
    bool nested = comm->region < 0 && gy_grouping_nested(&comm->grouping);
    return comm->tuned && !gy_is_point_to_point(collective) && (!nested || comm->tuned->by_host) &&
           !(comm->region >= 0 && comm->grouping.oversubscribed);
}

/* Selection by thresholds. */
static enum gy_algorithm choose(const struct gyre_comm *comm, enum gy_collective collective, bool any, size_t bytes,
                                enum gy_operand_order order)
{
    enum gy_algorithm choice = GY_ALGORITHMS;
    if (any && comm->region < 0 && gy_grouping_nested(&comm->grouping))
        choice = choose_groups(&comm->grouping, collective, bytes);
    if (choice == GY_ALGORITHMS && any)
        choice = choose_pair(comm, collective, bytes);
    if (choice == GY_ALGORITHMS && any && comm->region < 0 && comm->grouping.oversubscribed)
        choice = choose_oversubscribed(collective, bytes, comm->size);
    if (choice != GY_ALGORITHMS)
        return choice;
    return comm->region >= 0 ? choose_shm(collective, bytes, comm->size, &comm->grouping)
                             : choose_links(collective, order, bytes, comm->size, comm->grouping.hosts);
}

/* Selection without a forced algorithm. If the choice by thresholds does not serve the call, the first of `fallback`
 * that does is taken. They serve every call of every collective, so a new algorithm need not be one of them. */
static gyre_status select_usable(const struct gyre_comm *comm, enum gy_collective collective, bool varying,
                                 size_t bytes, enum gy_operand_order order, enum gy_algorithm *algorithm_p,
                                 struct gy_error *error)
{
    static const enum gy_algorithm fallback[] = {GY_SHM_ONE_SHOT, GY_SHM_TWO_SHOT, GY_HALVING_DOUBLING, GY_RING,
                                                 GY_BINARY_TREE,  GY_LINEAR,       GY_PAIRWISE,         GY_CANONICAL};
    bool any = order == GY_ORDER_ANY && !varying;
    enum gy_algorithm choice = choose(comm, collective, any, bytes, order);
    if (any && is_described(comm, collective))
        choice = choose_tuned(comm, collective, bytes, choice);
    for (size_t i = 0; !usable(comm, collective, varying, order, choice); i++) {
        if (i == GY_ARRAY_LENGTH(fallback))
            return gy_error_set(error, GYRE_UNSUPPORTED, -1, "there is no algorithm for %s on %d ranks%s%s%s",
                                gy_collective_name(collective), comm->size, varying ? " with counts of their own" : "",
                                orders[order], comm->region < 0 ? " without shared memory" : "");
        choice = fallback[i];
    }
    *algorithm_p = choice;
    return GYRE_SUCCESS;
}

gyre_status gy_select_ordered(const struct gyre_comm *comm, enum gy_collective collective, bool varying, size_t bytes,
                              enum gy_operand_order order, enum gy_algorithm *algorithm_p, struct gy_error *error)
{
    enum gy_algorithm choice = GY_ALGORITHMS;
    order = reduces(collective) ? order : GY_ORDER_ANY;
    if (comm->attributes.algorithm[0]) {
        gyre_status status = forced(comm->attributes.algorithm, collective, &choice, error);
        if (status != GYRE_SUCCESS)
            return status;
    }
    if (choice == GY_ALGORITHMS)
        return select_usable(comm, collective, varying, bytes, order, algorithm_p, error);
    if (!usable(comm, collective, varying, order, choice))
        return fail_forced(comm, collective, varying, order, choice, error);
    *algorithm_p = choice;
    return GYRE_SUCCESS;
}

gyre_status gy_select_unforced(const struct gyre_comm *comm, enum gy_collective collective, size_t bytes,
                               enum gy_algorithm *algorithm_p, struct gy_error *error)
{
    return select_usable(comm, collective, false, bytes, GY_ORDER_ANY, algorithm_p, error);
}

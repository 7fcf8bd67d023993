/* Short broadcasts, reductions, gathers and scatters over slots, in which a rank that contributes and consumes
 * nothing does not wait where ranks share cores (collectives/shm/eager.h), as three do on two:
 *
 *   alone    while the others sleep, a sender returns from as many calls as there are places, and from no more; what it
 *            sent is complete when they come, though it has written over its buffer at once
 *   order    all kinds, all short lengths, any root, blocking or not, each rank at its own pace and writing over its
 *            buffers at once
 *   many     the same, several under way together, some of which use a schedule
 *   leave    a sender that has destroyed the communicator before the others come has sent everything all the same
 *   part     the same of a communicator that is not the world's, while those that have left it make others
 *   die      a rank ends while another has sent ahead of it: a rank that comes later has what was sent, and all
 *            survivors are told
 *   differ   ranks that are each the root of what they call find out, though none waits for another */
#include <stdatomic.h>

#include "support/launcher.h"

#define PLACES 4   /* GY_REGION_AHEAD */
#define SHORT 2048 /* of 4 bytes: longer ones have two places for all */
#define LONGEST 4096
#define LONG 30000 /* uses a schedule */
#define ROUNDS 3000
#define TOGETHER 6

enum kind { BROADCAST, SCATTER, REDUCE, GATHER, ALL_REDUCE, BARRIER, KINDS };

static struct page {
    _Atomic int made, ready;
} * page;

static enum kind kind;
static size_t count;

static int32_t value(int rank, int round, size_t i)
{
    return (int32_t)((unsigned)(rank + 1) * 100003u + (unsigned)round * 1009u + (unsigned)i);
}

struct call {
    enum kind kind;
    size_t count; /* of a block, where there are blocks */
    int root, rank, size;
    int32_t *input, *output;
};

static bool takes(const struct call *it)
{
    return it->kind != BARRIER && ((it->kind != REDUCE && it->kind != GATHER) || it->rank == it->root);
}

static gyre_status start(gyre_comm *comm, const struct call *it, gyre_request **request_p)
{
    const gyre_dtype type = GYRE_INT32;
    switch (it->kind) {
    case BROADCAST: return gyre_broadcast_start(comm, it->input, it->output, it->count, type, it->root, request_p);
    case SCATTER: return gyre_scatter_start(comm, it->input, it->output, it->count, type, it->root, request_p);
    case REDUCE: return gyre_reduce_start(comm, it->input, it->output, it->count, type, GYRE_SUM, it->root, request_p);
    case GATHER: return gyre_gather_start(comm, it->input, it->output, it->count, type, it->root, request_p);
    case ALL_REDUCE: return gyre_all_reduce_start(comm, it->input, it->output, it->count, type, GYRE_SUM, request_p);
    default: return gyre_barrier_start(comm, request_p);
    }
}

static gyre_status run(gyre_comm *comm, const struct call *it)
{
    const gyre_dtype type = GYRE_INT32;
    switch (it->kind) {
    case BROADCAST: return gyre_broadcast(comm, it->input, it->output, it->count, type, it->root);
    case SCATTER: return gyre_scatter(comm, it->input, it->output, it->count, type, it->root);
    case REDUCE: return gyre_reduce(comm, it->input, it->output, it->count, type, GYRE_SUM, it->root);
    case GATHER: return gyre_gather(comm, it->input, it->output, it->count, type, it->root);
    case ALL_REDUCE: return gyre_all_reduce(comm, it->input, it->output, it->count, type, GYRE_SUM);
    default: return gyre_barrier(comm);
    }
}

static void fill(const struct call *it, int round)
{
    size_t blocks = it->kind == SCATTER ? (size_t)it->size : 1;
    for (size_t i = 0; i < blocks * it->count; i++)
        it->input[i] = value(it->rank, round, i);
}

static int32_t wanted(const struct call *it, int round, size_t i)
{
    uint32_t sum = 0;
    switch (it->kind) {
    case BROADCAST: return value(it->root, round, i);
    case SCATTER: return value(it->root, round, (size_t)it->rank * it->count + i);
    case GATHER: return value((int)(i / it->count), round, i % it->count);
    default: break;
    }
    for (int p = 0; p < it->size; p++)
        sum += (uint32_t)value(p, round, i);
    return (int32_t)sum;
}

static void check(const struct call *it, int round)
{
    size_t length = it->kind == GATHER ? it->count * (size_t)it->size : it->count;
    for (size_t i = 0; i < length && takes(it); i++)
        if (it->output[i] != wanted(it, round, i))
            rank_fail("round %d: kind %d, root %d: element %zu of %zu is %d instead of %d", round, (int)it->kind,
                      it->root, i, length, (int)it->output[i], (int)wanted(it, round, i));
}

static void take_memory(struct call *it)
{
    it->input = calloc((size_t)LONG * RANKS_MOST, sizeof *it->input);
    it->output = calloc((size_t)LONG * RANKS_MOST, sizeof *it->output);
    CHECK(it->input && it->output);
}

static void spoil(const struct call *it)
{
    memset(it->input, 0x33, (it->kind == SCATTER ? (size_t)it->size : 1) * it->count * sizeof *it->input);
}

static void give(gyre_comm *comm, struct call *it, int round)
{
    fill(it, round);
    OK(comm, run(comm, it));
    check(it, round);
    spoil(it);
}

/* Rank 0 has made as many calls as it can make alone. */
static void see_where_it_stops(int size)
{
    size_t shown = kind == SCATTER ? count * (size_t)size : count;
    int most = shown > SHORT ? 1 : PLACES;
    while (atomic_load(&page->made) < most)
        usleep(1000);
    usleep(100000);
    CHECK(atomic_load(&page->made) == most);
    atomic_store(&page->ready, 1);
}

static void run_alone(int rank)
{
    gyre_comm *comm = rank_begin(30);
    struct call it = {.kind = kind, .count = count, .rank = rank, .size = gyre_comm_size(comm)};
    it.root = kind == BROADCAST || kind == SCATTER ? 0 : 1;
    take_memory(&it);
    fill(&it, 0);
    OK(comm, run(comm, &it)); /* the first one makes what the others find */
    OK(comm, gyre_barrier(comm));
    if (rank == 1)
        see_where_it_stops(it.size);
    while (rank > 1 && !atomic_load(&page->ready))
        usleep(1000);
    for (int round = 1; round <= 3 * PLACES; round++) {
        give(comm, &it, round);
        if (rank == 0)
            atomic_fetch_add(&page->made, 1);
    }
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_comm_destroy(comm));
}

static void run_ordered(int rank)
{
    gyre_comm *comm = rank_begin(60);
    unsigned common = 5, own = (unsigned)rank * 31 + 7;
    struct call it = {.rank = rank, .size = gyre_comm_size(comm)};
    take_memory(&it);
    for (int round = 1; round <= ROUNDS; round++) {
        gyre_request *request;
        unsigned most = rand_r(&common) % 4 ? 40 : rand_r(&common) % 2 ? SHORT : LONGEST;
        it.kind = rand_r(&common) % 4 ? (enum kind)(rand_r(&common) % 4) : (enum kind)(rand_r(&common) % KINDS);
        it.count = 1 + (size_t)rand_r(&common) % most;
        it.root = rand_r(&common) % it.size;
        fill(&it, round);
        if (rand_r(&own) % 64 == 0)
            usleep((unsigned)rand_r(&own) % 500);
        if (rand_r(&own) % 4) {
            OK(comm, run(comm, &it));
        } else {
            OK(comm, start(comm, &it, &request));
            OK(comm, gyre_wait(&request));
        }
        check(&it, round);
        spoil(&it);
    }
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_comm_destroy(comm));
}

/* One of those that are under way together; some use a schedule. */
static void choose(struct call *it, unsigned *dice)
{
    unsigned most = rand_r(dice) % 4 ? 40 : rand_r(dice) % 2 ? SHORT : rand_r(dice) % 2 ? LONGEST : LONG;
    it->kind = rand_r(dice) % 4 ? (enum kind)(rand_r(dice) % 4) : (enum kind)(rand_r(dice) % KINDS);
    it->count = 1 + (size_t)rand_r(dice) % most;
    it->root = rand_r(dice) % it->size;
}

static void run_many(int rank)
{
    gyre_comm *comm = rank_begin(60);
    unsigned common = 11, own = (unsigned)rank * 17 + 3;
    struct call calls[TOGETHER];
    gyre_request *requests[TOGETHER];
    for (int c = 0; c < TOGETHER; c++) {
        calls[c] = (struct call){.rank = rank, .size = gyre_comm_size(comm)};
        take_memory(&calls[c]);
    }
    for (int round = 1; round <= ROUNDS; round++) {
        int number = 1 + rand_r(&common) % TOGETHER;
        for (int c = 0; c < number; c++) {
            choose(&calls[c], &common);
            fill(&calls[c], round * 10 + c);
            requests[c] = NULL;
            if (rand_r(&own) % 64 == 0)
                usleep((unsigned)rand_r(&own) % 500);
            if (rand_r(&own) % 3)
                OK(comm, start(comm, &calls[c], &requests[c]));
            else
                OK(comm, run(comm, &calls[c]));
        }
        for (int c = number; c-- > 0;) { /* the last one first */
            OK(comm, gyre_wait(&requests[c]));
            check(&calls[c], round * 10 + c);
            spoil(&calls[c]);
        }
    }
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_comm_destroy(comm));
}

/* The first of the calls in which rank 0 does not wait; when it returns, all have made it. */
static gyre_comm *begin_with_one(int rank, struct call *it)
{
    gyre_comm *comm = rank_begin(30);
    *it = (struct call){.kind = kind, .count = count, .rank = rank, .size = gyre_comm_size(comm)};
    it->root = kind == BROADCAST || kind == SCATTER ? 0 : 1;
    take_memory(it);
    fill(it, 0);
    OK(comm, run(comm, it));
    rank_gather(comm, launch_may_die >= 0 ? GYRE_PEER_DEAD : GYRE_SUCCESS);
    return comm;
}

/* Rank 0 gives as often as it can alone, and goes. */
static void run_leaving(int rank)
{
    struct call it;
    gyre_comm *comm = begin_with_one(rank, &it);
    size_t shown = kind == SCATTER ? count * (size_t)it.size : count;
    usleep((unsigned)rank * 20000);
    for (int round = 1; round <= (shown > SHORT ? 1 : PLACES); round++)
        give(comm, &it, round);
    OK(comm, gyre_comm_destroy(comm));
}

/* Rank 2 ends before it has come to what rank 0 has given; rank 1 comes later still, and has it or is told. */
static void run_dying(int rank)
{
    struct call it;
    gyre_comm *comm = begin_with_one(rank, &it);
    if (rank == 2) {
        usleep(50000);
        raise(SIGKILL);
    }
    if (rank == 1)
        usleep(200000);
    gyre_status status = GYRE_SUCCESS;
    for (int round = 1; status == GYRE_SUCCESS && round <= 3 * PLACES; round++) {
        fill(&it, round);
        status = run(comm, &it);
        if (status == GYRE_SUCCESS)
            check(&it, round);
        spoil(&it);
    }
    CHECK(status == GYRE_PEER_DEAD);
    OK(comm, gyre_comm_destroy(comm));
}

#define PARTS 12

/* The last rank comes late to what rank 0 has sent: ranks that have left make other communicators meanwhile, with
 * slots of their own. */
static void run_parting(int rank)
{
    gyre_comm *world = rank_begin(60), *some, *all, *next;
    struct call it = {.kind = BROADCAST, .count = 40, .rank = rank, .size = gyre_comm_size(world)};
    const bool late = rank == it.size - 1;
    take_memory(&it);
    OK(world, gyre_comm_split(world, late, rank, &some));
    for (int part = 1; part <= PARTS; part++) {
        OK(world, gyre_comm_split(world, 0, rank, &all));
        give(all, &it, part * 100); /* makes what the others find */
        OK(all, gyre_barrier(all));
        usleep(late ? 20000 : 0);
        for (int call = 1; call <= PLACES; call++)
            give(all, &it, part * 100 + call);
        OK(all, gyre_comm_destroy(all));
        for (int i = 0; i < 3 && !late; i++) {
            OK(some, gyre_comm_split(some, 0, rank, &next));
            give(next, &it, part * 100 + 50 + i);
            OK(next, gyre_comm_destroy(next));
        }
    }
    OK(some, gyre_comm_destroy(some));
    OK(world, gyre_barrier(world));
    OK(world, gyre_comm_destroy(world));
}

static void run_differing(int rank)
{
    gyre_comm *comm = rank_begin(30);
    struct call it = {.kind = BROADCAST, .count = 1, .rank = rank, .size = 3, .root = rank};
    take_memory(&it);
    rank_gather(comm, GYRE_MISMATCH);
    gyre_status status = GYRE_SUCCESS;
    int calls = 0;
    while (status == GYRE_SUCCESS && calls++ <= 2 * PLACES)
        status = run(comm, &it);
    CHECK(status == GYRE_MISMATCH);
    OK(comm, gyre_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 1 ? argv[1] : "alone";
    page = launch_share(sizeof *page);
    if (strcmp(scenario, "order") == 0)
        return !launch(2, run_ordered, 65, scenario) || !launch(4, run_ordered, 65, scenario);
    if (strcmp(scenario, "many") == 0)
        return !launch(3, run_many, 65, scenario) || !launch(4, run_many, 65, scenario);
    if (strcmp(scenario, "differ") == 0)
        return !launch(3, run_differing, 35, scenario);
    if (strcmp(scenario, "part") == 0)
        return !launch(3, run_parting, 65, scenario) || !launch(4, run_parting, 65, scenario);
    static const size_t counts[] = {1, 40, SHORT, SHORT + 1};
    const bool leaves = strcmp(scenario, "leave") == 0, dies = strcmp(scenario, "die") == 0;
    launch_may_die = dies ? 2 : -1;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (kind = BROADCAST; kind <= GATHER; kind++)
            for (int ranks = 3; ranks <= 4; ranks++) {
                char what[64];
                memset(page, 0, sizeof *page);
                count = kind == SCATTER ? counts[c] / (size_t)ranks + 1 : counts[c];
                snprintf(what, sizeof what, "%s, kind %d, %zu elements, %d ranks", scenario, (int)kind, count, ranks);
                if (!launch(ranks, leaves ? run_leaving : dies ? run_dying : run_alone, 35, what))
                    return 1;
            }
    return 0;
}

/* One suite for every transport: conformance_test self|shm|tcp|tcp6|plain|rdma|stand_in|stand_ins|stand_in_soft
 * [processes]. plain is the example of a transport, plain.c.
 *
 * rdma uses the devices of this machine; stand_in and stand_ins are rdma over a stand-in for libibverbs, one device,
 * and three with two queue pairs each, or one that says it is soft-RoCE, of which some chunks are read.
 *
 * Two, three and five ranks (one for self), every pair of them at once, send each other frames whose payloads are
 * functions of (sender, receiver, number) and whose headers carry the payload's hash; the receive handler of ranks.c
 * checks link, order, size and hash of each. The bodies below add what each situation is about. */
#include "conformance.h"

#include <string.h>

#include "core/clock.h"
#include "plain.h"
#include "rdma_stand_in.h"
#include "transport/rdma/verbs_table.h"

static uint32_t size_64k(uint64_t i)
{
    return 65536 - (uint32_t)(i % 3);
}
static uint32_t size_named(uint64_t i)
{
    static const uint32_t sizes[] = {0,  1,     7,     4096,  65536, GY_FRAME_MAX, 63,    64,
                                     65, 65472, 65471, 65473, 0,     16320,        16321, GY_FRAME_MAX};
    return sizes[i % 16];
}

static void body_sizes(struct rank *rank)
{
    rank_link(rank);
    conformance_exchange(rank, 32, size_named, GY_FRAME_MAX, false);
}

/* The same from memory that was announced, which comes and goes. */
static void body_announced(struct rank *rank)
{
    rank_link(rank);
    rank->announces = true;
    conformance_exchange(rank, 32, size_named, GY_FRAME_MAX, false);
    conformance_exchange(rank, CONFORMANCE_POOL, conformance_mixed, 300000, true);
    rank->announces = false;
    conformance_exchange(rank, CONFORMANCE_POOL, conformance_mixed, 300000, true);
}

static void body_order(struct rank *rank)
{
    rank_link(rank);
    conformance_exchange(rank, (uint64_t)(10000 / rank->pairs), conformance_small, 500, false);
}

static void body_queued(struct rank *rank)
{
    rank_link(rank);
    conformance_exchange(rank, CONFORMANCE_POOL, size_64k, 65536, false);
}

/* Every wait sleeps: a lost wake-up, for frames or for room, is a sleep of seconds. */
static void body_sleep(struct rank *rank)
{
    rank_link(rank);
    conformance_exchange(rank, (uint64_t)(1500 / rank->pairs), conformance_mixed, 300000, true);
}

static void body_slow(struct rank *rank)
{
    rank_link(rank);
    rank->linger_ns = rank->rank == 0 ? 0 : 2 * GY_MILLISECOND;
    conformance_exchange(rank, 100, conformance_mixed, 300000, true);
}

static void body_early(struct rank *rank)
{
    if (rank->rank == 1)
        conformance_pause(100);
    rank_link(rank);
    conformance_exchange(rank, 100, conformance_small, 500, false);
}

/* The acceptor polls before it links: it gets connections, and reads nothing from them. */
static void body_early_high(struct rank *rank)
{
    int64_t end = gy_now() + 100 * GY_MILLISECOND;
    while (rank->rank == 0 && gy_now() < end)
        gy_poller_poll(rank->poller, 10 * GY_MILLISECOND);
    rank_link(rank);
    conformance_exchange(rank, 100, conformance_small, 500, true);
}

/* A sender without anything to receive sleeps until there is room. */
static void body_room(struct rank *rank)
{
    enum { FRAMES = 16 };
    static _Thread_local struct gy_frame_out frames[RANKS_MOST][FRAMES];
    static unsigned char payloads[FRAMES][GY_FRAME_MAX];
    rank_ready(rank);
    for (int i = 0; i < rank->pairs && rank->rank == 0; i++)
        for (int k = 0; k < FRAMES; k++)
            rank_frame(rank, rank->pair[i].peer, &frames[i][k], (uint64_t)k + 2, payloads[k], i ? 0 : GY_FRAME_MAX);
    rank_barrier(rank); /* making the payloads takes longer than sending them */
    for (int i = 0; i < rank->pairs && rank->rank == 0; i++)
        for (int k = 0; k < FRAMES; k++)
            rank->ops->post(rank->pair[i].link, &frames[i][k]);
    for (int i = 0; i < rank->pairs && rank->rank == 0; i++)
        while (!frames[i][FRAMES - 1].done)
            rank_progress(rank, true);
    if (rank->rank == 1)
        conformance_pause(20);
    while (rank->rank != 0 && rank_pair(rank, 0)->arrived < FRAMES + 1)
        rank_progress(rank, true);
    rank_barrier(rank);
}

/* Ranks that sleep are woken by a frame each within milliseconds. */
static void body_wake(struct rank *rank)
{
    struct gy_frame_out frames[RANKS_MOST];
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false); /* connected now */
    for (uint64_t number = 2; number < 22; number++) {
        if (rank->rank == 1)
            conformance_pause(5);
        for (int i = 0; i < rank->pairs && rank->rank == 1; i++) {
            rank_frame(rank, rank->pair[i].peer, &frames[i], number, NULL, 0);
            rank->ops->post(rank->pair[i].link, &frames[i]);
        }
        for (int i = 0; i < rank->pairs && rank->rank == 1; i++)
            while (!frames[i].done)
                rank_progress(rank, false);
        while (rank->rank != 1 && rank_pair(rank, 1)->arrived < number)
            rank_progress(rank, true);
        rank_barrier(rank);
    }
}

static void run_suite(const struct ranks_options *how)
{
    ranks_run(how, "sizes", body_sizes);
    ranks_run(how, "announced", body_announced);
    ranks_run(how, "order", body_order);
    ranks_run(how, "queued", body_queued);
    ranks_run(how, "sleep", body_sleep);
    ranks_run(how, "close", conformance_close);
    if (how->size == 1)
        return;
    ranks_run(how, "slow", body_slow);
    ranks_run(how, "early", body_early);
    ranks_run(how, "early high", body_early_high);
    ranks_run(how, "room", body_room);
    ranks_run(how, "wake", body_wake);
    ranks_run(how, "stop", conformance_stop);
    if (how->processes)
        ranks_run(how, "forked", conformance_forked);
    if (strcmp(how->transport, "shm") != 0)
        ranks_run(how, "broken", conformance_broken);
    else
        ranks_run(how, "rubbish", conformance_rubbish);
    if (strcmp(how->transport, "tcp") == 0) {
        ranks_run(how, "pool", conformance_pool);
        ranks_run(how, "pool under way", conformance_pool_under_way);
        ranks_run(how, "pool short", conformance_pool_short);
        ranks_run(how, "pool of others", conformance_pool_of_others);
        ranks_run(how, "pool signal", conformance_pool_signal);
    }
    const char *sealed = getenv("GYRE_INTEGRITY"); /* what is played does not seal */
    if (strcmp(how->transport, "tcp") != 0 || how->size > 2)
        return;
    ranks_run(how, "overtake", conformance_overtake);
    ranks_run(how, "sleeper", conformance_sleeper);
    ranks_run(how, "short", conformance_short);
    ranks_run(how, "trip", conformance_trip);
    ranks_run(how, "quiet", conformance_quiet);
    if (!sealed) {
        ranks_run(how, "doze", conformance_doze);
        ranks_run(how, "whole", conformance_whole);
        ranks_run(how, "unreadable", conformance_unreadable);
    }
}

static void use_stand_in(int devices)
{
    gy_verbs_use(&stand_in_verbs);
    stand_in_reset(devices);
    if (devices > 1)
        setenv("GYRE_RDMA_QUEUE_PAIRS", "2", 1);
}

/* Nothing is left, no receiver was ever not ready, completions were the exception, and every device had its share. */
static void check_stand_in(void)
{
    struct stand_in_counters c = stand_in_count();
    CHECK(c.contexts + c.pds + c.mrs + c.cqs + c.qps + c.channels == 0, "left: %d %d %d %d %d %d", c.contexts, c.pds,
          c.mrs, c.cqs, c.qps, c.channels);
    CHECK(c.not_ready == 0, "%llu times a receiver was not ready", (unsigned long long)c.not_ready);
    CHECK(c.signalled - c.reads < c.sends / 4, "%llu of %llu requests asked for a completion",
          (unsigned long long)c.signalled, (unsigned long long)c.sends);
    CHECK(c.reads > 0 || stand_in_vendor == 0, "nothing was read");
    for (int d = 0; d < stand_in_device_count; d++)
        CHECK(c.per_device[d] > c.sends / (unsigned)stand_in_device_count / 2, "device %d: %llu of %llu", d,
              (unsigned long long)c.per_device[d], (unsigned long long)c.sends);
    printf("%llu requests, %llu inline, %llu completions, %llu registrations\n", (unsigned long long)c.sends,
           (unsigned long long)c.inlines, (unsigned long long)c.signalled, (unsigned long long)c.registrations);
}

int main(int argc, char **argv)
{
    static const int all[] = {2, 3, 5, 0}, few[] = {2, 5, 0}, small[] = {2, 3, 0}, two[] = {2, 0};
    const int *sizes = all;
    CHECK(argc >= 2, "usage: conformance_test self|shm|tcp|tcp6|plain [threads|processes [short]]");
    struct ranks_options how = {.transport = argv[1], .size = 1, .processes = argc > 2 && argv[2][0] == 'p'};
    if (strncmp(argv[1], "tcp", 3) == 0) {
        how.ipv6 = strcmp(argv[1], "tcp6") == 0;
        how.transport = "tcp";
    }
    if (strcmp(argv[1], "plain") == 0)
        how.ops = &gy_transport_plain;
    if (strncmp(argv[1], "stand_in", 8) == 0) {
        stand_in_vendor = argv[1][8] == '_' ? 0xffffff : 0; /* soft-RoCE, and what goes with it */
        use_stand_in(argv[1][8] == 's' ? 3 : 1);
        how.transport = "rdma";
        sizes = few;
    } else if (strcmp(argv[1], "rdma") == 0) {
        sizes = small; /* what these devices do costs many processors' time where they are software */
    }
    if (argc > 3)
        sizes = two;
    if (strcmp(how.transport, "rdma") == 0)
        setenv("GYRE_TRANSPORT", "rdma", 1);
    if (strcmp(argv[1], "self") == 0) {
        run_suite(&how);
        return 0;
    }
    for (int i = 0; sizes[i]; i++) {
        how.size = sizes[i];
        run_suite(&how);
    }
    if (strncmp(argv[1], "stand_in", 8) == 0)
        check_stand_in();
    return 0;
}

/* Links that work, over the stand-in: what two ends say to each other and ask of their queue pairs, and short frames,
 * whose headers are left out. Two ranks, threads of this process; the conformance suite has the rest. */
#include "ranks.h"

#include "rdma_stand_in.h"
#include "transport/rdma/internal.h"
#include <string.h>

static void test_hello(void)
{
    struct gy_rdma_hello hello = {.ring_bytes = 1 << 18, .paths = GY_RDMA_PATHS}, back;
    uint8_t wire[GY_RDMA_HELLO_BYTES], changed[GY_RDMA_HELLO_BYTES];
    int refused = 0;

    for (int i = 0; i < hello.paths; i++)
        hello.end[i] = (struct gy_rdma_end){
            .qp = 17u + (unsigned)i, .psn = 99, .ring = 1u << 30, .key = 5, .mtu = 3, .reads = 16};
    gy_rdma_hello_encode(&hello, wire);
    CHECK(gy_rdma_hello_decode(wire, &back) && memcmp(&back, &hello, sizeof(hello)) == 0, "not what was said");
    for (size_t i = 0; i < sizeof(wire); i++) { /* every byte that has a rule */
        memcpy(changed, wire, sizeof(wire));
        changed[i] ^= 0xff;
        refused += !gy_rdma_hello_decode(changed, &back);
    }
    /* magic, version, pairs, ring, zeros; of each pair the top bytes of its numbers, mtu, Ethernet, zeros */
    CHECK(refused == 4 + 2 + 2 + 8 + 28 + GY_RDMA_PATHS * (1 + 1 + 1 + 1 + 7), "%d bytes refused", refused);
    hello.paths = 0;
    gy_rdma_hello_encode(&hello, wire);
    CHECK(!gy_rdma_hello_decode(wire, &back), "no queue pair at all");
}

/* Short frames among others, in runs of equal ones, whose headers are left out from the second on: the receive
 * handler of ranks.c gets what it expects, in order. A frame of 200 bytes fits a request itself only without its
 * header. A rank that polls before it sleeps, and sees that a frame has come, finds it at the next progress. */
static void body_short(struct rank *rank)
{
    static const uint32_t sizes[] = {200, 8, 0, 64, 4096, 8192, 1, 63, 8191, 8};
    enum { FRAMES = 2000, TURN = 40, EACH_POSTED = 13 };
    static _Thread_local struct gy_frame_out posted;
    static _Thread_local unsigned char payload[8192];
    unsigned sent_short = 0;

    rank_ready(rank);
    struct rank_pair *pair = &rank->pair[0];
    uint64_t first = pair->arrived;
    for (uint64_t k = 1; k <= FRAMES || pair->arrived < first + FRAMES || posted.queued;) {
        uint64_t turn = (k - 1) / TURN;
        /* The other answers, and in the first half it is waited for. */
        uint64_t before = rank->rank == 1 ? k : k <= FRAMES / 2 ? k - 1 : 0;
        if (k <= FRAMES && !posted.queued && pair->arrived >= first + before) {
            struct gy_frame_out frame;
            rank_frame(rank, pair->peer, &frame, turn, payload, sizes[turn % GY_ARRAY_LENGTH(sizes)]);
            frame.header.sequence = first + k;
            if (k % EACH_POSTED != 0 && rank->ops->send_short(pair->link, &frame.header, frame.payload)) {
                memset(payload, 0xee, sizeof(payload)); /* it is ours again */
                sent_short++;
                k++;
                continue;
            }
            posted = frame;
            rank->ops->post(pair->link, &posted);
            k++;
        }
        if (!rank->ops->progress(pair->link) && !rank->ops->arm(rank->instance) &&
            gy_rdma_digestible((const struct gy_rdma_link *)pair->link))
            CHECK(rank->ops->progress(pair->link), "what was seen before the sleep is not there");
        gy_poller_poll(rank->poller, 0);
    }
    CHECK(sent_short > FRAMES / 2, "%u short frames", sent_short);
    rank_barrier(rank);
}

static void test_short(int devices, const char *queue_pairs)
{
    stand_in_reset(devices);
    stand_in_most_inline = 220;
    setenv("GYRE_RDMA_QUEUE_PAIRS", queue_pairs, 1);
    struct stand_in_counters before = stand_in_count();
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "short", body_short);
    struct stand_in_counters after = stand_in_count();
    /* Of 4000 frames 400 have 200 bytes, and 400 each 8 (twice), 0, 64, 1 and 63. */
    CHECK(after.inlines - before.inlines > 2500, "%llu requests with their bytes",
          (unsigned long long)(after.inlines - before.inlines));
    CHECK(after.not_ready == 0, "a receiver was not ready");
    /* Alone it would be one request for sixteen frames; a receiver that is waited for sends less credit. */
    CHECK(after.sends - before.sends < 4000 + 190, "%llu requests for 4000 frames: credit does not go along",
          (unsigned long long)(after.sends - before.sends));
    unsetenv("GYRE_RDMA_QUEUE_PAIRS");
    stand_in_reset(1);
}

/* Frames of 64 KiB, where they lie: each is one request, or two where the ring ends within it, and room for a small
 * part of one is left alone until there is more. */
#define LONG_FRAMES 64

static void body_long(struct rank *rank)
{
    static struct gy_frame_out frames[LONG_FRAMES];
    static unsigned char payload[65536];
    struct rank_pair *pair = &rank->pair[0];

    rank_ready(rank);
    if (rank->rank == 0)
        rank->ops->register_memory(rank->instance, payload, sizeof(payload));
    uint64_t before = stand_in_count().sends;
    rank_barrier(rank);
    for (unsigned i = 0; i < LONG_FRAMES && rank->rank == 0; i++) {
        rank_frame(rank, 1, &frames[i], 2 + i, payload, sizeof(payload));
        rank->ops->post(pair->link, &frames[i]);
        while (!frames[i].done) /* the memory is that of the next one */
            rank_progress(rank, false);
    }
    while (rank->rank == 1 && pair->arrived < 1 + LONG_FRAMES)
        rank_progress(rank, false);
    rank_barrier(rank);
    uint64_t sends = stand_in_count().sends - before; /* with one credit for each */
    CHECK(sends <= LONG_FRAMES * 9 / 4 + 4, "%llu requests for %d frames", (unsigned long long)sends, LONG_FRAMES);
}

/* Frames that may wait for others leave at the next progress, all of them in one request, and the receive handler is
 * told that there are more. A frame that stays alone leaves as short ones do: without its header, from the second
 * on. No rank sleeps while one waits, and one that may not wait takes it along at once. */
#define TOGETHER 8
#define OTHERS 4

static void body_together(struct rank *rank)
{
    static struct gy_frame_out frames[TOGETHER + OTHERS];
    static unsigned char payload[TOGETHER + OTHERS][200];
    struct rank_pair *pair = &rank->pair[0];

    rank_ready(rank);
    rank_barrier(rank);
    struct stand_in_counters before = stand_in_count();
    for (unsigned i = 0; i < TOGETHER && rank->rank == 0; i++) {
        rank_frame(rank, 1, &frames[i], 2 + i, payload[i], sizeof(payload[i]));
        frames[i].coalesce = true;
        rank->ops->post(pair->link, &frames[i]);
    }
    if (rank->rank == 0) {
        CHECK(stand_in_count().sends == before.sends, "one has not waited for the others");
        rank->ops->progress(pair->link);
        CHECK(stand_in_count().sends == before.sends + 1 && frames[TOGETHER - 1].done, "not in one request");
    }
    rank_barrier(rank);
    while (rank->rank == 1 && pair->arrived < 1 + TOGETHER)
        rank_progress(rank, false);
    CHECK(rank->rank == 0 || pair->more == TOGETHER - 1, "%llu frames had more behind them",
          (unsigned long long)pair->more);
    rank_barrier(rank);
    before = stand_in_count();
    for (unsigned i = TOGETHER; i < TOGETHER + 2 && rank->rank == 0; i++) {
        rank_frame(rank, 1, &frames[i], 2 + TOGETHER, payload[i], sizeof(payload[i]));
        frames[i].header.sequence = 2 + i;
        frames[i].coalesce = true;
        rank->ops->post(pair->link, &frames[i]);
        rank->ops->progress(pair->link);
        CHECK(frames[i].done, "it still waits");
    }
    CHECK(rank->rank == 1 || stand_in_count().inlines == before.inlines + 1, "with its header");
    rank_barrier(rank);
    before = stand_in_count();
    for (unsigned i = TOGETHER + 2; i < TOGETHER + OTHERS && rank->rank == 0; i++) {
        rank_frame(rank, 1, &frames[i], 2 + i, payload[i], sizeof(payload[i]));
        frames[i].coalesce = i == TOGETHER + 2;
        rank->ops->post(pair->link, &frames[i]);
        if (frames[i].coalesce)
            CHECK(!rank->ops->arm(rank->instance), "sleeps on what has not been tried");
        rank->ops->disarm(rank->instance);
    }
    CHECK(rank->rank == 1 || (stand_in_count().sends == before.sends + 1 && frames[TOGETHER + OTHERS - 1].done),
          "who may not wait has waited behind who may");
    rank_barrier(rank);
    while (rank->rank == 1 && pair->arrived < 1 + TOGETHER + OTHERS)
        rank_progress(rank, false);
    rank_barrier(rank);
}

/* How long the device waits for an acknowledgement: together less than a silent peer is waited for, or what was asked
 * for. */
static void test_ack_timeout(void)
{
    static const struct {
        const char *peer_timeout, *asked;
        int wanted; /* 8 waits of up to 4 · 4.096 µs · 2^wanted */
    } cases[] = {{"10", "0", 16}, {"5", "0", 15}, {"1", "0", 12}, {"10", "14", 14}};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(cases); i++) {
        stand_in_reset(1);
        setenv("GYRE_PEER_TIMEOUT", cases[i].peer_timeout, 1);
        setenv("GYRE_RDMA_ACK_TIMEOUT", cases[i].asked, 1);
        ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "timeout", rank_ready);
        CHECK(stand_in_count().ack_timeout == cases[i].wanted, "%d and not %d", stand_in_count().ack_timeout,
              cases[i].wanted);
    }
    unsetenv("GYRE_PEER_TIMEOUT");
    unsetenv("GYRE_RDMA_ACK_TIMEOUT");
}

/* Two ranks whose devices have little in common: addresses, packets, reads at once, the service that was asked for.
 * What each of them may do to the other's memory is what the stream needs. */
static void body_ends(struct rank *rank)
{
    static struct gy_frame_out frames[2];
    static unsigned char payload[2][60000];
    struct rank_pair *pair = &rank->pair[0];

    rank_ready(rank);
    struct gy_rdma_link *link = (struct gy_rdma_link *)pair->link;
    CHECK(link->rdma->rails == 1 && link->rdma->rail[0].name[4] == '0' + rank->rank, "%s", link->rdma->rail[0].name);
    CHECK(rank->ops->register_memory, "nothing is announced");
    rank->ops->register_memory(rank->instance, payload[rank->rank], sizeof(payload[0]));
    rank_frame(rank, pair->peer, &frames[rank->rank], 2, payload[rank->rank], sizeof(payload[0]));
    rank->ops->post(pair->link, &frames[rank->rank]);
    while (pair->arrived < 2 || !frames[rank->rank].done)
        rank_progress(rank, false);
    const struct gy_rdma_range *range = gy_rdma_memory_find(&link->rdma->memory, payload[rank->rank], 1);
    CHECK(range && range->registered && stand_in_rights(range->mr[0]) == IBV_ACCESS_LOCAL_WRITE,
          "announced memory is the device's own");
    CHECK(stand_in_rights(link->ring_mr[0]) == (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE), "the ring: %#x",
          (unsigned)stand_in_rights(link->ring_mr[0]));
    CHECK(stand_in_rights(link->words_mr[0]) ==
              (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ),
          "the words: %#x", (unsigned)stand_in_rights(link->words_mr[0]));
    CHECK(stand_in_rights(link->staging_mr[0]) == 0, "staging: %#x", (unsigned)stand_in_rights(link->staging_mr[0]));
    rank->ops->unregister_memory(rank->instance, payload[rank->rank]);
    rank_barrier(rank);
}

static void test_ends(void)
{
    static const char *const devices[] = {"soft0", "soft1"};

    stand_in_reset(2);
    stand_in_devices[0].port[0].mtu = IBV_MTU_4096;
    stand_in_devices[1].port[0].gid[3] = stand_in_devices[1].port[0].gid[0];
    memset(&stand_in_devices[1].port[0].gid[0], 0, sizeof(stand_in_devices[1].port[0].gid[0]));
    setenv("GYRE_RDMA_SERVICE_LEVEL", "3", 1);
    setenv("GYRE_RDMA_TRAFFIC_CLASS", "104", 1);
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2, .devices = devices}, "ends", body_ends);
    CHECK(stand_in_count().service_level == 3 && stand_in_count().traffic_class == 104, "level %d, class %d",
          stand_in_count().service_level, stand_in_count().traffic_class);
    unsetenv("GYRE_RDMA_SERVICE_LEVEL");
    unsetenv("GYRE_RDMA_TRAFFIC_CLASS");
}

/* Two ports of one device are two rails: each queue pair leaves by the port, and from the address, that it was made
 * for, long frames go over both, and what befalls a port is known of it and not of the other. */
static void body_ports(struct rank *rank)
{
    static struct gy_frame_out frames[2];
    static unsigned char payload[2][200000];
    struct rank_pair *pair = &rank->pair[0];

    rank_ready(rank);
    struct gy_rdma_link *link = (struct gy_rdma_link *)pair->link;
    struct gy_rdma_rail *rail = link->rdma->rail;
    CHECK(link->rdma->rails == 2 && rail[0].port == 1 && rail[1].port == 2 && link->paths == 2, "%d rails, %d paths",
          link->rdma->rails, link->paths);
    CHECK(strcmp(rail[0].name, "soft0 port 1") == 0 && strcmp(rail[1].name, "soft0 port 2") == 0, "%s, %s",
          rail[0].name, rail[1].name);
    rank_frame(rank, pair->peer, &frames[rank->rank], 2, payload[rank->rank], sizeof(payload[0]));
    rank->ops->post(pair->link, &frames[rank->rank]);
    while (pair->arrived < 2 || !frames[rank->rank].done)
        rank_progress(rank, false);
    for (int q = 0; q < 2; q++)
        CHECK(link->path[q].rail == q && link->path[q].sent > 0 && link->path[q].arrived > 0,
              "port %d: %llu chunks sent, %llu came", q + 1, (unsigned long long)link->path[q].sent,
              (unsigned long long)link->path[q].arrived);
    rank_barrier(rank);
    if (rank->rank == 0)
        stand_in_event(0, IBV_EVENT_PORT_ERR, 2);
    while (!rail[1].trouble[0])
        rank_progress(rank, false);
    CHECK(!rail[0].trouble[0], "of the other port: %s", rail[0].trouble);
    rank_barrier(rank);
}

static void test_ports(void)
{
    stand_in_reset(1);
    stand_in_devices[0].ports = 2;
    stand_in_devices[0].port[1] = stand_in_devices[0].port[0];
    stand_in_devices[0].port[1].gid[0].gid.raw[14] = 99;
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "ports", body_ports);
    stand_in_reset(1);
}

int main(void)
{
    setenv("GYRE_TRANSPORT", "rdma", 1);
    gy_verbs_use(&stand_in_verbs);
    test_hello();
    test_ack_timeout();
    test_ends();
    test_ports();
    stand_in_reset(1);
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "long", body_long);
    stand_in_most_inline = 220; /* a payload, but not with its header */
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "together", body_together);
    test_short(1, "1");
    test_short(3, "2");
    CHECK(stand_in_count().early > 0, "links' memory is written in order");
    stand_in_end();
    return 0;
}

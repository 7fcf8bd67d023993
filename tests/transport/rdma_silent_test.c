/* Silent frames over the stand-in, which writes them in two pieces, either first: they arrive whole and in order
 * among others, no rank sleeps while one is there or on its way, and what differs from one in a bit is none. Two
 * ranks, threads of this process. */
#include "ranks.h"

#include "core/clock.h"
#include "rdma_stand_in.h"
#include "transport/rdma/checksum.h"
#include "transport/rdma/internal.h"
#include <endian.h>
#include <string.h>

static unsigned sleeps; /* times that rank 1 slept */

/* Sends frame number `sequence`: short where it can, else through the queue. */
static void send_one(struct rank *rank, uint64_t sequence, uint32_t bytes, bool posted)
{
    static _Thread_local struct gy_frame_out frame;
    static _Thread_local unsigned char payload[4][8192];
    unsigned char *place = payload[sequence % 4];

    while (frame.queued)
        rank_progress(rank, false);
    rank_frame(rank, rank->pair[0].peer, &frame, 0, place, bytes);
    frame.header.sequence = sequence;
    if (posted || !rank->ops->send_short(rank->pair[0].link, &frame.header, frame.payload))
        rank->ops->post(rank->pair[0].link, &frame);
    while (frame.queued)
        rank_progress(rank, false);
}

/* Nothing that lies there may help what comes next: the frames of a volley are equal. */
static void wipe(struct gy_rdma_link *link)
{
    CHECK(link->in_head == link->in_tail, "there is more");
    for (uint64_t i = 0; i < 16384; i++)
        link->ring[(link->in_head + i) & link->in_mask] = 0xee;
}

/* Every turn rank 0 sends its frames in a row, and then rank 1 does. */
static void volley(struct rank *rank, uint64_t frames, uint32_t bytes, unsigned row, bool naps)
{
    struct rank_pair *pair = &rank->pair[0];
    struct gy_rdma_link *link = (struct gy_rdma_link *)pair->link;
    uint64_t first = pair->arrived;

    for (uint64_t k = 0; k < frames; k += row) {
        for (unsigned i = 0; i < row && rank->rank == 0; i++)
            send_one(rank, first + k + i + 1, bytes, (k + i) % 37 == 36);
        while (pair->arrived < first + k + row) {
            bool sleep = naps && (k / row) % 20 == (unsigned)rank->rank * 7;
            rank_progress(rank, sleep);
            sleeps += sleep && rank->rank == 1 && link->polling == GY_RDMA_POLLS_NOT;
        }
        wipe(link);
        for (unsigned i = 0; i < row && rank->rank == 1; i++)
            send_one(rank, first + k + i + 1, bytes, (k + i) % 37 == 36);
    }
}

static void body_volleys(struct rank *rank)
{
    static const uint32_t sizes[] = {8, 1, 200, 204, 205, 512, GY_RDMA_SILENT, GY_RDMA_SILENT + 1, 64};

    rank_ready(rank);
    for (size_t i = 0; i < GY_ARRAY_LENGTH(sizes); i++)
        volley(rank, 80, sizes[i], i % 2 ? 1 : 5, false);
    rank_barrier(rank);
}

static void body_naps(struct rank *rank)
{
    rank_ready(rank);
    volley(rank, 400, 8, 1, true);
    volley(rank, 300, 512, 2, true);
    rank_barrier(rank);
}

static uint64_t written(rank_func body)
{
    struct stand_in_counters before = stand_in_count();
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "silent", body);
    return stand_in_count().writes - before.writes;
}

/* Where the stream goes on rank 1 finds what looks like a frame, but for one bit, in each of the tag's fields and the
 * payload. */
static void body_forged(struct rank *rank)
{
    rank_ready(rank);
    volley(rank, 100, 8, 1, false);
    struct gy_rdma_link *link = (struct gy_rdma_link *)rank->pair[0].link;
    CHECK(link->polling == GY_RDMA_POLLS, "nobody looks");
    rank_barrier(rank);
    if (rank->rank == 1) {
        unsigned char *place = link->ring + (link->in_head & link->in_mask) + GY_FRAME_BYTES - GY_RDMA_TAG_BYTES;
        unsigned char good[GY_RDMA_TAG_BYTES + 8];
        uint64_t arrived = rank->pair[0].arrived;
        while (!gy_rdma_poll(link)) { /* what rank 0 sends below */
        }
        memcpy(good, place, sizeof(good));
        struct gy_rdma_link before = *link;
        before.in_head -= 2 * GY_FRAME_BYTES;
        before.next_chunk--;
        for (size_t bit = 0; bit < 8 * sizeof(good); bit++) {
            memcpy(place, good, sizeof(good));
            place[bit / 8] ^= (unsigned char)(1u << bit % 8);
            CHECK(!gy_rdma_poll(&before), "bit %zu does not matter", bit);
        }
        memcpy(place, good, sizeof(good));
        while (rank->pair[0].arrived == arrived)
            rank_progress(rank, false);
    } else {
        send_one(rank, rank->pair[0].arrived + 1, 8, false);
    }
    rank_barrier(rank);
}

/* What lay there before: a frame of that payload, 1 to 16 chunks ago, or one whose bytes differ all alike; or
 * nothing. */
enum { SAME, SAME_2, SAME_4, SAME_8, SAME_16, OTHER_SIGNS, ONE_MORE, INVERTED, ZEROES, OLDS };

static void old_bytes(int kind, const unsigned char *good, uint32_t bytes, uint64_t secret, uint64_t number,
                      unsigned char *old_p)
{
    static const uint64_t back[] = {1, 2, 4, 8, 16, 3, 2, 7};

    memcpy(old_p, good, GY_RDMA_TAG_BYTES + bytes);
    for (uint32_t i = GY_RDMA_TAG_BYTES; i < GY_RDMA_TAG_BYTES + bytes; i++)
        old_p[i] = (unsigned char)(kind == OTHER_SIGNS ? good[i] ^ (i % 8 == 7 ? 0x80 : 0)
                                   : kind == ONE_MORE  ? good[i] + 1
                                   : kind == INVERTED  ? ~good[i]
                                                       : good[i]);
    if (kind == ZEROES) {
        memset(old_p, 0, GY_RDMA_TAG_BYTES + bytes);
        return;
    }
    number -= back[kind];
    uint32_t label = htole32((uint32_t)number + 1);
    memcpy(old_p + 8, &label, sizeof(label));
    uint64_t sum = htole64(gy_rdma_sum(old_p + 8, bytes, secret, number));
    memcpy(old_p, &sum, sizeof(sum));
}

/* Nothing but the whole frame is one: not with any stretch of it missing, nor with any stretch alone, before and after
 * every byte. */
static void tear(struct gy_rdma_link *before, unsigned char *place, uint32_t bytes)
{
    static unsigned char good[GY_RDMA_TAG_BYTES + GY_RDMA_SILENT], old[sizeof(good)];
    uint32_t all = GY_RDMA_TAG_BYTES + bytes, step = all > 256 ? 3 : 1;

    memcpy(good, place, all);
    for (int kind = 0; kind < OLDS; kind++) {
        old_bytes(kind, good, bytes, before->secret, before->next_chunk, old);
        for (uint32_t i = 0; i < all; i += i + 1 < all - step && i > 0 ? step : 1)
            for (uint32_t j = i + 1; j <= all; j += i == 0 || j > all - step ? 1 : step) {
                memcpy(place, good, all);
                memcpy(place + i, old + i, j - i);
                CHECK(memcmp(place, good, all) == 0 || !gy_rdma_poll(before), "%u B, old %d: %u to %u missing", bytes,
                      kind, i, j);
                memcpy(place, old, all);
                memcpy(place + i, good + i, j - i);
                CHECK(memcmp(place, good, all) == 0 || !gy_rdma_poll(before), "%u B, old %d: %u to %u alone", bytes,
                      kind, i, j);
            }
    }
    memcpy(place, good, all);
    CHECK(gy_rdma_poll(before), "%u B: the whole frame is none", bytes);
}

static void body_torn(struct rank *rank)
{
    static const uint32_t sizes[] = {8, 1, 5, 9, 16, 24, 25, 40, 100, 512};

    rank_ready(rank);
    for (size_t i = 0; i < GY_ARRAY_LENGTH(sizes); i++) {
        volley(rank, 20, sizes[i], 1, false);
        struct gy_rdma_link *link = (struct gy_rdma_link *)rank->pair[0].link;
        CHECK(link->polling == GY_RDMA_POLLS || i == 0, "nobody looks");
        uint64_t arrived = rank->pair[0].arrived;
        rank_barrier(rank);
        if (rank->rank == 0)
            send_one(rank, arrived + 1, sizes[i], false);
        if (rank->rank == 1) {
            unsigned char *place = link->ring + (link->in_head & link->in_mask) + GY_FRAME_BYTES - GY_RDMA_TAG_BYTES;
            struct gy_rdma_link before = *link;
            int64_t deadline = gy_now() + 60 * GY_SECOND;
            while (!gy_rdma_poll(link))
                CHECK(gy_now() < deadline, "%u B were not silent", sizes[i]);
            tear(&before, place, sizes[i]);
        }
        while (rank->pair[0].arrived == arrived) {
            rank_progress(rank, false);
            if (rank->rank == 1 && rank->pair[0].arrived > arrived)
                send_one(rank, arrived + 1, sizes[i], false);
        }
        rank_barrier(rank);
    }
}

/* Rank 1 is about to sleep when there is something to do after all: it offers to poll again, although it has not
 * slept. What rank 0 sent 2^31 chunks ago keeps no rank awake. */
static void body_awake(struct rank *rank)
{
    struct gy_rdma_link *link;

    rank_ready(rank);
    volley(rank, 100, 8, 1, false);
    link = (struct gy_rdma_link *)rank->pair[0].link;
    CHECK(link->polling == GY_RDMA_POLLS, "nobody looks");
    if (rank->rank == 1)
        CHECK(!rank->ops->arm(rank->instance) && link->polling == GY_RDMA_POLLS_NO_MORE, "it may sleep at once");
    rank->ops->disarm(rank->instance);
    volley(rank, 100, 8, 1, false);
    CHECK(link->polling == GY_RDMA_POLLS, "rank %d does not look any more", rank->rank);
    rank_barrier(rank);
    if (rank->rank == 0)
        atomic_store(&link->words->begun, htole32((uint32_t)link->chunks + 0x70000000));
    rank_barrier(rank);
    int64_t deadline = gy_now() + 60 * GY_SECOND;
    while (rank->rank == 1 && !rank->ops->arm(rank->instance))
        CHECK(gy_now() < deadline, "rank 1 must not sleep");
    rank->ops->disarm(rank->instance);
    rank_barrier(rank);
}

/* No other process is accepted. */
static void stay(void *user)
{
    (void)user;
}

/* One thread of rank 1 sleeps while another makes progress, so much that it could offer to look, and leaves: the
 * sleeper is woken by what comes then. */
static void body_two_threads(struct rank *rank)
{
    rank_ready(rank);
    while (rank->rank == 1 && !rank->ops->arm(rank->instance))
        rank_progress(rank, false);
    rank_barrier(rank);
    volley(rank, 100, 8, 1, false);
    uint64_t next = rank->pair[0].arrived + 1;
    rank_barrier(rank);
    if (rank->rank == 0)
        send_one(rank, next, 8, false);
    int64_t start = gy_now();
    while (rank->rank == 1 && rank->pair[0].arrived < next) {
        gy_poller_wait(rank->poller, 10 * GY_SECOND, stay, stay, NULL);
        CHECK(gy_now() - start < 9 * GY_SECOND, "it slept on");
        gy_poller_poll(rank->poller, 0);
    }
    rank->ops->disarm(rank->instance);
    rank_barrier(rank);
}

/* Rank 0 stops while frames wait for room, and does not take what rank 1 sent meanwhile: with it has come the room. */
static void body_stop(struct rank *rank)
{
    static struct gy_frame_out frames[6];
    static unsigned char payloads[6][60000];
    struct rank_pair *pair = &rank->pair[0];

    rank_ready(rank);
    volley(rank, 100, 8, 1, false);
    uint64_t first = pair->arrived + 1;
    for (unsigned i = 0; i < GY_ARRAY_LENGTH(frames); i++) {
        rank_barrier(rank);
        if (rank->rank == 0) {
            rank_frame(rank, 1, &frames[i], first + i, payloads[i], sizeof(payloads[i]));
            rank->ops->post(pair->link, &frames[i]);
        }
        rank_barrier(rank);
        while (rank->rank == 1 && i < 4 && pair->arrived < first + i)
            rank_progress(rank, false);
        if (rank->rank == 1 && i < 4)
            send_one(rank, first + i, 8, false);
    }
    rank_barrier(rank);
    if (rank->rank == 0) {
        CHECK(!frames[5].done, "there was room");
        rank->ops->stop(rank->instance);
        CHECK(frames[5].done, "what was handed over has not left");
    }
    while (rank->rank == 1 && pair->arrived < first + 5)
        rank_progress(rank, false);
    rank_barrier(rank);
}

int main(void)
{
    setenv("GYRE_TRANSPORT", "rdma", 1);
    gy_verbs_use(&stand_in_verbs);
    stand_in_reset(1);
    uint64_t silent = written(body_volleys);
    CHECK(silent > 2 * 8 * 80 / 2, "%llu of 1280 were silent", (unsigned long long)silent);
    silent = written(body_naps);
    CHECK(silent > 100 && sleeps > 0, "%llu were silent, %u sleeps", (unsigned long long)silent, sleeps);
    (void)written(body_forged);
    (void)written(body_torn);
    (void)written(body_awake);
    (void)written(body_two_threads);
    (void)written(body_stop);
    struct stand_in_counters c = stand_in_count();
    CHECK(c.not_ready == 0, "a receiver was not ready");
    CHECK(c.mrs + c.cqs + c.qps + c.channels == 0, "left: %d %d %d %d", c.mrs, c.cqs, c.qps, c.channels);
    return 0;
}

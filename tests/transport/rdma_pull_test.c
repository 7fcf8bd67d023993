/* Chunks that the receiver reads, over a stand-in that says it is soft-RoCE. What is read arrives as what is written
 * does. A frame is its owner's again when the peer has all of it. Nothing is read from a peer that is sent to at the
 * same time. No rank has more rights than that takes. Two ranks, threads of this process. */
#include "ranks.h"

#include "rdma_stand_in.h"
#include "transport/rdma/internal.h"
#include <string.h>

#define FRAMES 48
#define BYTES 200000u

static unsigned char payload[2][4][BYTES];

static struct gy_rdma_link *link_of(struct rank *rank)
{
    return (struct gy_rdma_link *)rank->pair[0].link;
}

/* One way, from memory that is announced (odd iterations) and that is not, to a rank that sleeps (the later
 * iterations). */
static unsigned turn;

static void body_one_way(struct rank *rank)
{
    static struct gy_frame_out frames[4];
    struct rank_pair *pair = &rank->pair[0];

    rank_ready(rank);
    CHECK(stand_in_rights(link_of(rank)->staging_mr[0]) == IBV_ACCESS_REMOTE_READ, "rights of staging");
    CHECK(!(stand_in_rights(link_of(rank)->ring_mr[0]) & IBV_ACCESS_REMOTE_READ), "rights of the ring");
    if (rank->rank == 0 && turn % 2)
        rank->ops->register_memory(rank->instance, payload[0], sizeof(payload[0]));
    for (unsigned i = 0; i < FRAMES && rank->rank == 0;) {
        struct gy_frame_out *frame = &frames[i % 4];
        if (frame->queued) {
            rank_progress(rank, turn / 2);
            continue;
        }
        rank_frame(rank, 1, frame, 2 + i, payload[0][i % 4], BYTES - i);
        rank->ops->post(pair->link, frame);
        i++;
    }
    while (rank->rank == 0 ? frames[(FRAMES - 1) % 4].queued : pair->arrived < 1 + FRAMES)
        rank_progress(rank, turn / 2);
    rank_barrier(rank);
    if (rank->rank == 0 && turn % 2)
        rank->ops->unregister_memory(rank->instance, payload[0]);
}

/* Other devices move bytes themselves: nothing is read, and no rank may read. */
static void body_other(struct rank *rank)
{
    rank_ready(rank);
    CHECK(stand_in_rights(link_of(rank)->staging_mr[0]) == 0, "rights of staging");
    rank_barrier(rank);
}

static void test_one_way(void)
{
    for (turn = 0; turn < 4; turn++) {
        struct stand_in_counters before = stand_in_count();
        ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "one way", body_one_way);
        struct stand_in_counters after = stand_in_count();
        uint64_t reads = after.reads - before.reads;
        /* Four or five chunks a frame; every other one, but where two are still being read. */
        CHECK(reads > FRAMES / 2 && reads < FRAMES * 3, "%llu reads for %d frames", (unsigned long long)reads, FRAMES);
        CHECK(after.not_ready == 0, "a receiver was not ready");
    }
}

/* Where both send a good deal at once, what comes is right, however it came. */
static void body_beside(struct rank *rank)
{
    static struct gy_frame_out frames[2];
    struct rank_pair *pair = &rank->pair[0];
    struct gy_frame_out *frame = &frames[rank->rank];

    rank_ready(rank);
    for (unsigned i = 0; i < FRAMES; i++) {
        rank_frame(rank, pair->peer, frame, 2 + i, payload[rank->rank][0], BYTES - i);
        rank->ops->post(pair->link, frame);
        while (frame->queued || pair->arrived < 2 + i)
            rank_progress(rank, i % 2);
    }
    rank_barrier(rank);
}

/* Rank 1 is outside while it is sent to: the frame stays rank 0's link's own. Then it sends, too: nothing is to be read
 * for a while. */
static void body_kept(struct rank *rank)
{
    static struct gy_frame_out frames[2];
    struct rank_pair *pair = &rank->pair[0];
    struct gy_frame_out *frame = &frames[rank->rank];
    struct gy_rdma_link *link;

    rank_ready(rank);
    link = link_of(rank);
    rank_barrier(rank);
    if (rank->rank == 0) {
        rank_frame(rank, 1, frame, 2, payload[0][0], BYTES);
        rank->ops->post(pair->link, frame);
        stand_in_settle(link->path[0].qp);
        for (int i = 0; i < 1000; i++)
            rank_progress(rank, false);
        CHECK(!link->unsent && frame->queued && link->pulled[1].end > link->chunks_back, "nothing is to be read");
        /* A silent frame behind it would not be counted. */
        atomic_store(&link->words->polls, 1);
        CHECK(!gy_rdma_is_polled(link), "a frame may be silent while the peer reads");
        atomic_store(&link->words->polls, 0);
    }
    rank_barrier(rank);
    if (rank->rank == 1) {
        rank_frame(rank, 0, frame, 2, payload[1][0], 60000);
        rank->ops->post(pair->link, frame);
        stand_in_settle(link->path[0].qp);
    }
    rank_barrier(rank);
    while (pair->arrived < 2 && rank->rank == 0)
        rank_progress(rank, false);
    if (rank->rank == 0)
        CHECK(link->not_before > link->out_head + (1u << 20), "it may be read at once");
    rank_barrier(rank);
    while (pair->arrived < 2 || frame->queued)
        rank_progress(rank, false);
    rank_barrier(rank);
}

/* So much follows a frame that rank 1 sees its end before it has taken all that is there, and leaves: rank 0 has the
 * frame back all the same, for rank 1 may wait for what rank 0 does then. */
#define BEHIND 40 /* frames: more than are taken at a time, and in one chunk */

static void body_followed(struct rank *rank)
{
    static struct gy_frame_out frames[1 + BEHIND];
    struct rank_pair *pair = &rank->pair[0];
    struct gy_rdma_link *link;

    rank_ready(rank);
    link = link_of(rank);
    rank_barrier(rank);
    for (unsigned i = 0; i < 1 + BEHIND && rank->rank == 0; i++) {
        rank_frame(rank, 1, &frames[i], 2 + i, i ? payload[0][1] + i * 64 : payload[0][0], i ? 64 : 150000);
        frames[i].coalesce = i > 0;
        rank->ops->post(pair->link, &frames[i]);
    }
    while (rank->rank == 0 && link->unsent)
        rank_progress(rank, false);
    if (rank->rank == 0)
        stand_in_settle(link->path[0].qp);
    rank_barrier(rank);
    while (rank->rank == 1 && pair->arrived < 2)
        rank_progress(rank, false);
    if (rank->rank == 1) {
        CHECK(pair->arrived < 1 + BEHIND && gy_rdma_digestible(link), "all was taken at once");
        stand_in_settle(link->path[0].qp);
    }
    rank_barrier(rank);
    if (rank->rank == 0) {
        for (int i = 0; i < 1000; i++)
            rank_progress(rank, false);
        CHECK(!frames[0].queued, "rank 1 has the frame, and rank 0 has not got it back");
    }
    rank_barrier(rank);
    while (rank->rank == 0 ? frames[BEHIND].queued : pair->arrived < 2 + BEHIND)
        rank_progress(rank, false);
    rank_barrier(rank);
}

/* Rank 0 announces memory that rank 1 may not read; or announces any to a rank that has not agreed, or more than may
 * be. */
static enum { OF_A_KEY, OF_CONSENT, OF_NUMBER, LIES } lie;
static char sentence[GY_ERROR_TEXT];
static gyre_status status;

static void body_lies(struct rank *rank)
{
    static struct gy_frame_out frame;
    struct rank_pair *pair = &rank->pair[0];
    struct gy_rdma_link *link;

    rank_ready(rank);
    link = link_of(rank);
    link->may_pull = rank->rank == 0 || lie != OF_CONSENT;
    rank_barrier(rank);
    if (rank->rank == 0) {
        uint32_t key = link->staging_mr[0]->rkey;

        frame = (struct gy_frame_out){0};
        rank_frame(rank, 1, &frame, 2, payload[0][0], BYTES);
        link->staging_mr[0]->rkey = lie == OF_A_KEY ? link->words_mr[0]->rkey : key;
        for (int i = 0; i < 3 && lie == OF_NUMBER; i++)
            CHECK(gy_rdma_offer_chunk(link, &frame, 128, false), "it fails");
        rank->ops->post(pair->link, &frame);
        stand_in_settle(link->path[0].qp);
        link->staging_mr[0]->rkey = key;
    }
    rank_barrier(rank);
    while (!pair->broken)
        rank_progress(rank, false);
    if (rank->rank == 1) {
        snprintf(sentence, sizeof(sentence), "%s", pair->link->error.text);
        status = pair->link->error.status;
    }
    rank->ops->close(rank->instance);
    rank->closed = true;
}

static void test_lies(void)
{
    for (lie = OF_A_KEY; lie < LIES; lie++) {
        ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "lies", body_lies);
        CHECK(strstr(sentence, "device soft0 port 1, to rank 0") &&
                  strstr(sentence, lie == OF_A_KEY ? "a request failed: " : "read where that may not be") &&
                  status == (lie == OF_A_KEY ? GYRE_PEER_UNREACHABLE : GYRE_PROTOCOL),
              "%d %s", status, sentence);
    }
}

int main(void)
{
    setenv("GYRE_TRANSPORT", "rdma", 1);
    gy_verbs_use(&stand_in_verbs);
    stand_in_reset(1);
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "other", body_other);
    stand_in_vendor = 0xffffff;
    test_one_way();
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "beside", body_beside);
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "kept", body_kept);
    setenv("GYRE_RDMA_RING", "1m", 1); /* of which one frame is too little for credit, but for a rank that waits */
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "kept", body_kept);
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "followed", body_followed);
    unsetenv("GYRE_RDMA_RING");
    test_lies();
    stand_in_end();
    return 0;
}

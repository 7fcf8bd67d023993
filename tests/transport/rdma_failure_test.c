/* Links that break, over the stand-in: requests, ports, devices, queues, queue pairs and events that fail, peers that
 * are stuck or do not keep the rules. Each is told once, with rank, device, port and cause. Ranks are threads of this
 * process. */
#include "ranks.h"

#include "core/clock.h"
#include "rdma_stand_in.h"
#include "transport/rdma/internal.h"
#include <string.h>

/* Frames from rank 0 to rank 1 until the links of both are broken; the error message is that of `sentences`. */
static char sentence[2][GY_ERROR_TEXT];
static gyre_status sentence_status[2];
static void (*breaks)(void);

static void keep_sentence(struct rank *rank)
{
    struct gy_link *link = rank->pair[0].link;
    snprintf(sentence[rank->rank], sizeof(sentence[0]), "%s", link->error.text);
    sentence_status[rank->rank] = link->error.status;
}

static void body_breaks(struct rank *rank)
{
    static struct gy_frame_out frames[4];
    static unsigned char payload[4][60000];
    struct rank_pair *pair = &rank->pair[0];
    uint64_t number = 0;

    if (rank->rank == 0)
        memset(frames, 0, sizeof(frames));
    rank_link(rank);
    while (!pair->broken) {
        CHECK(number < 20000, "it goes on");
        for (int i = 0; i < 4 && rank->rank == 0; i++)
            if (!frames[i].queued) {
                rank_frame(rank, 1, &frames[i], ++number, payload[i], sizeof(payload[i]));
                rank->ops->post(pair->link, &frames[i]);
            }
        if (rank->rank == 0 && pair->link && number > 40 && breaks) {
            void (*now)(void) = breaks;
            breaks = NULL;
            now();
        }
        gy_poller_poll(rank->poller, 0);
        rank_progress(rank, false);
        if (stand_in_mute && rank->ops->arm(rank->instance)) /* before a sleep */
            CHECK(pair->broken || !pair->link->first, "a sleep from which nothing wakes");
    }
    keep_sentence(rank);
    CHECK(pair->broken == 1, "told %d times", (int)pair->broken);
    rank->ops->close(rank->instance); /* which the other notices */
    rank->closed = true;
}

static void break_requests(void)
{
    stand_in_fail_requests(0, IBV_WC_RETRY_EXC_ERR);
}
static void break_port(void)
{
    stand_in_event(0, IBV_EVENT_PORT_ERR, 1);
    breaks = break_requests; /* when that was heard */
}
static void break_port_and_mend_it(void)
{
    stand_in_event(0, IBV_EVENT_PORT_ERR, 2); /* none of ours */
    stand_in_event(0, IBV_EVENT_PORT_ERR, 1);
    stand_in_event(0, IBV_EVENT_PORT_ACTIVE, 2);
    stand_in_event(0, IBV_EVENT_PORT_ACTIVE, 1);
    stand_in_event(0, IBV_EVENT_PORT_ERR, 2);
    breaks = break_requests;
}
static void break_device(void)
{
    stand_in_event(0, IBV_EVENT_DEVICE_FATAL, 1);
}
static void break_queue(void)
{
    stand_in_event(0, IBV_EVENT_CQ_ERR, 1);
}
static void break_second(void)
{
    stand_in_fail_requests(1, IBV_WC_RETRY_EXC_ERR);
}
static void break_memory(void)
{
    stand_in_fail_requests(0, IBV_WC_LOC_PROT_ERR);
}
static void break_access(void)
{
    stand_in_event(0, IBV_EVENT_QP_ACCESS_ERR, 1);
}
static void break_events(void)
{
    stand_in_mute = true;
}
static void break_pair(void)
{
    stand_in_event(0, IBV_EVENT_QP_FATAL, 1);
}

static void breaking(const char *name, void (*how)(void), const char *wanted)
{
    const struct ranks_options two = {.transport = "rdma", .size = 2};

    stand_in_reset(strcmp(name, "second") == 0 ? 2 : 1);
    memset(sentence, 0, sizeof(sentence));
    breaks = how;
    ranks_run(&two, name, body_breaks);
    const char *device = stand_in_device_count == 2 ? "device soft1 port 1, to rank" : "device soft0 port 1, to rank";
    CHECK((strstr(sentence[0], wanted) && strstr(sentence[0], device)) ||
              (strstr(sentence[1], wanted) && strstr(sentence[1], device)),
          "%s / %s", sentence[0], sentence[1]);
}

/* Whose fault it was: of all ranks that saw it. */
static void blames(gyre_status status)
{
    for (int r = 0; r < 2; r++)
        CHECK(sentence_status[r] == status || strstr(sentence[r], "closed by the peer"), "%s: %d", sentence[r],
              sentence_status[r]);
}

/* The lower rank cannot register: its error message has the number. */
static void body_locked(struct rank *rank)
{
    struct rank_pair *pair = &rank->pair[0];

    rank_link(rank);
    while (!pair->broken)
        rank_progress(rank, false);
    keep_sentence(rank);
    rank->ops->close(rank->instance);
    rank->closed = true;
}

static void test_locked(void)
{
    const struct ranks_options two = {.transport = "rdma", .size = 2};

    stand_in_reset(1);
    stand_in_fail_registration(1);
    ranks_run(&two, "locked", body_locked);
    CHECK(strstr(sentence[0], "cannot") || strstr(sentence[1], "cannot"), "%s / %s", sentence[0], sentence[1]);
}

/* Of two links over one device one queue pair is in error: its link ends, and is the only one that does. */
static void body_one_of_two(struct rank *rank)
{
    static struct gy_frame_out frames[3][2];
    static unsigned char payload[3][2][100];

    rank_ready(rank);
    if (rank->rank == 0) {
        struct gy_rdma_link *link = (struct gy_rdma_link *)rank_pair(rank, 1)->link;
        stand_in_event_of(link->path[0].qp, IBV_EVENT_QP_FATAL);
    }
    while (rank->rank < 2 && !rank_pair(rank, 1 - rank->rank)->broken)
        rank_progress(rank, false);
    for (int i = 0; i < rank->pairs; i++) {
        struct rank_pair *pair = &rank->pair[i];
        if (rank->rank + pair->peer == 1)
            continue;
        struct gy_frame_out *frame = &frames[rank->rank][i];
        rank_frame(rank, pair->peer, frame, 2, payload[rank->rank][i], sizeof(payload[0][0]));
        rank->ops->post(pair->link, frame);
        while (pair->arrived < 2 || !frame->done) {
            CHECK(!pair->broken, "the event of another queue pair: %s", pair->link->error.text);
            rank_progress(rank, false);
        }
    }
    if (rank->rank == 0)
        keep_sentence(rank);
    rank_barrier(rank);
}

static void test_one_of_two(void)
{
    stand_in_reset(1);
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 3}, "one of two", body_one_of_two);
    CHECK(strstr(sentence[0], "device soft0 port 1, to rank 1: the device reports: queue pair fatal"), "%s",
          sentence[0]);
}

/* Rank 0 stops and closes while the devices take nothing that it sends to the others, but to the last: its wait is one
 * for all of them, and the last gets what was handed over for it. */
#define STUCK 3

static void stop_with_some_stuck(struct rank *rank)
{
    static struct gy_frame_out frames[STUCK + 1][2];
    static unsigned char payloads[STUCK + 1][2][60000];

    for (int i = 0; i <= STUCK; i++) {
        struct gy_rdma_link *link = (struct gy_rdma_link *)rank->pair[i].link;
        if (i < STUCK)
            stand_in_stall(link->path[0].qp);
        for (unsigned f = 0; f < 2; f++) {
            rank_frame(rank, rank->pair[i].peer, &frames[i][f], 2 + f, payloads[i][f], sizeof(payloads[i][f]));
            rank->ops->post(&link->base, &frames[i][f]);
        }
    }
    int64_t start = gy_now() - rank_without_core();
    rank->ops->stop(rank->instance);
    int64_t took = gy_now() - rank_without_core() - start;
    CHECK(took < STUCK * 750 * GY_MILLISECOND, "%d links that are stuck took %lld ms", STUCK,
          (long long)(took / GY_MILLISECOND));
    rank->ops->close(rank->instance);
    rank->closed = true;
}

static void body_stop(struct rank *rank)
{
    rank_ready(rank);
    if (rank->rank == 0)
        stop_with_some_stuck(rank);
    while (rank->rank == STUCK + 1 && rank->pair[0].arrived < 3)
        rank_progress(rank, false);
    rank_barrier(rank);
}

/* Rank 0 stops and closes before rank 1 has looked, whose credit for the first frames goes nowhere: it gets the others
 * all the same, and then hears of the end. */
static void body_unread(struct rank *rank)
{
    enum { COUNT = 24, BYTES = 8000 }; /* more than one progress takes, and less than the ring */
    static struct gy_frame_out frames[COUNT];
    static unsigned char payloads[COUNT][BYTES];
    struct rank_pair *pair = &rank->pair[0];
    struct gy_rdma_link *link;

    rank_ready(rank);
    link = (struct gy_rdma_link *)pair->link;
    if (rank->rank == 0) {
        for (unsigned i = 0; i < COUNT; i++) {
            rank_frame(rank, 1, &frames[i], 2 + i, payloads[i], BYTES);
            rank->ops->post(pair->link, &frames[i]);
        }
        stand_in_settle(link->path[0].qp);
        rank->ops->stop(rank->instance);
        rank->ops->close(rank->instance);
        rank->closed = true;
    }
    rank_barrier(rank);
    if (rank->rank == 0)
        return;
    rank->ops->progress(pair->link);
    CHECK(pair->arrived > 1 && pair->arrived < 1 + COUNT, "%d at once", (int)pair->arrived);
    stand_in_settle(link->path[0].qp); /* the credit has failed */
    while (!pair->broken)
        rank_progress(rank, false);
    CHECK(pair->arrived == 1 + COUNT, "%d of %d: %s", (int)pair->arrived, 1 + COUNT, pair->link->error.text);
    CHECK(strstr(pair->link->error.text, "closed by the peer"), "%s", pair->link->error.text);
}

/* Rank 0 says that rank 1 knows the header, which has none in mind, or that of a shorter frame: rank 1 must not take
 * what lies behind the payload for a part of it. Or it writes on where rank 1 has not read yet. */
static enum { OF_A_HEADER, OF_ANOTHER_HEADER, OF_ROOM, LIES } lie;

static void send_too_much(struct rank *rank, struct gy_rdma_link *link)
{
    static struct gy_frame_out frames[6];
    static unsigned char payload[60000];

    for (unsigned i = 0; i < GY_ARRAY_LENGTH(frames); i++) { /* 352 KiB into 256 */
        rank_frame(rank, 1, &frames[i], 2 + i, payload, sizeof(payload));
        link->out_tail = link->out_head;
        rank->ops->post(&link->base, &frames[i]);
    }
    stand_in_settle(link->path[0].qp); /* before rank 1 looks, which would make room */
}

static void body_lies(struct rank *rank)
{
    struct rank_pair *pair = &rank->pair[0];
    struct gy_rdma_link *link;
    struct gy_frame_out frame;
    static unsigned char payload[200];

    rank_ready(rank);
    link = (struct gy_rdma_link *)pair->link;
    if (rank->rank == 0 && lie == OF_ROOM)
        send_too_much(rank, link);
    rank_barrier(rank);
    if (rank->rank == 0 && lie != OF_ROOM) {
        rank_frame(rank, 1, &frame, 2, payload, 8);
        if (lie == OF_ANOTHER_HEADER)
            CHECK(rank->ops->send_short(pair->link, &frame.header, payload), "it has no room");
        frame.header.bytes = sizeof(payload);
        link->model = frame.header;
        frame.header.sequence++;
        CHECK(rank->ops->send_short(pair->link, &frame.header, payload), "it has no room");
    }
    while (!pair->broken)
        rank_progress(rank, false);
    keep_sentence(rank);
    rank->ops->close(rank->instance);
    rank->closed = true;
}

static void test_lies(void)
{
    for (lie = OF_A_HEADER; lie < LIES; lie++) {
        stand_in_reset(1);
        ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "lies", body_lies);
        CHECK(sentence_status[1] == GYRE_PROTOCOL && strstr(sentence[1], "device soft0 port 1, to rank 0") &&
                  strstr(sentence[1], lie == OF_ROOM ? "it overran its ring" : "remember"),
              "%s", sentence[1]);
    }
}

static void test_all(void)
{
    breaking("request", break_requests, "a request failed: transport retry counter exceeded");
    blames(GYRE_PEER_UNREACHABLE);
    breaking("second", break_second, "a request failed: transport retry counter exceeded");
    breaking("memory", break_memory, "a request failed: local protection error");
    blames(GYRE_SYSTEM);
    breaking("port", break_port, "(the device said before: port error)");
    breaking("mended", break_port_and_mend_it, "a request failed: transport retry counter exceeded");
    CHECK(!strstr(sentence[0], "said before") && !strstr(sentence[1], "said before"), "%s / %s", sentence[0],
          sentence[1]);
    breaking("queue", break_queue, "the device reports: ");
    breaking("access", break_access, "the device reports: ");
    breaking("device", break_device, "the device reports: device fatal");
    breaking("events", break_events, "no event can be asked for: Input/output error");
    breaking("pair", break_pair, "the device reports: queue pair fatal");
    test_one_of_two();
    test_locked();
    test_lies();
    stand_in_reset(1);
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = STUCK + 2}, "stop", body_stop);
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "unread", body_unread);
}

int main(void)
{
    setenv("GYRE_TRANSPORT", "rdma", 1);
    gy_verbs_use(&stand_in_verbs);
    test_all();
    stand_in_vendor = 0xffffff; /* soft-RoCE, where some of it is read */
    test_all();
    stand_in_end();
    return 0;
}

/* One suite for every transport: conformance_test self|shm|tcp|tcp6|rdma|stand_in|stand_ins [processes].
 *
 * rdma uses the devices of this machine; stand_in and stand_ins are rdma over a stand-in for libibverbs, one device, and
 * three with two queue pairs each.
 *
 * Two, three and five ranks (one for self), every pair of them at once, send each other frames whose payloads are
 * functions of (sender, receiver, number) and whose headers carry the payload's hash; the sink of ranks.c checks link,
 * order, size and hash of each. The bodies below add what each situation is about. */
#include "ranks.h"

#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "rdma_stand_in.h"
#include "transport/rdma_verbs.h"
#include "transport/tcp_private.h"

#define POOL 64

static void pause_ms(int milliseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
}

/* What a rank sends to one other. */
struct stream {
    struct gy_frame_out frame[POOL];
    unsigned char *payloads;
    uint64_t end; /* frames posted and arrived when the exchange is over */
};

/* Posts what there is room for; true while anything is to be posted, under way or awaited. */
static bool feed(struct rank *rank, struct rank_pair *pair, struct stream *stream, uint64_t pool,
                 uint32_t (*size)(uint64_t), uint32_t most)
{
    while (pair->posted < stream->end && !stream->frame[pair->posted % pool].queued) {
        size_t slot = pair->posted % pool;
        struct gy_frame_out *frame = &stream->frame[slot];
        rank_frame(rank, pair->peer, frame, pair->posted + 1, stream->payloads + slot * (most + 1), size(pair->posted));
        pair->posted++;
        rank->ops->post(pair->link, frame);
        CHECK(frame->queued != frame->done, "a posted frame is queued or done");
    }
    /* The peer may be done, and gone, when all has arrived. */
    CHECK(!pair->broken || pair->arrived == stream->end, "the link to rank %d broke", pair->peer);
    if (pair->broken)
        return false;
    bool open = pair->posted < stream->end || pair->arrived < stream->end;
    for (int i = 0; i < POOL; i++)
        open = open || stream->frame[i].queued;
    return open;
}

/* With every rank whose link is whole: sends `count` frames of size(i) bytes, with at most POOL (8 of a megabyte, where
 * there are many ranks) under way, until all left and as many arrived. */
static void exchange(struct rank *rank, uint64_t count, uint32_t (*size)(uint64_t), uint32_t most, bool sleep)
{
    static _Thread_local struct stream streams[RANKS_MOST];
    uint64_t pool = rank->size > 2 && most > 65536 ? 8 : POOL;
    bool open = true;
    memset(streams, 0, sizeof(streams));
    for (int i = 0; i < rank->pairs; i++) {
        streams[i].end = rank->pair[i].broken ? rank->pair[i].arrived : rank->pair[i].posted + count;
        streams[i].payloads = malloc((size_t)pool * (most + 1));
        CHECK(streams[i].payloads, "no memory");
        if (rank->announces)
            rank->ops->know(rank->instance, streams[i].payloads, (size_t)pool * (most + 1));
    }
    while (open) {
        open = false;
        for (int i = 0; i < rank->pairs; i++)
            if (!rank->pair[i].broken)
                open = feed(rank, &rank->pair[i], &streams[i], pool, size, most) || open;
        if (open)
            rank_turn(rank, sleep);
    }
    for (int i = 0; i < rank->pairs; i++) {
        if (rank->announces)
            rank->ops->forget(rank->instance, streams[i].payloads);
        free(streams[i].payloads);
    }
}

static uint32_t size_small(uint64_t i)
{
    return (uint32_t)(i * 2654435761u >> 7) % 500;
}
static uint32_t size_64k(uint64_t i)
{
    return 65536 - (uint32_t)(i % 3);
}
static uint32_t size_mixed(uint64_t i)
{
    return (uint32_t)(i * 2654435761u >> 3) % (i % 5 ? 300 : 300000);
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
    exchange(rank, 32, size_named, GY_FRAME_MAX, false);
}

/* The same from memory that was announced, which comes and goes. */
static void body_announced(struct rank *rank)
{
    rank_link(rank);
    rank->announces = true;
    exchange(rank, 32, size_named, GY_FRAME_MAX, false);
    exchange(rank, POOL, size_mixed, 300000, true);
    rank->announces = false;
    exchange(rank, POOL, size_mixed, 300000, true);
}

static void body_order(struct rank *rank)
{
    rank_link(rank);
    exchange(rank, (uint64_t)(10000 / rank->pairs), size_small, 500, false);
}

static void body_queued(struct rank *rank)
{
    rank_link(rank);
    exchange(rank, POOL, size_64k, 65536, false);
}

/* Every wait sleeps: a lost wake-up, for frames or for room, is a sleep of seconds. */
static void body_sleep(struct rank *rank)
{
    rank_link(rank);
    exchange(rank, (uint64_t)(1500 / rank->pairs), size_mixed, 300000, true);
}

static void body_slow(struct rank *rank)
{
    rank_link(rank);
    rank->linger_ns = rank->rank == 0 ? 0 : 2 * GY_MILLISECOND;
    exchange(rank, 100, size_mixed, 300000, true);
}

static void body_early(struct rank *rank)
{
    if (rank->rank == 1)
        pause_ms(100);
    rank_link(rank);
    exchange(rank, 100, size_small, 500, false);
}

static void body_early_high(struct rank *rank)
{
    if (rank->rank == 0)
        pause_ms(100);
    rank_link(rank);
    exchange(rank, 100, size_small, 500, true);
}

/* Ranks that sleep are woken by a frame each within milliseconds. */
static void body_wake(struct rank *rank)
{
    struct gy_frame_out frames[RANKS_MOST];
    rank_link(rank);
    exchange(rank, 1, size_small, 500, false); /* connected now */
    for (uint64_t number = 2; number < 22; number++) {
        if (rank->rank == 1)
            pause_ms(5);
        for (int i = 0; i < rank->pairs && rank->rank == 1; i++) {
            rank_frame(rank, rank->pair[i].peer, &frames[i], number, NULL, 0);
            rank->ops->post(rank->pair[i].link, &frames[i]);
        }
        for (int i = 0; i < rank->pairs && rank->rank == 1; i++)
            while (!frames[i].done)
                rank_turn(rank, false);
        while (rank->rank != 1 && rank_pair(rank, 1)->arrived < number)
            rank_turn(rank, true);
        rank_barrier(rank);
    }
}

enum { FRAMES = 8 };

static bool all_done(struct gy_frame_out frames[][FRAMES], int pairs)
{
    for (int i = 0; i < pairs; i++)
        for (int k = 0; k < FRAMES; k++)
            if (!frames[i][k].done)
                return false;
    return true;
}

/* stop hands over what was posted to everyone; then the sender may go. */
static void body_stop(struct rank *rank)
{
    enum { BYTES = 60000 };
    static _Thread_local struct gy_frame_out frames[RANKS_MOST][FRAMES];
    static unsigned char payloads[RANKS_MOST][FRAMES][BYTES];
    rank_link(rank);
    if (rank->rank == 0) {
        for (int i = 0; i < rank->pairs; i++)
            for (int k = 0; k < FRAMES; k++) {
                rank_frame(rank, rank->pair[i].peer, &frames[i][k], (uint64_t)k + 1, payloads[i][k], BYTES);
                rank->ops->post(rank->pair[i].link, &frames[i][k]);
            }
        int64_t deadline = gy_now() + 20 * GY_SECOND; /* the dialled side connects in its own time, each of its rails */
        int reach = gy_config_rails(&rank->config) - 1;
        for (int i = 0; i < rank->pairs; i++)
            while (!frames[i][reach].done && gy_now() < deadline)
                rank_turn(rank, false);
        bool rings = strcmp(rank->ops->name, "shm") == 0;
        do /* it waits for a fifth of a second; who has no core for that long does not empty its ring */
            rank->ops->stop(rank->instance);
        while (rings && !all_done(frames, rank->pairs) && gy_now() < deadline);
        rank->ops->close(rank->instance);
        rank->closed = true;
        for (int i = 0; i < rank->pairs; i++)
            for (int k = 0; k < FRAMES; k++)
                CHECK(frames[i][k].done, "frame %d to rank %d did not leave", k, rank->pair[i].peer);
    } else {
        while (rank_pair(rank, 0)->arrived < FRAMES) {
            CHECK(!rank_pair(rank, 0)->broken, "%d of %d frames: %s", (int)rank_pair(rank, 0)->arrived, FRAMES,
                  rank_pair(rank, 0)->link->error.text);
            rank_turn(rank, false);
        }
    }
    rank_barrier(rank);
}

/* How often this thread gave its core up, and the time in which it neither had one nor waited for one: who waits needs both,
 * and a busy machine, that takes a core away for long, gives neither. */
struct idle {
    long sleeps;
    int64_t ns;
};

static struct idle idle_now(void)
{
    struct rusage usage;
    struct timespec ran;
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0 && clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran) == 0, "no clock");
    return (struct idle){usage.ru_nvcsw, gy_now() - rank_without_core() - ran.tv_sec * GY_SECOND - ran.tv_nsec};
}

/* After close nobody touches what was posted: the pages are gone. */
static void body_close(struct rank *rank)
{
    static _Thread_local struct gy_frame_out frames[RANKS_MOST][POOL];
    size_t bytes = (size_t)POOL * GY_FRAME_MAX;
    rank_link(rank);
    exchange(rank, 1, size_small, 500, false);
    rank_barrier(rank);
    if (rank->rank == 0) {
        unsigned char *payloads = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(payloads != MAP_FAILED, "no memory");
        for (int i = 0; i < rank->pairs; i++)
            for (uint64_t k = 0; k < POOL; k++) {
                frames[i][k] = (struct gy_frame_out){
                    .header = {.kind = GY_FRAME_DATA, .bytes = GY_FRAME_MAX, .sequence = 2 + k},
                    .payload = payloads + k * GY_FRAME_MAX};
                rank->ops->post(rank->pair[i].link, &frames[i][k]);
            }
        for (int i = 0; i < rank->pairs; i++)
            CHECK(frames[i][POOL - 1].queued, "64 MiB left without a reader");
        struct idle before = idle_now();
        rank->ops->close(rank->instance);
        struct idle after = idle_now();
        CHECK(after.ns - before.ns < 190 * GY_MILLISECOND || after.sleeps == before.sleeps,
              "close waited as long as stop may");
        rank->closed = true;
        munmap(payloads, bytes);
        for (int i = 0; i < rank->pairs; i++)
            CHECK(!rank->ops->progress(rank->pair[i].link), "a closed link moves");
        gy_poller_poll(rank->poller, 10 * GY_MILLISECOND);
        for (int i = 0; i < rank->pairs; i++)
            CHECK(!frames[i][POOL - 1].done, "a dropped frame counts as sent");
    }
    rank_barrier(rank);
}

/* tcp, rdma: the last rank closes. Told once, as PEER_UNREACHABLE, to every rank, which sleeps; the links of the others go on. */
static void body_broken(struct rank *rank)
{
    int last = rank->size - 1;
    rank_link(rank);
    exchange(rank, 10, size_small, 500, false);
    rank_barrier(rank);
    if (rank->rank == last) {
        pause_ms(20);
        rank->ops->close(rank->instance);
        rank->closed = true;
    } else {
        struct rank_pair *pair = rank_pair(rank, last);
        while (!pair->broken)
            rank_turn(rank, true);
        CHECK(pair->broken_status == GYRE_PEER_UNREACHABLE, "status %d", pair->broken_status);
        exchange(rank, 100, size_small, 500, true);
        for (int i = 0; i < 100; i++)
            rank_turn(rank, false);
        CHECK(pair->broken == 1, "told %d times", (int)pair->broken);
    }
    rank_barrier(rank);
}

/* A forked child lets go of everything; its parent's links, doorbell and epoll set go on. */
static void body_forked(struct rank *rank)
{
    rank_link(rank);
    exchange(rank, 10, size_small, 500, false);
    pid_t child = fork();
    CHECK(child >= 0, "no process");
    if (child == 0) {
        rank->ops->fini(rank->instance, true);
        gy_segment_free(rank->segment);
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %x", status);
    exchange(rank, 100, size_mixed, 300000, true);
    rank_barrier(rank);
}

/* shm: the last rank writes rubbish to rank 0. Their link ends, and no other. */
static void body_rubbish(struct rank *rank)
{
    struct gy_error error = {0};
    void *ring = NULL;
    int last = rank->size - 1;
    rank_link(rank);
    rank_barrier(rank);
    if (rank->rank == last) {
        CHECK(gy_segment_ring(rank->segment, last, 0, &ring, &error) == GYRE_SUCCESS, "%s", error.text);
        memset((char *)ring + 4096, 0x55, GY_FRAME_BYTES);
        atomic_store((_Atomic uint64_t *)ring, GY_FRAME_BYTES);
        rank_pair(rank, 0)->broken = 1; /* takes no part in the exchange */
    }
    if (rank->rank == 0) {
        struct rank_pair *pair = rank_pair(rank, last);
        while (!pair->broken)
            rank_turn(rank, false);
        CHECK(pair->broken_status == GYRE_PROTOCOL && pair->broken == 1, "status %d", pair->broken_status);
    }
    exchange(rank, 100, size_mixed, 300000, true);
    rank_barrier(rank);
}

/* tcp: two grants that are posted last, behind more than sockets take, arrive before most payloads, the one after the other;
 * no frame is torn by them. */
static void body_overtake(struct rank *rank)
{
    enum { COUNT = 1024, BYTES = 60000 }; /* sealed, several of them are under way */
    static struct gy_frame_out frames[COUNT], grants[2];
    rank_link(rank);
    exchange(rank, 1, size_small, 500, false);
    struct rank_pair *pair = &rank->pair[0];
    unsigned char *payload = malloc(BYTES);
    CHECK(payload, "no memory");
    rank_barrier(rank);
    if (rank->rank == 0) {
        struct gy_frame_out one;
        rank_frame(rank, 1, &one, 2, payload, BYTES);
        for (int k = 0; k < COUNT; k++) {
            frames[k] = one;
            frames[k].header.sequence = (uint64_t)k + 2;
            rank->ops->post(pair->link, &frames[k]);
        }
        rank->ops->progress(pair->link); /* seals all that are laid out together */
        for (int k = 0; k < 2; k++) {
            grants[k] = (struct gy_frame_out){.header = {.kind = GY_FRAME_GRANT, .epoch = 1, .value = (uint64_t)k}};
            rank->ops->post(pair->link, &grants[k]);
        }
        CHECK(grants[0].queued, "60 MB left without a reader");
        CHECK(grants[0].next == &grants[1], "grants do not overtake grants");
    }
    rank_barrier(rank);
    while (rank->rank == 0 ? !frames[COUNT - 1].done : pair->arrived < COUNT + 1)
        rank_turn(rank, true);
    CHECK(rank->rank == 0 || pair->grants == 2, "%d grants", (int)pair->grants);
    CHECK(rank->rank == 0 || pair->before_grant < COUNT, "behind %d payloads", (int)pair->before_grant);
    rank_barrier(rank);
    free(payload);
}

/* Rank 0 sends bytes `from` to `to` of the frame's payload on the bare socket, behind its header where they are the first;
 * afterwards rank 1 may look for them. */
static void drip(struct rank *rank, const struct gy_frame_out *frame, size_t from, size_t to)
{
    int fd = ((struct tcp_link *)rank->pair[0].link)->rail[0].watch.fd;
    uint8_t header[GY_FRAME_BYTES];
    rank_barrier(rank);
    if (rank->rank == 0) {
        gy_frame_encode(&frame->header, header);
        CHECK(from > 0 || send(fd, header, sizeof(header), MSG_NOSIGNAL) == (ssize_t)sizeof(header), "no header");
        CHECK(send(fd, (const char *)frame->payload + from, to - from, MSG_NOSIGNAL) == (ssize_t)(to - from),
              "no part");
    }
    rank_barrier(rank);
}

/* Rank 1 reads without a sleep until it has so much of the payload, as a thread does while another one sleeps. */
static void read_awake(struct rank *rank, size_t bytes)
{
    struct gy_link *link = rank->pair[0].link;
    while (rank->rank == 1 && link->inbound.got < bytes)
        rank->ops->progress(link);
}

/* tcp: a sleep goes on while what comes of a payload is not worth its end, and ends with what is: the last byte, although
 * somebody else has read all before; the connection's end. */
static void body_doze(struct rank *rank)
{
    enum { BYTES = 300000, FIRST = 60000, SECOND = 80000, THIRD = 260000, GONE = 1000 };
    static unsigned char payload[BYTES];
    struct gy_frame_out frame = {.payload = payload};
    if (gy_config_rails(&rank->config) > 1) /* the bytes that are written here are one connection's */
        return;
    rank_link(rank);
    exchange(rank, 1, size_small, 500, false);
    struct rank_pair *pair = &rank->pair[0];
    struct tcp_link *link = (struct tcp_link *)pair->link;
    if (rank->rank == 0)
        rank_frame(rank, 1, &frame, 2, payload, BYTES);
    drip(rank, &frame, 0, FIRST);
    read_awake(rank, FIRST);
    CHECK(rank->rank == 0 || rank->ops->arm(rank->instance), "there is nothing to do but to sleep");
    drip(rank, &frame, FIRST, SECOND);
    if (rank->rank == 1)
        gy_poller_poll(rank->poller, 50 * GY_MILLISECOND);
    CHECK(rank->rank == 0 || link->base.inbound.got == FIRST, "%d bytes ended a sleep", SECOND - FIRST);
    read_awake(rank, SECOND);
    drip(rank, &frame, SECOND, THIRD);
    read_awake(rank, THIRD);
    drip(rank, &frame, THIRD, BYTES);
    int64_t start = gy_now();
    while (rank->rank == 1 && pair->arrived < 2 && gy_now() - start < 30 * GY_SECOND)
        gy_poller_poll(rank->poller, 40 * GY_SECOND);
    CHECK(rank->rank == 0 || pair->arrived == 2, "slept through the rest");
    if (rank->rank == 0)
        frame.header.sequence = 3;
    drip(rank, &frame, 0, GONE);
    read_awake(rank, GONE);
    CHECK(rank->rank == 0 || rank->ops->arm(rank->instance), "there is nothing to do but to sleep");
    rank_barrier(rank);
    if (rank->rank == 0)
        CHECK(shutdown(link->rail[0].watch.fd, SHUT_WR) == 0, "shutdown");
    while (rank->rank == 1 && !pair->broken && gy_now() - start < 80 * GY_SECOND)
        gy_poller_poll(rank->poller, 90 * GY_SECOND);
    CHECK(rank->rank == 0 || pair->broken, "slept through the end");
    rank_barrier(rank);
}

/* The first of several rails may carry messages while the others are still being dialled. */
static bool rails_are_there(const struct rank *rank)
{
    const struct tcp_link *link = (const struct tcp_link *)rank->pair[0].link;
    for (int i = 0; i < gy_config_rails(&rank->config); i++)
        if (link->rail[i].watch.fd < 0)
            return false;
    return true;
}

/* tcp: frames of send_short, which has given header and payload back when it returns. What a socket that is nearly full leaves of
 * one goes before all else, a grant among it, and until then no other is taken. */
static void body_short(struct rank *rank)
{
    enum { KEPT = 5, LAST = 5000 };
    static unsigned char payload[GY_FRAME_SHORT];
    static struct gy_frame_out grant, last;
    struct gy_frame_out frame;
    int little = 8192, kept = 0;
    rank_link(rank);
    exchange(rank, 1, size_small, 500, false);
    while (!rails_are_there(rank))
        rank_turn(rank, true);
    struct rank_pair *pair = &rank->pair[0];
    for (int i = 0; i < gy_config_rails(&rank->config); i++) {
        int fd = ((struct tcp_link *)pair->link)->rail[i].watch.fd, which = rank->rank == 0 ? SO_SNDBUF : SO_RCVBUF;
        CHECK(setsockopt(fd, SOL_SOCKET, which, &little, sizeof(little)) == 0, "no small socket");
    }
    rank->linger_ns = 20000; /* so that the socket fills */
    while (rank->rank == 0 && kept < KEPT) {
        if (pair->link->first) { /* the socket is full, and progress says when it is not */
            rank_turn(rank, true);
            continue;
        }
        uint64_t number = pair->posted + 1;
        rank_frame(rank, pair->peer, &frame, number, payload, (uint32_t)(number * 977 % sizeof(payload)));
        if (!rank->ops->send_short(pair->link, &frame.header, frame.payload))
            continue;
        memset(payload, 0xee, sizeof(payload));
        pair->posted++;
        kept += pair->link->kept != NULL;
        CHECK(!pair->link->kept == !pair->link->first, "what is kept is what is queued");
    }
    if (rank->rank == 0) {
        struct pollfd room = {.fd = ((struct tcp_link *)pair->link)->out.rail->watch.fd, .events = POLLOUT};
        CHECK(poll(&room, 1, 40000) == 1, "the other reads"); /* full sockets so small may wait for TCP's timers */
        CHECK(!rank->ops->send_short(pair->link, &frame.header, frame.payload), "before what has been kept");
        rank_frame(rank, pair->peer, &last, pair->posted + 1, payload, LAST);
        grant = (struct gy_frame_out){.header = {.kind = GY_FRAME_GRANT, .epoch = 1}};
        rank->ops->post(pair->link, &last);
        rank->ops->post(pair->link, &grant);
        CHECK(last.done || pair->link->last == &last, "the queue's order");
        if (pair->link->kept &&
            pair->link->kept->sent > 0) /* of several rails, another one may take it, or none of it */
            CHECK(pair->link->first == pair->link->kept, "a grant stands in a frame that was begun");
    }
    while (rank->rank == 0 ? !last.done : pair->grants == 0 || pair->arrived == pair->before_grant)
        rank_turn(rank, true);
    CHECK(!pair->link->kept, "it has left");
    rank_barrier(rank);
}

static void run_suite(const struct ranks_options *how)
{
    ranks_run(how, "sizes", body_sizes);
    ranks_run(how, "announced", body_announced);
    ranks_run(how, "order", body_order);
    ranks_run(how, "queued", body_queued);
    ranks_run(how, "sleep", body_sleep);
    ranks_run(how, "close", body_close);
    if (how->size == 1)
        return;
    ranks_run(how, "slow", body_slow);
    ranks_run(how, "early", body_early);
    ranks_run(how, "early high", body_early_high);
    ranks_run(how, "wake", body_wake);
    ranks_run(how, "stop", body_stop);
    if (how->processes)
        ranks_run(how, "forked", body_forked);
    if (strcmp(how->transport, "shm") != 0)
        ranks_run(how, "broken", body_broken);
    else
        ranks_run(how, "rubbish", body_rubbish);
    const char *sealed = getenv("GYRE_INTEGRITY"); /* what is played does not seal */
    if (strcmp(how->transport, "tcp") != 0 || how->size > 2)
        return;
    ranks_run(how, "overtake", body_overtake);
    ranks_run(how, "short", body_short);
    if (!sealed)
        ranks_run(how, "doze", body_doze);
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
    CHECK(c.signalled < c.sends / 4, "%llu of %llu requests asked for a completion", (unsigned long long)c.signalled,
          (unsigned long long)c.sends);
    for (int d = 0; d < stand_in_device_count; d++)
        CHECK(c.per_device[d] > c.sends / (unsigned)stand_in_device_count / 2, "device %d: %llu of %llu", d,
              (unsigned long long)c.per_device[d], (unsigned long long)c.sends);
    printf("%llu requests, %llu inline, %llu completions, %llu registrations\n", (unsigned long long)c.sends,
           (unsigned long long)c.inlines, (unsigned long long)c.signalled, (unsigned long long)c.registrations);
}

int main(int argc, char **argv)
{
    static const int all[] = {2, 3, 5, 0}, few[] = {2, 5, 0}, small[] = {2, 3, 0};
    const int *sizes = all;
    CHECK(argc >= 2, "usage: conformance_test self|shm|tcp|tcp6 [processes]");
    struct ranks_options how = {.transport = argv[1], .size = 1, .processes = argc > 2};
    if (strncmp(argv[1], "tcp", 3) == 0) {
        how.ipv6 = strcmp(argv[1], "tcp6") == 0;
        how.transport = "tcp";
    }
    if (strncmp(argv[1], "stand_in", 8) == 0) {
        use_stand_in(argv[1][8] ? 3 : 1);
        how.transport = "rdma";
        sizes = few;
    } else if (strcmp(argv[1], "rdma") == 0) {
        sizes = small; /* what these devices do costs many processors' time where they are software */
    }
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

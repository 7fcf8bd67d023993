/* One suite for every transport: conformance_test self|shm|tcp|tcp6 [processes].
 *
 * Two ranks (one for self) send each other frames whose payloads are functions of (sender, number) and whose headers
 * carry the payload's hash; the sink of ranks.c checks order, size and hash of each. The bodies below add what each
 * situation is about. */
#include "ranks.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

#define POOL 64

static void pause_ms(int milliseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
}

/* Sends `count` frames of size(i) bytes with at most POOL under way, until all left and as many arrived. */
static void exchange(struct rank *rank, uint64_t count, uint32_t (*size)(uint64_t), uint32_t most, bool sleep)
{
    static _Thread_local struct gy_frame_out frames[POOL];
    unsigned char *payloads = malloc((size_t)POOL * (most + 1));
    CHECK(payloads, "no memory");
    memset(frames, 0, sizeof(frames));
    uint64_t end = rank->posted + count, open = 1;
    while (open || rank->arrived < end) {
        while (rank->posted < end && !frames[rank->posted % POOL].queued) {
            size_t slot = rank->posted % POOL;
            rank_frame(rank, &frames[slot], rank->posted + 1, payloads + slot * (most + 1), size(rank->posted));
            rank->posted++;
            rank->ops->post(rank->link, &frames[slot]);
            CHECK(frames[slot].queued != frames[slot].done, "a posted frame is queued or done");
        }
        open = end - rank->posted;
        for (int i = 0; i < POOL; i++)
            open += frames[i].queued;
        /* The peer may be done, and gone, when all has arrived. */
        CHECK(!rank->broken || rank->arrived == end, "the link broke");
        if (rank->broken)
            break;
        if (open || rank->arrived < end)
            rank_turn(rank, sleep);
    }
    free(payloads);
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

static void body_order(struct rank *rank)
{
    rank_link(rank);
    exchange(rank, 10000, size_small, 500, false);
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
    exchange(rank, 1500, size_mixed, 300000, true);
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

/* A rank that sleeps is woken by a frame within milliseconds. */
static void body_wake(struct rank *rank)
{
    struct gy_frame_out frame;
    rank_link(rank);
    exchange(rank, 1, size_small, 500, false); /* connected now */
    for (uint64_t i = 2; i < 22; i++) {
        if (rank->rank == 1) {
            pause_ms(5);
            rank_frame(rank, &frame, i, NULL, 0);
            rank->ops->post(rank->link, &frame);
            while (!frame.done)
                rank_turn(rank, false);
        } else {
            while (rank->arrived < i)
                rank_turn(rank, true);
        }
        rank_barrier(rank);
    }
}

/* stop hands over what was posted; then the sender may go. */
static void body_stop(struct rank *rank)
{
    static _Thread_local struct gy_frame_out frames[8];
    static unsigned char payloads[8][60000];
    rank_link(rank);
    if (rank->rank == 0) {
        for (uint64_t i = 0; i < 8; i++) {
            rank_frame(rank, &frames[i], i + 1, payloads[i], sizeof(payloads[i]));
            rank->ops->post(rank->link, &frames[i]);
        }
        int64_t deadline = gy_now() + 10 * GY_SECOND; /* the dialled side connects in its own time */
        while (!frames[0].done && gy_now() < deadline)
            rank_turn(rank, false);
        rank->ops->stop(rank->instance);
        rank->ops->close(rank->instance);
        rank->closed = true;
        for (int i = 0; i < 8; i++)
            CHECK(frames[i].done, "frame %d did not leave", i);
    } else {
        while (rank->arrived < 8)
            rank_turn(rank, false);
    }
    rank_barrier(rank);
}

/* After close nobody touches what was posted: the pages are gone. */
static void body_close(struct rank *rank)
{
    static _Thread_local struct gy_frame_out frames[POOL];
    size_t bytes = (size_t)POOL * GY_FRAME_MAX;
    rank_link(rank);
    exchange(rank, 1, size_small, 500, false);
    rank_barrier(rank);
    if (rank->rank == 0) {
        unsigned char *payloads = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(payloads != MAP_FAILED, "no memory");
        for (uint64_t i = 0; i < POOL; i++) {
            frames[i] = (struct gy_frame_out){
                .header = {.kind = GY_FRAME_DATA, .bytes = GY_FRAME_MAX, .sequence = 2 + i},
                .payload = payloads + i * GY_FRAME_MAX};
            rank->ops->post(rank->link, &frames[i]);
        }
        CHECK(frames[POOL - 1].queued, "64 MiB left without a reader");
        int64_t start = gy_now();
        rank->ops->close(rank->instance);
        CHECK(gy_now() - start < 50 * GY_MILLISECOND, "close took its time");
        rank->closed = true;
        munmap(payloads, bytes);
        CHECK(!rank->ops->progress(rank->link), "a closed link moves");
        gy_poller_poll(rank->poller, 10 * GY_MILLISECOND);
        CHECK(!frames[POOL - 1].done, "a dropped frame counts as sent");
    }
    rank_barrier(rank);
}

/* tcp: the peer closes. Told once, as PEER_UNREACHABLE, to a rank that sleeps. */
static void body_broken(struct rank *rank)
{
    rank_link(rank);
    exchange(rank, 10, size_small, 500, false);
    rank_barrier(rank);
    if (rank->rank == 1) {
        pause_ms(20);
        rank->ops->close(rank->instance);
        rank->closed = true;
    } else {
        while (!rank->broken)
            rank_turn(rank, true);
        CHECK(rank->broken_status == GYRE_PEER_UNREACHABLE, "status %d", rank->broken_status);
        for (int i = 0; i < 100; i++)
            rank_turn(rank, false);
        CHECK(rank->broken == 1, "told %d times", (int)rank->broken);
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

/* shm: the peer writes rubbish. */
static void body_rubbish(struct rank *rank)
{
    struct gy_error error = {0};
    void *ring = NULL;
    rank_link(rank);
    rank_barrier(rank);
    if (rank->rank == 1) {
        CHECK(gy_segment_ring(rank->segment, 1, 0, &ring, &error) == GYRE_SUCCESS, "%s", error.text);
        memset((char *)ring + 4096, 0x55, GY_FRAME_BYTES);
        atomic_store((_Atomic uint64_t *)ring, GY_FRAME_BYTES);
    } else {
        while (!rank->broken)
            rank_turn(rank, false);
        CHECK(rank->broken_status == GYRE_PROTOCOL && rank->broken == 1, "status %d", rank->broken_status);
    }
    rank_barrier(rank);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2, "usage: conformance_test self|shm|tcp|tcp6 [processes]");
    struct ranks_options how = {.transport = argv[1], .size = 2, .processes = argc > 2};
    bool tcp = strncmp(argv[1], "tcp", 3) == 0, self = strcmp(argv[1], "self") == 0;
    if (tcp) {
        how.ipv6 = strcmp(argv[1], "tcp6") == 0;
        how.transport = "tcp";
    }
    how.size = self ? 1 : 2;
    ranks_run(&how, "sizes", body_sizes);
    ranks_run(&how, "order", body_order);
    ranks_run(&how, "queued", body_queued);
    ranks_run(&how, "sleep", body_sleep);
    ranks_run(&how, "close", body_close);
    if (self)
        return 0;
    ranks_run(&how, "slow", body_slow);
    ranks_run(&how, "early", body_early);
    ranks_run(&how, "early high", body_early_high);
    ranks_run(&how, "wake", body_wake);
    ranks_run(&how, "stop", body_stop);
    if (how.processes)
        ranks_run(&how, "forked", body_forked);
    if (tcp)
        ranks_run(&how, "broken", body_broken);
    else
        ranks_run(&how, "rubbish", body_rubbish);
    return 0;
}

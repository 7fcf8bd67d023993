/* How links end: by stop and close, by a peer that goes or writes rubbish; and that a forked child ends none. */
#include "conformance.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "transport/link.h"

enum { FRAMES = 8 };

static bool all_done(struct gy_frame_out frames[][FRAMES], int pairs)
{
    for (int i = 0; i < pairs; i++)
        for (int k = 0; k < FRAMES; k++)
            if (!frames[i][k].done)
                return false;
    return true;
}

/* stop delivers the posted frames to all peers; then the sender may close. */
void conformance_stop(struct rank *rank)
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
        int64_t deadline = gy_now() +
                           20 * GY_SECOND; /* the connected to side connects in its own time, each of its rails */
        int reach = gy_config_rails(&rank->config) - 1;
        for (int i = 0; i < rank->pairs; i++)
            while (!frames[i][reach].done && gy_now() < deadline)
                rank_progress(rank, false);
        bool rings = strcmp(rank->ops->name, "shm") == 0;
        do /* it waits for a fifth of a second; a peer without a core for that long does not empty its ring */
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
            rank_progress(rank, false);
        }
    }
    rank_barrier(rank);
}

/* How often this thread gave its core up, and the time in which it neither had one nor waited for one. A rank that
 * sleeps has both; a busy machine, which takes a core away for long, causes neither. */
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

/* After close the transport does not access posted memory: the pages are gone. */
void conformance_close(struct rank *rank)
{
    static _Thread_local struct gy_frame_out frames[RANKS_MOST][CONFORMANCE_POOL];
    size_t bytes = (size_t)CONFORMANCE_POOL * GY_FRAME_MAX;
    rank_link(rank);
    conformance_exchange(rank, 1, conformance_small, 500, false);
    rank_barrier(rank);
    if (rank->rank == 0) {
        unsigned char *payloads = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(payloads != MAP_FAILED, "no memory");
        for (int i = 0; i < rank->pairs; i++)
            for (uint64_t k = 0; k < CONFORMANCE_POOL; k++) {
                frames[i][k] = (struct gy_frame_out){
                    .header = {.kind = GY_FRAME_DATA, .bytes = GY_FRAME_MAX, .sequence = 2 + k},
                    .payload = payloads + k * GY_FRAME_MAX};
                rank->ops->post(rank->pair[i].link, &frames[i][k]);
            }
        for (int i = 0; i < rank->pairs; i++)
            CHECK(frames[i][CONFORMANCE_POOL - 1].queued, "64 MiB left without a reader");
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
            CHECK(!frames[i][CONFORMANCE_POOL - 1].done, "a dropped frame counts as sent");
    }
    rank_barrier(rank);
}

/* tcp, rdma: the last rank closes. Told once, as PEER_UNREACHABLE, to every rank, which sleeps; the links of the others
 * go on. */
void conformance_broken(struct rank *rank)
{
    int last = rank->size - 1;
    rank_link(rank);
    conformance_exchange(rank, 10, conformance_small, 500, false);
    rank_barrier(rank);
    if (rank->rank == last) {
        conformance_pause(20);
        rank->ops->close(rank->instance);
        rank->closed = true;
    } else {
        struct rank_pair *pair = rank_pair(rank, last);
        while (!pair->broken)
            rank_progress(rank, true);
        CHECK(pair->broken_status == GYRE_PEER_UNREACHABLE, "status %d", pair->broken_status);
        conformance_exchange(rank, 100, conformance_small, 500, true);
        for (int i = 0; i < 100; i++)
            rank_progress(rank, false);
        CHECK(pair->broken == 1, "told %d times", (int)pair->broken);
    }
    rank_barrier(rank);
}

/* A forked child lets go of everything; its parent's links, doorbell and epoll set go on. */
void conformance_forked(struct rank *rank)
{
    rank_link(rank);
    conformance_exchange(rank, 10, conformance_small, 500, false);
    pid_t child = fork();
    CHECK(child >= 0, "no process");
    if (child == 0) {
        rank->ops->fini(rank->instance, true);
        gy_segment_free(rank->segment);
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child ended with %x", status);
    conformance_exchange(rank, 100, conformance_mixed, 300000, true);
    rank_barrier(rank);
}

/* shm: the last rank writes rubbish to rank 0. Their link ends, and no other. */
void conformance_rubbish(struct rank *rank)
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
            rank_progress(rank, false);
        CHECK(pair->broken_status == GYRE_PROTOCOL && pair->broken == 1, "status %d", pair->broken_status);
    }
    conformance_exchange(rank, 100, conformance_mixed, 300000, true);
    rank_barrier(rank);
}

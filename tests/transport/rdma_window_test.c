/* Windows over the stand-in, by the public interface: what devices do alone, with one device and with three, from
 * memory that is announced and memory that is not. Three ranks, threads of this process.
 *
 *   alone     the others put to rank 0, flush and get it back while rank 0 is outside gyre and makes no progress
 *   order     a get comes after this rank's own accumulations, a signal after what was put before it
 *   slow      what goes by messages, where senders hear late that something has arrived: an answer may be asked for,
 *             and a window be gone, before the frame of the one before is back
 *   broken    an access whose device fails ends with the world, and not only when GYRE_TIMEOUT is over
 *   left      so does one to a rank that has destroyed its communicator
 *   grown     a joiner to a world that has RDMA alone is reached by it; so it is where TCP would serve, unless a world
 *             of the new size takes more locked memory than there is
 *   shrunk    the next world looks again at what devices there are
 *
 * The stand-in counts what was written and read so, and checks every key, bound and right. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include <gyre/gyre.h>

#include "rdma_check.h"
#include "rdma_stand_in.h"

#define RANKS 3
#define BYTES ((size_t)3 << 20)
#define ROUNDS 30

#define OK(call)                                                                                  \
    do {                                                                                          \
        if ((call) != GYRE_SUCCESS) {                                                             \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, gyre_last_error(comm)); \
            _Exit(1);                                                                             \
        }                                                                                         \
    } while (0)

static pthread_barrier_t outside; /* waiting here is no progress */
static char address[64];
static gyre_status ending; /* of what is asked of rank 0 */

static unsigned char byte_at(int rank, size_t size, size_t i)
{
    return (unsigned char)((size_t)rank * 131 + size * 7 + i * 2654435761u / 251);
}

static void alone(gyre_comm *comm, int rank, gyre_window *window, unsigned char *memory, unsigned char *mine)
{
    static const size_t sizes[] = {1, 8, 221, 5000, 32769, 700013};
    size_t half = BYTES / RANKS;

    pthread_barrier_wait(&outside);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        size_t size = sizes[s], offset = (size_t)rank * half + s;
        for (size_t i = 0; i < size && rank != 0; i++)
            mine[i] = byte_at(rank, size, i);
        if (rank != 0) {
            OK(gyre_window_put(window, mine, size, GYRE_UINT8, 0, offset));
            memset(mine, 0xee, size); /* it is ours again */
            OK(gyre_window_flush(window, 0));
        }
        pthread_barrier_wait(&outside);
        for (int from = 1; from < RANKS && rank == 0; from++)
            for (size_t i = 0; i < size; i++)
                CHECK(memory[(size_t)from * half + s + i] == byte_at(from, size, i));
        if (rank != 0) {
            OK(gyre_window_get(window, mine, size, GYRE_UINT8, 0, (size_t)(RANKS - rank) * half + s));
            for (size_t i = 0; i < size; i++)
                CHECK(mine[i] == byte_at(RANKS - rank, size, i));
        }
        pthread_barrier_wait(&outside);
    }
}

static void order(gyre_comm *comm, int rank, gyre_window *window, const unsigned char *memory)
{
    int to = (rank + 1) % RANKS, from = (rank + RANKS - 1) % RANKS;
    uint64_t one = 1, got = 0, seen;

    for (uint64_t round = 1; round <= ROUNDS; round++) { /* place `rank` of the target is this rank's alone */
        OK(gyre_window_accumulate(window, &one, 1, GYRE_UINT64, GYRE_SUM, to, (size_t)rank * 8));
        OK(gyre_window_get(window, &got, 1, GYRE_UINT64, to, (size_t)rank * 8));
        CHECK(got == round);
        if (round % 3 == 0)
            OK(gyre_window_flush(window, to));
        uint64_t value = round * 10 + (uint64_t)rank;
        OK(gyre_window_put(window, &value, 1, GYRE_UINT64, to, 64 + round * 8));
        OK(gyre_window_signal(window, to, 5));
        OK(gyre_window_wait(window, 5, round));
        memcpy(&seen, memory + 64 + round * 8, 8);
        CHECK(seen == round * 10 + (uint64_t)from);
    }
}

static gyre_config config_of(int rank)
{
    return (gyre_config){.size = sizeof(gyre_config),
                         .rank = rank,
                         .world_size = RANKS,
                         .address = address,
                         .secret = "the secret of the stand-in"};
}

static void *run(void *number)
{
    int rank = (int)(intptr_t)number;
    gyre_config config = config_of(rank);
    gyre_comm *comm = NULL;
    gyre_window *window;

    OK(gyre_comm_create(&config, &comm));
    for (int announced = 0; announced < 2; announced++) {
        size_t bytes = rank == 2 ? 0 : BYTES; /* one that exposes nothing puts and gets like the others */
        unsigned char *memory = calloc(BYTES, 1), *mine = calloc(BYTES, 1);
        CHECK(memory && mine);
        if (announced)
            OK(gyre_mem_register(comm, mine, BYTES));
        OK(gyre_window_create(comm, memory, bytes, &window));
        alone(comm, rank, window, memory, mine);
        OK(gyre_window_destroy(window));
        memset(memory, 0, BYTES);
        OK(gyre_window_create(comm, memory, BYTES, &window));
        order(comm, rank, window, memory);
        OK(gyre_window_destroy(window));
        if (announced)
            OK(gyre_mem_deregister(comm, mine));
        free(memory);
        free(mine);
    }
    OK(gyre_comm_destroy(comm));
    return NULL;
}

/* Rank 0 takes the devices, or itself, away; what rank 1 asks of it then ends. */
static void *run_ending(void *number)
{
    int rank = (int)(intptr_t)number;
    gyre_config config = config_of(rank);
    gyre_comm *comm = NULL;
    gyre_window *window;
    uint64_t memory[8] = {0}, mine = 7;

    OK(gyre_comm_create(&config, &comm));
    OK(gyre_window_create(comm, memory, sizeof(memory), &window));
    OK(gyre_barrier(comm));
    pthread_barrier_wait(&outside);
    if (rank == 0 && ending == GYRE_PEER_LEFT)
        OK(gyre_comm_destroy(comm));
    else if (rank == 0)
        stand_in_fail_requests(0, IBV_WC_RETRY_EXC_ERR);
    pthread_barrier_wait(&outside);
    if (rank == 1) {
        gyre_status status = gyre_window_put(window, &mine, 1, GYRE_UINT64, 0, 8);
        if (status != ending || gyre_window_get(window, &mine, 1, GYRE_UINT64, 0, 8) != ending) {
            fprintf(stderr, "%s instead of %s: %s\n", gyre_status_name(status), gyre_status_name(ending),
                    gyre_last_error(comm));
            _Exit(1);
        }
    }
    pthread_barrier_wait(&outside);
    if (rank != 0 || ending != GYRE_PEER_LEFT) {
        (void)gyre_window_destroy(window);
        (void)gyre_comm_destroy(comm);
    }
    return NULL;
}

static void *run_grown(void *number)
{
    int rank = (int)(intptr_t)number;
    gyre_config config = config_of(rank);
    gyre_comm *comm = NULL, *grown = NULL;
    gyre_window *window;
    uint64_t memory[RANKS] = {0}, mine = 1, sum = 0;

    config.world_size = RANKS - 1;
    config.join = rank == RANKS - 1;
    OK(gyre_comm_create(&config, &comm));
    if (!config.join) {
        OK(gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
        OK(gyre_comm_grow(comm, 1, 30, &grown));
        CHECK(grown);
        OK(gyre_comm_destroy(comm));
        comm = grown;
    }
    CHECK(gyre_comm_size(comm) == RANKS);
    OK(gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
    CHECK(sum == RANKS);
    OK(gyre_window_create(comm, memory, sizeof(memory), &window));
    for (int to = 0; to < RANKS; to++)
        OK(gyre_window_put(window, &mine, 1, GYRE_UINT64, to, (size_t)rank * 8));
    OK(gyre_window_flush(window, -1));
    OK(gyre_barrier(comm));
    for (int from = 0; from < RANKS; from++)
        CHECK(memory[from] == 1);
    OK(gyre_window_destroy(window));
    OK(gyre_comm_destroy(comm));
    return NULL;
}

/* After an accumulation all goes by messages until the flush. Large answers are sent from where they lie, which is
 * announced, and so come back only when they have been acknowledged, and all behind them likewise. */
static void *run_slow(void *number)
{
    int rank = (int)(intptr_t)number;
    gyre_config config = config_of(rank);
    gyre_comm *comm = NULL;
    unsigned char *memory = malloc(BYTES), *mine = malloc(BYTES);
    size_t part = (size_t)1 << 16;
    uint64_t one = 1, sum = 0;
    gyre_window *window;

    CHECK(memory && mine);
    OK(gyre_comm_create(&config, &comm));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < BYTES; i++)
            memory[i] = byte_at(rank, round, i);
        memset(memory, 0, RANKS * 8);
        OK(gyre_mem_register(comm, memory, BYTES));
        OK(gyre_window_create(comm, memory, BYTES, &window));
        for (int i = 0; i < 8 && rank != 0; i++) {
            OK(gyre_window_accumulate(window, &one, 1, GYRE_UINT64, GYRE_SUM, 0, (size_t)rank * 8));
            for (size_t place = part; place <= 4 * part; place += part) {
                OK(gyre_window_get(window, mine, part, GYRE_UINT8, 0, place));
                for (size_t k = 0; k < part; k += 1021)
                    CHECK(mine[k] == byte_at(0, round, place + k));
            }
            OK(gyre_window_flush(window, 0));
            OK(gyre_window_get(window, &sum, 1, GYRE_UINT64, 0, (size_t)rank * 8));
            CHECK(sum == (uint64_t)i + 1);
            OK(gyre_window_signal(window, 0, 1));
        }
        if (rank == 0)
            OK(gyre_window_wait(window, 1, (RANKS - 1) * 8));
        if (rank != 0) { /* the window goes while the answer is rank 0's link's */
            OK(gyre_window_accumulate(window, &one, 1, GYRE_UINT64, GYRE_SUM, 0, (size_t)rank * 8));
            OK(gyre_window_get(window, mine, part, GYRE_UINT8, 0, part));
        }
        OK(gyre_window_destroy(window));
        OK(gyre_mem_deregister(comm, memory));
    }
    OK(gyre_comm_destroy(comm));
    free(memory);
    free(mine);
    return NULL;
}

/* When they go on into another epoch, the port that they had is down and another device's is up. */
static void *run_shrunk(void *number)
{
    int rank = (int)(intptr_t)number;
    gyre_config config = config_of(rank);
    gyre_comm *comm = NULL, *next = NULL;
    uint64_t mine = 1, sum = 0;

    OK(gyre_comm_create(&config, &comm));
    OK(gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
    pthread_barrier_wait(&outside);
    if (rank == 0) {
        stand_in_devices[0].port[0].state = IBV_PORT_DOWN;
        stand_in_devices[1].port[0].state = IBV_PORT_ACTIVE;
    }
    pthread_barrier_wait(&outside);
    OK(gyre_comm_shrink(comm, &next));
    OK(gyre_comm_destroy(comm));
    comm = next;
    CHECK(gyre_comm_size(comm) == RANKS);
    OK(gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
    CHECK(sum == RANKS);
    OK(gyre_comm_destroy(comm));
    return NULL;
}

static struct stand_in_counters run_all(const char *name, int devices, const char *queue_pairs, void *(*body)(void *))
{
    pthread_t threads[RANKS];

    stand_in_reset(devices);
    if (body == run_shrunk)
        stand_in_devices[1].port[0].state = IBV_PORT_DOWN;
    setenv("GYRE_RDMA_QUEUE_PAIRS", queue_pairs, 1);
    snprintf(address, sizeof(address), "file:///tmp/gyre-window-%d-%s", (int)getpid(), name);
    for (int r = 0; r < RANKS; r++)
        CHECK(pthread_create(&threads[r], NULL, body, (void *)(intptr_t)r) == 0);
    for (int r = 0; r < RANKS; r++)
        pthread_join(threads[r], NULL);
    unlink(address + strlen("file://"));
    struct stand_in_counters c = stand_in_count();
    CHECK(c.contexts + c.pds + c.mrs + c.cqs + c.qps + c.channels == 0 && c.not_ready == 0);
    return c;
}

static void world(const char *name, int devices, const char *queue_pairs)
{
    struct stand_in_counters before = stand_in_count();
    struct stand_in_counters c = run_all(name, devices, queue_pairs, run);

    printf("%d devices: %llu writes and %llu reads that nobody noticed\n", devices,
           (unsigned long long)(c.writes - before.writes), (unsigned long long)(c.reads - before.reads));
    /* twice: puts of 6 sizes by two ranks and of ROUNDS by three, less what followed an accumulation; each get is a
     * read */
    CHECK(c.writes - before.writes >= 2 * (2 * 6 + 3 * ROUNDS / 3) && c.reads - before.reads >= 2 * 2 * 6);
}

/* A limit of locked memory, in force for this process, whatever its owner. */
static void limit_locked(rlim_t bytes)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    struct rlimit limit;

    CHECK(syscall(SYS_capget, &head, data) == 0);
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    CHECK(syscall(SYS_capset, &head, data) == 0 && getrlimit(RLIMIT_MEMLOCK, &limit) == 0);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
}

/* Links of 36 KiB, twice the ring and a page: the limit is enough for all, for one link of each rank, for none. */
static void grown_beside_tcp(void)
{
    uint64_t sends[3];

    setenv("GYRE_TRANSPORT", "rdma,tcp", 1);
    setenv("GYRE_RDMA_RING", "16k", 1);
    for (int i = 0; i < 3; i++) {
        static const rlim_t limits[] = {4 * (36 << 10), 36 << 10, 0};
        uint64_t before = stand_in_count().sends;
        limit_locked(limits[i]);
        sends[i] = run_all("limited", 1, "1", run_grown).sends - before;
    }
    printf("grown beside TCP: %llu requests, %llu before it grew, %llu without memory\n", (unsigned long long)sends[0],
           (unsigned long long)sends[1], (unsigned long long)sends[2]);
    CHECK(sends[0] > sends[1] && sends[1] > 0 && sends[2] == 0);
    unsetenv("GYRE_RDMA_RING");
    setenv("GYRE_TRANSPORT", "rdma", 1);
}

int main(void)
{
    uint64_t before;

    alarm(200);
    setenv("GYRE_TRANSPORT", "rdma", 1);
    gy_verbs_use(&stand_in_verbs);
    CHECK(pthread_barrier_init(&outside, NULL, RANKS) == 0);
    world("one", 1, "1");
    world("three", 3, "2");
    run_all("grown", 1, "1", run_grown);
    before = stand_in_count().per_device[1];
    grown_beside_tcp();
    stand_in_slow = true;
    run_all("slow", 1, "1", run_slow);
    run_all("slow", 1, "2", run_slow);
    stand_in_slow = false;
    setenv("GYRE_PEER_TIMEOUT", "1", 1);
    CHECK(run_all("shrunk", 2, "1", run_shrunk).per_device[1] > before);
    ending = GYRE_PEER_UNREACHABLE;
    run_all("broken", 1, "1", run_ending);
    ending = GYRE_PEER_LEFT;
    run_all("left", 1, "1", run_ending);
    return 0;
}

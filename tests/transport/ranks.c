#include "ranks.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "bootstrap/world.h"
#include "core/clock.h"
#include "core/log.h"
#include "membership/epoch.h"
#include "transport/link.h"
#include "transport/registry/registry.h"

#define SECRET "a secret for transport tests"

struct shared {
    _Atomic int waiting;
    _Atomic int64_t acted[RANKS_MOST][RANKS_MOST]; /* when a rank last did something on its link to another */
};

static const struct ranks_options *options;
static struct shared *shared;
static char address[64];
static rank_func body;

/* ---- the receive handler ---- */

struct rank_pair *rank_pair(struct rank *rank, int peer)
{
    for (int i = 0; i < rank->pairs; i++)
        if (rank->pair[i].peer == peer)
            return &rank->pair[i];
    CHECK(false, "rank %d has nothing to do with rank %d", rank->rank, peer);
    return NULL;
}

/* Encodes sender and receiver: a frame on the wrong link is noticed. */
static uint16_t direction(int from, int to)
{
    return (uint16_t)(from * 256 + to);
}

static void *handler_place(void *user, int peer, const struct gy_frame *frame)
{
    struct rank *rank = user;
    CHECK(!rank->closed && frame->bytes > 0, "place from rank %d", peer);
    struct rank_pair *pair = rank_pair(rank, peer);
    CHECK(pair->linked, "a frame of rank %d arrived before the link was requested", peer);
    pair->placed++;
    return pair->landing;
}

static gyre_status handler_arrived(void *user, int peer, const struct gy_frame *frame, const void *payload)
{
    struct rank *rank = user;
    struct rank_pair *pair = rank_pair(rank, peer);
    CHECK(!rank->closed && pair->linked, "arrived from rank %d", peer);
    if (frame->kind == GY_FRAME_GRANT) {
        pair->grants++;
        pair->before_grant = pair->arrived;
        return GYRE_SUCCESS;
    }
    CHECK(frame->lane == direction(peer, rank->rank), "rank %d got a frame of direction %x from rank %d", rank->rank,
          frame->lane, peer);
    CHECK(frame->sequence == pair->arrived + 1, "frame %llu after %llu", (unsigned long long)frame->sequence,
          (unsigned long long)pair->arrived);
    CHECK((frame->bytes == 0) == (payload == NULL), "%u bytes at %p", frame->bytes, payload);
    uint64_t hash = frame->bytes ? XXH3_64bits(payload, frame->bytes) : 0;
    CHECK(hash == frame->value, "the %u bytes of frame %llu are damaged", frame->bytes,
          (unsigned long long)frame->sequence);
    pair->arrived++;
    pair->more += pair->link->more;
    pair->arrived_bytes += frame->bytes;
    if (rank->linger_ns)
        nanosleep(&(struct timespec){.tv_nsec = rank->linger_ns}, NULL);
    return GYRE_SUCCESS;
}

static void handler_broken(void *user, int peer, const struct gy_error *error)
{
    struct rank *rank = user;
    struct rank_pair *pair = rank_pair(rank, peer);
    CHECK(!rank->closed && error->rank == peer && error->text[0], "broken by rank %d", peer);
    pair->broken++;
    pair->broken_status = error->status;
}

/* ---- one rank ---- */

void rank_link(struct rank *rank)
{
    struct gy_error error = {0};
    for (int i = 0; i < rank->pairs; i++) {
        rank->pair[i].linked = true;
        CHECK(rank->ops->link(rank->instance, rank->pair[i].peer, &rank->pair[i].link, &error) == GYRE_SUCCESS, "%s",
              error.text);
    }
}

static void acts(const struct rank *rank, int peer)
{
    atomic_store(&shared->acted[rank->rank][peer], gy_now());
}

void rank_barrier(struct rank *rank)
{
    int all = atomic_fetch_add(&shared->waiting, 1) / rank->size * rank->size + rank->size;
    while (atomic_load(&shared->waiting) < all)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    for (int i = 0; i < rank->pairs; i++)
        acts(rank, rank->pair[i].peer);
}

void rank_frame(struct rank *rank, int peer, struct gy_frame_out *frame, uint64_t sequence, unsigned char *payload,
                uint32_t bytes)
{
    uint64_t state = sequence * UINT64_C(0x9E3779B97F4A7C15) + direction(rank->rank, peer) + 1;
    for (uint32_t i = 0; i < bytes; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        payload[i] = (unsigned char)(state >> 56);
    }
    *frame = (struct gy_frame_out){
        .header = {.kind = GY_FRAME_DATA,
                   .epoch = 1,
                   .bytes = bytes,
                   .sequence = sequence,
                   .lane = direction(rank->rank, peer)},
        .payload = bytes ? payload : NULL,
    };
    frame->header.value = bytes ? XXH3_64bits(payload, bytes) : 0;
    acts(rank, peer); /* it is posted next */
}

void rank_ready(struct rank *rank)
{
    static struct gy_frame_out first[RANKS_MOST][RANKS_MOST];
    rank_link(rank);
    for (int i = 0; i < rank->pairs; i++) {
        struct gy_frame_out *frame = &first[rank->rank][i];
        rank_frame(rank, rank->pair[i].peer, frame, 1, NULL, 0);
        rank->ops->post(rank->pair[i].link, frame);
    }
    for (int i = 0; i < rank->pairs; i++)
        while (rank->pair[i].arrived < 1 || !first[rank->rank][i].done)
            rank_progress(rank, false);
    rank_barrier(rank);
}

static bool move_link(struct rank *rank, struct rank_pair *pair)
{
    if (!pair->link || !rank->ops->progress(pair->link))
        return false;
    acts(rank, pair->peer);
    return true;
}

int64_t rank_without_core(void)
{
    long long running, waiting = 0;
    FILE *file = fopen("/proc/thread-self/schedstat", "r");
    if (file && fscanf(file, "%lld %lld", &running, &waiting) != 2)
        waiting = 0;
    if (file)
        fclose(file);
    return waiting;
}

/* What a link has got and given: another number, another state. */
static uint64_t position(const struct rank_pair *pair)
{
    const struct gy_link *link = pair->link;
    return link ? pair->arrived_bytes + pair->arrived + pair->grants + pair->broken + link->inbound.got +
                      (uintptr_t)link->first
                : 0;
}

/* A lost wake-up is what a peer has done, and this rank finds five seconds later. That the peer did it late, or this
 * thread had no core then, is the machine's doing. */
static void check_sleep(struct rank *rank, const uint64_t *before, int64_t start, int64_t waited)
{
    int64_t end = gy_now();
    if (end - start < 5 * GY_SECOND)
        return;
    waited = rank_without_core() - waited;
    for (int i = 0; i < rank->pairs; i++) {
        struct rank_pair *pair = &rank->pair[i];
        int64_t acted = atomic_load(&shared->acted[pair->peer][rank->rank]);
        int64_t since = acted > start ? acted : start;
        bool found = move_link(rank, pair) || position(pair) != before[i];
        CHECK(!found || end - since - waited < 5 * GY_SECOND,
              "rank %d of %s slept through its wake-up by rank %d: %lld ms", rank->rank, rank->ops->name, pair->peer,
              (long long)((end - since - waited) / GY_MILLISECOND));
    }
}

void rank_progress(struct rank *rank, bool sleep)
{
    bool moved = false;
    for (int i = 0; i < rank->pairs; i++)
        moved = move_link(rank, &rank->pair[i]) || moved;
    if (moved)
        return;
    if (!sleep) {
        gy_poller_poll(rank->poller, 0);
        /* the awaited rank may need this core: else each poll takes the time slice that the kernel gives */
        sched_yield();
        return;
    }
    uint64_t before[RANKS_MOST];
    for (int i = 0; i < rank->pairs; i++)
        before[i] = position(&rank->pair[i]);
    int64_t start = gy_now(), waited = rank_without_core();
    if (rank->segment)
        gy_segment_sleep(rank->segment);
    if (rank->ops->arm(rank->instance))
        gy_poller_poll(rank->poller, 10 * GY_SECOND);
    rank->ops->disarm(rank->instance);
    if (rank->segment)
        gy_segment_awake(rank->segment);
    check_sleep(rank, before, start, waited);
}

static void rank_open(struct rank *rank)
{
    struct gy_error error = {0};
    gyre_config user = {
        .size = sizeof(user), .rank = rank->rank, .world_size = rank->size, .address = address, .secret = SECRET};
    gy_log_set_rank(rank->rank);
    CHECK(gy_config_read(&rank->config, &error) == GYRE_SUCCESS, "%s", error.text);
    rank->config.meet_timeout_ns = 60 * GY_SECOND;
    rank->config.shm_reserve = 64u << 20;
    if (options->devices)
        snprintf(rank->config.rdma_devices, sizeof(rank->config.rdma_devices), "%s", options->devices[rank->rank]);
    CHECK(gy_transports_survey(&rank->config, &error) == GYRE_SUCCESS, "%s", error.text);
    CHECK(gy_poller_create(&rank->poller, &error) == GYRE_SUCCESS, "%s", error.text);
    CHECK(gy_world_open(&user, &rank->config, rank->poller, &rank->world, &error) == GYRE_SUCCESS, "%s", error.text);
    CHECK(gy_segment_create(rank->world, gy_now() + 60 * GY_SECOND, &rank->segment, &error) == GYRE_SUCCESS, "%s",
          error.text);
    struct gy_transport_env env = {rank->world,
                                   rank->segment,
                                   &rank->config,
                                   rank->poller,
                                   {rank, handler_place, handler_arrived, handler_broken}};
    rank->ops = options->ops;
    for (size_t i = 0; !rank->ops && gy_transports[i]; i++)
        if (strcmp(gy_transports[i]->name, options->transport) == 0)
            rank->ops = gy_transports[i];
    CHECK(rank->ops, "no transport %s", options->transport);
    CHECK(rank->ops->open(&env, &rank->instance, &error) == GYRE_SUCCESS, "%s", error.text);
    for (int peer = 0; peer < rank->size; peer++) {
        if (peer == rank->rank && rank->size > 1)
            continue;
        struct rank_pair *pair = &rank->pair[rank->pairs++];
        pair->peer = peer;
        pair->landing = malloc(GY_FRAME_MAX);
        CHECK(pair->landing, "no memory");
        CHECK(rank->ops->reaches(rank->instance, peer), "%s does not reach", rank->ops->name);
    }
}

static void rank_close(struct rank *rank)
{
    if (!rank->closed)
        rank->ops->close(rank->instance);
    rank->closed = true;
    rank->ops->fini(rank->instance, false);
    gy_segment_free(rank->segment);
    rank_barrier(rank); /* listeners stay open until all are done */
    gy_world_free(rank->world);
    gy_poller_free(rank->poller);
    for (int i = 0; i < rank->pairs; i++)
        free(rank->pair[i].landing);
}

static void *rank_main(void *index)
{
    struct rank rank = {.rank = (int)(intptr_t)index, .size = options->size};
    rank_open(&rank);
    rank_barrier(&rank);
    body(&rank);
    rank_close(&rank);
    return NULL;
}

/* ---- all of them ---- */

/* Below the range from which the kernel takes ports for others' connections: one of those it may have given away again
 * before rank 0 listens. */
static void choose_address(bool ipv6)
{
    static unsigned number;
    bool found = false;
    for (int attempt = 0; attempt < 100 && !found; attempt++) {
        unsigned port = 10000 + ((unsigned)getpid() * 37 + number++) % 20000;
        struct sockaddr_in name4 = {
            .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct sockaddr_in6 name6 = {
            .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = in6addr_loopback};
        int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK(fd >= 0, "no sockets of this family");
        found = ipv6 ? bind(fd, (struct sockaddr *)&name6, sizeof(name6)) == 0
                     : bind(fd, (struct sockaddr *)&name4, sizeof(name4)) == 0;
        close(fd);
        snprintf(address, sizeof(address), ipv6 ? "tcp://[::1]:%u" : "tcp://127.0.0.1:%u", port);
    }
    CHECK(found, "no loopback of this family");
}

static void run_threads(void)
{
    pthread_t threads[RANKS_MOST];
    for (int i = 0; i < options->size; i++)
        CHECK(pthread_create(&threads[i], NULL, rank_main, (void *)(intptr_t)i) == 0, "no thread");
    for (int i = 0; i < options->size; i++)
        pthread_join(threads[i], NULL);
}

static void run_processes(void)
{
    for (int i = 0; i < options->size; i++) {
        pid_t child = fork();
        CHECK(child >= 0, "no process");
        if (child == 0) {
            alarm(200);
            rank_main((void *)(intptr_t)i);
            _exit(0);
        }
    }
    for (int i = 0; i < options->size; i++) {
        int status = 0;
        CHECK(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0, "a rank ended with %x", status);
    }
}

void ranks_run(const struct ranks_options *how, const char *name, rank_func what)
{
    int64_t start = gy_now();
    CHECK(how->size <= RANKS_MOST, "%d ranks", how->size);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED, "no memory");
    options = how;
    body = what;
    choose_address(how->ipv6);
    alarm(200);
    if (how->processes)
        run_processes();
    else
        run_threads();
    munmap(shared, sizeof(*shared));
    printf("%-4s %-10s %d %-9s %6lld ms\n", how->transport, name, how->size, how->processes ? "processes" : "threads",
           (long long)((gy_now() - start) / GY_MILLISECOND));
    fflush(stdout);
}

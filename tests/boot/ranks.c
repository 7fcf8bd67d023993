#include "ranks.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "bootstrap/world.h"
#include "membership/epoch.h"
#include "support/own_network.h"

#define PATIENCE (40 * GY_SECOND)
#define BOARD 2048

struct ranks {
    pthread_barrier_t barrier; /* of the exchange callback, and before the end */
    bool processes;
    struct rank rank[RANKS_MOST];
    uint8_t board[RANKS_MOST][BOARD];
};

_Thread_local struct rank *rank_self;
static struct ranks *shared;

void ranks_begin(unsigned limit_s)
{
    alarm(limit_s);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!own_network_enter(0))
        puts("no network namespace: other processes of this machine can reach the listeners of this test");
}

void ranks_hush(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC), kept = fcntl(2, F_DUPFD_CLOEXEC, 200);

    CHECK(null >= 0 && kept >= 0 && dup2(null, 2) == 2, "stderr");
    close(null);
    stderr = fdopen(kept, "w");
    setvbuf(stderr, NULL, _IONBF, 0);
}

struct rank *ranks_make(int count, int size, const char *address)
{
    if (!shared)
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED && count <= RANKS_MOST, "%d ranks", count);
    memset(shared, 0, sizeof(*shared));
    for (int i = 0; i < count; i++) {
        struct rank *rank = &shared->rank[i];

        *rank = (struct rank){.rank = i, .size = size, .secret = SECRET, .ranks = shared, .error.rank = -1};
        rank->meet_timeout = rank->timeout = 30 * GY_SECOND;
        snprintf(rank->address, sizeof(rank->address), "%s", address);
    }
    return shared->rank;
}

static int exchange(void *user, const void *mine, void *all, size_t bytes)
{
    struct rank *rank = user;
    struct ranks *ranks = rank->ranks;

    CHECK(bytes <= BOARD, "%zu bytes", bytes);
    memcpy(ranks->board[rank->rank], mine, bytes);
    pthread_barrier_wait(&ranks->barrier);
    for (int i = 0; i < rank->size; i++)
        memcpy((uint8_t *)all + (size_t)i * bytes, ranks->board[i], bytes);
    pthread_barrier_wait(&ranks->barrier);
    return 0;
}

static void live(struct rank *rank, struct gy_poller *poller, struct gy_world *world)
{
    struct gy_overlay *overlay = NULL;

    rank->job = world->job;
    rank->nlocals = world->nlocals;
    rank->hosts = world->hosts;
    for (int i = 0; i < world->size && !rank->ranks->processes; i++)
        CHECK(world->members[i].pid == getpid() && world->members[i].local == i, "rank %d sees %d", rank->rank, i);
    world->epoch += rank->later;
    if (rank->overlay)
        rank->status = gy_overlay_create(world, &overlay, &rank->error);
    rank->counters = world->counters;
    if (rank->body && rank->status == GYRE_SUCCESS)
        rank->body(rank, poller, overlay);
    else
        atomic_store(&rank->stage, STAGE_READY);
    if (rank->together)
        pthread_barrier_wait(&rank->ranks->barrier);
    gy_overlay_free(overlay);
}

static void *run_rank(void *argument)
{
    struct rank *rank = argument;
    gyre_config user = {.size = sizeof(user), .rank = rank->rank, .world_size = rank->size};
    struct gy_config config;
    struct gy_poller *poller;
    struct gy_world *world;

    rank_self = rank;
    user.address = rank->exchange ? NULL : rank->address;
    user.secret = rank->secret;
    user.exchange = rank->exchange ? exchange : NULL;
    user.exchange_user = rank;
    CHECK(gy_config_read(&config, &rank->error) == GYRE_SUCCESS, "%s", rank->error.text);
    config.meet_timeout_ns = rank->meet_timeout;
    for (int i = 0; i <= rank->again && rank->status == GYRE_SUCCESS; i++) {
        CHECK(gy_poller_create(&poller, &rank->error) == GYRE_SUCCESS, "%s", rank->error.text);
        rank->status = gy_world_open(&user, &config, poller, &world, &rank->error);
        if (rank->status == GYRE_SUCCESS) {
            live(rank, poller, world);
            gy_world_free(world);
        }
        gy_poller_free(poller);
    }
    rank->when = gy_now();
    atomic_store(&rank->stage, STAGE_ENDED);
    return NULL;
}

static void start_process(struct rank *rank)
{
    pid_t pid = fork(); /* the child's result must not get into the shared memory */

    CHECK(pid >= 0, "fork");
    if (pid > 0) {
        rank->pid = pid;
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (rank->setting[0])
        setenv(rank->setting[0], rank->setting[1], 1);
    run_rank(rank);
    _exit(0);
}

struct rank *ranks_watch(int size, void (*body)(struct rank *, struct gy_poller *, struct gy_overlay *))
{
    char address[96];
    struct rank *ranks;

    ranks_address_tcp(address);
    ranks = ranks_make(size, size, address);
    for (int i = 0; i < size; i++) {
        ranks[i].overlay = true;
        ranks[i].body = body;
    }
    return ranks;
}

void ranks_start(struct rank *ranks, int count, bool processes)
{
    pthread_barrierattr_t attributes;

    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attributes, (unsigned)count);
    shared->processes = processes;
    for (int i = 0; i < count; i++) {
        if (processes)
            start_process(&ranks[i]);
        else
            CHECK(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]) == 0, "thread %d", i);
    }
}

/* A process that failed would be waited for in vain. */
static void check_alive(struct rank *rank)
{
    siginfo_t how = {0};

    if (!shared->processes || rank->victim || atomic_load(&rank->stage) == STAGE_ENDED)
        return;
    CHECK(waitid(P_PID, (id_t)rank->pid, &how, WEXITED | WNOHANG | WNOWAIT) == 0, "rank %d", rank->rank);
    CHECK(how.si_pid == 0 || atomic_load(&rank->stage) == STAGE_ENDED, "rank %d failed: code %d, status %d", rank->rank,
          how.si_code, how.si_status);
}

void ranks_await(struct rank *ranks, int count, enum stage stage)
{
    int64_t deadline = gy_now() + PATIENCE;

    for (int i = 0; i < count; i++) {
        while (!ranks[i].victim && atomic_load(&ranks[i].stage) < (int)stage) {
            check_alive(&ranks[i]);
            CHECK(gy_now() < deadline, "rank %d is still at stage %d of %d", ranks[i].rank, ranks[i].stage, stage);
            usleep(500);
        }
    }
}

void ranks_end(struct rank *ranks, int count)
{
    int status;

    ranks_await(ranks, count, STAGE_ENDED);
    for (int i = 0; i < count; i++) {
        if (!shared->processes) {
            pthread_join(ranks[i].thread, NULL);
            continue;
        }
        CHECK(waitpid(ranks[i].pid, &status, 0) == ranks[i].pid, "waitpid");
        CHECK(ranks[i].victim || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "rank %d ended with %#x",
              ranks[i].rank, (unsigned)status);
    }
    pthread_barrier_destroy(&shared->barrier);
}

void ranks_run(struct rank *ranks, int count)
{
    ranks_start(ranks, count, true);
    ranks_end(ranks, count);
}

void ranks_expect(const struct rank *ranks, int count, gyre_status status, const char *words)
{
    const char *said = "";

    for (int i = 0; i < count; i++) {
        if (ranks[i].victim)
            continue;
        said = ranks[i].error.text;
        CHECK(ranks[i].status == status, "seat %d, rank %d: status %d: %s", i, ranks[i].rank, ranks[i].status, said);
        CHECK(strstr(said, words), "seat %d, rank %d: \"%s\" lacks \"%s\"", i, ranks[i].rank, said, words);
    }
    printf("ok: %d ranks say: %s\n", count, said);
}

void ranks_poll(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay)
{
    rank->status = gy_overlay_check(overlay, &rank->error);
    gy_poller_poll(poller, GY_MILLISECOND);
}

void ranks_reach(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay, enum stage stage)
{
    const struct rank *ranks = rank - rank->rank;

    atomic_store(&rank->stage, (int)stage);
    for (int i = 0; i < rank->size; i++)
        while (atomic_load(&ranks[i].stage) < (int)stage)
            ranks_poll(rank, poller, overlay);
}

/* Below the range from which the kernel takes ports for listeners and initiators, of which there are hundreds
 * meanwhile. */
void ranks_address_tcp(char address_p[96])
{
    static unsigned number;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    bool found = false;

    for (int attempt = 0; attempt < 100 && !found; attempt++) {
        unsigned port = 10000 + ((unsigned)getpid() * 37 + number++) % 20000;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        address.sin_port = htons((uint16_t)port);
        found = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
        close(fd);
        snprintf(address_p, 96, "tcp://127.0.0.1:%u", port);
    }
    CHECK(found, "no port");
}

void ranks_address_file(char address_p[96])
{
    static int number;

    snprintf(address_p, 96, "file:///tmp/gyre-boot-test-%d-%d", (int)getpid(), number++);
}

/* Unauthenticated connections to the listeners of a running job. Three ranks add vectors over TCP all the while.
 * Another process, which can see where the listeners are and what a genuine handshake looks like, tries at each
 * listener, one after the other:
 *
 * - port scan, silence, half a handshake, garbage instead of each message, a megabyte of it, a wrong key, a wrong
 *   job; a handshake from another rank to another rank, one that was recorded, one that is reflected, then 200 at
 *   once
 *
 * Every one of these is closed. The job computes what it would have computed. Each leaves one line in that rank's
 * log, and the 200 a bounded number. While these occupy the listener, a process that knows the key is still
 * accepted. */
#include "support/launcher.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "bootstrap/world.h"
#include "collectives/comm/communicator.h"
#include "net/address.h"
#include "net/handshake.h"

#define RANKS 3
#define COUNT 2000
#define CROWD 200
#define LINES_MOST 10 /* a minute: see net/listener.c */

struct board {
    uint8_t key[GY_KEY_BYTES];
    uint64_t job;
    _Atomic bool stop;
    struct {
        struct sockaddr_storage listener;
        _Atomic bool ready;
        _Atomic long rounds, lines, others;
    } rank[RANKS];
};

static struct board *board;
static int own_rank;

/* ---- the job ---- */

static void on_line(void *user, gyre_log_level level, const char *line)
{
    (void)user;
    (void)level;
    bool about = strstr(line, "a connection ") || strstr(line, "more connections ");
    atomic_fetch_add(about ? &board->rank[own_rank].lines : &board->rank[own_rank].others, 1);
    if (!about || getenv("GYRE_TEST_VERBOSE"))
        fprintf(stderr, "rank %d logs: %s\n", own_rank, line);
}

static void compute(gyre_comm *comm, int rank)
{
    static int32_t in[COUNT], out[COUNT];
    long round = atomic_load(&board->rank[rank].rounds);
    for (int i = 0; i < COUNT; i++)
        in[i] = (int32_t)(round * 7 + i * (rank + 1));
    in[0] = atomic_load(&board->stop) && rank == 0; /* all leave in the same round */
    OK(comm, gyre_all_reduce(comm, in, out, COUNT, GYRE_INT32, GYRE_SUM));
    for (int i = 1; i < COUNT; i++)
        CHECK(out[i] == (int32_t)(3 * round * 7 + i * 6));
    atomic_fetch_add(&board->rank[rank].rounds, 1);
    usleep(2000); /* there are other tests on this machine */
    if (out[0]) {
        OK(comm, gyre_barrier(comm));
        gyre_comm_destroy(comm);
        _exit(0);
    }
}

static void body(int rank)
{
    own_rank = rank;
    setenv("GYRE_LOG", "warn", 1);
    gyre_comm *comm = rank_begin(165);
    const struct gy_world *world = comm->ctx->world;
    OK(comm, gyre_barrier(comm)); /* ranks that still connect may try listeners */
    gyre_log_set(on_line, NULL);
    memcpy(board->key, world->key, sizeof(board->key));
    board->job = world->job;
    board->rank[rank].listener = world->members[rank].address;
    atomic_store(&board->rank[rank].ready, true);
    for (;;)
        compute(comm, rank);
}

/* ---- the unauthenticated connections ---- */

static int visit(int rank)
{
    const struct sockaddr_storage *listener = &board->rank[rank].listener;
    struct timeval patience = {.tv_sec = 60};
    int fd = socket(listener->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)listener, gy_address_bytes(listener)) == 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
}

static void say(int fd, const void *bytes, size_t count)
{
    (void)!send(fd, bytes, count, MSG_NOSIGNAL);
}

/* A process that was stopped is told of it where its wait has a limit: it waits on. */
static ssize_t hear_some(int fd, uint8_t *bytes_p, size_t count)
{
    ssize_t got;
    do
        got = recv(fd, bytes_p, count, 0);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Until the listener closes, which it must. */
static void expect_end(int fd, const char *what)
{
    uint8_t bytes[4096];
    ssize_t got;
    while ((got = hear_some(fd, bytes, sizeof(bytes))) > 0)
        ;
    if (got < 0 && errno == EAGAIN)
        rank_fail("%s: the door stays open", what);
    close(fd);
}

static size_t hear(int fd, uint8_t *bytes_p, size_t count)
{
    size_t heard = 0;
    for (ssize_t got; heard < count && (got = hear_some(fd, bytes_p + heard, count - heard)) > 0;)
        heard += (size_t)got;
    return heard;
}

/* A handshake as a process that knows `key` would begin it; message 1 is in out. */
static void begin(struct gy_handshake *handshake, const uint8_t *key, uint64_t job, uint32_t from, int rank)
{
    gy_handshake_initiate(handshake, key, job, GY_PURPOSE_OVERLAY, from, (uint32_t)rank, GY_INTEGRITY_OFF);
}

/* Says message 1 and hears message 2; message 3 is in out then. */
static bool go_on(struct gy_handshake *handshake, int fd)
{
    uint8_t second[GY_HANDSHAKE_BYTES_2];
    say(fd, handshake->out, GY_HANDSHAKE_BYTES_1);
    size_t heard = hear(fd, second, sizeof(second));
    CHECK(heard == 0 || heard == sizeof(second));
    if (heard == 0)
        return false;
    gy_handshake_feed(handshake, second, sizeof(second));
    return true;
}

static void scan(int rank)
{
    close(visit(rank));
}

static void half(int rank)
{
    struct gy_handshake handshake;
    int fd = visit(rank);
    begin(&handshake, board->key, board->job, (uint32_t)(rank + 1) % RANKS, rank);
    say(fd, handshake.out, GY_HANDSHAKE_BYTES_1 / 2);
    close(fd);
}

static void silence(int rank)
{
    expect_end(visit(rank), "silence");
}

static void garbage(int rank)
{
    uint8_t bytes[GY_HANDSHAKE_BYTES_1];
    int fd = visit(rank);
    memset(bytes, 0xa5, sizeof(bytes));
    say(fd, bytes, sizeof(bytes));
    expect_end(fd, "garbage");
}

static void huge(int rank)
{
    struct gy_handshake handshake;
    uint8_t *bytes = malloc(1 << 20);
    int fd = visit(rank);
    CHECK(bytes);
    memset(bytes, 0xff, 1 << 20);
    begin(&handshake, board->key, board->job, (uint32_t)(rank + 1) % RANKS, rank);
    say(fd, handshake.out, GY_HANDSHAKE_BYTES_1);
    say(fd, bytes, 1 << 20); /* instead of message 3, and more */
    expect_end(fd, "a megabyte");
    free(bytes);
}

static void wrong_key(int rank)
{
    static const uint8_t key[GY_KEY_BYTES] = "not the key of the job";
    struct gy_handshake handshake;
    int fd = visit(rank);
    begin(&handshake, key, board->job, (uint32_t)(rank + 1) % RANKS, rank);
    CHECK(!go_on(&handshake, fd)); /* not a byte */
    expect_end(fd, "a wrong key");
}

static void wrong_job(int rank)
{
    struct gy_handshake handshake;
    int fd = visit(rank);
    begin(&handshake, board->key, board->job ^ 1, (uint32_t)(rank + 1) % RANKS, rank);
    CHECK(go_on(&handshake, fd) && handshake.refusal == GY_REFUSAL_JOB);
    expect_end(fd, "a wrong job");
}

static void misled(int rank)
{
    struct gy_handshake handshake;
    int fd = visit(rank);
    begin(&handshake, board->key, board->job, (uint32_t)rank, (rank + 1) % RANKS);
    CHECK(go_on(&handshake, fd) && handshake.refusal == GY_REFUSAL_RANK);
    expect_end(fd, "another rank");
}

/* Messages 1 and 3 of a handshake that was genuine, and whose end was never received, sent again. */
static void replayed(int rank)
{
    struct gy_handshake handshake;
    uint8_t first[GY_HANDSHAKE_BYTES_1], third[GY_HANDSHAKE_BYTES_3], second[GY_HANDSHAKE_BYTES_2];
    int fd = visit(rank);
    begin(&handshake, board->key, board->job, (uint32_t)(rank + 1) % RANKS, rank);
    memcpy(first, handshake.out, sizeof(first));
    CHECK(go_on(&handshake, fd) && handshake.state == GY_HANDSHAKE_RUNNING);
    memcpy(third, handshake.out, sizeof(third));
    close(fd); /* no line: it has proved that it knows the key */
    fd = visit(rank);
    say(fd, first, sizeof(first));
    CHECK(hear(fd, second, sizeof(second)) == sizeof(second));
    say(fd, third, sizeof(third));
    expect_end(fd, "a recorded handshake");
}

/* The listener's own proof, said back to it as ours. */
static void reflected(int rank)
{
    struct gy_handshake handshake;
    uint8_t second[GY_HANDSHAKE_BYTES_2], third[GY_HANDSHAKE_BYTES_3] = {0, 1, 0, 0};
    int fd = visit(rank);
    begin(&handshake, board->key, board->job, (uint32_t)(rank + 1) % RANKS, rank);
    say(fd, handshake.out, GY_HANDSHAKE_BYTES_1);
    CHECK(hear(fd, second, sizeof(second)) == sizeof(second));
    memcpy(third + 4, second + sizeof(second) - 32, 32);
    say(fd, third, sizeof(third));
    expect_end(fd, "a reflected handshake");
}

static const struct {
    const char *name;
    void (*func)(int rank);
    int lines;
} strangers[] = {
    {"a port scan", scan, 1},
    {"half a handshake", half, 1},
    {"silence", silence, 1},
    {"garbage", garbage, 1},
    {"a megabyte", huge, 1},
    {"a wrong key", wrong_key, 1},
    {"a wrong job", wrong_job, 1},
    {"another rank", misled, 1},
    {"a recorded handshake", replayed, 1},
    {"a reflected handshake", reflected, 1},
};

/* One listener gets half of them, another the rest: the lines of a minute are counted. */
static void try_all(void)
{
    for (size_t i = 0; i < sizeof(strangers) / sizeof(*strangers); i++) {
        int rank = (int)(i % RANKS);
        long lines = atomic_load(&board->rank[rank].lines) + strangers[i].lines;
        long rounds = atomic_load(&board->rank[rank].rounds);
        strangers[i].func(rank);
        for (int wait = 0; wait < 60000 && (atomic_load(&board->rank[rank].lines) < lines ||
                                            atomic_load(&board->rank[rank].rounds) < rounds + 2);
             wait++)
            usleep(1000);
        if (atomic_load(&board->rank[rank].lines) != lines)
            rank_fail("%s left %ld lines instead of %d", strangers[i].name,
                      atomic_load(&board->rank[rank].lines) - lines + strangers[i].lines, strangers[i].lines);
        if (atomic_load(&board->rank[rank].rounds) < rounds + 2)
            rank_fail("after %s the job does not go on", strangers[i].name);
    }
}

/* Many silent connections occupy the listener; a rank that knows the key completes its handshake all the same, as
 * often as it comes. Its message 3 says that it does not want to be accepted: one more overlay connection would be a
 * change. */
static void crowd(int rank)
{
    int fds[CROWD];
    for (int i = 0; i < CROWD; i++)
        fds[i] = visit(rank);
    for (int i = 0; i < 3; i++) {
        struct gy_handshake handshake;
        int64_t start = rank_now_ns();
        int fd = visit(rank);
        begin(&handshake, board->key, board->job, (uint32_t)(rank + 1) % RANKS, rank);
        CHECK(go_on(&handshake, fd) && handshake.state == GY_HANDSHAKE_RUNNING);
        CHECK(rank_now_ns() - start < 60000000000);
        close(fd);
    }
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
}

static void intrude(void)
{
    for (int rank = 0; rank < RANKS; rank++)
        while (!atomic_load(&board->rank[rank].ready))
            usleep(1000);
    try_all();
    crowd(1);
    long rounds = atomic_load(&board->rank[1].rounds);
    while (atomic_load(&board->rank[1].rounds) < rounds + 3)
        usleep(1000);
    CHECK(atomic_load(&board->rank[1].lines) <= LINES_MOST);
    for (int rank = 0; rank < RANKS; rank++)
        CHECK(atomic_load(&board->rank[rank].others) == 0);
}

/* However it ends, the job ends too. */
static void run_intruder(void)
{
    int status = 1;
    pid_t pid = fork();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (pid == 0) {
        alarm(160);
        intrude();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    atomic_store(&board->stop, true);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

int main(void)
{
    setenv("GYRE_TRANSPORT", "tcp", 1);
    setenv("GYRE_INTERFACE", "lo", 1);
    board = launch_share(sizeof(*board));
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        run_intruder();
    bool good = launch(RANKS, body, 170, "a job with strangers at its doors");
    int status = 1;
    if (!good)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    printf("%ld rounds, lines %ld %ld %ld\n", atomic_load(&board->rank[0].rounds), atomic_load(&board->rank[0].lines),
           atomic_load(&board->rank[1].lines), atomic_load(&board->rank[2].lines));
    return good && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

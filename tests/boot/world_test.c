/* Ranks as threads meet by every kind of address, at several sizes; what goes wrong is named on every rank that waits.
 *
 * A failing check ends the program at once: nothing is left to hang, and alarm() bounds the whole. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot/overlay.h"
#include "boot/world.h"
#include "core/clock.h"

#define MOST 64
#define SECRET "a secret for the tests"

#define CHECK(condition, ...)                                               \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                   \
            fputc('\n', stderr);                                            \
            _exit(1);                                                       \
        }                                                                   \
    } while (0)

struct trial {
    const char *address, *secret;
    int64_t meet_timeout_ns;
    pthread_barrier_t barrier; /* of the exchange callback, and before the end */
    uint8_t board[MOST][512];
};

struct rank {
    struct trial *trial;
    int rank, size, seat; /* seat: index of the thread */
    bool exchange, overlay, wait_at_end;
    const char *secret;
    gyre_status status;
    struct gy_error error;
    struct gy_boot_counters counters;
    uint64_t job;
    int nlocals, hosts;
};

static int exchange(void *user, const void *mine, void *all, size_t bytes)
{
    struct rank *rank = user;
    struct trial *trial = rank->trial;

    CHECK(bytes <= sizeof(trial->board[0]), "%zu bytes", bytes);
    memcpy(trial->board[rank->rank], mine, bytes);
    pthread_barrier_wait(&trial->barrier);
    for (int i = 0; i < rank->size; i++)
        memcpy((uint8_t *)all + (size_t)i * bytes, trial->board[i], bytes);
    pthread_barrier_wait(&trial->barrier);
    return 0;
}

static void *run_rank(void *argument)
{
    struct rank *rank = argument;
    gyre_config user = {.size = sizeof(user), .rank = rank->rank, .world_size = rank->size};
    struct gy_config config = {.peer_timeout_ns = 10 * GY_SECOND, .meet_timeout_ns = rank->trial->meet_timeout_ns};
    struct gy_overlay *overlay = NULL;
    struct gy_poller *poller;
    struct gy_world *world;

    user.address = rank->exchange ? NULL : rank->trial->address;
    user.secret = rank->secret;
    user.exchange = rank->exchange ? exchange : NULL;
    user.exchange_user = rank;
    rank->error.rank = -1;
    CHECK(gy_poller_create(&poller, &rank->error) == GYRE_SUCCESS, "%s", rank->error.text);
    rank->status = gy_world_meet(&user, &config, poller, &world, &rank->error);
    if (rank->status == GYRE_SUCCESS) {
        rank->job = world->job;
        rank->nlocals = world->nlocals;
        rank->hosts = world->hosts;
        for (int i = 0; i < world->size; i++)
            CHECK(world->members[i].pid == getpid() && world->members[i].local == i, "rank %d sees %d", rank->rank, i);
        if (rank->overlay) {
            rank->status = gy_overlay_create(world, &overlay, &rank->error);
            CHECK(rank->status == GYRE_SUCCESS, "rank %d: %s", rank->rank, rank->error.text);
            if (rank->wait_at_end)
                pthread_barrier_wait(&rank->trial->barrier);
        }
        rank->counters = world->counters;
        gy_overlay_free(overlay);
        gy_world_free(world);
    }
    gy_poller_free(poller);
    return NULL;
}

static void run(struct trial *trial, struct rank *ranks, int count)
{
    pthread_t threads[MOST + 1];

    pthread_barrier_init(&trial->barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, run_rank, &ranks[i]) == 0, "thread %d", i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&trial->barrier);
}

static void prepare(struct trial *trial, struct rank *ranks, int count, int size)
{
    memset(ranks, 0, (size_t)count * sizeof(*ranks));
    for (int i = 0; i < count; i++)
        ranks[i] = (struct rank){.trial = trial, .rank = i, .size = size, .seat = i, .secret = trial->secret};
}

static int log2_up(int n)
{
    int k = 0;

    while (1 << k < n)
        k++;
    return k;
}

static void good(const char *address, const char *secret, int size, bool by_exchange)
{
    static struct trial trial;
    static struct rank ranks[MOST];
    int most = 0;

    trial.address = address;
    trial.secret = secret;
    trial.meet_timeout_ns = 30 * GY_SECOND;
    prepare(&trial, ranks, size, size);
    for (int i = 0; i < size; i++) {
        ranks[i].overlay = ranks[i].wait_at_end = true;
        ranks[i].exchange = by_exchange;
    }
    int64_t begin = gy_now();
    run(&trial, ranks, size);
    for (int i = 0; i < size; i++) {
        const struct gy_boot_counters *counters = &ranks[i].counters;
        uint64_t logs = (uint64_t)log2_up(size);

        CHECK(ranks[i].status == GYRE_SUCCESS, "rank %d: %s", i, ranks[i].error.text);
        CHECK(ranks[i].job == ranks[0].job && ranks[i].job != 0, "rank %d has another job", i);
        CHECK(ranks[i].nlocals == size && ranks[i].hosts == 1, "rank %d sees %d locals", i, ranks[i].nlocals);
        /* HELLO, DONE, tables, one identity per neighbour; goodbyes come after the count. */
        CHECK(counters->messages_sent <= 2 + 3 * logs, "rank %d of %d sent %lu", i, size, counters->messages_sent);
        CHECK(counters->messages_received <= 3 + 2 * logs, "rank %d of %d received %lu", i, size,
              counters->messages_received);
        /* Retries while rank 0 is not listening yet are refused at once and hold nothing. */
        if ((int)counters->messages_sent > most)
            most = (int)counters->messages_sent;
    }
    CHECK(by_exchange || (int)ranks[0].counters.registrations == size - 1, "%lu registrations",
          ranks[0].counters.registrations);
    printf("ok: %2d ranks at %s%s: %.1f ms, at most %d messages sent by a rank\n", size,
           by_exchange ? "exchange" : address, secret ? "" : ", no secret", (double)(gy_now() - begin) / 1e6, most);
}

static void expect_everywhere(struct rank *ranks, int count, gyre_status status, const char *words)
{
    for (int i = 0; i < count; i++) {
        CHECK(ranks[i].status == status, "seat %d: status %d: %s", i, ranks[i].status, ranks[i].error.text);
        CHECK(strstr(ranks[i].error.text, words), "seat %d: \"%s\" lacks \"%s\"", i, ranks[i].error.text, words);
    }
    printf("ok: %d ranks say: %s\n", count, ranks[count - 1].error.text);
}

static void bad(const char *address)
{
    static struct trial trial;
    static struct rank ranks[MOST];

    trial.address = address;
    trial.secret = SECRET;
    trial.meet_timeout_ns = GY_SECOND;
    prepare(&trial, ranks, 3, 5); /* 3 and 4 are missing */
    run(&trial, ranks, 3);
    expect_everywhere(ranks, 3, GYRE_MEETING_FAILED, "missing: rank 3, 4");

    prepare(&trial, ranks, 4, 8); /* one rank twice */
    ranks[3].rank = 2;
    run(&trial, ranks, 4);
    for (int i = 0; i < 4; i++)
        CHECK(ranks[i].status != GYRE_SUCCESS, "seat %d met", i);
    expect_everywhere(ranks, 2, GYRE_REFUSED, "rank 2 is there twice");

    prepare(&trial, ranks, 3, 4);
    ranks[2].size = 5;
    run(&trial, ranks, 3);
    CHECK(ranks[0].status == GYRE_REFUSED, "%s", ranks[0].error.text);
    expect_everywhere(ranks, 3, GYRE_REFUSED, "rank 2 says that there are 5 ranks");

    prepare(&trial, ranks, 1, 3); /* nobody listens */
    ranks[0].rank = 1;
    run(&trial, ranks, 1);
    expect_everywhere(ranks, 1, GYRE_MEETING_FAILED, "Connection refused");
}

/* Somebody with another secret is refused, and the job meets all the same. */
static void intruder(const char *address)
{
    static struct trial trial;
    static struct rank ranks[4];

    trial.address = address;
    trial.secret = SECRET;
    trial.meet_timeout_ns = 10 * GY_SECOND;
    prepare(&trial, ranks, 4, 3);
    ranks[3].rank = 2;
    ranks[3].secret = "another secret of the tests";
    run(&trial, ranks, 4);
    for (int i = 0; i < 3; i++)
        CHECK(ranks[i].status == GYRE_SUCCESS, "rank %d: %s", i, ranks[i].error.text);
    /* It may also have come when the meeting was over and nobody listened any more. */
    CHECK(ranks[3].status == GYRE_REFUSED || ranks[3].status == GYRE_MEETING_FAILED, "status %d", ranks[3].status);
    printf("ok: the intruder got: %s\n", ranks[3].error.text);

    prepare(&trial, ranks, 2, 3); /* rank 0 waits for rank 2, so that the intruder certainly meets it */
    trial.meet_timeout_ns = GY_SECOND;
    ranks[1].rank = 2;
    ranks[1].secret = "another secret of the tests";
    run(&trial, ranks, 2);
    CHECK(ranks[1].status == GYRE_REFUSED && strstr(ranks[1].error.text, "refused: wrong secret"), "%s",
          ranks[1].error.text);
    CHECK(strstr(ranks[0].error.text, "2 (one was refused: wrong secret)"), "%s", ranks[0].error.text);
    printf("ok: rank 0 says: %s\n", ranks[0].error.text);
}

int main(void)
{
    char tcp4[64], tcp6[64], file[96];
    int port = 20000 + (int)getpid() % 10000;
    FILE *stale;

    alarm(110);
    setvbuf(stdout, NULL, _IOLBF, 0);
    setenv("GYRE_LOG", "error", 0);
    snprintf(tcp4, sizeof(tcp4), "tcp://127.0.0.1:%d", port);
    snprintf(tcp6, sizeof(tcp6), "tcp://[::1]:%d", port);
    snprintf(file, sizeof(file), "file:///tmp/gyre-world-test-%d", (int)getpid());
    for (size_t i = 0; i < 5; i++)
        good(tcp4, SECRET, (const int[]){1, 2, 3, 8, 64}[i], false);
    good(tcp4, NULL, 8, false);
    good(tcp6, SECRET, 8, false);
    stale = fopen(file + 7, "w");
    CHECK(stale, "%s", file);
    fprintf(stale, "gyre 1 tcp 127.0.0.1 1 abc\n");
    fclose(stale);
    good(file, SECRET, 8, false);
    CHECK(access(file + 7, F_OK) != 0, "%s is still there", file);
    good(file, NULL, 8, false);
    good(NULL, SECRET, 8, true);
    good(NULL, NULL, 64, true);
    bad(tcp4);
    intruder(tcp4);
    puts("all meetings as expected");
    return 0;
}

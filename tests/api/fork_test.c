/* Forks of a process in which ranks are threads. A child gets consistent worlds, and no fork waits for ever for
 * another.
 *
 *   inside   every rank forks in an operation of the program's, all at once: each holds its own world's lock
 *   shrink   a thread forks again and again while ranks make new worlds of theirs, under the locks of those
 *
 * A failing check ends the program at once, and alarm() bounds the whole. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gyre/gyre.h>

#define RANKS 3
#define ROUNDS 20
#define COUNT 100

static const char *scenario;
static char address[64];
static _Atomic int ranks_left = RANKS;

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s, line %d: not true: %s\n", scenario, __LINE__, #condition); \
            _exit(1);                                                                       \
        }                                                                                   \
    } while (0)
#define OK(comm, call)                                                                                  \
    do {                                                                                                \
        if (call != GYRE_SUCCESS) {                                                                     \
            fprintf(stderr, "%s, line %d: %s: %s\n", scenario, __LINE__, #call, gyre_last_error(comm)); \
            _exit(1);                                                                                   \
        }                                                                                               \
    } while (0)

/* As a function that starts another program does: the child makes no call of gyre. */
static void fork_once(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    CHECK(child > 0 && waitpid(child, NULL, 0) == child);
}

static void add_and_fork(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    (void)dtype;
    if (!*(int *)user)
        fork_once();
    *(int *)user = 1;
    for (size_t i = 0; i < count; i++)
        ((int32_t *)result)[i] = ((const int32_t *)left)[i] + ((const int32_t *)right)[i];
}

/* Every rank reduces a part of a long vector. */
static void sum(gyre_comm *comm)
{
    static const size_t counts[] = {COUNT, 300000};
    int32_t *own = malloc(counts[1] * sizeof *own), *out = malloc(counts[1] * sizeof *out);
    int forked = 0;
    gyre_op op;
    CHECK(own && out);
    OK(comm, gyre_op_create(comm, add_and_fork, &forked, 1, &op));
    for (int round = 0; round < ROUNDS; round++) {
        size_t count = counts[round % 2];
        for (size_t i = 0; i < count; i++)
            own[i] = (int32_t)i % 1000 + gyre_comm_rank(comm);
        forked = 0;
        OK(comm, gyre_all_reduce(comm, own, out, count, GYRE_INT32, op));
        for (size_t i = 0; i < count; i++)
            CHECK(out[i] == RANKS * ((int32_t)i % 1000) + RANKS * (RANKS - 1) / 2);
    }
    free(own);
    free(out);
}

static gyre_comm *shrink(gyre_comm *comm)
{
    for (int round = 0; round < ROUNDS; round++) {
        gyre_comm *next;
        OK(comm, gyre_comm_shrink(comm, &next));
        CHECK(gyre_comm_size(next) == RANKS);
        OK(comm, gyre_comm_destroy(comm));
        comm = next;
    }
    return comm;
}

static void *run_rank(void *argument)
{
    gyre_config config = {.size = sizeof config,
                          .rank = (int)(intptr_t)argument,
                          .world_size = RANKS,
                          .address = address,
                          .secret = "a secret of the fork test"};
    gyre_comm *comm;
    OK(NULL, gyre_comm_create(&config, &comm));
    if (strcmp(scenario, "inside") == 0)
        sum(comm);
    else
        comm = shrink(comm);
    OK(comm, gyre_comm_destroy(comm));
    atomic_fetch_sub(&ranks_left, 1);
    return NULL;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/gyre-fork-XXXXXX";
    pthread_t threads[RANKS];
    scenario = argc > 1 ? argv[1] : "inside";
    alarm(200);
    CHECK(mkdtemp(folder)); /* in a file: no other process can take its port */
    snprintf(address, sizeof address, "file://%s/meet", folder);
    for (int i = 0; i < RANKS; i++)
        CHECK(pthread_create(&threads[i], NULL, run_rank, (void *)(intptr_t)i) == 0);
    while (strcmp(scenario, "shrink") == 0 && atomic_load(&ranks_left) > 0) {
        fork_once();
        usleep(1000);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    rmdir(folder);
    return 0;
}

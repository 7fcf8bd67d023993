/* Ranks as threads of one process, each with a communicator of its own: nothing of one may touch another's, and an
 * abort may come from a thread that drives no communicator. Runs over the transport of GYRE_TRANSPORT.
 *
 *   thread 0    thread 1    thread 2         thread of rank 0's abort
 *   create ------- meet ------- create
 *   all_reduce of many counts, requests of all kinds, the same on a duplicate
 *   all_reduce  all_reduce  waits for 0,1    abort, while 0 and 1 are blocked
 *
 * Operands are small whole numbers, so every sum has one exact value in every type. A failing check ends the program at
 * once, and alarm() bounds the whole. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gyre/gyre.h>

#define RANKS 3
#define MOST 300007 /* elements: past every switch of algorithm and protocol */
#define REQUESTS 4

struct rank {
    int rank;
    const char *address;
    gyre_comm *comm;
    int32_t *input, *output;
};

static pthread_barrier_t before_abort, after_abort; /* of the ranks and the aborting thread */

static _Noreturn void fail(int rank, int line, const char *what, const char *sentence)
{
    fprintf(stderr, "rank %d, line %d: %s: %s\n", rank, line, what, sentence);
    _exit(1);
}

#define GIVES(wanted, r, call)                                                    \
    do {                                                                          \
        gyre_status status_ = call;                                               \
        if (status_ != (wanted))                                                  \
            fail((r)->rank, __LINE__, #call " is not " #wanted,                   \
                 (r)->comm ? gyre_last_error((r)->comm) : gyre_last_error(NULL)); \
    } while (0)
#define OK(r, call) GIVES(GYRE_SUCCESS, r, call)
#define CHECK(r, condition)                                    \
    do {                                                       \
        if (!(condition))                                      \
            fail((r)->rank, __LINE__, "not true", #condition); \
    } while (0)

/* What rank `rank` contributes at element i of round `round`. */
static int32_t operand(int rank, size_t i, int round)
{
    return (int32_t)((i * 7 + (size_t)round * 13) % 1009) * (rank + 1) - rank;
}

static int32_t sum_of(size_t i, int round)
{
    int32_t sum = 0;

    for (int rank = 0; rank < RANKS; rank++)
        sum += operand(rank, i, round);
    return sum;
}

static void fill(const struct rank *r, int32_t *input, size_t count, int round)
{
    for (size_t i = 0; i < count; i++)
        input[i] = operand(r->rank, i, round);
}

static void sums(struct rank *r, gyre_comm *comm)
{
    static const size_t counts[] = {0, 1, 2, 3, 17, 1000, 1024, 4099, 16384, 70001, MOST};

    for (int round = 0; round < (int)(sizeof(counts) / sizeof(counts[0])); round++) {
        size_t count = counts[round];

        fill(r, r->input, count, round);
        memset(r->output, 0xff, (count + 1) * sizeof(*r->output));
        OK(r, gyre_all_reduce(comm, r->input, r->output, count, GYRE_INT32, GYRE_SUM));
        for (size_t i = 0; i < count; i++)
            CHECK(r, r->output[i] == sum_of(i, round));
        CHECK(r, r->output[count] == -1);

        /* The same in place, as floats. */
        float *values = (float *)(void *)r->output;
        for (size_t i = 0; i < count; i++)
            values[i] = (float)r->input[i];
        OK(r, gyre_all_reduce(comm, values, values, count, GYRE_FLOAT32, GYRE_SUM));
        for (size_t i = 0; i < count; i++)
            CHECK(r, values[i] == (float)sum_of(i, round));
    }
    OK(r, gyre_barrier(comm));
    /* Of nothing, to nowhere. */
    OK(r, gyre_all_reduce(comm, NULL, NULL, 0, GYRE_INT32, GYRE_SUM));
    OK(r, gyre_reduce_scatter(comm, NULL, NULL, 0, GYRE_INT32, GYRE_SUM));
    OK(r, gyre_all_gather(comm, NULL, NULL, 0, GYRE_INT32));
    OK(r, gyre_broadcast(comm, NULL, NULL, 0, GYRE_INT32, 1));
}

/* Several requests under way at once, on two communicators, completed in an order that differs between the ranks. */
static void requests(struct rank *r, gyre_comm *first, gyre_comm *second)
{
    enum { COUNT = 20000, BLOCK = COUNT / RANKS };
    gyre_request *pending[REQUESTS] = {NULL};
    int32_t *in = r->input, *out = r->output;

    for (int round = 0; round < 10; round++) {
        size_t at = (size_t)(r->rank + round);

        fill(r, in, COUNT, round);
        memset(out, 0xff, REQUESTS * COUNT * sizeof(*out));
        OK(r, gyre_all_reduce_start(first, in, out, COUNT, GYRE_INT32, GYRE_SUM, &pending[0]));
        OK(r, gyre_all_gather_start(second, in, out + COUNT, BLOCK, GYRE_INT32, &pending[1]));
        OK(r, gyre_reduce_scatter_start(first, in, out + 2 * COUNT, BLOCK, GYRE_INT32, GYRE_SUM, &pending[2]));
        OK(r, gyre_broadcast_start(second, in, out + 3 * COUNT, COUNT, GYRE_INT32, round % RANKS, &pending[3]));
        while (gyre_test(&pending[at % REQUESTS]) == GYRE_IN_PROGRESS)
            continue;
        CHECK(r, !pending[at % REQUESTS]);
        OK(r, gyre_wait(&pending[(at + 2) % REQUESTS]));
        OK(r, gyre_wait_all(pending, REQUESTS));
        for (size_t i = 0; i < COUNT; i++) {
            CHECK(r, out[i] == sum_of(i, round));
            CHECK(r, out[3 * COUNT + i] == operand(round % RANKS, i, round));
        }
        for (size_t i = 0; i < BLOCK; i++) {
            CHECK(r, out[2 * COUNT + i] == sum_of((size_t)r->rank * BLOCK + i, round));
            for (int rank = 0; rank < RANKS; rank++)
                CHECK(r, out[COUNT + (size_t)rank * BLOCK + i] == operand(rank, i, round));
        }
    }
}

/* Ranks 0 and 1 are blocked, for rank 2 does not come; rank 2 hears of it at its next call. */
static void aborted(struct rank *r)
{
    pthread_barrier_wait(&before_abort);
    if (r->rank != 2)
        GIVES(GYRE_ABORTED, r, gyre_all_reduce(r->comm, r->input, r->output, 5000, GYRE_INT32, GYRE_SUM));
    pthread_barrier_wait(&after_abort);
    GIVES(GYRE_ABORTED, r, gyre_all_reduce(r->comm, r->input, r->output, 5000, GYRE_INT32, GYRE_SUM));
    CHECK(r, strstr(gyre_last_error(r->comm), "rank 0"));
}

static void *run_rank(void *argument)
{
    struct rank *r = argument;
    gyre_config config = {.size = sizeof(config),
                          .rank = r->rank,
                          .world_size = RANKS,
                          .address = r->address,
                          .secret = "a secret of the thread test"};
    gyre_comm *duplicate;

    OK(r, gyre_comm_create(&config, &r->comm));
    CHECK(r, gyre_comm_rank(r->comm) == r->rank && gyre_comm_size(r->comm) == RANKS);
    r->input = malloc((MOST + 1) * sizeof(*r->input));
    r->output = malloc((MOST + 1) * sizeof(*r->output));
    CHECK(r, r->input && r->output);
    sums(r, r->comm);
    OK(r, gyre_comm_duplicate(r->comm, &duplicate));
    sums(r, duplicate);
    requests(r, r->comm, duplicate);
    OK(r, gyre_comm_destroy(duplicate));
    aborted(r);
    OK(r, gyre_comm_destroy(r->comm));
    free(r->input);
    free(r->output);
    return NULL;
}

static void world(void)
{
    struct rank ranks[RANKS] = {{0}};
    pthread_t threads[RANKS];
    char folder[] = "/tmp/gyre-threads-XXXXXX", address[64];

    if (!mkdtemp(folder)) /* in a file: no other process can take its port */
        fail(-1, __LINE__, "mkdtemp", folder);
    snprintf(address, sizeof(address), "file://%s/meet", folder);
    pthread_barrier_init(&before_abort, NULL, RANKS + 1);
    pthread_barrier_init(&after_abort, NULL, RANKS + 1);
    for (int i = 0; i < RANKS; i++) {
        ranks[i].rank = i;
        ranks[i].address = address;
        if (pthread_create(&threads[i], NULL, run_rank, &ranks[i]) != 0)
            fail(i, __LINE__, "no thread", "pthread_create failed");
    }
    pthread_barrier_wait(&before_abort);
    usleep(100 * 1000); /* 0 and 1 are inside by now; were they not, the outcome would be the same */
    OK(&ranks[0], gyre_comm_abort(ranks[0].comm));
    pthread_barrier_wait(&after_abort);
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    rmdir(folder);
    pthread_barrier_destroy(&before_abort);
    pthread_barrier_destroy(&after_abort);
}

int main(void)
{
    alarm(200);
    world();
    world(); /* what the first world left behind would show here */
    return 0;
}

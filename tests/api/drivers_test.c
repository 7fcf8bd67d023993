/* One rank of the tests of concurrent progress, one suite per run (the argument):
 *   several   threads of one rank, each with a communicator of its own, blocking calls and requests of all sizes
 *   alone     a request completes while its rank makes no call: only under GYRE_PROGRESS_THREAD=1, where the first
 *             gyre_test must find it complete; without it, it must not, or this test could not fail */
#include <pthread.h>

#include "support/rank.h"

#define THREADS 3
#define ROUNDS 150

static int rank, size;

struct worker {
    pthread_t thread;
    gyre_comm *comm;
    unsigned seed;
};

static void fill(int32_t *numbers, size_t count, int32_t what)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] = what + (int32_t)(i % 1000);
}

static void check(const int32_t *numbers, size_t count, int32_t round)
{
    for (size_t i = 0; i < count; i++) {
        int32_t sum = size * (round + (int32_t)(i % 1000)) + size * (size - 1) / 2;
        if (numbers[i] != sum)
            rank_fail("round %d: element %zu of %zu is %d instead of %d", (int)round, i, count, (int)numbers[i],
                      (int)sum);
    }
}

static void *work(void *argument)
{
    struct worker *me = argument;
    static const size_t counts[] = {1, 12, 13, 1000, 5000, 70000};
    int32_t *input = malloc(70000 * sizeof(*input)), *output = malloc(70000 * sizeof(*output));
    CHECK(input && output);
    for (int32_t round = 0; round < ROUNDS; round++) {
        size_t count = counts[(size_t)rand_r(&me->seed) % (sizeof(counts) / sizeof(counts[0]))];
        fill(input, count, round + rank);
        if (rand_r(&me->seed) % 2) {
            OK(me->comm, gyre_all_reduce(me->comm, input, output, count, GYRE_INT32, GYRE_SUM));
        } else {
            gyre_request *request;
            OK(me->comm, gyre_all_reduce_start(me->comm, input, output, count, GYRE_INT32, GYRE_SUM, &request));
            gyre_status status = GYRE_IN_PROGRESS;
            for (unsigned tries = 0; status == GYRE_IN_PROGRESS; tries++) {
                if (tries % 64 == 63)
                    usleep(100);
                status = gyre_test(&request);
            }
            OK(me->comm, status);
        }
        check(output, count, round);
    }
    free(input);
    free(output);
    return NULL;
}

static void several(gyre_comm *world)
{
    struct worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i].seed = (unsigned)i + 1; /* the same on every rank: the order of calls on a communicator */
        OK(world, gyre_comm_duplicate(world, &workers[i].comm));
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        OK(world, gyre_comm_destroy(workers[i].comm));
}

/* Rank 0 starts and goes away; the others wait, and drive their own part only. */
static void alone(gyre_comm *world)
{
    const char *setting = getenv("GYRE_PROGRESS_THREAD");
    bool threaded = setting && setting[0] == '1';
    size_t count = 4 << 20;
    int32_t *input = malloc(count * sizeof(*input)), *output = malloc(count * sizeof(*output));
    CHECK(input && output);
    fill(input, count, rank);
    OK(world, gyre_barrier(world));
    gyre_request *request;
    OK(world, gyre_all_reduce_start(world, input, output, count, GYRE_INT32, GYRE_SUM, &request));
    if (rank == 0) {
        int64_t until = rank_now_ns() + (threaded ? 20 : 1) * INT64_C(1000000000);
        gyre_status status = GYRE_IN_PROGRESS;
        while (status == GYRE_IN_PROGRESS && rank_now_ns() < until) {
            sleep(1); /* one call a second moves a few tiles of the hundred that there are */
            status = gyre_test(&request);
            CHECK(threaded || status == GYRE_IN_PROGRESS);
        }
        CHECK(!threaded || status == GYRE_SUCCESS);
    }
    OK(world, gyre_wait(&request));
    check(output, count, 0);
    free(input);
    free(output);
}

int main(int argc, char **argv)
{
    gyre_comm *world = rank_begin(200);
    rank = gyre_comm_rank(world);
    size = gyre_comm_size(world);
    CHECK(argc == 2);
    if (!strcmp(argv[1], "several"))
        several(world);
    else
        alone(world);
    OK(world, gyre_barrier(world));
    OK(world, gyre_comm_destroy(world));
    return 0;
}

/* Several worlds, and all ranks of each, in one process. Ranks meet as threads, one each, and are then driven by the
 * one thread of main: in groups, and through wait_any, wait_some and wait_all over requests of different worlds. Then
 * each rank has its thread again, while that of main drives another world. */
#include <pthread.h>

#include "support/rank.h"

#define RANKS 3
#define MOST 400000

static char folder[] = "/tmp/gyre-worlds-XXXXXX";
static gyre_comm *worlds[2][RANKS];
static int32_t *in[2][RANKS], *out[2][RANKS];

/* ---- meeting ---- */

static void *meet(void *argument)
{
    int number = (int)(intptr_t)argument, world = number / RANKS;
    char address[80];
    snprintf(address, sizeof address, "file://%s/world-%d", folder, world);
    gyre_config config = {.size = sizeof config,
                          .rank = number % RANKS,
                          .world_size = RANKS,
                          .address = address,
                          .secret = "a-secret-of-the-tests-0123456789"};
    gyre_status status = gyre_comm_create(&config, &worlds[world][number % RANKS]);
    if (status != GYRE_SUCCESS)
        rank_fail("create: %s", gyre_last_error(NULL));
    return NULL;
}

static void on_threads(void *(*run)(void *), int first, int count)
{
    pthread_t threads[2 * RANKS];
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, run, (void *)(intptr_t)(first + i)) == 0);
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* ---- data ---- */

static int32_t value(int world, int rank, size_t i, int round)
{
    return (int32_t)(i * 7 + (size_t)(1000 * rank + 100 * world + round));
}

static void fill(int world, int rank, size_t count, int round)
{
    for (size_t i = 0; i < count; i++)
        in[world][rank][i] = value(world, rank, i, round);
    memset(out[world][rank], 0xff, count * sizeof(int32_t));
}

static void expect_sums(int world, int rank, size_t count, int round)
{
    for (size_t i = 0; i < count; i++) {
        int32_t sum = 0;
        for (int r = 0; r < RANKS; r++)
            sum += value(world, r, i, round);
        if (out[world][rank][i] != sum)
            rank_fail("world %d, rank %d, round %d: element %zu of %zu is %d instead of %d", world, rank, round, i,
                      count, out[world][rank][i], sum);
    }
}

/* ---- one thread, all ranks ---- */

static const size_t counts[] = {1, 10, 3000, MOST};

static void sums_in_a_group(void)
{
    for (int round = 0; round < 12; round++) {
        size_t count = counts[round % 4];
        OK(NULL, gyre_group_begin());
        for (int r = 0; r < 2 * RANKS; r++) {
            int world = r % 2, rank = r / 2;
            fill(world, rank, count, round);
            OK(worlds[world][rank],
               gyre_all_reduce(worlds[world][rank], in[world][rank], out[world][rank], count, GYRE_INT32, GYRE_SUM));
        }
        OK(NULL, gyre_group_end());
        for (int r = 0; r < 2 * RANKS; r++)
            expect_sums(r % 2, r / 2, count, round);
    }
}

static void messages_in_a_group(void)
{
    for (int round = 0; round < 4; round++) {
        size_t count = counts[round];
        OK(NULL, gyre_group_begin());
        for (int rank = RANKS - 1; rank >= 0; rank--) { /* head to head, blocking by name */
            gyre_comm *comm = worlds[0][rank];
            fill(0, rank, count, round);
            OK(comm, gyre_send(comm, in[0][rank], count, GYRE_INT32, (rank + 1) % RANKS));
            OK(comm, gyre_recv(comm, out[0][rank], count, GYRE_INT32, (rank + RANKS - 1) % RANKS));
        }
        OK(NULL, gyre_group_end());
        for (int rank = 0; rank < RANKS; rank++)
            for (size_t i = 0; i < count; i++)
                CHECK(out[0][rank][i] == value(0, (rank + RANKS - 1) % RANKS, i, round));
    }
}

static void start_all(gyre_request **requests, size_t count, int round)
{
    for (int r = 0; r < 2 * RANKS; r++) {
        int world = r % 2, rank = r / 2;
        fill(world, rank, count, round);
        OK(worlds[world][rank], gyre_all_reduce_start(worlds[world][rank], in[world][rank], out[world][rank], count,
                                                      GYRE_INT32, GYRE_SUM, &requests[r]));
    }
}

static void collect(gyre_request **requests, int way, bool persistent)
{
    size_t left = 2 * RANKS;
    while (left > 0 && way < 2) {
        ptrdiff_t index;
        size_t indices[2 * RANKS], done;
        if (way == 0) {
            OK(NULL, gyre_wait_any(requests, 2 * RANKS, &index));
            CHECK(index >= 0 && (persistent || !requests[index]));
            left--;
        } else {
            OK(NULL, gyre_wait_some(requests, 2 * RANKS, indices, &done));
            CHECK(done > 0 && done <= left);
            left -= done;
        }
    }
    OK(NULL, gyre_wait_all(requests, 2 * RANKS));
}

static void requests_of_both(void)
{
    gyre_request *requests[2 * RANKS];
    for (int round = 0; round < 12; round++) {
        size_t count = counts[round % 4];
        start_all(requests, count, round);
        collect(requests, round / 4, false);
        for (int r = 0; r < 2 * RANKS; r++)
            expect_sums(r % 2, r / 2, count, round);
    }
}

/* Progress threads may complete what is left at any moment of a wait, which says so all the same. */
static void waits_at_any_moment(void)
{
    gyre_request *requests[2 * RANKS];
    for (int round = 0; round < 6000; round++) {
        start_all(requests, counts[round % 3], round);
        collect(requests, round % 2, false);
    }
}

static void persistent_of_both(void)
{
    gyre_request *requests[2 * RANKS];
    for (int r = 0; r < 2 * RANKS; r++) {
        int world = r % 2, rank = r / 2;
        OK(worlds[world][rank], gyre_all_reduce_init(worlds[world][rank], in[world][rank], out[world][rank], 5000,
                                                     GYRE_INT32, GYRE_SUM, &requests[r]));
    }
    for (int round = 0; round < 6; round++) {
        for (int r = 0; r < 2 * RANKS; r++) {
            fill(r % 2, r / 2, 5000, round);
            OK(NULL, gyre_start(requests[r]));
        }
        collect(requests, round % 3, true);
        for (int r = 0; r < 2 * RANKS; r++)
            expect_sums(r % 2, r / 2, 5000, round);
    }
    for (int r = 0; r < 2 * RANKS; r++)
        OK(NULL, gyre_request_free(&requests[r]));
}

/* ---- a thread for each rank of one world, and this one for all of the other ---- */

static void *rank_of_first(void *argument)
{
    int rank = (int)(intptr_t)argument;
    gyre_comm *comm = worlds[0][rank];
    for (int round = 0; round < 40; round++) {
        size_t count = counts[round % 3];
        gyre_request *request;
        ptrdiff_t index;
        fill(0, rank, count, round);
        OK(comm, gyre_all_reduce_start(comm, in[0][rank], out[0][rank], count, GYRE_INT32, GYRE_SUM, &request));
        OK(comm, gyre_wait_any(&request, 1, &index));
        CHECK(index == 0 && !request);
        expect_sums(0, rank, count, round);
    }
    return NULL;
}

static void together(void)
{
    pthread_t threads[RANKS];
    for (int r = 0; r < RANKS; r++)
        CHECK(pthread_create(&threads[r], NULL, rank_of_first, (void *)(intptr_t)r) == 0);
    for (int round = 0; round < 40; round++) {
        gyre_request *requests[RANKS];
        size_t count = counts[round % 3];
        for (int rank = 0; rank < RANKS; rank++) {
            fill(1, rank, count, round);
            OK(worlds[1][rank], gyre_all_reduce_start(worlds[1][rank], in[1][rank], out[1][rank], count, GYRE_INT32,
                                                      GYRE_SUM, &requests[rank]));
        }
        OK(NULL, gyre_wait_all(requests, RANKS));
        for (int rank = 0; rank < RANKS; rank++)
            expect_sums(1, rank, count, round);
    }
    for (int r = 0; r < RANKS; r++)
        CHECK(pthread_join(threads[r], NULL) == 0);
}

int main(void)
{
    alarm(100);
    CHECK(mkdtemp(folder));
    for (int r = 0; r < 2 * RANKS; r++) {
        in[r % 2][r / 2] = calloc(MOST, sizeof(int32_t));
        out[r % 2][r / 2] = calloc(MOST, sizeof(int32_t));
        CHECK(in[r % 2][r / 2] && out[r % 2][r / 2]);
    }
    on_threads(meet, 0, 2 * RANKS);
    rmdir(folder);
    sums_in_a_group();
    messages_in_a_group();
    requests_of_both();
    waits_at_any_moment();
    persistent_of_both();
    together();
    for (int r = 0; r < 2 * RANKS; r++)
        OK(NULL, gyre_comm_destroy(worlds[r % 2][r / 2]));
    for (int r = 0; r < 2 * RANKS; r++) {
        free(in[r % 2][r / 2]);
        free(out[r % 2][r / 2]);
    }
    return 0;
}

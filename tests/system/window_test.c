/* One rank of the tests of one-sided access, one suite per run (the argument):
 *   access      put, get, accumulate, flush, with memory of gyre and of the heap, sizes that differ, all pairs
 *   signals     what was put before a signal is there after it, round after round along a ring of ranks, each of which
 *               may be one round ahead of the next
 *   passive     a target that makes no call is written and read (progress thread)
 *   alone       the same without a thread: puts and gets that a device does alone (RDMA, tests/rdma)
 *   wrong       arguments, and a signal that never comes, within the world's time and within the communicator's own
 *   booleans    accumulations of booleans give 0 and 1, whatever bytes are true
 *   unmade      an accumulation with an operation that the target has not made
 *   late        a target that makes no call is named after GYRE_TIMEOUT
 *   death       a target that dies is named */
#include <signal.h>

#include "support/rank.h"

#define BYTES (1 << 20)
#define ROUNDS 200

static gyre_comm *comm;
static int rank, size;

static unsigned char *memory_of(bool shared, size_t bytes)
{
    void *memory = NULL;
    if (shared)
        OK(comm, gyre_mem_alloc(comm, bytes, &memory));
    else
        memory = calloc(bytes, 1);
    CHECK(memory != NULL);
    return memory;
}

static void forget(bool shared, unsigned char *memory)
{
    if (shared)
        OK(comm, gyre_mem_free(comm, memory));
    else
        free(memory);
}

static uint32_t value_at(int from, int to, size_t i)
{
    return (uint32_t)(from * 1000003 + to * 10007) + (uint32_t)i * 2654435761u;
}

/* Every rank writes its part of every other rank's window, all read what was written, all add to one place. */
static void access_all(bool shared, size_t part)
{
    size_t bytes = (size_t)size * part * 4 + 64 + (size_t)rank * 8;
    unsigned char *memory = memory_of(shared, bytes);
    uint32_t *mine = malloc(part * 4 + 4), *theirs = malloc(part * 4 + 4);
    gyre_window *window;
    CHECK(mine && theirs);
    OK(comm, gyre_window_create(comm, memory, bytes, &window));
    for (int to = 0; to < size; to++) {
        for (size_t i = 0; i < part; i++)
            mine[i] = value_at(rank, to, i);
        OK(comm, gyre_window_put(window, mine, part, GYRE_UINT32, to, (size_t)rank * part * 4));
        memset(mine, 0xff, part * 4); /* it is ours again */
    }
    OK(comm, gyre_window_flush(window, -1));
    OK(comm, gyre_barrier(comm));
    for (int from = 0; from < size; from++)
        for (size_t i = 0; i < part; i++) {
            uint32_t got;
            memcpy(&got, memory + ((size_t)from * part + i) * 4, 4);
            CHECK(got == value_at(from, rank, i));
        }
    for (int to = 0; to < size; to++) {
        int from = (to + rank) % size;
        OK(comm, gyre_window_get(window, theirs, part, GYRE_UINT32, to, (size_t)from * part * 4));
        for (size_t i = 0; i < part; i++)
            CHECK(theirs[i] == value_at(from, to, i));
    }
    OK(comm, gyre_barrier(comm));
    for (int round = 0; round < 20; round++)
        for (int to = 0; to < size; to++) {
            for (size_t i = 0; i < part; i++)
                mine[i] = (uint32_t)(rank + 1);
            OK(comm, gyre_window_accumulate(window, mine, part, GYRE_UINT32, GYRE_SUM, to, 0));
        }
    OK(comm, gyre_window_flush(window, -1));
    OK(comm, gyre_barrier(comm));
    for (size_t i = 0; i < part; i++) {
        uint32_t got, wanted = value_at(0, rank, i) + 20u * (uint32_t)(size * (size + 1) / 2);
        memcpy(&got, memory + i * 4, 4);
        CHECK(got == wanted);
    }
    OK(comm, gyre_window_destroy(window));
    forget(shared, memory);
    free(mine);
    free(theirs);
}

static void signals(bool shared)
{
    uint64_t *memory = (uint64_t *)(void *)memory_of(shared, BYTES);
    gyre_window *window;
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    OK(comm, gyre_window_create(comm, memory, BYTES, &window));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t data[16];
        for (int i = 0; i < 16; i++)
            data[i] = round * 100 + (uint64_t)rank;
        OK(comm, gyre_window_put(window, data, 16, GYRE_UINT64, to, (round % (uint64_t)(size + 1)) * 128));
        OK(comm, gyre_window_signal(window, to, 3));
        OK(comm, gyre_window_wait(window, 3, round));
        for (int i = 0; i < 16; i++)
            CHECK(memory[round % (uint64_t)(size + 1) * 16 + (uint64_t)i] == round * 100 + (uint64_t)from);
    }
    OK(comm, gyre_window_destroy(window));
    forget(shared, (unsigned char *)memory);
}

/* Rank 0 makes no call until it sees in its memory that all the others are through. */
static void passive(bool shared)
{
    unsigned char *memory = memory_of(shared, 4096);
    gyre_window *window;
    OK(comm, gyre_window_create(comm, memory, 4096, &window));
    OK(comm, gyre_barrier(comm));
    const volatile int64_t *through = (const volatile int64_t *)(const void *)(memory + 2048);
    for (int r = 1; rank == 0 && r < size; r++)
        while (through[r] != 1)
            usleep(1000); /* in vain: the alarm ends it */
    if (rank != 0) {
        int64_t one = 1, got = 0;
        for (int i = 0; i < 50; i++)
            OK(comm, gyre_window_accumulate(window, &one, 1, GYRE_INT64, GYRE_SUM, 0, (size_t)rank * 8));
        OK(comm, gyre_window_flush(window, 0));
        OK(comm, gyre_window_get(window, &got, 1, GYRE_INT64, 0, (size_t)rank * 8));
        CHECK(got == 50);
        OK(comm, gyre_window_put(window, &one, 1, GYRE_INT64, 0, 2048 + (size_t)rank * 8));
        OK(comm, gyre_window_flush(window, 0));
    }
    OK(comm, gyre_window_destroy(window));
    forget(shared, memory);
}

/* Rank 0 sees in its memory, outside gyre, that the others are through; they look there themselves. */
static void alone(bool shared)
{
    unsigned char *memory = memory_of(shared, BYTES), *mine = malloc(BYTES);
    size_t part = BYTES / 2 / (size_t)size;
    gyre_window *window;
    CHECK(mine != NULL);
    OK(comm, gyre_window_create(comm, memory, BYTES, &window));
    OK(comm, gyre_barrier(comm));
    const volatile unsigned char *through = memory + BYTES / 2;
    for (int r = 1; rank == 0 && r < size; r++) {
        while (!through[r])
            usleep(1000); /* in vain: the alarm ends it */
        for (size_t i = 0; i < part; i++)
            CHECK(memory[(size_t)r * part + i] == (unsigned char)value_at(r, 0, i));
    }
    if (rank != 0) {
        for (size_t i = 0; i < part; i++)
            mine[i] = (unsigned char)value_at(rank, 0, i);
        OK(comm, gyre_window_put(window, mine, part, GYRE_UINT8, 0, (size_t)rank * part));
        OK(comm, gyre_window_flush(window, 0));
        OK(comm, gyre_window_get(window, mine + BYTES / 2, part, GYRE_UINT8, 0, (size_t)rank * part));
        CHECK(memcmp(mine, mine + BYTES / 2, part) == 0);
        OK(comm, gyre_window_put(window, "\1", 1, GYRE_UINT8, 0, BYTES / 2 + (size_t)rank));
        OK(comm, gyre_window_flush(window, 0));
    }
    OK(comm, gyre_window_destroy(window));
    forget(shared, memory);
    free(mine);
}

static void wrong(void)
{
    unsigned char memory[64] = {0};
    gyre_window *window;
    uint64_t number = 0;
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_window_create(comm, NULL, 64, &window));
    OK(comm, gyre_window_create(comm, memory, sizeof(memory), &window));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_window_put(window, &number, 1, GYRE_UINT64, size, 0));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_window_put(window, &number, 1, GYRE_UINT64, 0, 57));
    CHECK(strstr(gyre_last_error(comm), "64 bytes"));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_window_get(window, &number, SIZE_MAX, GYRE_UINT64, 0, 8));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_window_get(window, NULL, 1, GYRE_UINT64, 0, 8));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_window_accumulate(window, &number, 1, GYRE_UINT64, GYRE_AVERAGE, 0, 0));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_window_accumulate(window, &number, 1, GYRE_FLOAT64, GYRE_BIT_OR, 0, 0));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_window_signal(window, 0, GYRE_WINDOW_SIGNALS));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_window_flush(window, -2));
    GIVES(GYRE_PEER_LATE, comm, gyre_window_wait(window, 0, 1));
    CHECK(strstr(gyre_last_error(comm), "signal 0"));
    OK(comm, gyre_comm_set(comm, "timeout", "0.25")); /* a communicator's own instead of GYRE_TIMEOUT */
    GIVES(GYRE_PEER_LATE, comm, gyre_window_wait(window, 0, 1));
    CHECK(strstr(gyre_last_error(comm), "within 0.25 s"));
    OK(comm, gyre_comm_set(comm, "timeout", "100"));
    OK(comm, gyre_window_destroy(window));
}

/* Any byte that is not 0 is true, and what is accumulated is 0 or 1. Bytes without an accumulation stay as they are. */
static void booleans(void)
{
    static const unsigned char before[] = {0, 0, 8, 8, 8}, sum[] = {0, 6, 0, 6}, product[] = {0, 2, 0, 2},
                               wanted[] = {0, 1, 1, 1, 8};
    unsigned char memory[sizeof before], got[sizeof before];
    gyre_window *window;
    memcpy(memory, before, sizeof memory);
    OK(comm, gyre_window_create(comm, memory, sizeof(memory), &window));
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_window_accumulate(window, sum, 4, GYRE_BOOL, GYRE_SUM, (rank + 1) % size, 0));
    OK(comm, gyre_window_flush(window, -1));
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_window_get(window, got, sizeof got, GYRE_BOOL, rank, 0));
    CHECK(memcmp(got, wanted, sizeof got) == 0);
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_window_accumulate(window, product, 3, GYRE_BOOL, GYRE_PRODUCT, (rank + 1) % size, 1));
    OK(comm, gyre_window_flush(window, -1));
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_window_get(window, got, sizeof got, GYRE_BOOL, rank, 0));
    CHECK(memcmp(got, "\0\0\1\0\10", sizeof got) == 0);
    OK(comm, gyre_window_destroy(window));
}

static void subtract(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    CHECK(!user && dtype == GYRE_INT64);
    for (size_t i = 0; i < count; i++)
        ((int64_t *)result)[i] = ((const int64_t *)left)[i] - ((const int64_t *)right)[i];
}

static void expect_refused(gyre_status status, int number)
{
    char text[100];
    GIVES(GYRE_INVALID_ARGUMENT, comm, status);
    snprintf(text, sizeof text, "rank 1 has no operation to accumulate with as its number %d of gyre_op_create",
             number);
    CHECK(strstr(gyre_last_error(comm), text));
}

/* Of rank 0, with operations that rank 1 makes later. All that it asks besides happens. */
static void accumulate_unmade(gyre_window *window, gyre_op first, gyre_op second)
{
    enum { MANY = 20000 }; /* several frames */
    static const int64_t ones[MANY] = {[0 ... MANY - 1] = 1};
    int64_t got[2], hundred = 100;
    OK(comm, gyre_window_accumulate(window, ones, MANY, GYRE_INT64, second, 1, 0));
    OK(comm, gyre_window_accumulate(window, ones, 1, GYRE_INT64, first, 1, 0)); /* made, but behind one that is not */
    OK(comm, gyre_window_accumulate(window, ones, 1, GYRE_INT64, GYRE_SUM, 1, 0));
    OK(comm, gyre_window_put(window, &hundred, 1, GYRE_INT64, 1, 8));
    OK(comm, gyre_window_accumulate(window, ones, 1, GYRE_INT64, second, 2, 0));
    OK(comm, gyre_window_flush(window, 2)); /* which has made it */
    expect_refused(gyre_window_flush(window, -1), 2);
    OK(comm, gyre_window_flush(window, -1)); /* it is told once */
    OK(comm, gyre_window_accumulate(window, ones, 1, GYRE_INT64, first, 1, 0));
    OK(comm, gyre_window_get(window, got, 2, GYRE_INT64, 1, 0));
    CHECK(got[0] == 1 - 1 && got[1] == 100);
    OK(comm, gyre_window_get(window, got, 1, GYRE_INT64, 2, 0));
    CHECK(got[0] == -1);
    OK(comm, gyre_window_accumulate(window, ones, 1, GYRE_INT64, second, 1, 0)); /* destroying tells */
}

static void unmade(void)
{
    enum { BOTH = 20000 * 8 };
    int64_t *memory = calloc(BOTH, 1), one = 1;
    gyre_window *window;
    gyre_op first, second;
    CHECK(memory);
    OK(comm, gyre_op_create(comm, subtract, NULL, 0, &first));
    if (rank != 1)
        OK(comm, gyre_op_create(comm, subtract, NULL, 0, &second));
    OK(comm, gyre_window_create(comm, memory, BOTH, &window));
    OK(comm, gyre_barrier(comm));
    if (rank == 0) {
        accumulate_unmade(window, first, second);
        expect_refused(gyre_window_destroy(window), 2);
    } else {
        OK(comm, gyre_window_destroy(window));
    }
    CHECK(memory[0] == (rank == 2 ? -1 : 0));
    if (rank == 1)
        OK(comm, gyre_op_create(comm, subtract, NULL, 0, &second));
    OK(comm, gyre_window_create(comm, memory, BOTH, &window));
    if (rank == 0)
        OK(comm, gyre_window_accumulate(window, &one, 1, GYRE_INT64, second, 1, 0));
    OK(comm, gyre_window_destroy(window));
    CHECK(rank != 1 || memory[0] == -1);
    free(memory);
}

static void late(void)
{
    unsigned char *memory = memory_of(false, 4096);
    uint64_t got;
    gyre_window *window;
    OK(comm, gyre_window_create(comm, memory, 4096, &window));
    rank_gather(comm, GYRE_PEER_LATE);
    if (rank == size - 1) {
        sleep(6);
        return;
    }
    gyre_status status = GYRE_SUCCESS;
    while (status == GYRE_SUCCESS) /* while it is inside the barrier it answers */
        status = gyre_window_get(window, &got, 1, GYRE_UINT64, size - 1, 0);
    GIVES(GYRE_PEER_LATE, comm, status);
    char name[32];
    snprintf(name, sizeof(name), "rank %d", size - 1);
    /* the word that a host's ranks share comes without the whole error message */
    CHECK(strstr(gyre_last_error(comm), name) &&
          (strstr(gyre_last_error(comm), "GYRE_TIMEOUT") || strstr(gyre_last_error(comm), "told by a rank")));
}

static void death(void)
{
    unsigned char *memory = memory_of(false, 4096);
    gyre_window *window;
    OK(comm, gyre_window_create(comm, memory, 4096, &window));
    rank_gather(comm, GYRE_PEER_DEAD);
    if (rank == size - 1)
        raise(SIGKILL);
    GIVES(GYRE_PEER_DEAD, comm, gyre_window_wait(window, 0, 1));
    char name[32];
    snprintf(name, sizeof(name), "rank %d", size - 1);
    CHECK(strstr(gyre_last_error(comm), name));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    comm = rank_begin(100);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    for (int shared = 0; shared < 2; shared++) {
        if (!strcmp(argv[1], "access"))
            for (size_t part = 1; part <= 300000; part = part * 17 + 1)
                access_all(shared, part);
        else if (!strcmp(argv[1], "signals"))
            signals(shared);
        else if (!strcmp(argv[1], "passive"))
            passive(shared);
        else if (!strcmp(argv[1], "alone"))
            alone(shared);
    }
    if (!strcmp(argv[1], "wrong"))
        wrong();
    if (!strcmp(argv[1], "booleans"))
        booleans();
    if (!strcmp(argv[1], "unmade"))
        unmade();
    if (!strcmp(argv[1], "late") || !strcmp(argv[1], "death")) {
        argv[1][0] == 'l' ? late() : death();
        sleep(argv[1][0] == 'l' ? 3 : 0); /* an end in silence would be a death to a rank that is still waiting */
        _exit(0);
    }
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_comm_destroy(comm));
    return 0;
}

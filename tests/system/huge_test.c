/* One rank of the test of counts beyond 2^32 elements: an all_reduce in place of 2^32 + 17 bytes, and a message of as
 * many. It takes 4 GiB of memory on each of two ranks, and minutes; only with GYRE_TEST_HUGE=1. */
#include "support/rank.h"

#define COUNT (((size_t)1 << 32) + 17)

static uint8_t *memory;
static int rank, size;

static uint8_t value(int of, size_t i)
{
    return (uint8_t)((i * 31 + (i >> 16) * 7 + (i >> 31)) + (size_t)of * 5);
}

static void fill(int of)
{
    for (size_t i = 0; i < COUNT; i++)
        memory[i] = value(of, i);
}

int main(void)
{
    if (!getenv("GYRE_TEST_HUGE")) {
        fprintf(stderr, "4 GiB on each rank, and minutes: only with GYRE_TEST_HUGE=1\n");
        return SKIPPED;
    }
    gyre_comm *comm = rank_begin(590);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    memory = malloc(COUNT + 64);
    CHECK(memory != NULL);
    fill(rank);
    memset(memory + COUNT, 0xa5, 64);
    OK(comm, gyre_all_reduce(comm, memory, memory, COUNT, GYRE_UINT8, GYRE_SUM));
    for (size_t i = 0; i < COUNT; i++) {
        uint8_t sum = 0;
        for (int r = 0; r < size; r++)
            sum = (uint8_t)(sum + value(r, i));
        if (memory[i] != sum)
            rank_fail("all_reduce: element %zu is %u instead of %u", i, memory[i], sum);
    }
    if (rank == 0)
        fill(3);
    if (rank == 0)
        OK(comm, gyre_send(comm, memory, COUNT, GYRE_UINT8, size - 1));
    else if (rank == size - 1)
        OK(comm, gyre_recv(comm, memory, COUNT, GYRE_UINT8, 0));
    for (size_t i = 0; rank == size - 1 && i < COUNT; i++)
        if (memory[i] != value(3, i))
            rank_fail("message: element %zu is %u instead of %u", i, memory[i], value(3, i));
    for (int i = 0; i < 64; i++)
        CHECK(memory[COUNT + (size_t)i] == 0xa5);
    OK(comm, gyre_barrier(comm));
    if (rank == 0)
        printf("%zu elements: exact\n", COUNT);
    fflush(stdout);
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}

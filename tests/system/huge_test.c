/* One rank of the test of counts beyond 2^32 elements: all_reduce, broadcast and a message of 2^32 + 17 bytes, over
 * memory that is small: a buffer is one stretch of pages mapped again and again, one after the other,
 *
 *   address   0        P        2P       ...  1018 P        P = 1031 pages, a prime number of them
 *   pages     [0 .. P) [0 .. P) [0 .. P) ...
 *
 * so a call that works on the whole count writes each byte a thousand times, always with the same value, since what
 * ranks give repeats with P too. A count that is cut to 32 bits leaves nearly all of it unwritten, and an offset that
 * is cut writes the bytes of another phase, as P does not divide 2^32: nothing repeats in step with it. */
#include <sys/mman.h>

#include "support/rank.h"

#define PERIOD ((size_t)1031 * 4096)
#define COUNT (((size_t)1 << 32) + 17)
#define TIMES (COUNT / PERIOD + 2) /* room for a guard behind it */

static int rank, size;

/* Different in every phase and for every rank, and nowhere its own neighbour's. */
static uint8_t value(int of, size_t phase)
{
    uint64_t x = (phase + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)of * UINT64_C(0xc2b2ae3d27d4eb4f);
    return (uint8_t)(x >> 37);
}

static uint8_t *map_often(const char *name)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    CHECK(fd >= 0 && ftruncate(fd, (off_t)PERIOD) == 0);
    uint8_t *whole = mmap(NULL, TIMES * PERIOD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(whole != MAP_FAILED);
    for (size_t i = 0; i < TIMES; i++)
        CHECK(mmap(whole + i * PERIOD, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
    close(fd);
    return whole;
}

static void expect(const uint8_t *output, const char *what, uint8_t (*wanted)(size_t phase))
{
    for (size_t phase = 0; phase < PERIOD; phase++)
        if (output[phase] != wanted(phase))
            rank_fail("%s: byte %zu of the period is %u instead of %u", what, phase, output[phase], wanted(phase));
}

static uint8_t sum_of_all(size_t phase)
{
    uint8_t sum = 0;
    for (int r = 0; r < size; r++)
        sum = (uint8_t)(sum + value(r, phase));
    return sum;
}

static uint8_t first_alone(size_t phase)
{
    return value(0, phase);
}

int main(void)
{
    gyre_comm *comm = rank_begin(280);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    uint8_t *input = map_often("input"), *output = map_often("output");
    for (size_t phase = 0; phase < PERIOD; phase++)
        input[phase] = value(rank, phase);

    memset(output, 0xa5, PERIOD);
    OK(comm, gyre_all_reduce(comm, input, output, COUNT, GYRE_UINT8, GYRE_SUM));
    expect(output, "all_reduce", sum_of_all);

    memset(output, 0xa5, PERIOD);
    if (rank == 0)
        OK(comm, gyre_send(comm, input, COUNT, GYRE_UINT8, size - 1));
    else if (rank == size - 1)
        OK(comm, gyre_recv(comm, output, COUNT, GYRE_UINT8, 0));
    if (rank == size - 1)
        expect(output, "a message", first_alone);

    memset(output, 0xa5, PERIOD);
    OK(comm, gyre_broadcast(comm, input, output, COUNT, GYRE_UINT8, 0));
    expect(output, "broadcast", first_alone);
    OK(comm, gyre_barrier(comm));
    if (rank == 0)
        printf("%zu elements: exact\n", COUNT);
    fflush(stdout);
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}

/* Ranks that are processes on one GPU: failures of calls that a kernel of rank 0 executes, and arrangements in which
 * there is no such kernel. One suite per run:
 *
 *   mismatch        ranks make different calls
 *   timeout         the last rank does not make its call in time
 *   launch_failure  a launch fails
 *   groups          collectives and messages in groups
 *   freed           operands are freed and allocated again, at the same addresses or at others
 *   unshared        the driver shares no memory, or not between these devices: calls are staged
 *
 *   mapped_test SUITE */
#include <stdatomic.h>

#include <gyre/cuda.h>

#include "counted_driver.h"
#include "cuda/share.h"
#include "support/rank.h"

enum { COUNT = 1000 };
#define WITHIN_NS 2000000000

#define CU(call) CHECK((call) == GY_CU_SUCCESS)

static gyre_comm *comm;
static int rank, size;
static gy_cu_stream stream;
static gy_cu_address input, output;

static void begin(void)
{
    int devices;
    gy_cu_device handle;
    gy_cu_context context;
    count_driver();
    comm = rank_begin(60);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    OK(NULL, gyre_cuda_available(&devices));
    CU(cu->device_get(&handle, rank % devices));
    CU(cu->context_retain(&context, handle));
    CU(cu->context_push(context));
    CU(cu->stream_create(&stream, GY_CU_STREAM_NON_BLOCKING));
    CU(cu->mem_alloc(&input, COUNT * sizeof(float)));
    CU(cu->mem_alloc(&output, COUNT * sizeof(float)));
    OK(comm, gyre_cuda_attach(comm, rank % devices));
}

static void *pointer(gy_cu_address address)
{
    return (void *)(uintptr_t)address;
}

static gyre_status reduce_on(size_t count)
{
    return gyre_all_reduce_on(comm, pointer(input), pointer(output), count, GYRE_FLOAT32, GYRE_SUM, stream);
}

static void put(gy_cu_address to, float value)
{
    float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = value;
    CU(cu->copy_async(to, (uintptr_t)values, sizeof(values), stream));
    CU(cu->stream_synchronize(stream));
}

static void expect(gy_cu_address from, size_t count, float wanted)
{
    float values[COUNT];
    CU(cu->copy_async((uintptr_t)values, from, count * sizeof(float), stream));
    CU(cu->stream_synchronize(stream));
    for (size_t i = 0; i < count; i++)
        if (values[i] != wanted)
            rank_fail("element %d is %g instead of %g", (int)i, (double)values[i], (double)wanted);
}

static float sum_of_ranks(void)
{
    return (float)(size * (size - 1) / 2);
}

/* The stream goes on in time; the communicator has failed with a message that has both parts. */
static void expect_failure(gyre_status wanted, const char *part, const char *other)
{
    const int64_t since = rank_now_ns();
    (void)cu->stream_synchronize(stream);
    while (gyre_cuda_status(comm) == GYRE_SUCCESS && rank_now_ns() - since < WITHIN_NS)
        usleep(1000);
    CHECK(rank_now_ns() - since < WITHIN_NS);
    GIVES(wanted, comm, gyre_cuda_status(comm));
    if (!strstr(gyre_last_error(comm), part) || !strstr(gyre_last_error(comm), other))
        rank_fail("the message lacks \"%s\" or \"%s\": %s", part, other, gyre_last_error(comm));
    GIVES(wanted, comm, reduce_on(COUNT));
}

/* ---- Suites ---- */

static void test_mismatch(void)
{
    put(input, (float)rank);
    OK(comm, reduce_on(COUNT));
    expect(output, COUNT, sum_of_ranks());
    OK(comm, reduce_on(rank == size - 1 ? COUNT : COUNT - 1));
    expect_failure(GYRE_MISMATCH, "ranks called different collectives", "float32 x 999");
}

static void test_timeout(void)
{
    char part[40];
    snprintf(part, sizeof(part), "rank %d did not arrive", size - 1);
    if (rank < size - 1) {
        OK(comm, reduce_on(COUNT));
        expect_failure(GYRE_PEER_LATE, part, "all_reduce");
        return;
    }
    const int64_t since = rank_now_ns();
    while (gyre_cuda_status(comm) == GYRE_SUCCESS && rank_now_ns() - since < 5 * (int64_t)WITHIN_NS)
        (void)gyre_progress(comm);
    GIVES(GYRE_PEER_LATE, comm, gyre_progress(comm));
}

static void test_launch_failure(void)
{
    atomic_store(&fail_launch, 2);
    put(input, (float)rank);
    OK(comm, reduce_on(COUNT));
    expect(output, COUNT, sum_of_ranks());
    OK(comm, reduce_on(COUNT));
    expect_failure(GYRE_SYSTEM, "rank 0: GPU 0 has failed", "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS");
}

static void make_group(gy_cu_address gathered, gy_cu_address received)
{
    OK(comm, gyre_group_begin());
    OK(comm, gyre_send_on(comm, pointer(input), COUNT, GYRE_FLOAT32, (rank + 1) % size, stream));
    OK(comm, reduce_on(COUNT));
    OK(comm, gyre_barrier_on(comm, stream));
    OK(comm, gyre_recv_on(comm, pointer(received), COUNT, GYRE_FLOAT32, (rank + size - 1) % size, stream));
    OK(comm, gyre_all_gather_on(comm, pointer(input), pointer(gathered), COUNT, GYRE_FLOAT32, stream));
    OK(comm, gyre_group_end());
}

static void test_groups(void)
{
    gy_cu_address gathered, received;
    CU(cu->mem_alloc(&gathered, (size_t)size * COUNT * sizeof(float)));
    CU(cu->mem_alloc(&received, COUNT * sizeof(float)));
    for (int round = 0; round < 20; round++) {
        put(input, (float)(rank + round));
        make_group(gathered, received);
        expect(output, COUNT, sum_of_ranks() + (float)(size * round));
        expect(received, COUNT, (float)((rank + size - 1) % size + round));
        for (int r = 0; r < size; r++)
            expect(gathered + (gy_cu_address)r * COUNT * sizeof(float), COUNT, (float)(r + round));
    }
    CHECK(rank > 0 || atomic_load(&launches) >= 40);
}

/* Returns how much memory of other processes this process has mapped. */
static unsigned count_mappings(void)
{
    char why[300];
    struct gy_device device;
    CHECK(gy_device_open(&device, &counted, 0, why, sizeof(why)));
    struct gy_share *share = gy_share_get(&device, why, sizeof(why));
    CHECK(share);
    const unsigned mapped = gy_share_counts(share->mappings).mapped;
    gy_share_put(share);
    gy_device_close(&device);
    return mapped;
}

/* Every round has other allocations, among them some at addresses that have been freed. The leader's mappings do not
 * keep what has been freed: of each other rank there are the operands of two rounds and the probe, at most. */
static void test_freed(void)
{
    for (int round = 0; round < 30; round++) {
        CU(cu->mem_free(input));
        CU(cu->mem_free(output));
        if (round % 3 == 0)
            CU(cu->mem_alloc(&output, COUNT * sizeof(float)));
        CU(cu->mem_alloc(&input, (COUNT + (size_t)round % 2 * 100000) * sizeof(float)));
        if (round % 3 != 0)
            CU(cu->mem_alloc(&output, COUNT * sizeof(float)));
        put(input, (float)(rank + round));
        put(output, -1);
        OK(comm, reduce_on(COUNT));
        expect(output, COUNT, sum_of_ranks() + (float)(size * round));
        OK(comm, gyre_barrier(comm)); /* no rank frees what the leader still uses */
    }
    CHECK(rank > 0 || atomic_load(&launches) == 30);
    CHECK(count_mappings() <= (rank > 0 ? 0 : 5 * (unsigned)(size - 1)));
}

static void test_unshared(void)
{
    put(input, (float)rank);
    OK(comm, reduce_on(COUNT));
    expect(output, COUNT, sum_of_ranks());
    CHECK(atomic_load(&launches) == 0 && atomic_load(&copies) > 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
        bool survives; /* the world */
    } suites[] = {{"mismatch", test_mismatch, false},
                  {"timeout", test_timeout, false},
                  {"launch_failure", test_launch_failure, false},
                  {"groups", test_groups, true},
                  {"freed", test_freed, true},
                  {"unshared", test_unshared, true}};
    CHECK(argc == 2);
    for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
        if (strcmp(suites[i].name, argv[1]) == 0) {
            begin();
            suites[i].run();
            const gyre_status ended = gyre_comm_destroy(comm);
            CHECK(ended == GYRE_SUCCESS || !suites[i].survives);
            return 0;
        }
    rank_fail("no suite is called %s", argv[1]);
}

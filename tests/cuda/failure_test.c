/* One rank of the tests of failures of calls on device memory, one suite per run (the argument):
 *
 *   death      a rank ends while others' streams wait for its call
 *   abort      a rank aborts while its own stream waits
 *   destroyed  a communicator is destroyed with a call in flight
 *   illegal    a rank's device fails; illegal.plain: during a call for which the host waits
 *   refused    a rank attaches to a device that does not exist
 *   memory     an allocation of one rank fails while all attach: every rank gets the same status
 *   misuse     a communicator that is not attached, windows and registrations of device memory
 *   none       there is no driver */
#include "core/mem.h"
#include "cuda/driver.h"
#include "support/rank.h"

#include <gyre/cuda.h>

enum { COUNT = 1000 };
#define WITHIN_NS 1000000000 /* each survivor's stream continues within this time */

static const struct gy_driver *cu;
static gyre_comm *comm;
static int rank;
static gy_cu_context context;
static gy_cu_stream stream;
static gy_cu_address input, output;

#define CU(call) CHECK((call) == GY_CU_SUCCESS)

static void begin(void)
{
    char why[300] = "";
    gy_cu_device handle;
    comm = rank_begin(60);
    rank = gyre_comm_rank(comm);
    cu = gy_driver_get(why, sizeof(why));
    CHECK(cu != NULL);
    CU(cu->init(0));
    CU(cu->device_get(&handle, 0));
    CU(cu->context_retain(&context, handle));
    CU(cu->context_push(context));
    CU(cu->stream_create(&stream, 0));
    CU(cu->mem_alloc(&input, COUNT * sizeof(float)));
    CU(cu->mem_alloc(&output, COUNT * sizeof(float)));
}

static gyre_status reduce_on(void)
{
    return gyre_all_reduce_on(comm, (const void *)(uintptr_t)input, (void *)(uintptr_t)output, COUNT, GYRE_FLOAT32,
                              GYRE_SUM, stream);
}

/* Expects that the stream continues within a second, and that the failure has its status and message. */
static void expect_failure(gyre_status wanted, const char *part)
{
    int64_t since = rank_now_ns();
    (void)cu->stream_synchronize(stream);
    if (rank_now_ns() - since > WITHIN_NS)
        rank_fail("the stream was blocked for %d ms", (int)((rank_now_ns() - since) / 1000000));
    GIVES(wanted, comm, gyre_cuda_status(comm));
    if (!strstr(gyre_last_error(comm), part))
        rank_fail("the message does not contain \"%s\": %s", part, gyre_last_error(comm));
    GIVES(wanted, comm, reduce_on());
}

static void test_death(void)
{
    OK(comm, gyre_cuda_attach(comm, 0));
    OK(comm, reduce_on());
    CU(cu->stream_synchronize(stream));
    if (rank == 1)
        _exit(0); /* ends without destroying its communicators */
    OK(comm, reduce_on());
    expect_failure(GYRE_PEER_DEAD, "rank 1");
}

static void test_abort(void)
{
    OK(comm, gyre_cuda_attach(comm, 0));
    if (rank == 0) {
        OK(comm, reduce_on());
        usleep(50000);
        OK(comm, gyre_comm_abort(comm));
    } else {
        while (gyre_progress(comm) == GYRE_SUCCESS)
            usleep(1000);
        GIVES(GYRE_ABORTED, comm, reduce_on());
        return;
    }
    expect_failure(GYRE_ABORTED, "rank 0 aborted");
}

static void test_destroyed(void)
{
    gyre_comm *other;
    OK(comm, gyre_comm_duplicate(comm, &other));
    OK(other, gyre_cuda_attach(other, 0));
    if (rank == 0) {
        OK(other, gyre_all_reduce_on(other, (const void *)(uintptr_t)input, (void *)(uintptr_t)output, COUNT,
                                     GYRE_FLOAT32, GYRE_SUM, stream));
        usleep(20000);
    }
    OK(comm, gyre_barrier(comm));
    OK(other, gyre_comm_destroy(other));
    CU(cu->stream_synchronize(stream));
    OK(comm, gyre_barrier(comm)); /* the world is still usable */
    OK(comm, gyre_comm_duplicate(comm, &other));
    OK(other, gyre_cuda_attach(other, 0));
    OK(comm, gyre_group_begin()); /* the call is dropped: the end of the group finds none */
    OK(other, gyre_all_reduce_on(other, (const void *)(uintptr_t)input, (void *)(uintptr_t)output, COUNT, GYRE_FLOAT32,
                                 GYRE_SUM, stream));
    OK(other, gyre_comm_destroy(other));
    OK(comm, gyre_group_end());
    CU(cu->stream_synchronize(stream));
    OK(comm, gyre_barrier(comm));
}

/* The host waits for the call. The other ranks must not wait for a rank whose GPU has failed. */
static void test_illegal_plain(void)
{
    OK(comm, gyre_cuda_attach(comm, 0));
    rank_gather(comm, GYRE_SYSTEM);
    if (rank == 1) {
        (void)cu->copy_async(output, input, 1u << 30, stream);
        (void)cu->stream_synchronize(stream);
    }
    int64_t since = rank_now_ns();
    gyre_status status = gyre_all_reduce(comm, (const void *)(uintptr_t)input, (void *)(uintptr_t)output, COUNT,
                                         GYRE_FLOAT32, GYRE_SUM);
    CHECK(status == GYRE_SYSTEM && rank_now_ns() - since < WITHIN_NS);
    if (!strstr(gyre_last_error(comm), "rank 1") || !strstr(gyre_last_error(comm), "CUDA_ERROR_ILLEGAL_ADDRESS"))
        rank_fail("the message does not name what has failed: %s", gyre_last_error(comm));
}

static void test_illegal(void)
{
    OK(comm, gyre_cuda_attach(comm, 0));
    rank_gather(comm, GYRE_SYSTEM);
    if (rank == 1) /* the copy exceeds the allocation */
        (void)cu->copy_async(output, input, 1u << 30, stream);
    (void)reduce_on();
    if (rank == 0)
        expect_failure(GYRE_SYSTEM, "rank 1: GPU 0 has failed");
    while (gyre_progress(comm) == GYRE_SUCCESS)
        usleep(1000);
    GIVES(GYRE_SYSTEM, comm, gyre_progress(comm));
}

static void test_refused(void)
{
    GIVES(GYRE_UNSUPPORTED, comm, gyre_cuda_attach(comm, rank == 1 ? 99 : 0));
    CHECK(strstr(gyre_last_error(comm), "rank 1 cannot use its GPU"));
    CHECK(strstr(gyre_last_error(comm), "CUDA_ERROR_INVALID_DEVICE") || strstr(gyre_last_error(comm), "101"));
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_cuda_attach(comm, GYRE_CUDA_CURRENT));
    OK(comm, reduce_on());
    CU(cu->stream_synchronize(stream));
}

/* The result of a rank when the n-th allocation of rank 1 fails. */
struct shortage {
    int32_t status, has_failed; /* has_failed: rank 1 has reached the allocation */
};

/* Attaches in a new world each time, since a shortage may end the world; the ranks compare the results in the next one.
 * Returns false after a world in which rank 1 had no such allocation. */
static bool attach_without(uint64_t nth, struct shortage *last)
{
    struct shortage all[2];
    OK(comm, gyre_all_gather(comm, last, all, 2, GYRE_INT32));
    if (all[0].status != all[1].status)
        rank_fail("without allocation %d rank 0 got %s, and rank 1 %s", (int)nth - 1,
                  gyre_status_name((gyre_status)all[0].status), gyre_status_name((gyre_status)all[1].status));
    if (!all[1].has_failed)
        return false;
    const uint64_t before = gy_alloc_count();
    const int64_t since = rank_now_ns();
    if (rank == 1)
        gy_alloc_fail_at(nth);
    last->status = (int32_t)gyre_cuda_attach(comm, 0);
    gy_alloc_fail_at(0);
    CHECK(rank_now_ns() - since < WITHIN_NS);
    last->has_failed = rank == 1 && gy_alloc_count() - before >= nth;
    return true;
}

static void test_memory(void)
{
    struct shortage last = {.has_failed = true};
    uint64_t nth = 1;
    for (; attach_without(nth, &last); nth++) {
        (void)gyre_comm_destroy(comm); /* returns SUCCESS, or the status of the shortage */
        comm = rank_begin(60);
    }
    CHECK(nth > 3);
}

static void test_misuse(void)
{
    gyre_window *window;
    GIVES(GYRE_INVALID_ARGUMENT, comm, reduce_on());
    CHECK(strstr(gyre_last_error(comm), "gyre_cuda_attach"));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_cuda_status(comm));
    OK(comm, gyre_cuda_attach(comm, rank == 0 ? 0 : GYRE_CUDA_NONE));
    if (rank == 0) {
        GIVES(GYRE_UNSUPPORTED, comm, gyre_mem_register(comm, (void *)(uintptr_t)input, COUNT));
        GIVES(GYRE_INVALID_ARGUMENT, comm,
              gyre_all_reduce_on(comm, (const void *)(uintptr_t)input, (void *)(uintptr_t)(input + 4), COUNT / 2,
                                 GYRE_FLOAT32, GYRE_SUM, stream));
    } else {
        GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_barrier_on(comm, stream)); /* a stream without a device */
    }
    void *memory = rank == 0 ? (void *)(uintptr_t)input : NULL;
    gyre_status status = gyre_window_create(comm, memory, memory ? COUNT : 0, &window);
    CHECK(status != GYRE_SUCCESS);
}

static void test_none(void)
{
    int devices;
    comm = rank_begin(60);
    GIVES(GYRE_UNSUPPORTED, NULL, gyre_cuda_available(&devices));
    CHECK(strstr(gyre_last_error(NULL), "libcuda.so.1"));
    GIVES(GYRE_INVALID_ARGUMENT, NULL, gyre_cuda_available(NULL));
    GIVES(GYRE_UNSUPPORTED, comm, gyre_cuda_attach(comm, 0));
    CHECK(strstr(gyre_last_error(comm), "rank 0 cannot use its GPU"));
    OK(comm, gyre_comm_destroy(comm));
}

static const struct {
    const char *name;
    void (*run)(void);
    bool survives; /* the world is usable after the suite */
} suites[] = {{"death", test_death, false},
              {"abort", test_abort, false},
              {"destroyed", test_destroyed, true},
              {"illegal", test_illegal, false},
              {"illegal.plain", test_illegal_plain, false},
              {"refused", test_refused, true},
              {"memory", test_memory, true},
              {"misuse", test_misuse, false}};

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    if (strcmp(argv[1], "none") == 0) {
        test_none();
        return 0;
    }
    for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); i++)
        if (strcmp(argv[1], suites[i].name) == 0) {
            begin();
            suites[i].run();
            OK(comm, gyre_comm_destroy(comm));
            return 0;
        }
    rank_fail("no suite is called %s", argv[1]);
}

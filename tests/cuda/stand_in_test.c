/* The stand-in driver follows the rules of the CUDA driver: memory, streams, events, values, contexts, errors. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>

#include "cuda/pointer.h"
#include "support/gpu/gpu.h"

static const struct gy_driver *cu;

static void open_on(const char *devices, int device)
{
    gy_cu_context context;

    gy_gpu_open(devices, 1);
    gy_driver_use(cu = gy_gpu_driver());
    cr_assert_eq(cu->init(0), 0);
    cr_assert_eq(cu->context_retain(&context, device), 0);
    cr_assert_eq(cu->context_push(context), 0);
}

/* A word of pinned memory that is 0. */
static unsigned *word_of_host(void)
{
    void *word;

    cr_assert_eq(cu->host_alloc(&word, sizeof(unsigned), GY_CU_HOST_PORTABLE), 0);
    return memset(word, 0, sizeof(unsigned));
}

static gy_cu_address memory_of(size_t bytes)
{
    gy_cu_address address = 0;

    cr_assert_eq(cu->mem_alloc(&address, bytes), 0);
    return address;
}

Test(memory, is_not_the_hosts, .signal = SIGSEGV)
{
    open_on("1", 0);
    *(volatile char *)(uintptr_t)memory_of(100) = 1;
}

Test(memory, is_recognised)
{
    open_on("2", 1);
    gy_cu_address memory = memory_of(100);
    struct gy_pointer found = gy_pointer_look((const void *)(uintptr_t)(memory + 99));
    cr_assert_eq(found.kind, GY_POINTER_DEVICE);
    cr_assert_eq(found.device, 1);
    cr_assert_eq(found.base, memory);
    cr_assert_eq(gy_pointer_look((const void *)(uintptr_t)(memory + 100)).kind, GY_POINTER_HOST);
    void *pinned;
    cr_assert_eq(cu->host_alloc(&pinned, 10, 0), 0);
    cr_assert_eq(gy_pointer_look(pinned).kind, GY_POINTER_PINNED);
    cr_assert_eq(cu->host_free(pinned), 0);
    cr_assert_eq(cu->mem_free(memory), 0);
    cr_assert_eq(gy_pointer_look((const void *)(uintptr_t)memory).kind, GY_POINTER_HOST);
}

Test(stream, is_in_order_and_copies)
{
    unsigned got[4] = {0};
    gy_cu_stream stream;

    open_on("1", 0);
    gy_cu_address memory = memory_of(sizeof(got));
    cr_assert_eq(cu->stream_create(&stream, GY_CU_STREAM_NON_BLOCKING), 0);
    gy_gpu_hold(true);
    for (unsigned value = 0; value < 50; value++)
        cr_assert_eq(cu->set32_async(memory, value, 4, stream), 0);
    cr_assert_eq(cu->copy_async((uintptr_t)got, memory, sizeof(got), stream), 0);
    cr_assert_eq(cu->stream_query(stream), GY_CU_NOT_READY);
    cr_assert_eq(got[3], 0);
    cr_assert_eq(cu->stream_synchronize(stream), 0);
    cr_assert_eq(got[3], 49);
}

Test(stream, waits_for_events_and_values)
{
    gy_cu_stream first, second;
    gy_cu_event event;

    open_on("1", 0);
    unsigned *word = word_of_host(), *got = word_of_host();
    cr_assert_eq(cu->stream_create(&first, GY_CU_STREAM_NON_BLOCKING), 0);
    cr_assert_eq(cu->stream_create(&second, GY_CU_STREAM_NON_BLOCKING), 0);
    cr_assert_eq(cu->event_create(&event, GY_CU_EVENT_DISABLE_TIMING), 0);
    cr_assert_eq(cu->stream_wait_event(second, event, 0), 0); /* the event has not been recorded: no wait */
    cr_assert_eq(cu->stream_synchronize(second), 0);
    cr_assert_eq(cu->stream_wait_value(first, (uintptr_t)word, 5, GY_CU_WAIT_GEQ), 0);
    cr_assert_eq(cu->event_record(event, first), 0);
    cr_assert_eq(cu->stream_wait_event(second, event, 0), 0);
    cr_assert_eq(cu->stream_write_value(second, (uintptr_t)got, 9, 0), 0);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(cu->event_query(event), GY_CU_NOT_READY);
    __atomic_store_n(word, 5 + (1u << 30), __ATOMIC_RELEASE);
    cr_assert_eq(cu->stream_synchronize(second), 0);
    cr_assert_eq(*got, 9);
    cr_assert_eq(cu->event_query(event), 0);
}

Test(stream, legacy_is_ordered_with_blocking_ones)
{
    gy_cu_stream blocking;

    open_on("1", 0);
    unsigned *word = word_of_host(), *got = word_of_host();
    cr_assert_eq(cu->stream_create(&blocking, 0), 0);
    cr_assert_eq(cu->stream_wait_value(blocking, (uintptr_t)word, 1, GY_CU_WAIT_EQ), 0);
    cr_assert_eq(cu->stream_write_value(NULL, (uintptr_t)got, 1, 0), 0);
    for (int i = 0; i < 100; i++)
        cr_assert_eq(cu->stream_query(NULL), GY_CU_NOT_READY);
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    cr_assert_eq(cu->stream_synchronize(NULL), 0);
    cr_assert_eq(*got, 1);
}

static gy_cu_result add_kernel(int device, const unsigned grid[3], const unsigned block[3], unsigned shared,
                               void **with)
{
    unsigned *to = gy_gpu_bytes(*(gy_cu_address *)with[0], sizeof(*to));

    (void)device, (void)shared;
    *to += *(unsigned *)with[1] * grid[0] * block[0];
    return GY_CU_SUCCESS;
}

Test(stream, launches_a_kernel_with_its_arguments_of_the_call)
{
    static const struct gy_gpu_kernel kernel = {"add", 2, {sizeof(gy_cu_address), sizeof(unsigned)}, add_kernel, NULL};
    gy_cu_library library;
    gy_cu_kernel found;
    gy_cu_function function;
    unsigned amount = 5, got = 0;

    open_on("1", 0);
    gy_cu_address memory = memory_of(4);
    void *with[] = {&memory, &amount};
    gy_gpu_kernel_add(&kernel);
    cr_assert_eq(cu->library_load(&library, "image", NULL, NULL, 0, NULL, NULL, 0), 0);
    cr_assert_eq(cu->library_kernel(&found, library, "none"), GY_CU_NOT_FOUND);
    cr_assert_eq(cu->library_kernel(&found, library, "add"), 0);
    cr_assert_eq(cu->kernel_function(&function, found), 0);
    gy_gpu_hold(true);
    cr_assert_eq(cu->set32_async(memory, 1, 1, NULL), 0);
    cr_assert_eq(cu->launch(function, 2, 1, 1, 3, 1, 1, 0, NULL, with, NULL), 0);
    amount = 1000; /* the launch has already copied the argument */
    cr_assert_eq(cu->copy_async((uintptr_t)&got, memory, 4, NULL), 0);
    cr_assert_eq(cu->stream_synchronize(NULL), 0);
    cr_assert_eq(got, 31);
}

Test(errors, are_sticky_and_the_nth_call_fails)
{
    open_on("1", 0);
    gy_cu_address memory = memory_of(16), other;
    gy_gpu_fail(2, GY_CU_OUT_OF_MEMORY);
    other = memory_of(16);
    cr_assert_eq(cu->mem_alloc(&other, 16), GY_CU_OUT_OF_MEMORY);
    other = memory_of(16);
    cr_assert_eq(cu->set8_async(memory, 0, 17, NULL), 0); /* one byte beyond the allocation: an asynchronous error */
    cr_assert_eq(cu->stream_synchronize(NULL), GY_CU_ILLEGAL_ADDRESS);
    cr_assert_eq(cu->mem_alloc(&other, 16), GY_CU_ILLEGAL_ADDRESS);
}

Test(devices, peers)
{
    int can = 0;

    open_on("2:peer,1", 0);
    cr_assert_eq(cu->can_access_peer(&can, 0, 1), 0);
    cr_assert_eq(can, 1);
    cr_assert_eq(cu->can_access_peer(&can, 1, 2), 0);
    cr_assert_eq(can, 0);
    cr_assert_eq(cu->can_access_peer(&can, 0, 3), GY_CU_INVALID_DEVICE);
}

/* The stand-in of the CUDA driver keeps the driver's rules of memory that two processes share by legacy handles, and
 * of streams of two processes that wait for each other. */
#include "pair.h"

static void give_memory(void)
{
    (void)pair_device("2:peer,1", 0);
    gy_cu_address memory = pair_alloc(PAIR_BYTES);
    pair_write(memory, PAIR_BYTES, 1);
    CU(cu->ipc_get(&pair->handle, memory + 4096)); /* stands for the base all the same */
    pair_tell(1);
    pair_await(2);
    CHECK(pair_reads(memory, 0, PAIR_BYTES, 2));
    CU(cu->mem_free(memory));
}

static gy_cu_result open_given(gy_cu_address *address_p)
{
    return cu->ipc_open(address_p, pair->handle, GY_CU_IPC_LAZY_PEER_ACCESS);
}

Test(legacy, handles_stand_for_the_whole_allocation)
{
    gy_cu_address there = 0, size_base = 0;
    size_t size = 0;

    pair_start(give_memory);
    pair_await(1);
    (void)pair_device("2:peer,1", 0);
    CU(open_given(&there));
    CU(cu->mem_range(&size_base, &size, there + 5000));
    cr_assert_eq(size_base, there);
    cr_assert_eq(size, PAIR_BYTES);
    CHECK(pair_reads(there, 0, PAIR_BYTES, 1));
    pair_write(there, PAIR_BYTES, 2);
    pair_tell(2);
    pair_end();
    CHECK(pair_reads(there, 0, PAIR_BYTES, 2)); /* its owner has freed it, and ended */
    CU(cu->ipc_close(there));
}

Test(legacy, memory_is_not_the_hosts, .signal = SIGSEGV)
{
    gy_cu_address there = 0;

    pair_start(give_memory);
    pair_await(1);
    (void)pair_device("2:peer,1", 0);
    CU(open_given(&there));
    *(volatile char *)(uintptr_t)there = 1;
}

Test(legacy, opens_are_counted)
{
    gy_cu_address first = 0, again = 0;

    pair_start(give_memory);
    pair_await(1);
    (void)pair_device("2:peer,1", 0);
    CU(open_given(&first));
    CU(open_given(&again));
    cr_assert_eq(first, again);
    CU(cu->ipc_close(first));
    CHECK(pair_reads(first, 0, PAIR_BYTES, 1));
    CU(cu->ipc_close(first));
    cr_assert_eq(cu->ipc_close(first), GY_CU_INVALID_VALUE);
    cr_assert_eq(cu->mem_range(&again, NULL, first), GY_CU_NOT_FOUND);
    pair_kill();
}

Test(legacy, survives_the_owner_until_it_is_closed)
{
    gy_cu_address there = 0, late = 0;

    pair_start(give_memory);
    pair_await(1);
    (void)pair_device("2:peer,1", 1);
    CU(open_given(&there));
    pair_kill();
    CHECK(pair_reads(there, 0, PAIR_BYTES, 1));
    CU(open_given(&late)); /* this context has it open */
    cr_assert_eq(late, there);
    CU(cu->ipc_close(there));
    CU(cu->ipc_close(there));
    cr_assert_eq(open_given(&late), GY_CU_MAP_FAILED);
}

Test(legacy, is_refused_where_the_driver_refuses_it)
{
    gy_cu_address there = 0;
    struct gy_cu_ipc_handle own;

    pair_start(give_memory);
    pair_await(1);
    (void)pair_device("2:peer,1", 0);
    gy_cu_address memory = pair_alloc(100);
    CU(cu->ipc_get(&own, memory));
    cr_assert_eq(cu->ipc_open(&there, own, GY_CU_IPC_LAZY_PEER_ACCESS), GY_CU_INVALID_CONTEXT, "its own handle");
    cr_assert_eq(cu->ipc_open(&there, pair->handle, 0), GY_CU_INVALID_VALUE, "a flag that does not exist");
    CU(open_given(&there));
    cr_assert_eq(cu->ipc_get(&own, there), GY_CU_INVALID_VALUE, "the memory of another process");
    cr_assert_eq(cu->mem_free(there), GY_CU_INVALID_VALUE);
    cr_assert_eq(cu->ipc_close(memory), GY_CU_INVALID_VALUE);
    void *pinned;
    CU(cu->host_alloc(&pinned, 10, 0));
    cr_assert_eq(cu->ipc_get(&own, (uintptr_t)pinned), GY_CU_INVALID_VALUE);
    setenv("GYRE_TEST_GPU_IPC", "apart", 1);
    cr_assert_eq(open_given(&there), GY_CU_INVALID_VALUE);
    CU(cu->ipc_get(&own, memory));
    setenv("GYRE_TEST_GPU_IPC", "off", 1);
    cr_assert_eq(open_given(&there), GY_CU_NOT_SUPPORTED);
    cr_assert_eq(cu->ipc_get(&own, memory), GY_CU_NOT_SUPPORTED);
    pair_kill();
}

Test(legacy, needs_peer_access_to_the_owners_device)
{
    gy_cu_address there = 0;

    pair_start(give_memory);
    pair_await(1);
    (void)pair_device("2:peer,1", 2);
    cr_assert_eq(open_given(&there), GY_CU_PEER_ACCESS_UNSUPPORTED);
    pair_kill();
}

static unsigned long long buffer_of(gy_cu_address address)
{
    unsigned attribute = GY_CU_POINTER_BUFFER_ID;
    unsigned long long id = 0;
    void *into = &id;

    CU(cu->pointer_attributes(1, &attribute, &into, address));
    return id;
}

static unsigned is_capable(gy_cu_address address)
{
    unsigned attribute = GY_CU_POINTER_LEGACY_IPC, capable = 7;
    void *into = &capable;

    CU(cu->pointer_attributes(1, &attribute, &into, address));
    return capable;
}

Test(legacy, buffer_id_is_new_at_an_address_that_is_allocated_again)
{
    struct gy_cu_ipc_handle first, second;

    (void)pair_device("1", 0);
    gy_cu_address memory = pair_alloc(PAIR_BYTES);
    unsigned long long id = buffer_of(memory);
    cr_assert_eq(buffer_of(memory + 1), id);
    cr_assert_eq(is_capable(memory), 1);
    CU(cu->ipc_get(&first, memory));
    memory = pair_alloc_again(memory, PAIR_BYTES);
    cr_assert_neq(buffer_of(memory), id);
    CU(cu->ipc_get(&second, memory));
    cr_assert_neq(memcmp(&first, &second, sizeof(first)), 0);
    void *pinned;
    CU(cu->host_alloc(&pinned, 10, 0));
    cr_assert_eq(is_capable((uintptr_t)pinned), 0);
}

/* Words of the page, as the device sees them. */
static gy_cu_address word(unsigned i)
{
    gy_cu_address address = 0;

    CU(cu->host_device_pointer(&address, &pair->words[i], 0));
    return address;
}

static void register_page(void)
{
    (void)pair_device("1", 0);
    CU(cu->host_register(pair, sizeof(*pair), GY_CU_HOST_PORTABLE | GY_CU_HOST_DEVICEMAP));
}

static void write_values(void)
{
    gy_cu_stream stream;

    register_page();
    CU(cu->stream_create(&stream, GY_CU_STREAM_NON_BLOCKING));
    CU(cu->stream_wait_value(stream, word(0), 5, GY_CU_WAIT_GEQ));
    CU(cu->stream_write_value(stream, word(1), 6, 0));
    pair_tell(1);
    pair_await(3); /* calls no driver meanwhile */
}

/* Waits for a word with the processor alone. */
static void await_word(unsigned i, uint32_t value)
{
    for (int turns = 0; __atomic_load_n(&pair->words[i], __ATOMIC_ACQUIRE) != value; turns++) {
        CHECK(turns < PAIR_SECONDS * 5000);
        usleep(200);
    }
}

Test(values, order_streams_of_two_processes)
{
    gy_cu_stream stream;

    pair_start(write_values);
    pair_await(1);
    register_page();
    CU(cu->stream_create(&stream, GY_CU_STREAM_NON_BLOCKING));
    CU(cu->stream_wait_value(stream, word(1), 6, GY_CU_WAIT_GEQ));
    CU(cu->stream_write_value(stream, word(2), 7, 0));
    usleep(20000);
    cr_assert_eq(pair->words[1], 0, "the other stream did not wait");
    cr_assert_eq(pair->words[2], 0, "the own stream did not wait");
    CU(cu->stream_write_value(NULL, word(0), 5, 0));
    await_word(2, 7); /* no call of the driver: the thread of each process notices */
    pair_tell(3);
    pair_end();
}

Test(values, stored_by_a_processor_end_waits_of_another_process)
{
    pair_start(write_values);
    pair_await(1);
    usleep(20000);
    cr_assert_eq(pair->words[1], 0, "the stream did not wait");
    __atomic_store_n(&pair->words[0], 4u, __ATOMIC_RELEASE);
    usleep(20000);
    cr_assert_eq(pair->words[1], 0, "the stream went on at a value before that of the wait");
    __atomic_store_n(&pair->words[0], 5u + (1u << 30), __ATOMIC_RELEASE); /* as an abort does */
    await_word(1, 6);
    pair_tell(3);
    pair_end();
}

static void wait_across_zero(void)
{
    gy_cu_stream stream;

    register_page();
    CU(cu->stream_create(&stream, GY_CU_STREAM_NON_BLOCKING));
    CU(cu->stream_wait_value(stream, word(0), 2, GY_CU_WAIT_GEQ));
    CU(cu->stream_write_value(stream, word(1), 1, 0));
    pair_tell(1);
    pair_await(3);
}

Test(values, are_compared_cyclically)
{
    pair_start(wait_across_zero);
    pair->words[0] = UINT32_MAX - 3;
    pair_await(1);
    usleep(20000);
    cr_assert_eq(pair->words[1], 0, "a value before zero counts as after it");
    __atomic_store_n(&pair->words[0], 3u, __ATOMIC_RELEASE);
    await_word(1, 1);
    pair_tell(3);
    pair_end();
}

Test(values, are_words_that_the_driver_knows)
{
    uint32_t unknown = 0;

    (void)pair_device("1", 0);
    cr_assert_eq(cu->stream_wait_value(NULL, (uintptr_t)&unknown, 0, GY_CU_WAIT_GEQ), GY_CU_INVALID_VALUE);
    cr_assert_eq(cu->stream_write_value(NULL, (uintptr_t)&unknown, 0, 0), GY_CU_INVALID_VALUE);
    gy_cu_address memory = pair_alloc(16);
    cr_assert_eq(cu->stream_write_value(NULL, memory + 2, 0, 0), GY_CU_INVALID_VALUE, "not aligned");
    CU(cu->stream_write_value(NULL, memory + 4, 0, 0));
}

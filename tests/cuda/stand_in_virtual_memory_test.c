/* The stand-in of the CUDA driver keeps the driver's rules of memory without an address: creating, mapping, access, and
 * descriptors for other processes. */
#include "virtual_memory.h"

#include <fcntl.h>

static unsigned long long number_of(unsigned attribute, gy_cu_address address)
{
    unsigned long long number = 0;
    void *into = &number;

    CU(cu->pointer_attributes(1, &attribute, &into, address));
    return number;
}

Test(memory, is_created_in_whole_granules)
{
    struct gy_cu_allocation_kind kind = kind_of_chunk(0);
    gy_cu_allocation memory;
    size_t bytes = 0;

    (void)pair_device("1", 0);
    CU(cu->allocation_granularity(&bytes, &kind, GY_CU_GRANULARITY_RECOMMENDED));
    cr_assert_eq(bytes, CHUNK);
    cr_assert_eq(cu->allocation_create(&memory, CHUNK + 4096, &kind, 0), GY_CU_INVALID_VALUE);
    cr_assert_eq(cu->allocation_create(&memory, 0, &kind, 0), GY_CU_INVALID_VALUE);
    kind.device = 1;
    cr_assert_eq(cu->allocation_create(&memory, CHUNK, &kind, 0), GY_CU_INVALID_DEVICE);
    kind = kind_of_chunk(0);
    CU(cu->allocation_create(&memory, CHUNK, &kind, 0));
    CU(cu->allocation_release(memory));
    cr_assert_eq(cu->allocation_release(memory), GY_CU_INVALID_VALUE);
}

Test(memory, is_mapped_side_by_side_and_is_one_piece)
{
    gy_cu_address base = 0;
    size_t bytes = 0;

    (void)pair_device("1", 0);
    gy_cu_address range = reserve(4);
    map_chunk(range, 0, 0);
    map_chunk(range, 1, 0);
    pair_write(range + CHUNK - 500, 1000, 1);
    CHECK(pair_reads(range + CHUNK - 500, 0, 1000, 1));
    CU(cu->mem_range(&base, &bytes, range + CHUNK + 7));
    cr_assert_eq(base, range + CHUNK, "a chunk, not the range");
    cr_assert_eq(bytes, CHUNK);
    cr_assert_eq(number_of(GY_CU_POINTER_RANGE_START, range + CHUNK), range);
    cr_assert_eq(number_of(GY_CU_POINTER_RANGE_SIZE, range + CHUNK), 4 * CHUNK);
    cr_assert_eq(number_of(GY_CU_POINTER_LEGACY_IPC, range), 0);
    cr_assert_neq(number_of(GY_CU_POINTER_BUFFER_ID, range), number_of(GY_CU_POINTER_BUFFER_ID, range + CHUNK));
    cr_assert_eq(cu->mem_range(&base, &bytes, range + 2 * CHUNK), GY_CU_NOT_FOUND);
    cr_assert_eq(cu->address_free(range, 4 * CHUNK), GY_CU_INVALID_VALUE, "it is mapped");
    cr_assert_eq(cu->mem_unmap(range, CHUNK / 2), GY_CU_INVALID_VALUE);
    CU(cu->mem_unmap(range, 2 * CHUNK));
    cr_assert_eq(cu->mem_unmap(range, CHUNK), GY_CU_INVALID_VALUE);
    CU(cu->address_free(range, 4 * CHUNK));
}

Test(memory, may_not_be_used_without_access)
{
    const struct gy_cu_allocation_kind kind = kind_of_chunk(0);
    gy_cu_allocation memory;

    (void)pair_device("1", 0);
    gy_cu_address range = reserve(2);
    CU(cu->allocation_create(&memory, CHUNK, &kind, 0));
    CU(cu->mem_map(range, CHUNK, 0, memory, 0));
    cr_assert_eq(cu->mem_map(range, CHUNK, 0, memory, 0), GY_CU_ALREADY_MAPPED);
    cr_assert_eq(cu->mem_map(range + CHUNK, CHUNK, CHUNK, memory, 0), GY_CU_INVALID_VALUE, "an offset");
    CU(cu->set8_async(range, 1, 10, NULL));
    cr_assert_eq(cu->stream_synchronize(NULL), GY_CU_ILLEGAL_ADDRESS);
    cr_assert_eq(cu->stream_query(NULL), GY_CU_ILLEGAL_ADDRESS, "the error is sticky");
}

Test(memory, may_not_be_used_beyond_what_is_mapped)
{
    (void)pair_device("1", 0);
    gy_cu_address range = reserve(2);
    map_chunk(range, 0, 0);
    CU(cu->set8_async(range + CHUNK - 10, 1, 10, NULL));
    CU(cu->stream_synchronize(NULL));
    CU(cu->set8_async(range + CHUNK - 10, 1, 11, NULL));
    cr_assert_eq(cu->stream_synchronize(NULL), GY_CU_ILLEGAL_ADDRESS);
}

Test(memory, is_refused_by_legacy_handles_and_cuMemFree)
{
    struct gy_cu_ipc_handle handle;

    (void)pair_device("1", 0);
    gy_cu_address range = reserve(1);
    map_chunk(range, 0, GY_CU_POSIX_DESCRIPTOR);
    cr_assert_eq(cu->ipc_get(&handle, range), GY_CU_INVALID_VALUE);
    cr_assert_eq(cu->mem_free(range), GY_CU_INVALID_VALUE);
}

Test(memory, is_retained_by_its_address)
{
    gy_cu_allocation memory = 0, again = 0;

    (void)pair_device("1", 0);
    gy_cu_address range = reserve(1);
    map_chunk(range, 0, 0);
    unsigned long long buffer = number_of(GY_CU_POINTER_BUFFER_ID, range);
    unsigned long long block = number_of(GY_CU_POINTER_BLOCK_ID, range);
    pair_write(range, 100, 3);
    CU(cu->allocation_retain(&memory, (void *)(uintptr_t)(range + 100)));
    CU(cu->allocation_retain(&again, (void *)(uintptr_t)range));
    cr_assert_eq(memory, again);
    CU(cu->allocation_release(again));
    CU(cu->mem_unmap(range, CHUNK));
    CU(cu->mem_map(range, CHUNK, 0, memory, 0));
    allow(range);
    CHECK(pair_reads(range, 0, 100, 3));
    cr_assert_neq(number_of(GY_CU_POINTER_BUFFER_ID, range), buffer, "another mapping");
    cr_assert_eq(number_of(GY_CU_POINTER_BLOCK_ID, range), block, "of the same memory");
    CU(cu->allocation_release(memory));
    gy_cu_address other = pair_alloc(10);
    cr_assert_eq(cu->allocation_retain(&memory, (void *)(uintptr_t)other), GY_CU_INVALID_VALUE);
}

static void give_descriptor(void)
{
    const struct gy_cu_allocation_kind kind = kind_of_chunk(GY_CU_POSIX_DESCRIPTOR);
    gy_cu_allocation memory;
    int fd = -1;

    (void)pair_device("1", 0);
    gy_cu_address range = reserve(1);
    CU(cu->allocation_create(&memory, CHUNK, &kind, 0));
    CU(cu->mem_map(range, CHUNK, 0, memory, 0));
    allow(range);
    pair_write(range, CHUNK, 1);
    CU(cu->allocation_export(&fd, memory, GY_CU_POSIX_DESCRIPTOR, 0));
    CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
    pair_send(fd);
    pair_tell(1);
    pair_await(2);
    CHECK(pair_reads(range, 0, CHUNK, 2));
}

Test(memory, passes_to_another_process_as_a_descriptor)
{
    gy_cu_allocation memory;

    pair_start(give_descriptor);
    pair_await(1);
    (void)pair_device("1", 0);
    int fd = pair_receive();
    gy_cu_address range = reserve(1);
    CU(cu->allocation_import(&memory, (void *)(intptr_t)fd, GY_CU_POSIX_DESCRIPTOR));
    close(fd);
    CU(cu->mem_map(range, CHUNK, 0, memory, 0));
    CU(cu->allocation_release(memory));
    allow(range);
    CHECK(pair_reads(range, 0, CHUNK, 1));
    pair_write(range, CHUNK, 2);
    pair_tell(2);
    pair_end();
    CHECK(pair_reads(range, 0, CHUNK, 2));
    CU(cu->mem_unmap(range, CHUNK));
    CU(cu->address_free(range, CHUNK));
}

Test(memory, is_not_exported_without_the_handle_type)
{
    const struct gy_cu_allocation_kind kind = kind_of_chunk(0);
    gy_cu_allocation memory;
    int fd = -1;

    (void)pair_device("1", 0);
    CU(cu->allocation_create(&memory, CHUNK, &kind, 0));
    cr_assert_eq(cu->allocation_export(&fd, memory, GY_CU_POSIX_DESCRIPTOR, 0), GY_CU_NOT_SUPPORTED);
    cr_assert_eq(cu->allocation_import(&memory, (void *)(intptr_t)0, GY_CU_POSIX_DESCRIPTOR), GY_CU_INVALID_VALUE);
}

/* Memory that processes share, over the stand-in of the driver: the bits, what is exported and mapped when, what is
 * refused with which sentence, and every call of the driver that may fail. */
#include "cuda/share.h"

#include "virtual_memory.h"

#include <dirent.h>

static struct gy_device device;
static struct gy_share *share;
static char why[300];

static void begin(const char *devices, int number)
{
    device = pair_device(devices, number);
    share = gy_share_get(&device, why, sizeof(why));
    CHECK(share);
}

static struct gy_share_offer *told(void)
{
    return (struct gy_share_offer *)pair->plain;
}

static struct gy_share_offer offer_of(gy_cu_address address, size_t bytes)
{
    struct gy_share_offer offer;

    if (!gy_share_offer(share->exports, address, bytes, &offer, why, sizeof(why))) {
        fprintf(stderr, "%s\n", why);
        CHECK(false);
    }
    return offer;
}

static gy_cu_address map(const struct gy_share_offer *offer, struct gy_share_mapping **mapping_p)
{
    gy_cu_address address = 0;

    if (!gy_share_map(share->mappings, offer, mapping_p, &address, why, sizeof(why))) {
        fprintf(stderr, "%s\n", why);
        CHECK(false);
    }
    return address;
}

/* Whether the caller's context is the current one, once, as at the start. */
static bool is_context_as_before(void)
{
    gy_cu_context own, below;

    CU(cu->context_pop(&own));
    CU(cu->context_current(&below));
    CU(cu->context_push(own));
    return own == device.context && !below;
}

static bool is_refused(const struct gy_share_offer *offer, const char *sentence)
{
    struct gy_share_mapping *mapping;
    gy_cu_address address = 0;

    why[0] = '\0';
    if (gy_share_map(share->mappings, offer, &mapping, &address, why, sizeof(why)))
        return false;
    if (!strstr(why, sentence))
        fprintf(stderr, "\"%s\" instead of \"%s\"\n", why, sentence);
    return strstr(why, sentence) != NULL;
}

static bool is_not_offered(gy_cu_address address, size_t bytes, const char *sentence)
{
    struct gy_share_offer offer;

    why[0] = '\0';
    if (gy_share_offer(share->exports, address, bytes, &offer, why, sizeof(why)))
        return false;
    if (!strstr(why, sentence))
        fprintf(stderr, "\"%s\" instead of \"%s\"\n", why, sentence);
    return offer.kind == GY_SHARE_NONE && strstr(why, sentence) != NULL;
}

/* ---- Bits -------------------------------------------------------------------------------------------------------- */

/* An operand inside an allocation; then the same allocation once more, and another at its address. */
static void offer_operands(void)
{
    begin("1", 0);
    gy_cu_address memory = pair_alloc(PAIR_BYTES);
    pair_write(memory, PAIR_BYTES, 1);
    told()[0] = offer_of(memory + 4100, 1000);
    told()[1] = offer_of(memory, PAIR_BYTES);
    CHECK(gy_share_exported(share->exports) == 1);
    CHECK(memcmp(&told()[0], &told()[1], sizeof(*told())) == 0);
    CHECK(told()[0].base == memory && told()[0].bytes == PAIR_BYTES);
    CHECK(is_context_as_before());
    pair_tell(1);
    pair_await(2);
    CHECK(pair_reads(memory, 0, PAIR_BYTES, 2));
    memory = pair_alloc_again(memory, PAIR_BYTES);
    pair_write(memory, PAIR_BYTES, 3);
    told()[2] = offer_of(memory, PAIR_BYTES);
    CHECK(told()[2].base == told()[0].base);
    CHECK(gy_share_exported(share->exports) == 2);
    pair_tell(3);
    pair_await(4);
    CHECK(pair_reads(memory, 0, PAIR_BYTES, 4));
}

Test(share, bits_are_equal_and_an_address_that_is_allocated_again_is_new)
{
    struct gy_share_mapping *first, *second, *third;

    pair_start(offer_operands);
    pair_await(1);
    begin("1", 0);
    gy_cu_address there = map(&told()[0], &first);
    CHECK(pair_reads(there + 4100, 4100, 1000, 1));
    cr_assert_eq(map(&told()[1], &second), there);
    cr_assert_eq(first, second);
    cr_assert_eq(gy_share_counts(share->mappings).opened, 1);
    pair_write(there, PAIR_BYTES, 2);
    gy_share_release(share->mappings, first);
    gy_share_release(share->mappings, second);
    CHECK(is_context_as_before());
    cr_assert_eq(gy_share_counts(share->mappings).mapped, 1, "a mapping stays when its last use ends");
    pair_tell(2);
    pair_await(3);
    there = map(&told()[2], &third);
    CHECK(pair_reads(there, 0, PAIR_BYTES, 3));
    cr_assert_eq(gy_share_counts(share->mappings).mapped, 1, "the freed memory's mapping is closed");
    pair_write(there, PAIR_BYTES, 4);
    pair_tell(4);
    pair_end();
    CHECK(pair_reads(there, 0, PAIR_BYTES, 4)); /* its owner has ended */
    gy_share_release(share->mappings, third);
    gy_share_close(share->mappings, told()->pid, told()->process, 0);
    cr_assert_eq(gy_share_counts(share->mappings).mapped, 0);
    CHECK(is_context_as_before());
    gy_share_put(share);
}

static gy_cu_result invert(int number, const unsigned grid[3], const unsigned block[3], unsigned shared, void **with)
{
    unsigned char *bytes = gy_gpu_bytes(*(gy_cu_address *)with[0], 100);

    (void)number, (void)grid, (void)block, (void)shared;
    for (int i = 0; bytes && i < 100; i++)
        bytes[i] = (unsigned char)~bytes[i];
    return bytes ? GY_CU_SUCCESS : GY_CU_ILLEGAL_ADDRESS;
}

static void expect_inverted(void)
{
    unsigned char host[100];

    begin("2:peer", 0);
    gy_cu_address memory = pair_alloc(5000);
    pair_write(memory, 5000, 1);
    *told() = offer_of(memory, 5000);
    pair_tell(1);
    pair_await(2);
    CU(cu->copy_async((uintptr_t)host, memory + 600, 100, NULL));
    CU(cu->stream_synchronize(NULL));
    for (size_t i = 0; i < 100; i++)
        CHECK((unsigned char)~host[i] == pair_byte(600 + i, 1));
    CHECK(pair_reads(memory + 700, 700, 100, 1));
}

Test(share, kernels_of_another_device_reach_the_memory)
{
    static const struct gy_gpu_kernel kernel = {"invert", 1, {sizeof(gy_cu_address)}, invert, NULL};
    struct gy_share_mapping *mapping;
    gy_cu_library library;
    gy_cu_kernel found;
    gy_cu_function function;

    pair_start(expect_inverted);
    pair_await(1);
    begin("2:peer", 1);
    gy_cu_address operand = map(told(), &mapping) + 600;
    void *with[] = {&operand};
    gy_gpu_kernel_add(&kernel);
    CU(cu->library_load(&library, "image", NULL, NULL, 0, NULL, NULL, 0));
    CU(cu->library_kernel(&found, library, "invert"));
    CU(cu->kernel_function(&function, found));
    CU(cu->launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, with, NULL));
    CU(cu->stream_synchronize(NULL));
    gy_share_release(share->mappings, mapping);
    pair_tell(2);
    pair_end();
    gy_share_put(share);
}

/* ---- Memory of cuMemCreate --------------------------------------------------------------------------------------- */

enum { CHUNKS = 3 };

/* A range of four chunks that grows as PyTorch's expandable segments do; then its second chunk is another. */
static void offer_chunks(void)
{
    begin("1", 0);
    gy_cu_address range = reserve(CHUNKS + 1);
    for (unsigned i = 0; i < CHUNKS; i++)
        map_chunk(range, i, GY_CU_POSIX_DESCRIPTOR);
    pair_write(range, (size_t)CHUNKS * CHUNK, 1);
    told()[0] = offer_of(range + CHUNK - 100, 200);
    CHECK(told()[0].kind == GY_SHARE_CHUNKS && told()[0].base == range && told()[0].bytes == CHUNKS * CHUNK);
    told()[1] = offer_of(range + 2 * CHUNK, CHUNK);
    CHECK(told()[1].serial == told()[0].serial && gy_share_exported(share->exports) == 1);
    pair_tell(1);
    pair_await(2);
    CHECK(pair_reads(range, 0, (size_t)CHUNKS * CHUNK, 2));
    map_chunk(range, CHUNKS, GY_CU_POSIX_DESCRIPTOR);
    CHECK(offer_of(range, 10).serial == told()[0].serial);
    pair_write(range + CHUNKS * CHUNK, CHUNK, 3);
    told()[2] = offer_of(range + CHUNKS * CHUNK - 10, 20);
    CHECK(told()[2].bytes == (CHUNKS + 1) * CHUNK);
    pair_tell(3);
    pair_await(4);
    CU(cu->mem_unmap(range + CHUNK, CHUNK));
    CHECK(offer_of(range, 10).serial == told()[2].serial); /* this part is as it was */
    map_chunk(range, 1, GY_CU_POSIX_DESCRIPTOR);
    pair_write(range + CHUNK, CHUNK, 5);
    told()[3] = offer_of(range + CHUNK, 20);
    CHECK(told()[3].serial != told()[2].serial);
    pair_tell(5);
    pair_await(6);
    CHECK(pair_reads(range + CHUNK, 0, CHUNK, 6));
}

Test(chunks, of_a_growing_range_are_one_piece)
{
    struct gy_share_mapping *mapping[4];

    pair_start(offer_chunks);
    pair_await(1);
    begin("1", 0);
    gy_cu_address there = map(&told()[0], &mapping[0]);
    cr_assert_eq(map(&told()[1], &mapping[1]), there);
    CHECK(pair_reads(there, 0, (size_t)CHUNKS * CHUNK, 1));
    pair_write(there, (size_t)CHUNKS * CHUNK, 2);
    pair_tell(2);
    pair_await(3);
    gy_cu_address grown = map(&told()[2], &mapping[2]);
    CHECK(pair_reads(there, 0, (size_t)CHUNKS * CHUNK, 2)); /* the older mapping is in use still */
    CHECK(pair_reads(grown, 0, (size_t)CHUNKS * CHUNK, 2));
    CHECK(pair_reads(grown + CHUNKS * CHUNK, 0, CHUNK, 3));
    gy_share_release(share->mappings, mapping[0]);
    gy_share_release(share->mappings, mapping[1]);
    cr_assert_eq(gy_share_counts(share->mappings).mapped, 1, "the older mapping is replaced");
    gy_share_release(share->mappings, mapping[2]);
    pair_tell(4);
    pair_await(5);
    there = map(&told()[3], &mapping[3]) + CHUNK;
    CHECK(pair_reads(there, 0, CHUNK, 5));
    pair_write(there, CHUNK, 6);
    pair_tell(6);
    pair_end();
    CHECK(pair_reads(there, 0, CHUNK, 6)); /* its owner has ended */
    CHECK(is_refused(&told()[0], "does not give its GPU memory: Connection refused"));
    gy_share_release(share->mappings, mapping[3]);
    gy_share_put(share);
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");

    CHECK(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

Test(chunks, are_given_up_with_the_last_user)
{
    begin("1", 0);
    gy_cu_address range = reserve(3);
    unsigned before = open_descriptors();
    for (unsigned i = 0; i < 3; i += 2)
        map_chunk(range, i, GY_CU_POSIX_DESCRIPTOR);
    unsigned mapped = open_descriptors();
    (void)offer_of(range, CHUNK);
    (void)offer_of(range + 2 * CHUNK, 1);
    cr_assert_eq(gy_share_exported(share->exports), 2, "a gap is between them");
    cr_assert_eq(open_descriptors(), mapped + 3, "two chunks and a socket");
    CU(cu->mem_unmap(range, CHUNK));
    cr_assert_eq(open_descriptors(), mapped + 2, "the driver's own");
    gy_share_sweep(share->exports);
    cr_assert_eq(open_descriptors(), mapped + 1, "and ours, which kept the memory");
    CU(cu->mem_unmap(range + 2 * CHUNK, CHUNK));
    gy_cu_address other = pair_alloc(10);
    (void)offer_of(other, 10);
    cr_assert_eq(open_descriptors(), mapped, "a new export closes what is freed; the driver has one more");
    CU(cu->mem_free(other));
    gy_share_put(share);
    cr_assert_eq(open_descriptors(), before);
}

static void offer_and_withdraw(void)
{
    begin("1", 0);
    gy_cu_address range = reserve(1);
    map_chunk(range, 0, GY_CU_POSIX_DESCRIPTOR);
    *told() = offer_of(range, CHUNK);
    gy_share_withdraw(share->exports, range, 1);
    pair_tell(1);
    pair_await(2);
    pair_write(range, 1000, 3);
    *told() = offer_of(range, CHUNK);
    pair_tell(3);
    pair_await(4);
}

Test(chunks, that_are_withdrawn_are_not_given)
{
    struct gy_share_mapping *mapping;

    pair_start(offer_and_withdraw);
    pair_await(1);
    begin("1", 0);
    CHECK(is_refused(told(), "offers this GPU memory no more"));
    pair_tell(2);
    pair_await(3);
    CHECK(pair_reads(map(told(), &mapping), 0, 1000, 3));
    told()->serial++;
    told()->pid++;
    CHECK(is_refused(told(), "does not give its GPU memory: Operation not permitted"));
    gy_share_release(share->mappings, mapping);
    pair_tell(4);
    pair_end();
    gy_share_put(share);
}

Test(chunks, without_a_handle_type_are_refused)
{
    begin("1", 0);
    gy_cu_address range = reserve(2);
    map_chunk(range, 0, 0);
    CHECK(is_not_offered(range, 10, "cuMemExportToShareableHandle: CUDA_ERROR_NOT_SUPPORTED"));
    CHECK(is_not_offered(range + CHUNK - 1, 2, "the memory ends before its 2 bytes do"));
}

Test(chunks, need_the_drivers_calls)
{
    struct gy_driver table;

    begin("1", 0);
    gy_cu_address range = reserve(1);
    map_chunk(range, 0, GY_CU_POSIX_DESCRIPTOR);
    table = *cu;
    table.mem_set_access = NULL;
    device.driver = &table;
    gy_share_put(share);
    share = gy_share_get(&device, why, sizeof(why));
    CHECK(is_not_offered(range, 10, "has no calls that share this kind of memory"));
    gy_share_put(share);
}

/* ---- Which mappings there are ------------------------------------------------------------------------------------ */

enum { MANY = 6, MOST = 4 };

static void offer_many(void)
{
    begin("1", 0);
    for (unsigned i = 0; i < MANY; i++) {
        gy_cu_address memory = pair_alloc(1000);
        pair_write(memory, 1000, i);
        told()[i] = offer_of(memory, 1000);
    }
    pair_tell(1);
    pair_await(2);
}

static gy_cu_address map_of(struct gy_share_mappings *mappings, unsigned i, struct gy_share_mapping **mapping_p)
{
    gy_cu_address address = 0;

    if (!gy_share_map(mappings, &told()[i], mapping_p, &address, why, sizeof(why)))
        return 0;
    CHECK(pair_reads(address, 0, 1000, i));
    return address;
}

Test(mappings, are_bounded_and_the_least_recent_unused_one_is_closed)
{
    struct gy_share_mapping *mapping[MANY];

    pair_start(offer_many);
    pair_await(1);
    begin("1", 0);
    struct gy_share_mappings *few = gy_share_mappings_new(&device, MOST);
    CHECK(few);
    for (unsigned i = 0; i < MOST; i++)
        CHECK(map_of(few, i, &mapping[i]));
    CHECK(!map_of(few, 4, &mapping[4]));
    cr_assert(strstr(why, "all 4 mappings"), "%s", why);
    gy_share_release(few, mapping[1]);
    gy_share_release(few, mapping[2]);
    CHECK(map_of(few, 1, &mapping[1])); /* used again, and so more recent than 2 */
    gy_share_release(few, mapping[1]);
    unsigned opened = gy_share_counts(few).opened;
    CHECK(map_of(few, 4, &mapping[4])); /* in the place of 2 */
    CHECK(map_of(few, 1, &mapping[1]));
    cr_assert_eq(gy_share_counts(few).opened, opened + 1, "1 was closed instead of 2");
    cr_assert_eq(gy_share_counts(few).mapped, MOST);
    cr_assert_eq(gy_share_counts(few).in_use, MOST);
    gy_share_close(few, told()->pid, told()->process, told()[0].serial); /* in use: later */
    cr_assert_eq(gy_share_counts(few).mapped, MOST);
    gy_share_release(few, mapping[0]);
    cr_assert_eq(gy_share_counts(few).mapped, MOST - 1);
    for (unsigned i = 1; i < 5; i++)
        gy_share_release(few, i == 2 ? NULL : mapping[i]);
    gy_share_close(few, told()->pid, told()->process + 1, 0);
    cr_assert_eq(gy_share_counts(few).mapped, MOST - 1, "of another process");
    gy_share_close(few, told()->pid, told()->process, 0);
    cr_assert_eq(gy_share_counts(few).mapped, 0);
    cr_assert_eq(gy_share_counts(few).opened, gy_share_counts(few).closed);
    gy_share_mappings_free(few);
    pair_tell(2);
    pair_end();
}

static gy_cu_result (*real_open)(gy_cu_address *, struct gy_cu_ipc_handle, unsigned);
static int opens_that_fail;

static gy_cu_result open_or_fail(gy_cu_address *address_p, struct gy_cu_ipc_handle handle, unsigned flags)
{
    return opens_that_fail-- > 0 ? GY_CU_ALREADY_MAPPED : real_open(address_p, handle, flags);
}

Test(mappings, unused_ones_make_room_when_the_driver_has_none)
{
    struct gy_share_mapping *mapping[3];
    struct gy_driver table;

    pair_start(offer_many);
    pair_await(1);
    begin("1", 0);
    table = *cu;
    real_open = table.ipc_open;
    table.ipc_open = open_or_fail;
    device.driver = &table;
    struct gy_share_mappings *mappings = gy_share_mappings_new(&device, MOST);
    CHECK(map_of(mappings, 0, &mapping[0]) && map_of(mappings, 1, &mapping[1]));
    gy_share_release(mappings, mapping[0]);
    opens_that_fail = 1;
    CHECK(map_of(mappings, 2, &mapping[2]));
    cr_assert_eq(gy_share_counts(mappings).mapped, 2, "the unused one is closed, the other not");
    gy_share_release(mappings, mapping[1]);
    opens_that_fail = 2;
    CHECK(!map_of(mappings, 3, &mapping[0]));
    cr_assert(strstr(why, "cuIpcOpenMemHandle for memory of process") && strstr(why, "CUDA_ERROR_ALREADY_MAPPED"), "%s",
              why);
    gy_share_release(mappings, mapping[2]);
    gy_share_mappings_free(mappings);
    pair_tell(2);
    pair_end();
}

Test(mappings, survive_the_owner)
{
    struct gy_share_mapping *mapping;

    pair_start(offer_many);
    pair_await(1);
    begin("1", 0);
    gy_cu_address there = map(&told()[3], &mapping);
    pair_kill();
    CHECK(pair_reads(there, 0, 1000, 3));
    CHECK(is_refused(&told()[2], "CUDA_ERROR_MAP_FAILED"));
    gy_share_release(share->mappings, mapping);
    gy_share_close(share->mappings, told()->pid, told()->process, 0);
    cr_assert_eq(gy_share_counts(share->mappings).mapped, 0);
    gy_share_put(share);
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

Test(refused, what_is_no_memory_of_the_device)
{
    gy_cu_context other;
    gy_cu_address elsewhere;
    int on_the_stack = 0;
    void *pinned;

    begin("2", 0);
    gy_cu_address memory = pair_alloc(1000);
    CHECK(is_not_offered((uintptr_t)&on_the_stack, 4, "the memory is not of a GPU"));
    CU(cu->host_alloc(&pinned, 10, 0));
    CHECK(is_not_offered((uintptr_t)pinned, 4, "the memory is not of a GPU"));
    CHECK(is_not_offered(memory, 1001, "the memory ends before its 1001 bytes do: its allocation has 1000"));
    CHECK(is_not_offered(memory + 999, 2, "ends before"));
    CHECK(is_not_offered(memory + 1, SIZE_MAX, "ends before"));
    CU(cu->context_retain(&other, 1));
    CU(cu->context_push(other));
    elsewhere = pair_alloc(1000);
    CHECK(is_not_offered(elsewhere, 4, "the memory is of GPU 1, not of GPU 0"));
    cr_assert_eq(gy_share_exported(share->exports), 0);
    (void)offer_of(memory + 999, 1);
    (void)offer_of(memory + 1000 - 1, 0);
    cr_assert_eq(gy_share_exported(share->exports), 1);
}

Test(refused, memory_of_this_process_is_not_mapped_again)
{
    struct gy_share_mapping *mapping;
    struct gy_share_offer none = {0};

    begin("2", 0);
    gy_cu_address memory = pair_alloc(1000);
    struct gy_share_offer own = offer_of(memory + 10, 10);
    cr_assert_eq(map(&own, &mapping), memory);
    cr_assert_null(mapping);
    gy_share_release(share->mappings, mapping);
    cr_assert_eq(gy_share_counts(share->mappings).opened, 0);
    own.device.bytes[0]++;
    CHECK(is_refused(&own, "another GPU of this process"));
    CHECK(is_refused(&none, "not offered"));
}

Test(refused, where_the_driver_supports_no_legacy_handles)
{
    begin("1", 0);
    gy_cu_address memory = pair_alloc(1000);
    setenv("GYRE_TEST_GPU_IPC", "off", 1);
    CHECK(is_not_offered(memory, 10, "cuIpcGetMemHandle: CUDA_ERROR_NOT_SUPPORTED (operation not supported)"));
}

Test(refused, where_processes_are_apart)
{
    pair_start(offer_many);
    pair_await(1);
    begin("1", 0);
    setenv("GYRE_TEST_GPU_IPC", "apart", 1);
    CHECK(is_refused(told(), "cuIpcOpenMemHandle for memory of process"));
    cr_assert_eq(gy_share_counts(share->mappings).mapped, 0);
    unsetenv("GYRE_TEST_GPU_IPC");
    told()->kind = 99;
    CHECK(is_refused(told(), "in a way that this process cannot take"));
    pair_tell(2);
    pair_end();
}

Test(refused, where_the_driver_lacks_the_calls)
{
    struct gy_driver table;
    struct gy_share_offer offer = {.kind = GY_SHARE_LEGACY};

    begin("1", 0);
    table = *cu;
    table.ipc_open = NULL;
    device.driver = &table;
    gy_share_put(share);
    share = gy_share_get(&device, why, sizeof(why));
    CHECK(is_not_offered(pair_alloc(10), 10, "has no calls that share memory"));
    CHECK(is_refused(&offer, "cannot take"));
    gy_share_put(share);
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

/* A context that a failed pop has left. */
static void leave_all_but_one(void)
{
    gy_cu_context current, below;

    for (;;) {
        CU(cu->context_pop(&current));
        CU(cu->context_current(&below));
        if (!below)
            break;
    }
    CU(cu->context_push(current));
}

Test(failures, of_the_driver_are_told_when_memory_is_offered)
{
    struct gy_share_offer offer;
    unsigned call = 1;
    bool offered = false;

    begin("1", 0);
    gy_cu_address memory = pair_alloc(1000);
    for (; !offered; call++) {
        CHECK(call < 20);
        gy_share_withdraw(share->exports, memory, 1000);
        gy_gpu_fail(call, GY_CU_OUT_OF_MEMORY);
        offered = gy_share_offer(share->exports, memory, 1000, &offer, why, sizeof(why));
        gy_gpu_fail(0, GY_CU_SUCCESS);
        leave_all_but_one();
        CHECK(offered || strstr(why, "CUDA_ERROR_OUT_OF_MEMORY"));
        CHECK(offered == (offer.kind != GY_SHARE_NONE));
    }
    cr_assert_gt(call, 5); /* push, attributes, range, handle */
}

Test(failures, of_the_driver_are_told_when_memory_is_mapped)
{
    struct gy_share_mapping *mapping;
    gy_cu_address there = 0;
    unsigned call = 1;
    bool mapped = false;

    pair_start(offer_many);
    pair_await(1);
    begin("1", 0);
    for (; !mapped; call++) {
        CHECK(call < 20);
        gy_gpu_fail(call, GY_CU_MAP_FAILED);
        mapped = gy_share_map(share->mappings, &told()[1], &mapping, &there, why, sizeof(why));
        gy_gpu_fail(0, GY_CU_SUCCESS);
        leave_all_but_one();
        CHECK(mapped || strstr(why, "CUDA_ERROR_MAP_FAILED"));
        CHECK(gy_share_counts(share->mappings).mapped == mapped);
    }
    cr_assert_gt(call, 3); /* push, open */
    CHECK(pair_reads(there, 0, 1000, 1));
    gy_share_release(share->mappings, mapping);
    gy_gpu_fail(1, GY_CU_OUT_OF_MEMORY); /* the context cannot be entered: it stays mapped, and is found no more */
    gy_share_close(share->mappings, told()->pid, told()->process, 0);
    cr_assert_eq(gy_share_counts(share->mappings).mapped, 1);
    there = map(&told()[1], &mapping);
    CHECK(pair_reads(there, 0, 1000, 1));
    cr_assert_eq(gy_share_counts(share->mappings).mapped, 1);
    gy_share_release(share->mappings, mapping);
    gy_share_put(share);
    pair_tell(2);
    pair_end();
}

static void offer_three_chunks(void)
{
    begin("1", 0);
    gy_cu_address range = reserve(CHUNKS);
    for (unsigned i = 0; i < CHUNKS; i++)
        map_chunk(range, i, GY_CU_POSIX_DESCRIPTOR);
    pair_write(range, (size_t)CHUNKS * CHUNK, 1);
    *told() = offer_of(range, CHUNK);
    pair_tell(1);
    pair_await(2);
}

enum { CALLS = 40 }; /* more than any of the calls below makes of the driver */

Test(failures, of_the_driver_leave_no_chunk_mapped)
{
    struct gy_share_mapping *mapping;
    gy_cu_address there = 0;
    unsigned failures = 0;

    pair_start(offer_three_chunks);
    pair_await(1);
    begin("1", 0);
    for (unsigned call = 1; call <= CALLS; call++) {
        unsigned before = open_descriptors();
        gy_gpu_fail(call, GY_CU_OUT_OF_MEMORY);
        bool mapped = gy_share_map(share->mappings, told(), &mapping, &there, why, sizeof(why));
        gy_gpu_fail(0, GY_CU_SUCCESS);
        leave_all_but_one();
        CHECK(mapped || strstr(why, "CUDA_ERROR_OUT_OF_MEMORY"));
        CHECK(mapped || open_descriptors() == before);
        failures += !mapped;
        CHECK(!mapped || pair_reads(there, 0, (size_t)CHUNKS * CHUNK, 1));
        gy_share_release(share->mappings, mapping);
        gy_share_close(share->mappings, told()->pid, told()->process, 0);
        CHECK(gy_share_counts(share->mappings).mapped == 0);
    }
    cr_assert_eq(failures, 9, "%u: push, reserve, three times import and map, access", failures);
    gy_share_put(share);
    pair_tell(2);
    pair_end();
}

Test(failures, of_the_driver_leave_no_chunk_exported)
{
    struct gy_share_offer offer;
    unsigned failures = 0;

    begin("1", 0);
    gy_cu_address range = reserve(2);
    map_chunk(range, 0, GY_CU_POSIX_DESCRIPTOR);
    map_chunk(range, 1, GY_CU_POSIX_DESCRIPTOR);
    (void)offer_of(range, CHUNK); /* from now on there is a socket */
    gy_share_withdraw(share->exports, range, CHUNK);
    unsigned before = open_descriptors();
    for (unsigned call = 1; call <= CALLS; call++) {
        gy_gpu_fail(call, GY_CU_OUT_OF_MEMORY);
        bool offered = gy_share_offer(share->exports, range + 10, 100, &offer, why, sizeof(why));
        gy_gpu_fail(0, GY_CU_SUCCESS);
        leave_all_but_one();
        CHECK(offered || strstr(why, "CUDA_ERROR_OUT_OF_MEMORY") || strstr(why, "range of addresses") ||
              strstr(why, "ends before"));
        CHECK(offered == (offer.kind == GY_SHARE_CHUNKS));
        failures += !offered;
        gy_share_withdraw(share->exports, range, (size_t)2 * CHUNK);
        CHECK(open_descriptors() == before);
    }
    cr_assert_geq(failures, 9, "%u: push, attributes, twice a range, its start and size, twice retain and export",
                  failures);
    gy_share_put(share);
}

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

static void *map_all(void *seed)
{
    struct gy_share_mapping *mapping;
    gy_cu_address address;
    char reason[300];

    for (unsigned i = (unsigned)(uintptr_t)seed, turn = 0; turn < 200; turn++, i += 1 + turn % 3) {
        if (!gy_share_map(share->mappings, &told()[i % MANY], &mapping, &address, reason, sizeof(reason)))
            return "not mapped";
        const unsigned char *bytes = gy_gpu_bytes(address, 1000);
        for (size_t k = 0; k < 1000; k += 99)
            if (bytes[k] != pair_byte(k, i % MANY))
                return "other bytes";
        if (turn % 50 == 0)
            gy_share_close(share->mappings, told()->pid, told()->process, told()[(i + 1) % MANY].serial);
        gy_share_release(share->mappings, mapping);
    }
    return NULL;
}

Test(share, is_one_for_all_threads)
{
    pthread_t thread[4];
    void *fault;

    pair_start(offer_many);
    pair_await(1);
    begin("1", 0);
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(gy_share_get(&device, why, sizeof(why)), share);
        CHECK(pthread_create(&thread[i], NULL, map_all, (void *)(uintptr_t)i) == 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(thread[i], &fault);
        cr_assert_null(fault, "%s", (const char *)fault);
        gy_share_put(share);
    }
    cr_assert_eq(gy_share_counts(share->mappings).in_use, 0);
    gy_share_put(share);
    pair_tell(2);
    pair_end();
}

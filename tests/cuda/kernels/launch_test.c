/* Kernels launched through the driver table, as the library does it: the image of the plug-in is loaded, kernels are
 * looked up and launched on streams of the stand-in driver. Results are compared with the CPU bit for bit. */
#include <criterion/criterion.h>

#include "cuda/image.h"
#include "cuda/kernels/arguments.h"
#include "reference.h"
#include "support/gpu/gpu.h"

enum { RANKS = 4, ELEMENTS = 200, ROOM = ELEMENTS * 8 + 16, SOURCES = 12, BLOCKS = 2, THREADS = 64, ROUNDS = 3 };

static const struct gy_driver *cu;
static struct gpu {
    struct gy_device device;
    struct gy_image *image;
    gy_cu_stream stream;
} gpus[RANKS];
static uint32_t *stop; /* pinned: the abort word of all kernels */
static uint64_t state = 88172645463325252;
static unsigned launched;
static char why[300];

static unsigned below(unsigned n)
{
    return (unsigned)(reference_random(&state) % n);
}

static void open_gpus(const char *devices, int count)
{
    void *word;

    gy_gpu_open(devices, 1);
    cu = gy_gpu_driver();
    for (int d = 0; d < count; d++) {
        cr_assert(gy_device_open(&gpus[d].device, cu, d, why, sizeof(why)), "%s", why);
        gpus[d].image = gy_image_get(&gpus[d].device, PLUGIN, why, sizeof(why));
        cr_assert(gpus[d].image, "%s", why);
        cr_assert_eq(gy_device_enter(&gpus[d].device), 0);
        cr_assert_eq(cu->stream_create(&gpus[d].stream, GY_CU_STREAM_NON_BLOCKING), 0);
        for (int p = 0; p < d; p++) {
            cr_assert_eq(cu->enable_peer_access(gpus[p].device.context, 0), 0);
            gy_device_leave(&gpus[d].device);
            cr_assert_eq(gy_device_enter(&gpus[p].device), 0);
            cr_assert_eq(cu->enable_peer_access(gpus[d].device.context, 0), 0);
            gy_device_leave(&gpus[p].device);
            cr_assert_eq(gy_device_enter(&gpus[d].device), 0);
        }
        if (d < count - 1)
            gy_device_leave(&gpus[d].device); /* the context of the last device stays current */
    }
    cr_assert_eq(cu->host_alloc(&word, sizeof(*stop), GY_CU_HOST_PORTABLE), 0);
    stop = word;
    *stop = 0;
}

static void close_gpus(int count)
{
    for (int d = 0; d < count; d++)
        gy_image_put(gpus[d].image);
    cr_assert_eq(gy_gpu_libraries(), 0);
}

static gy_cu_address memory_on(int d, size_t bytes)
{
    gy_cu_address address = 0;

    cr_assert_eq(gy_device_enter(&gpus[d].device), 0);
    cr_assert_eq(cu->mem_alloc(&address, bytes), 0);
    gy_device_leave(&gpus[d].device);
    memset(gy_gpu_bytes(address, bytes), 0, bytes);
    return address;
}

static void *at(gy_cu_address address)
{
    return (void *)(uintptr_t)address;
}

/* Returns false if this build does not have the kernel (pairs.h). */
static bool launch(int d, int kernel, unsigned blocks, void *arguments)
{
    gy_cu_function function = gy_image_function(gpus[d].image, kernel, why, sizeof(why));

#if defined(GYRE_SANITIZED)
    if (!function)
        return false;
#endif
    cr_assert(function, "%s", why);
    void *parameters[] = {arguments};
    cr_assert_eq(cu->launch(function, blocks, 1, 1, THREADS, 1, 1, 0, gpus[d].stream, parameters, NULL), 0);
    launched++;
    return true;
}

static void finish(int count)
{
    for (int d = 0; d < count; d++)
        cr_assert_eq(cu->stream_synchronize(gpus[d].stream), 0);
}

/* A reduction: its type, operation and order, and its operands. */
struct shape {
    gyre_dtype type;
    gyre_op op;
    bool canonical;
    int ranks;
    size_t count, size;
    gy_cu_address in[SOURCES], out[SOURCES], scalar[SOURCES];
    unsigned char expected[ROOM];
};

static void expect(struct shape *s)
{
    static unsigned char scaled[SOURCES][ROOM];
    const void *from[SOURCES];

    for (int r = 0; r < s->ranks; r++) {
        memcpy(scaled[r], gy_gpu_bytes(s->in[r], 1), s->count * s->size);
        if (s->op == GYRE_PREMUL_SUM)
            reference_multiply(scaled[r], gy_gpu_bytes(s->in[r], 1), gy_gpu_bytes(s->scalar[r], 1), s->count,
                               (int)s->type);
        from[r] = scaled[r];
    }
    reference_reduce(s->expected, from, s->ranks, s->count, (int)s->type, (int)s->op, s->canonical);
}

/* Random offsets: addresses are equal modulo 16, differ, or are not aligned to an element. */
static void prepare(struct shape *s, const gy_cu_address *in, const gy_cu_address *out, const gy_cu_address *scalar)
{
    const bool agree = below(2), in_place = below(4) == 0;

    s->size = gyre_dtype_size(s->type);
    s->count = 1 + below(ELEMENTS);
    for (int r = 0; r < s->ranks; r++) {
        s->in[r] = in[r] + (agree ? 0 : below(16));
        s->out[r] = in_place ? s->in[r] : out[r] + (agree ? 0 : below(16));
        s->scalar[r] = scalar[r];
        reference_fill(gy_gpu_bytes(s->scalar[r], 1), 1, (int)s->type, &state);
        reference_fill(gy_gpu_bytes(s->in[r], 1), s->count, (int)s->type, &state);
    }
    expect(s);
}

static void compare(const struct shape *s, const char *what)
{
    for (int r = 0; r < s->ranks; r++)
        cr_assert_eq(memcmp(gy_gpu_bytes(s->out[r], 1), s->expected, s->count * s->size), 0,
                     "%s %s %s%s: output %d of %d is wrong, %zu elements", what, gyre_dtype_name(s->type),
                     gyre_op_name(s->op), s->canonical ? ", canonical" : "", r, s->ranks, s->count);
}

/* Iterates over all types, operations and orders that are defined. */
static bool next_pair(struct shape *s, enum gy_kernel_kind kind, int *pair)
{
    for (; *pair < (GYRE_BOOL + 1) * (GYRE_PREMUL_SUM + 1) * 2; ++*pair) {
        s->type = (gyre_dtype)(*pair / 2 / (GYRE_PREMUL_SUM + 1));
        s->op = (gyre_op)(*pair / 2 % (GYRE_PREMUL_SUM + 1));
        s->canonical = *pair % 2;
        if (gy_kernel_find(kind, s->type, s->op, s->canonical) >= 0)
            return ++*pair, true;
    }
    return false;
}

static void fill_piece(struct gy_kernel_piece *piece, const struct shape *s, gy_cu_address arrays)
{
    uint64_t *lists = gy_gpu_bytes(arrays, 3 * SOURCES * sizeof(uint64_t));

    *piece = (struct gy_kernel_piece){.count = s->count,
                                      .nsrc = (uint16_t)s->ranks,
                                      .ndst = (uint16_t)s->ranks,
                                      .divisor = s->op == GYRE_AVERAGE ? s->ranks : 0,
                                      .indirect_src = at(arrays),
                                      .indirect_dst = at(arrays + SOURCES * sizeof(uint64_t)),
                                      .indirect_scalar = at(arrays + 2 * SOURCES * sizeof(uint64_t))};
    for (int r = 0; r < s->ranks; r++) {
        lists[r] = s->in[r];
        lists[SOURCES + r] = s->out[r];
        lists[2 * SOURCES + r] = s->scalar[r];
        if (s->ranks <= GY_INLINE_OPERANDS) {
            piece->src[r] = at(s->in[r]);
            piece->dst[r] = at(s->out[r]);
            piece->scalar[r] = at(s->scalar[r]);
        }
    }
}

Test(launch, fused)
{
    static struct shape s;
    gy_cu_address in[SOURCES], out[SOURCES], scalar[SOURCES];

    open_gpus("1", 1);
    for (int r = 0; r < SOURCES; r++) {
        in[r] = memory_on(0, ROOM);
        out[r] = memory_on(0, ROOM);
        scalar[r] = memory_on(0, 8);
    }
    gy_cu_address arrays = memory_on(0, 3 * SOURCES * sizeof(uint64_t));
    for (int pair = 0; next_pair(&s, GY_KERNEL_fused, &pair);) {
        static const int ranks[] = {2, 3, 5, 8, SOURCES};
        struct gy_fused a = {.abort = stop, .pieces = 1};
        s.ranks = ranks[below(GY_ARRAY_LENGTH(ranks))];
        prepare(&s, in, out, scalar);
        fill_piece(&a.piece[0], &s, arrays);
        if (!launch(0, gy_kernel_find(GY_KERNEL_fused, s.type, s.op, s.canonical), 1 + below(3), &a))
            continue;
        memset(&a, 0xee, sizeof(a)); /* the launch has already copied the argument */
        finish(1);
        compare(&s, "fused");
    }
    cr_assert_gt(launched, 40);
    close_gpus(1);
}

/* Memory that kernels with barriers keep between launches. */
static gy_cu_address words[RANKS], inbox[RANKS];

static struct gy_peer_sync sync_of(int rank)
{
    struct gy_peer_sync m = {.abort = stop,
                             .step = at(words[rank]),
                             .finished = at(words[rank] + 4),
                             .rank = (uint16_t)rank,
                             .ranks = RANKS};

    for (int r = 0; r < RANKS; r++)
        m.arrived[r] = at(words[r] + 64);
    return m;
}

static void make_sync(void)
{
    for (int r = 0; r < RANKS; r++) {
        words[r] = memory_on(r, 64 + RANKS * BLOCKS * 2 * sizeof(uint32_t));
        inbox[r] = memory_on(r, 2 * RANKS * (ROOM / 8) * sizeof(struct gy_line));
    }
}

static bool launch_one_shot(const struct shape *s, int rank)
{
    struct gy_one_shot a = {.sync = sync_of(rank),
                            .capacity = ROOM / 8,
                            .count = (uint32_t)s->count,
                            .divisor = s->op == GYRE_AVERAGE ? RANKS : 0,
                            .in = at(s->in[rank]),
                            .out = at(s->out[rank]),
                            .scalar = at(s->scalar[rank])};

    for (int r = 0; r < RANKS; r++)
        a.inbox[r] = at(inbox[r]);
    return launch(rank, gy_kernel_find(GY_KERNEL_one_shot, s->type, s->op, s->canonical), BLOCKS, &a);
}

static bool launch_two_shot(const struct shape *s, int rank)
{
    struct gy_two_shot a = {.sync = sync_of(rank), .pieces = 1};
    struct gy_kernel_piece *p = &a.piece[0];

    *p = (struct gy_kernel_piece){.first = s->count * (size_t)rank / RANKS,
                                  .count = s->count * (size_t)(rank + 1) / RANKS,
                                  .nsrc = RANKS,
                                  .ndst = RANKS,
                                  .divisor = s->op == GYRE_AVERAGE ? RANKS : 0};
    for (int r = 0; r < RANKS; r++) {
        p->src[r] = at(s->in[r]);
        p->dst[r] = at(s->out[r]);
        p->scalar[r] = at(s->scalar[r]);
    }
    return launch(rank, gy_kernel_find(GY_KERNEL_two_shot, s->type, s->op, s->canonical), BLOCKS, &a);
}

/* Every rank has a device, and its kernels wait for those of the other ranks. The host does not wait between the
 * launches of a stream. */
static void all_reduce_of_ranks(enum gy_kernel_kind kind, bool (*launch_one)(const struct shape *, int))
{
    static struct shape s[ROUNDS];
    gy_cu_address in[ROUNDS][RANKS], out[ROUNDS][RANKS], scalar[ROUNDS][RANKS];

    open_gpus("4:peer", RANKS);
    make_sync();
    for (int k = 0; k < ROUNDS; k++)
        for (int r = 0; r < RANKS; r++) {
            in[k][r] = memory_on(r, ROOM);
            out[k][r] = memory_on(r, ROOM);
            scalar[k][r] = memory_on(r, 8);
        }
    for (int pair = 0, all = 1; all;) {
        bool there[ROUNDS] = {false};
        for (int k = 0; k < ROUNDS && all; k++) {
            all = next_pair(&s[k], kind, &pair);
            if (!all)
                break;
            s[k].ranks = RANKS;
            prepare(&s[k], in[k], out[k], scalar[k]);
            for (int r = 0; r < RANKS; r++)
                there[k] = launch_one(&s[k], r);
        }
        finish(RANKS);
        for (int k = 0; k < ROUNDS; k++)
            if (there[k])
                compare(&s[k], gy_kernel_name(gy_kernel_find(kind, s[k].type, s[k].op, s[k].canonical)));
    }
    cr_assert_gt(launched, 40 * RANKS);
    close_gpus(RANKS);
}

Test(launch, one_shot)
{
    all_reduce_of_ranks(GY_KERNEL_one_shot, launch_one_shot);
}

Test(launch, two_shot)
{
    all_reduce_of_ranks(GY_KERNEL_two_shot, launch_two_shot);
}

Test(launch, moves)
{
    unsigned char first[300], second[300];

    open_gpus("1", 1);
    gy_cu_address memory[] = {memory_on(0, 320), memory_on(0, 320), memory_on(0, 320)};
    for (unsigned offset = 0; offset < 16; offset++) {
        unsigned char *from = gy_gpu_bytes(memory[0] + offset, 300), *with = gy_gpu_bytes(memory[2] + offset / 2, 300);
        reference_fill(from, 300, GYRE_UINT8, &state);
        reference_fill(with, 300, GYRE_UINT8, &state);
        memcpy(first, from, 300);
        memcpy(second, with, 300);
        struct gy_moves a = {.abort = stop, .moves = 1, .move = {{at(memory[1] + 3), at(memory[0] + offset), 300}}};
        cr_assert(launch(0, GY_NUMBER_gy_move, 2, &a));
        a.move[0] = (struct gy_one_move){at(memory[2] + offset / 2), at(memory[0] + offset), 300 | GY_EXCHANGE};
        cr_assert(launch(0, GY_NUMBER_gy_move, 1, &a));
        finish(1);
        cr_assert_eq(memcmp(gy_gpu_bytes(memory[1] + 3, 300), first, 300), 0);
        cr_assert_eq(memcmp(from, second, 300), 0);
        cr_assert_eq(memcmp(with, first, 300), 0);
    }
    close_gpus(1);
}

/* An all_gather: each rank reads the blocks of its peers. */
Test(launch, two_shot_moves)
{
    gy_cu_address in[RANKS], out[RANKS];

    open_gpus("4:peer", RANKS);
    make_sync();
    for (int r = 0; r < RANKS; r++) {
        in[r] = memory_on(r, 100);
        out[r] = memory_on(r, 100 * RANKS);
        reference_fill(gy_gpu_bytes(in[r], 1), 100, GYRE_UINT8, &state);
    }
    for (int r = 0; r < RANKS; r++) {
        struct gy_two_shot_moves a = {.sync = sync_of(r), .moves = RANKS};
        for (unsigned p = 0; p < RANKS; p++)
            a.move[p] = (struct gy_one_move){at(out[r] + 100 * p), at(in[p]), 100};
        cr_assert(launch(r, GY_NUMBER_gy_two_shot_move, BLOCKS, &a));
    }
    finish(RANKS);
    for (int r = 0; r < RANKS; r++)
        for (unsigned p = 0; p < RANKS; p++)
            cr_assert_eq(memcmp(gy_gpu_bytes(out[r] + 100 * p, 1), gy_gpu_bytes(in[p], 1), 100), 0);
    close_gpus(RANKS);
}

/* The kernels of ranks wait for a missing peer until the abort word is set; other streams continue. */
Test(launch, waits_until_the_abort_word_is_set)
{
    static struct shape s = {.type = GYRE_FLOAT32, .op = GYRE_SUM, .ranks = RANKS};
    gy_cu_address memory[RANKS];
    unsigned got = 0;

    open_gpus("4:peer", RANKS);
    make_sync();
    for (int r = 0; r < RANKS; r++)
        memory[r] = memory_on(r, ROOM);
    prepare(&s, memory, memory, memory);
    for (int r = 0; r < RANKS - 1; r++)
        cr_assert(launch_two_shot(&s, r));
    for (int i = 0; i < 2000; i++)
        cr_assert_eq(cu->stream_query(gpus[1].stream), GY_CU_NOT_READY);
    cr_assert_eq(cu->set32_async(memory[RANKS - 1], 7, 1, gpus[RANKS - 1].stream), 0);
    cr_assert_eq(cu->copy_async((uintptr_t)&got, memory[RANKS - 1], 4, gpus[RANKS - 1].stream), 0);
    cr_assert_eq(cu->stream_synchronize(gpus[RANKS - 1].stream), 0);
    cr_assert_eq(got, 7);
    __atomic_store_n(stop, 1, __ATOMIC_RELEASE);
    finish(RANKS);
}

/* Launches a copy from `from` on device 0. Returns the status of its stream. */
static gy_cu_result end_of_move(gy_cu_address to, gy_cu_address from)
{
    struct gy_moves a = {.abort = stop, .moves = 1, .move = {{at(to), at(from), 64}}};

    cr_assert(launch(0, GY_NUMBER_gy_move, 1, &a));
    return cu->stream_synchronize(gpus[0].stream);
}

Test(launch, beyond_an_allocation_is_a_sticky_error)
{
    gy_cu_address other;

    open_gpus("2:peer", 2);
    gy_cu_address memory = memory_on(0, 100), peer = memory_on(1, 64);
    cr_assert_eq(end_of_move(memory, peer), 0, "a peer's memory may be read");
    cr_assert_eq(end_of_move(memory, memory + 48), GY_CU_ILLEGAL_ADDRESS,
                 "a vector of 16 bytes exceeds the allocation by 12");
    cr_assert_eq(gy_device_enter(&gpus[0].device), 0);
    cr_assert_eq(cu->mem_alloc(&other, 16), GY_CU_ILLEGAL_ADDRESS);
    gy_device_leave(&gpus[0].device);
    cr_assert_eq(cu->set8_async(peer, 1, 64, gpus[1].stream), 0, "the other device still works");
    cr_assert_eq(cu->stream_synchronize(gpus[1].stream), 0);
}

Test(launch, of_pageable_host_memory_is_an_error)
{
    char host[64];

    open_gpus("1", 1);
    cr_assert_eq(end_of_move(memory_on(0, 128), (uintptr_t)host), GY_CU_ILLEGAL_ADDRESS);
}

Test(launch, of_memory_without_peer_access_is_an_error)
{
    open_gpus("2", 1);
    cr_assert(gy_device_open(&gpus[1].device, cu, 1, why, sizeof(why)), "%s", why);
    cr_assert_eq(end_of_move(memory_on(0, 128), memory_on(1, 64)), GY_CU_ILLEGAL_ADDRESS);
}

/* A fault ends waiting kernels of the same device and later work of their streams. */
Test(launch, ends_when_the_device_fails, .timeout = 20)
{
    static struct shape s = {.type = GYRE_FLOAT32, .op = GYRE_SUM, .ranks = RANKS};
    gy_cu_address memory[RANKS];
    gy_cu_stream second;
    gy_cu_event behind;

    open_gpus("4:peer", RANKS);
    make_sync();
    for (int r = 0; r < RANKS; r++)
        memory[r] = memory_on(r, ROOM);
    prepare(&s, memory, memory, memory);
    cr_assert(launch_two_shot(&s, 0));
    cr_assert_eq(gy_device_enter(&gpus[0].device), 0);
    cr_assert_eq(cu->event_create(&behind, GY_CU_EVENT_DISABLE_TIMING), 0);
    cr_assert_eq(cu->event_record(behind, gpus[0].stream), 0);
    cr_assert_eq(cu->stream_create(&second, GY_CU_STREAM_NON_BLOCKING), 0);
    cr_assert_eq(cu->set8_async(memory[0], 0, ROOM + 1, second), 0);
    cr_assert_eq(cu->stream_synchronize(second), GY_CU_ILLEGAL_ADDRESS);
    cr_assert_eq(cu->stream_synchronize(gpus[0].stream), GY_CU_ILLEGAL_ADDRESS);
    cr_assert_eq(cu->event_synchronize(behind), 0);
}

Test(launch, with_a_wrong_grid_or_block_is_refused)
{
    struct gy_moves a = {0};
    void *parameters[] = {&a};

    open_gpus("1", 1);
    gy_cu_function function = gy_image_function(gpus[0].image, GY_NUMBER_gy_move, why, sizeof(why));
    cr_assert_eq(cu->launch(function, 0, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL), GY_CU_INVALID_VALUE);
    cr_assert_eq(cu->launch(function, 1, 1, 1, GY_BLOCK_THREADS + 1, 1, 1, 0, NULL, parameters, NULL),
                 GY_CU_INVALID_VALUE);
}

/* One rank of the tests of how calls live together, one suite per run (the argument):
 *   requests  several in flight, completed by test, wait and wait_all; calls of some ranks that are requests of others,
 *             around the sizes where short vectors go another way; many of those in flight
 *   crossed   two communicators, opposite orders, 64 MiB; many on one, behind them one on the other that others wait in
 *             first
 *   flat      1,000 distinct counts leave memory as it was
 *   mixed     heap, gyre memory, in place and unaligned in one call */
#include <malloc.h>

#include "collective.h"
#include "support/rank.h"

static gyre_comm *comm;
static int rank, size;

static void *allocate(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    CHECK(memory != NULL);
    memset(memory, 0x5a, bytes);
    return memory;
}

static struct gy_case make_case(enum gy_kind kind, size_t bytes)
{
    struct gy_case it = {.kind = kind,
                         .comm = comm,
                         .rank = rank,
                         .size = size,
                         .root = size - 1,
                         .dtype = GYRE_FLOAT32,
                         .op = GYRE_SUM};
    gy_case_size(&it, bytes);
    it.input = allocate(it.bytes);
    it.output = allocate(it.bytes);
    return it;
}

static void free_case(struct gy_case *it)
{
    free(it->input);
    free(it->output);
}

/* FLIGHT requests at once; `way` 0: polled in reverse order, 1: waited for one by one, 2: all together. */
static void run_requests(int way)
{
    enum { FLIGHT = 10 };
    struct gy_case cases[FLIGHT];
    gyre_request *requests[FLIGHT];
    for (int i = 0; i < FLIGHT; i++) {
        cases[i] = make_case((enum gy_kind)(i % GY_KINDS), (size_t)1 << (2 + 2 * i));
        gy_case_fill(&cases[i], (uint64_t)(100 * way + i));
    }
    for (int i = 0; i < FLIGHT; i++)
        OK(comm, gy_case_start(&cases[i], &requests[i]));
    for (int i = FLIGHT - 1; way == 0 && i >= 0; i--) {
        gyre_status status;
        while ((status = gyre_test(&requests[i])) == GYRE_IN_PROGRESS)
            ;
        OK(comm, status);
    }
    for (int i = 0; way == 1 && i < FLIGHT; i++)
        OK(comm, gyre_wait(&requests[i]));
    if (way == 2)
        OK(comm, gyre_wait_all(requests, FLIGHT));
    for (int i = 0; i < FLIGHT; i++) {
        CHECK(requests[i] == NULL);
        CHECK(gy_case_wrong(&cases[i], (uint64_t)(100 * way + i)) == 0);
        free_case(&cases[i]);
    }
}

/* One operation after the other, of any kind; each rank blocks in some of them and starts the others. */
static void run_two_ways(size_t bytes)
{
    for (int kind = 0; kind < GY_KINDS; kind++)
        for (int i = 0; i < 3; i++) {
            struct gy_case it = make_case((enum gy_kind)kind, bytes);
            gyre_request *request;
            gy_case_fill(&it, (uint64_t)i + bytes);
            if ((rank + i) % 2 == 0) {
                OK(comm, gy_case_call(&it));
            } else {
                OK(comm, gy_case_start(&it, &request));
                OK(comm, gyre_wait(&request));
            }
            CHECK(gy_case_wrong(&it, (uint64_t)i + bytes) == 0);
            free_case(&it);
        }
}

/* Where short vectors go another way, and on both sides of it. */
static const size_t sizes[] = {4, 48, 52, 112, 116, 336, 348, 4096, 4100, 8192, 8196, 16380, 16384, 16388, 49152};

static uint64_t draw(uint64_t *state, uint64_t end)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (*state >> 33) % end;
}

static void collect(struct gy_case *it, gyre_request **request, uint64_t seed)
{
    if (!it->comm)
        return;
    OK(comm, gyre_wait(request));
    if (gy_case_wrong(it, seed) > 0)
        rank_fail("one of many in flight, %s of %zu bytes, number %zu: wrong", gy_kind_name(it->kind), it->bytes,
                  (size_t)seed);
    free_case(it);
    it->comm = NULL;
}

/* The same calls of all kinds and short sizes on every rank, many in flight; but each rank has its own pace, blocks in
 * some of them, and collects them in an order of its own. */
static void run_in_flight(int operations)
{
    enum { PENDING = 20 };
    struct gy_case cases[PENDING] = {0};
    gyre_request *requests[PENDING] = {NULL};
    uint64_t seeds[PENDING] = {0}, common = 1, own = (uint64_t)rank;
    for (int i = 0; i < operations; i++) {
        uint64_t at = own % PENDING;
        while (cases[at].comm && draw(&own, 2) == 0)
            at = draw(&own, PENDING);
        collect(&cases[at], &requests[at], seeds[at]);
        enum gy_kind kind = (enum gy_kind)draw(&common, GY_KINDS);
        size_t bytes = sizes[draw(&common, draw(&common, 4) ? 9 : sizeof sizes / sizeof *sizes)];
        cases[at] = make_case(kind, bytes);
        seeds[at] = (uint64_t)i;
        gy_case_fill(&cases[at], seeds[at]);
        if (draw(&own, 16) == 0)
            OK(comm, gy_case_call(&cases[at]));
        else
            OK(comm, gy_case_start(&cases[at], &requests[at]));
        for (uint64_t turns = draw(&own, 8) == 0 ? draw(&own, 20) : 0; turns > 0; turns--)
            OK(comm, gyre_progress(comm));
    }
    for (int i = 0; i < PENDING; i++)
        collect(&cases[i], &requests[i], seeds[i]);
}

static void test_requests(void)
{
    gyre_request *none = NULL;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        run_two_ways(sizes[i]);
    for (int round = 0; round < 5; round++) {
        for (int way = 0; way < 3; way++)
            run_requests(way);
    }
    run_in_flight(1500);
    OK(comm, gyre_test(&none));
    OK(comm, gyre_wait(&none));
    OK(comm, gyre_wait_all(NULL, 0));
    OK(comm, gyre_progress(comm));
}

/* One half of the ranks starts many on one communicator and blocks on the other, where the other half goes first. */
static void run_behind(void)
{
    enum { MANY = 40 };
    gyre_comm *other;
    struct gy_case cases[MANY];
    gyre_request *requests[MANY];
    OK(comm, gyre_comm_duplicate(comm, &other));
    for (int round = 0; round < 2; round++) {
        struct gy_case last = make_case(GY_KIND_ALL_REDUCE, 65536);
        last.comm = other;
        gy_case_fill(&last, MANY);
        bool early = rank % 2 == round;
        if (!early)
            OK(other, gy_case_call(&last));
        for (int i = 0; i < MANY; i++) {
            cases[i] = make_case(GY_KIND_ALL_REDUCE, (size_t)64 << (i % 12));
            gy_case_fill(&cases[i], (uint64_t)i);
            OK(comm, gy_case_start(&cases[i], &requests[i]));
        }
        if (early)
            OK(other, gy_case_call(&last));
        OK(comm, gyre_wait_all(requests, MANY));
        for (int i = 0; i < MANY; i++) {
            CHECK(gy_case_wrong(&cases[i], (uint64_t)i) == 0);
            free_case(&cases[i]);
        }
        CHECK(gy_case_wrong(&last, MANY) == 0);
        free_case(&last);
    }
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_comm_destroy(other));
}

static void test_crossed(void)
{
    gyre_comm *other;
    OK(comm, gyre_comm_duplicate(comm, &other));
    struct gy_case a = make_case(GY_KIND_ALL_REDUCE, (size_t)64 << 20),
                   b = make_case(GY_KIND_ALL_REDUCE, (size_t)64 << 20);
    b.comm = other;
    gy_case_fill(&a, 1);
    gy_case_fill(&b, 2);
    gyre_request *first, *second;
    if (rank % 2 == 0) {
        OK(comm, gy_case_start(&a, &first));
        OK(other, gy_case_start(&b, &second));
        OK(other, gyre_wait(&second));
        OK(comm, gyre_wait(&first));
    } else {
        OK(other, gy_case_start(&b, &second));
        OK(comm, gy_case_start(&a, &first));
        OK(comm, gyre_wait(&first));
        OK(other, gyre_wait(&second));
    }
    CHECK(gy_case_wrong(&a, 1) == 0);
    CHECK(gy_case_wrong(&b, 2) == 0);
    free_case(&a);
    free_case(&b);
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_comm_destroy(other));
    run_behind();
}

static size_t heap_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void test_flat(void)
{
    struct gy_case it = make_case(GY_KIND_ALL_REDUCE, 1100 * 37 * sizeof(float));
    size_t before = 0;
    /* First one count of every power of two: working buffers are kept per size class. Then 1,000 distinct counts. */
    for (size_t i = 0; i < 1011; i++) {
        if (i == 11)
            before = heap_in_use();
        it.count = i < 11 ? (size_t)37 << i : 1 + 37 * (i - 11);
        if (it.count > 1100 * 37)
            it.count = 1100 * 37;
        it.bytes = it.count * sizeof(float);
        gy_case_fill(&it, i);
        OK(comm, gy_case_call(&it));
        CHECK(gy_case_wrong(&it, i) == 0);
    }
    size_t after = heap_in_use();
    if (after > before + 64 * 1024)
        rank_fail("1,000 distinct counts grew the heap from %zu to %zu bytes", before, after);
    free_case(&it);
}

static void run_mixed(enum gy_kind kind, size_t bytes)
{
    struct gy_case it = make_case(kind, bytes);
    void *shared[2] = {NULL, NULL}, *plain[2] = {it.input, it.output};
    int way = (rank + (int)kind) % 4;
    unsigned char *odd[2] = {allocate(it.bytes + 1), allocate(it.bytes + 1)};
    for (int i = 0; i < 2; i++)
        OK(comm, gyre_mem_alloc(comm, it.bytes + 1, &shared[i]));
    it.in_place = way == 2;
    it.input = way == 1 ? shared[0] : way == 3 ? odd[0] + 1 : plain[0];
    it.output = way == 1 ? shared[1] : way == 3 ? odd[1] + 1 : plain[1];
    for (uint64_t round = 0; round < 3; round++) {
        gy_case_fill(&it, round);
        OK(comm, gy_case_call(&it));
        size_t wrong = gy_case_wrong(&it, round);
        if (wrong)
            rank_fail("mixed %s of %zu bytes, way %d: %zu elements wrong", gy_kind_name(kind), it.bytes, way, wrong);
    }
    for (int i = 0; i < 2; i++) {
        OK(comm, gyre_mem_free(comm, shared[i]));
        free(odd[i]);
        free(plain[i]);
    }
}

static void test_mixed(void)
{
    static const size_t lengths[] = {4, 4000, 262148, 4 << 20};
    for (int kind = 0; kind < GY_KIND_BARRIER; kind++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            run_mixed((enum gy_kind)kind, lengths[i]);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } suites[] = {{"requests", test_requests}, {"crossed", test_crossed}, {"flat", test_flat}, {"mixed", test_mixed}};
    comm = rank_begin(240);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    bool found = false;
    for (size_t i = 0; argc == 2 && i < sizeof suites / sizeof *suites; i++) {
        if (strcmp(argv[1], suites[i].name) == 0) {
            suites[i].run();
            found = true;
        }
    }
    CHECK(found);
    OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}

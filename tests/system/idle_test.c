/* What a communicator holds that has been used once, and what its later calls allocate. The memory is counted by an
 * allocator that the test gives gyre, so that the figures are the same on every run. Blocks of at least LARGE bytes are
 * whole pages that gyre may never touch: of these the resident ones count.
 *
 * The communicators are of three kinds, by the order in which they are made: the records of the first GYRE_PAGE_COMMS
 * lie in the page, the first WINDOWS have a window where all ranks are of one host, and the others have links only. */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <gyre/page.h>

#include "support/rank.h"

#define LARGE ((size_t)64 << 10)
#define LIMIT ((size_t)16 << 10) /* bytes of a communicator that has been used once */
#define WINDOWS 64
#define LINKED 100 /* communicators without a window that are made */

struct block { /* in front of what gyre has */
    struct block *next, *previous;
    size_t bytes, mapped; /* that gyre asked for; that are mapped from `whole` on, 0: allocated */
    void *whole;
};

static struct block blocks = {.next = &blocks, .previous = &blocks};
static size_t allocations;

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static void *allocate(void *user, size_t bytes, size_t align)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    bool large = bytes >= LARGE;
    size_t unit = large ? page : align < sizeof(struct block) ? _Alignof(max_align_t) : align;
    size_t lead = round_up(sizeof(struct block), unit), all = lead + round_up(bytes, unit);
    void *whole = large ? mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                        : aligned_alloc(unit, all);
    (void)user;
    CHECK(align <= page && whole && whole != MAP_FAILED);
    if (large)
        (void)madvise(whole, all, MADV_NOHUGEPAGE);
    void *memory = (char *)whole + lead;
    struct block *block = (struct block *)memory - 1;
    *block = (struct block){blocks.next, &blocks, bytes, large ? all : 0, whole};
    blocks.next->previous = block;
    blocks.next = block;
    allocations++;
    return memory;
}

static void release(void *user, void *memory)
{
    struct block *block = (struct block *)memory - 1;
    (void)user;
    block->next->previous = block->previous;
    block->previous->next = block->next;
    if (block->mapped)
        munmap(block->whole, block->mapped);
    else
        free(block->whole);
}

static void *resize(void *user, void *memory, size_t bytes)
{
    size_t old = memory ? ((struct block *)memory - 1)->bytes : 0;
    void *made = allocate(user, bytes, _Alignof(max_align_t));
    if (memory) {
        memcpy(made, memory, old < bytes ? old : bytes);
        release(user, memory);
    }
    return made;
}

static size_t bytes_held(void)
{
    size_t sum = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    static unsigned char resident[1 << 16];
    for (const struct block *block = blocks.next; block != &blocks; block = block->next) {
        size_t pages = block->mapped / page;
        sum += pages ? 0 : block->bytes;
        CHECK(pages <= sizeof resident && (!pages || mincore(block->whole, block->mapped, resident) == 0));
        for (size_t i = 1; i < pages; i++) /* the first one is the test's */
            sum += resident[i] & 1 ? page : 0;
    }
    return sum;
}

static gyre_comm *world;

static void call(gyre_comm *comm)
{
    float one = 1, sum = 0;
    OK(comm, gyre_all_reduce(comm, &one, &sum, 1, GYRE_FLOAT32, GYRE_SUM));
    CHECK((int)sum == gyre_comm_size(comm));
}

static gyre_comm *make(void)
{
    gyre_comm *comm;
    OK(world, gyre_comm_duplicate(world, &comm));
    return comm;
}

/* Makes so many, uses each once, and returns the last of them. limit: bytes of each; 0: none. */
static gyre_comm *make_used(int count, const char *kind, size_t limit)
{
    gyre_comm *comm = NULL;
    size_t before = bytes_held();
    for (int i = 0; i < count; i++) {
        comm = make();
        call(comm);
    }
    size_t each = (bytes_held() - before) / (size_t)count;
    if (getenv("GYRE_TEST_SHOW"))
        fprintf(stderr, "rank %d: %s: %zu bytes each\n", gyre_comm_rank(world), kind, each);
    if (limit && each > limit)
        rank_fail("communicators %s hold %zu bytes each after one call, at most %zu are allowed", kind, each, limit);
    return comm;
}

/* Of a communicator that has been used once: its second call makes so many allocations at most, and the next 300
 * none. */
static void check_steady(gyre_comm *comm, const char *kind, size_t most)
{
    size_t before = allocations;
    call(comm);
    if (allocations - before > most)
        rank_fail("the second call of a communicator %s made %zu allocations", kind, allocations - before);
    before = allocations;
    for (int i = 0; i < 300; i++)
        call(comm);
    if (allocations != before)
        rank_fail("later calls of a communicator %s made %zu allocations", kind, allocations - before);
}

/* A persistent operation has all that its starts need, the first one too. */
static void check_persistent(void)
{
    float one = 1, sum = 0;
    gyre_comm *comm = make();
    gyre_request *request;
    OK(comm, gyre_all_reduce_init(comm, &one, &sum, 1, GYRE_FLOAT32, GYRE_SUM, &request));
    size_t before = allocations;
    for (int i = 0; i < 20; i++) {
        OK(comm, gyre_start(request));
        OK(comm, gyre_wait(&request));
    }
    if (allocations != before)
        rank_fail("20 starts of a persistent operation made %zu allocations", allocations - before);
    OK(comm, gyre_request_free(&request));
}

int main(void)
{
    static const gyre_allocator own = {.size = sizeof own, .allocate = allocate, .resize = resize, .release = release};
    OK(NULL, gyre_allocator_set(&own));
    world = rank_begin(60);
    call(world);
    check_steady(world, "whose records lie in the page", 0);
    gyre_comm *in_page = make_used(GYRE_PAGE_COMMS - 1, "whose records lie in the page", 0);
    gyre_comm *with_window = make_used(WINDOWS - GYRE_PAGE_COMMS, "outside the page", LIMIT);
    gyre_comm *linked = make_used(LINKED, "without a window", LIMIT);
    check_steady(in_page, "whose records lie in the page", 0);
    check_steady(with_window, "outside the page", 1); /* for the rest of its records */
    check_steady(linked, "without a window", 1);
    check_persistent();
    OK(world, gyre_barrier(world));
    _exit(0);
}

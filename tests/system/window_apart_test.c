/* What becomes of a window's memory that a peer may still store to when the window has ended otherwise than by all
 * ranks' destroying it. The peer is in the middle of an accumulation by an operation of the test's own, which it holds
 * as long as its owner wants, so that its store is late whatever the machine does.
 *
 *   failed   the owner aborts: when a call has told it so, what it writes is its own
 *   gone     the owner's communicator goes and its memory is freed while the world goes on: the next allocations are
 *            others, and stay zero; when the peer's communicator has gone too, the place is given out again
 *   reused   all have destroyed it: the place is given out at once
 *   threads  ranks of one process, which share its mapping: the window works, but nothing comes to its memory except in
 *   calls
 *            of its owner, and after one that has failed nothing at all
 *
 * The argument says which. */
#include <pthread.h>
#include <stdatomic.h>

#include "support/launcher.h"

#define RANKS 2
#define OWNER 0
#define BYTES ((size_t)64 << 10)
#define COUNT (BYTES / sizeof(int64_t))
#define LIMIT_NS INT64_C(35000000000)

static struct page {
    _Atomic int inside, allowed, stored, looked, left;
} * page;
static const char *scenario;

static bool is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

static void await(_Atomic int *flag)
{
    for (int64_t limit = rank_now_ns() + LIMIT_NS; !atomic_load(flag); usleep(200))
        CHECK(rank_now_ns() < limit);
}

static void hold_and_add(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    CHECK(user == page && dtype == GYRE_INT64);
    atomic_store(&page->inside, 1);
    await(&page->allowed);
    for (size_t i = 0; i < count; i++)
        ((int64_t *)result)[i] = ((const int64_t *)left)[i] + ((const int64_t *)right)[i];
}

static void accumulate_late(gyre_comm *comm, gyre_window *window, gyre_op op)
{
    static int64_t ones[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        ones[i] = 1;
    OK(comm, gyre_window_accumulate(window, ones, COUNT, GYRE_INT64, op, OWNER, 0));
}

static void check_all(const unsigned char *memory, size_t bytes, unsigned char value, const char *what)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != value)
            rank_fail("%s: byte %zu is 0x%02x instead of 0x%02x", what, i, memory[i], value);
}

static void fail_as_owner(gyre_comm *comm, gyre_window *window, unsigned char *memory)
{
    await(&page->inside);
    OK(comm, gyre_comm_abort(comm));
    GIVES(GYRE_ABORTED, comm, gyre_progress(comm));
    memset(memory, 0xee, BYTES);
    GIVES(GYRE_ABORTED, comm, gyre_window_destroy(window));
    check_all(memory, BYTES, 0xee, "what its owner has written");
    atomic_store(&page->allowed, 1);
    await(&page->stored);
    check_all(memory, BYTES, 0xee, "after the late store");
    OK(comm, gyre_mem_free(comm, memory));
}

static void fail(gyre_comm *comm, gyre_window *window, unsigned char *memory, gyre_op op)
{
    if (gyre_comm_rank(comm) == OWNER) {
        fail_as_owner(comm, window, memory);
        return;
    }
    accumulate_late(comm, window, op);
    atomic_store(&page->stored, 1);
    GIVES(GYRE_ABORTED, comm, gyre_window_flush(window, OWNER));
}

static unsigned char *allocate(gyre_comm *comm, size_t bytes)
{
    void *memory;
    OK(comm, gyre_mem_alloc(comm, bytes, &memory));
    check_all(memory, bytes, 0, "what has been allocated");
    return memory;
}

static void go_as_owner(gyre_comm *comm, gyre_comm *own, unsigned char *memory)
{
    await(&page->inside);
    OK(own, gyre_comm_destroy(own));
    OK(comm, gyre_mem_free(comm, memory));
    unsigned char *other = allocate(comm, BYTES), *small = allocate(comm, 1), *last = allocate(comm, 1);
    CHECK(other != memory);
    atomic_store(&page->allowed, 1);
    await(&page->stored);
    check_all(other, BYTES, 0, "an allocation after it");
    check_all(small, 4096, 0, "a small one after it");
    check_all(last, 4096, 0, "another small one");
    atomic_store(&page->looked, 1);
    await(&page->left);
    CHECK(allocate(comm, BYTES) == memory);
}

static void go(gyre_comm *comm, gyre_comm *own, gyre_window *window, unsigned char *memory, gyre_op op)
{
    if (gyre_comm_rank(comm) == OWNER) {
        go_as_owner(comm, own, memory);
    } else {
        int64_t got = 0, two = 2;
        accumulate_late(own, window, op);
        OK(own, gyre_window_put(window, &two, 1, GYRE_INT64, OWNER, 8));
        OK(own, gyre_window_get(window, &got, 1, GYRE_INT64, OWNER, 8));
        CHECK(got == two); /* it is still memory */
        for (unsigned i = 0; i < GYRE_WINDOW_SIGNALS; i++)
            OK(own, gyre_window_signal(window, OWNER, i));
        atomic_store(&page->stored, 1);
        await(&page->looked);
        OK(own, gyre_comm_destroy(own));
        atomic_store(&page->left, 1);
    }
    OK(comm, gyre_barrier(comm));
}

static void run_rank(int rank)
{
    gyre_window *window;
    gyre_op op;
    gyre_comm *comm = rank_begin(50), *own;
    OK(comm, gyre_comm_duplicate(comm, &own));
    unsigned char *memory = allocate(comm, BYTES);
    OK(own, gyre_window_create(own, memory, BYTES, &window));
    OK(comm, gyre_op_create(comm, hold_and_add, page, 1, &op));
    OK(comm, gyre_barrier(comm));
    if (is("failed")) {
        fail(own, window, memory, op);
        OK(own, gyre_comm_destroy(own));
    } else if (is("gone")) {
        go(comm, own, window, memory, op);
    } else {
        memset(memory, rank + 1, BYTES);
        OK(own, gyre_window_destroy(window));
        OK(comm, gyre_mem_free(comm, memory));
        CHECK(allocate(comm, BYTES) == memory);
        OK(own, gyre_comm_destroy(own));
    }
    OK(comm, gyre_comm_destroy(comm));
}

/* ---- ranks of one process ---- */

static char address[160];

static gyre_comm *meet(int rank)
{
    gyre_config config = {.size = sizeof config, .rank = rank, .world_size = RANKS, .address = address};
    gyre_comm *comm;
    OK(NULL, gyre_comm_create(&config, &comm));
    return comm;
}

static void *own_as_thread(void *unused)
{
    gyre_window *window;
    gyre_comm *comm = meet(OWNER);
    unsigned char *memory = allocate(comm, BYTES);
    OK(comm, gyre_window_create(comm, memory, BYTES, &window));
    OK(comm, gyre_window_wait(window, 0, 1));
    check_all(memory, 64, 0x11, "what was put before the signal");
    memset(memory, 0xee, BYTES);
    atomic_store(&page->allowed, 1);
    await(&page->stored); /* outside of gyre */
    check_all(memory, BYTES, 0xee, "what its owner has written");
    OK(comm, gyre_comm_abort(comm));
    GIVES(GYRE_ABORTED, comm, gyre_progress(comm));
    atomic_store(&page->looked, 1);
    await(&page->left);
    check_all(memory, BYTES, 0xee, "after the failure");
    GIVES(GYRE_ABORTED, comm, gyre_window_destroy(window));
    OK(comm, gyre_comm_destroy(comm));
    return unused;
}

static void *put_as_thread(void *unused)
{
    unsigned char mine[64];
    gyre_window *window;
    gyre_comm *comm = meet(1 - OWNER);
    OK(comm, gyre_window_create(comm, NULL, 0, &window));
    memset(mine, 0x11, sizeof mine);
    OK(comm, gyre_window_put(window, mine, sizeof mine, GYRE_UINT8, OWNER, 0));
    OK(comm, gyre_window_signal(window, OWNER, 0));
    await(&page->allowed);
    OK(comm, gyre_window_put(window, mine, sizeof mine, GYRE_UINT8, OWNER, 0));
    atomic_store(&page->stored, 1);
    await(&page->looked);
    GIVES(GYRE_ABORTED, comm, gyre_window_put(window, mine, sizeof mine, GYRE_UINT8, OWNER, 0));
    atomic_store(&page->left, 1);
    OK(comm, gyre_comm_destroy(comm));
    return unused;
}

static void run_process(int rank)
{
    pthread_t threads[RANKS];
    (void)rank;
    alarm(50);
    snprintf(address, sizeof address, "%s", getenv("GYRE_ADDRESS"));
    CHECK(pthread_create(&threads[0], NULL, own_as_thread, NULL) == 0);
    CHECK(pthread_create(&threads[1], NULL, put_as_thread, NULL) == 0);
    for (int i = 0; i < RANKS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? argv[1] : "failed";
    CHECK(is("failed") || is("gone") || is("reused") || is("threads"));
    page = launch_share(sizeof *page);
    return launch(is("threads") ? 1 : RANKS, is("threads") ? run_process : run_rank, 45, scenario) ? 0 : 1;
}

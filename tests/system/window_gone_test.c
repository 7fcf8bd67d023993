/* One rank destroys a communicator with its window while the others still use it, and the world goes on. The
 * window's memory is plain memory, so that all goes by links.
 *
 *   put, accumulate, signal, flush, get, wait   begun when it has been destroyed: GYRE_PEER_LEFT at once, of that
 *                                               communicator alone
 *   putting, adding, getting                    under way when it is destroyed: from then on the memory is its owner's.
 *                                               Its later writes stay as they are and come to no other rank
 *
 * After each the world, and a window of another communicator, work as before. The argument says which. */
#include <stdatomic.h>

#include "support/launcher.h"

#define RANKS 3
#define OWNER 1
#define BYTES ((size_t)16 << 20)
#define ROUNDS 6
#define LIMIT_NS INT64_C(60000000000)
#define SOON_NS INT64_C(15000000000) /* a busy machine's; GYRE_TIMEOUT is longer */

static struct page {
    _Atomic int gone;
    unsigned char there[RANKS][BYTES]; /* what each rank gets; seen by the owner */
} * page;
static const char *scenario;
static unsigned char memory[BYTES], source[BYTES];

static bool is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

static bool is_under_way(void)
{
    return is("putting") || is("adding") || is("getting");
}

static void check_all(const unsigned char *bytes, unsigned char value, unsigned char other, const char *what)
{
    for (size_t i = 0; i < BYTES; i++)
        if (bytes[i] != value && bytes[i] != other)
            rank_fail("%s: byte %zu is 0x%02x", what, i, bytes[i]);
}

static gyre_status use(gyre_window *window, int rank)
{
    size_t bytes = is_under_way() ? BYTES : 1000; /* there a long one comes in pieces, a short one whole */
    if (is("put") || is("putting"))
        return gyre_window_put(window, source, bytes, GYRE_UINT8, OWNER, 0);
    if (is("accumulate") || is("adding"))
        return gyre_window_accumulate(window, source, bytes, GYRE_UINT8, GYRE_MAX, OWNER, 0);
    if (is("get") || is("getting"))
        return gyre_window_get(window, page->there[rank], bytes, GYRE_UINT8, OWNER, 0);
    return is("signal") ? gyre_window_signal(window, OWNER, 0) : GYRE_SUCCESS;
}

/* ---- begun after its end ---- */

static void await_gone(int times)
{
    for (int64_t limit = rank_now_ns() + LIMIT_NS; atomic_load(&page->gone) < times; usleep(200))
        CHECK(rank_now_ns() < limit);
}

/* A put's source may be free before its target has answered; whatever was begun after that has the answer. */
static void use_late(gyre_comm *comm, gyre_window *window, int rank)
{
    int64_t began = rank_now_ns();
    if (is("wait")) { /* the owner's signals do not come any more, and the other rank's have come */
        OK(comm, gyre_window_wait(window, 1, 1));
    } else {
        gyre_status status = use(window, rank);
        CHECK(status == GYRE_SUCCESS || status == GYRE_PEER_LEFT);
        GIVES(GYRE_PEER_LEFT, comm, is("get") ? status : gyre_window_flush(window, OWNER));
        if (!is("flush"))
            GIVES(GYRE_PEER_LEFT, comm, use(window, rank));
        GIVES(GYRE_PEER_LEFT, comm, gyre_window_flush(window, -1));
        GIVES(GYRE_PEER_LEFT, comm, gyre_window_signal(window, OWNER, 0));
        CHECK(strncmp(gyre_last_error(comm), "rank 1 destroyed", 16) == 0);
        OK(comm, gyre_window_flush(window, rank == 0 ? 2 : 0)); /* the others' parts are there */
    }
    CHECK(rank_now_ns() - began < SOON_NS);
}

/* A rank that waits for signals is told when no rank is left that could send one: of two, when the other has left. */
static void wait_in_vain(gyre_comm *world, int rank)
{
    gyre_comm *two = NULL;
    gyre_window *window;
    OK(world, gyre_comm_split(world, rank < 2 ? 0 : -1, rank, &two));
    if (two) {
        OK(two, gyre_window_create(two, memory, BYTES, &window));
        int64_t began = rank_now_ns();
        if (rank == 0) {
            GIVES(GYRE_PEER_LEFT, two, gyre_window_wait(window, 0, 2));
            CHECK(rank_now_ns() - began < SOON_NS);
        } else {
            OK(two, gyre_window_signal(window, 0, 0)); /* one, and not two */
            usleep(100000);
        }
        OK(two, gyre_comm_destroy(two));
    }
}

/* ---- under way at its end ---- */

static void own_until_it_comes(gyre_comm *comm, gyre_comm *world)
{
    const volatile unsigned char *first = is("getting") ? page->there[0] : memory;
    for (int64_t limit = rank_now_ns() + LIMIT_NS; *first == 0x22;) {
        OK(world, gyre_progress(world));
        CHECK(rank_now_ns() < limit);
    }
    OK(comm, gyre_comm_destroy(comm));
    memset(memory, 0xee, BYTES);
}

/* Again and again, since one may be through before the owner has seen another rank's begin. What succeeds is whole. */
static void use_early(gyre_comm *comm, gyre_window *window, int rank)
{
    gyre_status status = GYRE_SUCCESS;
    for (int64_t limit = rank_now_ns() + LIMIT_NS; status == GYRE_SUCCESS;) {
        CHECK(rank_now_ns() < limit);
        status = use(window, rank);
        if (status == GYRE_SUCCESS)
            status = gyre_window_flush(window, OWNER);
        if (status == GYRE_SUCCESS && is("getting"))
            check_all(page->there[rank], 0x33, 0x33, "what a get that succeeded has got");
    }
    GIVES(GYRE_PEER_LEFT, comm, status);
    GIVES(GYRE_PEER_LEFT, comm, gyre_window_flush(window, OWNER));
}

static void prepare(int rank)
{
    memset(memory, is("getting") ? 0x33 : 0x22, BYTES);
    memset(source, 0x33, BYTES);
    memset(page->there[rank], 0x22, BYTES);
}

static void go(gyre_comm *world, int rank, int round)
{
    gyre_comm *comm;
    gyre_window *window;
    prepare(rank);
    OK(world, gyre_comm_duplicate(world, &comm));
    OK(comm, gyre_window_create(comm, memory, BYTES, &window));
    if (is("wait") && rank != OWNER)
        OK(comm, gyre_window_signal(window, 2 - rank, 1));
    OK(world, gyre_barrier(world));
    if (rank == OWNER && is_under_way()) {
        own_until_it_comes(comm, world);
    } else if (rank == OWNER) {
        OK(comm, gyre_comm_destroy(comm));
        atomic_store(&page->gone, round + 1);
    } else if (is_under_way()) {
        use_early(comm, window, rank);
    } else {
        await_gone(round + 1);
        use_late(comm, window, rank);
    }
    OK(world, gyre_barrier(world));
    if (rank == OWNER && is_under_way())
        check_all(memory, 0xee, 0xee, "what its owner has written");
    else if (is("getting"))
        check_all(page->there[rank], 0x22, 0x33, "what has been got");
    /* its destruction is collective: it succeeds, and the status says why it was not so */
    if (rank != OWNER && round % 2)
        GIVES(GYRE_PEER_LEFT, comm, gyre_window_destroy(window));
    if (rank != OWNER)
        OK(comm, gyre_comm_destroy(comm));
}

static void check_world(gyre_comm *world, gyre_window *window, int rank, unsigned char *cells, int round)
{
    unsigned char value = (unsigned char)(round + 1);
    OK(world, gyre_window_put(window, &value, 1, GYRE_UINT8, (rank + 1) % RANKS, (size_t)rank));
    OK(world, gyre_window_flush(window, -1));
    OK(world, gyre_barrier(world));
    CHECK(cells[(rank + RANKS - 1) % RANKS] == value);
}

static void run_rank(int rank)
{
    static unsigned char cells[RANKS];
    gyre_window *window;
    gyre_comm *world = rank_begin(100);
    OK(world, gyre_window_create(world, cells, sizeof cells, &window));
    for (int round = 0; round < ROUNDS; round++) {
        go(world, rank, round);
        if (is("wait"))
            wait_in_vain(world, rank);
        check_world(world, window, rank, cells, round);
    }
    OK(world, gyre_window_destroy(window));
    OK(world, gyre_comm_destroy(world));
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? argv[1] : "put";
    CHECK(is("put") || is("accumulate") || is("signal") || is("flush") || is("get") || is("wait") || is_under_way());
    page = launch_share(sizeof *page);
    setenv("GYRE_TIMEOUT", "60", 1);
    return launch(RANKS, run_rank, 95, scenario) ? 0 : 1;
}

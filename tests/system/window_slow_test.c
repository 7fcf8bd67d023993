/* Rank 2 accumulates with an operation of the test's own, which takes a few seconds, into the window of rank 0, its
 * neighbour, which wants its own lock meanwhile. Rank 1, on another host, waits for rank 0 in an all_reduce that
 * both have entered, with a shorter timeout than the operation takes. Rank 0 lives, and so no rank is blamed:
 *
 *   taken   rank 0 wants the lock for what rank 1 has sent, inside of the delivery of that
 *   own     rank 0 has started the all_reduce, and accumulates itself: the all_reduce even goes on
 *
 * The argument says which. */
#include "support/launcher.h"

#define RANKS 3
#define CLOCK_S 3 /* of rank 1 */
#define HOLD_S 7
#define COUNT ((size_t)1 << 20)

struct shared {
    int held, entered, given_back;
};

static struct shared *shared;
static const char *scenario;

static void await(const int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        usleep(1000);
}

static void set(int *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

static void add_slowly(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    CHECK(user == shared && dtype == GYRE_INT64);
    set(&shared->held);
    sleep(HOLD_S);
    for (size_t i = 0; i < count; i++)
        ((int64_t *)result)[i] = ((const int64_t *)left)[i] + ((const int64_t *)right)[i];
    set(&shared->given_back);
}

/* By ranks 0 and 1. */
static void reduce(gyre_comm *pair, gyre_window *window, bool own)
{
    static int64_t in[COUNT], out[COUNT];
    int64_t one = 1;
    gyre_request *request;
    for (size_t i = 0; i < COUNT; i++)
        in[i] = (int64_t)i + gyre_comm_rank(pair);
    if (gyre_comm_rank(pair) == 1) {
        await(&shared->entered);
        usleep(1500000); /* so that it knows of that */
        if (!own)
            OK(pair, gyre_window_accumulate(window, &one, 1, GYRE_INT64, GYRE_SUM, 0, 0));
        OK(pair, gyre_all_reduce(pair, in, out, COUNT, GYRE_INT64, GYRE_SUM));
        CHECK(!own || !__atomic_load_n(&shared->given_back, __ATOMIC_ACQUIRE));
    } else {
        await(&shared->held);
        OK(pair, gyre_all_reduce_start(pair, in, out, COUNT, GYRE_INT64, GYRE_SUM, &request));
        set(&shared->entered);
        if (own)
            OK(pair, gyre_window_accumulate(window, &one, 1, GYRE_INT64, GYRE_SUM, 0, 0));
        OK(pair, gyre_wait(&request));
        CHECK(__atomic_load_n(&shared->given_back, __ATOMIC_ACQUIRE));
    }
    for (size_t i = 0; i < COUNT; i++)
        CHECK(out[i] == 2 * (int64_t)i + 1);
}

static void run_rank(int rank)
{
    static const int both[] = {0, 1};
    int64_t one = 1, *memory;
    gyre_window *window;
    gyre_comm *pair;
    gyre_op op;
    setenv("GYRE_HOST_ID", rank == 1 ? "one" : "the-other", 1);
    launch_set_number("GYRE_STALL_TIMEOUT", rank == 1 ? CLOCK_S : 60);
    gyre_comm *comm = rank_begin(40);
    OK(comm, gyre_mem_alloc(comm, 4096, (void **)&memory));
    memory[0] = 40;
    OK(comm, gyre_window_create(comm, memory, 4096, &window));
    OK(comm, gyre_op_create(comm, add_slowly, shared, 1, &op));
    OK(comm, gyre_comm_sub(comm, both, 2, &pair));
    OK(comm, gyre_barrier(comm));
    if (rank == 2)
        OK(comm, gyre_window_accumulate(window, &one, 1, GYRE_INT64, op, 0, 0));
    else
        reduce(pair, window, !strcmp(scenario, "own"));
    OK(comm, gyre_window_destroy(window));
    CHECK(rank != 0 || memory[0] == 42);
    OK(comm, gyre_mem_free(comm, memory));
    OK(NULL, gyre_comm_destroy(pair)); /* whose last one goes says that it leaves; of rank 2 it is NULL */
    OK(NULL, gyre_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? argv[1] : "taken";
    shared = launch_share(sizeof *shared);
    return launch(RANKS, run_rank, 35, scenario) ? 0 : 1;
}

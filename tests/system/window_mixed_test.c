/* One rank of a window over memory of different kinds: every combination of no memory, heap memory and memory of
 * gyre_mem_alloc over the ranks. In each, every rank puts into every other rank's part, accumulates, signals and waits,
 * then all destroy the window. Each has a world of its own, because links stay open as long as their world. With an
 * argument, that many ranks are threads of this process. */
#include <pthread.h>

#include "support/rank.h"

#define RANKS_MOST 4
#define BYTES 4096

enum kind { NONE, HEAP, OWN, KINDS };

static enum kind kind_of(int mix, int rank)
{
    for (int r = 0; r < rank; r++)
        mix /= KINDS;
    return (enum kind)(mix % KINDS);
}

/* Each rank has two elements of every part: one to put to, one to add to. */
static void access_parts(gyre_comm *comm, gyre_window *window, int mix)
{
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm), peers = 0;
    double put = 1 + rank, add = 10 + rank;
    for (int r = 0; r < size; r++) {
        if (r == rank)
            continue;
        peers++;
        if (kind_of(mix, r) != NONE) {
            OK(comm, gyre_window_put(window, &put, 1, GYRE_FLOAT64, r, (size_t)rank * sizeof put));
            OK(comm, gyre_window_accumulate(window, &add, 1, GYRE_FLOAT64, GYRE_SUM, r, RANKS_MOST * sizeof add));
        }
        OK(comm, gyre_window_signal(window, r, 0));
    }
    OK(comm, gyre_window_flush(window, -1));
    OK(comm, gyre_window_wait(window, 0, (uint64_t)peers));
}

static void check_part(const double *part, int rank, int size)
{
    double sum = 0;
    for (int r = 0; r < size; r++) {
        CHECK(part[r] == (r == rank ? 0 : 1 + r));
        sum += r == rank ? 0 : 10 + r;
    }
    CHECK(part[RANKS_MOST] == sum);
}

static void try_mix(gyre_comm *comm, int mix)
{
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm);
    enum kind kind = kind_of(mix, rank);
    void *memory = NULL;
    if (kind == HEAP)
        memory = calloc(1, BYTES);
    if (kind == OWN) {
        OK(comm, gyre_mem_alloc(comm, BYTES, &memory));
        memset(memory, 0, BYTES);
    }
    CHECK(kind == NONE || memory);
    gyre_window *window;
    OK(comm, gyre_window_create(comm, memory, memory ? BYTES : 0, &window));
    access_parts(comm, window, mix);
    OK(comm, gyre_window_destroy(window));
    if (memory)
        check_part(memory, rank, size);
    if (kind == HEAP)
        free(memory);
    if (kind == OWN)
        OK(comm, gyre_mem_free(comm, memory));
}

static int mixes_of(int size)
{
    int mixes = 1;
    for (int r = 0; r < size; r++)
        mixes *= KINDS;
    return mixes;
}

static char folder[] = "/tmp/gyre-window-XXXXXX";
static int threads;

static void *run_thread(void *argument)
{
    for (int mix = 0; mix < mixes_of(threads); mix++) {
        char address[64];
        snprintf(address, sizeof address, "file://%s/%d", folder, mix);
        gyre_config config = {.size = sizeof config,
                              .rank = (int)(intptr_t)argument,
                              .world_size = threads,
                              .address = address,
                              .secret = "a-secret-of-the-tests-0123456789"};
        gyre_comm *comm;
        OK(NULL, gyre_comm_create(&config, &comm));
        try_mix(comm, mix);
        OK(NULL, gyre_comm_destroy(comm));
    }
    return NULL;
}

static void run_threads(void)
{
    pthread_t thread[RANKS_MOST];
    CHECK(mkdtemp(folder) != NULL);
    for (int r = 0; r < threads; r++)
        CHECK(pthread_create(&thread[r], NULL, run_thread, (void *)(intptr_t)r) == 0);
    for (int r = 0; r < threads; r++)
        CHECK(pthread_join(thread[r], NULL) == 0);
    rmdir(folder);
}

static void run_process(void)
{
    for (int mix = 0; mix < mixes_of(atoi(getenv("WORLD_SIZE"))); mix++) {
        gyre_comm *comm = rank_begin(50);
        try_mix(comm, mix);
        OK(NULL, gyre_comm_destroy(comm));
    }
}

int main(int argc, char **argv)
{
    threads = argc > 1 ? atoi(argv[1]) : 0;
    alarm(50);
    if (threads > 0 && threads <= RANKS_MOST)
        run_threads();
    else
        run_process();
    _exit(0);
}

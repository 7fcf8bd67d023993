/* The flight recorder, read back by a parser. After a known history the dump shows the last 256 operations of each
 * communicator, in order, with shape and state. An operation that waits for a late rank names it. When a rank dies,
 * every survivor's recorder is on its standard error (GYRE_LOG=info), and names the rank that was waited for. A
 * communicator whose records lie outside the page begins with a few of them, and its history is the same. */
#include <gyre/page.h>

#include "support/launcher.h"

#define KEPT 256
#define HISTORY 400
#define LINE 256

struct entry {
    uint64_t sequence;
    char shape[LINE], state[16];
    int waiting_for; /* −1: none */
    double us;       /* −1: not measured */
};

struct dump {
    int rank, count;
    uint64_t started, done, failed, bytes;
    struct entry entries[KEPT + 1];
};

static gyre_comm *comm;
static int rank, size;
static float input[4096], output[4096];
static struct dump dump; /* the one that was read last */

/* "all_reduce #17 (float32 x 1000, sum, ring) failed 12.3 us, waiting for rank 2" */
static void parse_entry(char *line)
{
    struct entry *entry = &dump.entries[dump.count];
    char *number = strchr(line, '#'), *end = strchr(line, ')');
    int used = 0;
    if (!number || !end || dump.count > KEPT)
        rank_fail("the recorder wrote '%s'", line);
    entry->sequence = strtoull(number + 1, NULL, 10);
    snprintf(entry->shape, sizeof entry->shape, "%.*s", (int)(end + 1 - line), line);
    entry->waiting_for = -1;
    entry->us = -1;
    if (sscanf(end + 1, " %15s%n", entry->state, &used) != 1)
        rank_fail("no state in '%s'", line);
    sscanf(end + 1 + used, " %lf us, waiting for rank %d", &entry->us, &entry->waiting_for);
    dump.count++;
}

/* Reads the `which`-th dump in the file, from 0. */
static bool parse(int fd, int which)
{
    char line[LINE];
    FILE *file = fdopen(dup(fd), "r");
    int found = -1;
    CHECK(file != NULL);
    rewind(file);
    memset(&dump, 0, sizeof dump);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        unsigned long long started, done, failed, bytes;
        int who;
        if (sscanf(line, "rank %d: %llu operations started, %llu done, %llu failed, %llu bytes", &who, &started, &done,
                   &failed, &bytes) == 5) {
            if (++found == which)
                dump = (struct dump){.rank = who, .started = started, .done = done, .failed = failed, .bytes = bytes};
        } else if (found == which && strncmp(line, "  ", 2) == 0) {
            parse_entry(line + 2);
        }
    }
    fclose(file);
    return found >= which;
}

static void take_dump(const gyre_comm *of)
{
    int fd = memfd_create("dump", MFD_CLOEXEC);
    CHECK(fd >= 0);
    OK(of, gyre_comm_dump(of, fd));
    CHECK(parse(fd, 0));
    close(fd);
}

static const struct entry *last(void)
{
    CHECK(dump.count > 0);
    return &dump.entries[dump.count - 1];
}

static gyre_status start(gyre_comm *of, int i, gyre_request **request_p)
{
    size_t count = 1 + (size_t)i % 700;
    switch (i % 5) {
    case 0: return gyre_all_reduce_start(of, input, output, count, GYRE_FLOAT32, GYRE_SUM, request_p);
    case 1: return gyre_barrier_start(of, request_p);
    case 2: return gyre_broadcast_start(of, input, output, count, GYRE_INT32, i % size, request_p);
    case 3: return gyre_all_gather_start(of, input, output, count, GYRE_FLOAT32, request_p);
    default: return gyre_reduce_scatter_start(of, input, output, count, GYRE_INT32, GYRE_MAX, request_p);
    }
}

static void expected_shape(int i, uint64_t sequence, char *text)
{
    unsigned long long number = sequence;
    size_t count = 1 + (size_t)i % 700;
    switch (i % 5) {
    case 0: snprintf(text, LINE, "all_reduce #%llu (float32 x %zu, sum, ", number, count); break;
    case 1: snprintf(text, LINE, "barrier #%llu (", number); break;
    case 2: snprintf(text, LINE, "broadcast #%llu (int32 x %zu, root %d, ", number, count, i % size); break;
    case 3: snprintf(text, LINE, "all_gather #%llu (float32 x %zu, ", number, count); break;
    default: snprintf(text, LINE, "reduce_scatter #%llu (int32 x %zu, max, ", number, count);
    }
}

/* The history so far ends with operation `from + operations − 1` of the pattern, and began `before` operations
 * later. */
static void check_history(const gyre_comm *of, int operations, int before)
{
    uint64_t total = (uint64_t)(operations + before);
    take_dump(of);
    CHECK(dump.rank == rank && dump.started == total && dump.done == total && dump.failed == 0 && dump.bytes > 0);
    CHECK((uint64_t)dump.count == (total < KEPT ? total : KEPT));
    for (int e = 0; e < dump.count; e++) {
        char shape[LINE];
        const struct entry *entry = &dump.entries[e];
        int i = operations - dump.count + e;
        CHECK(entry->sequence == total - (uint64_t)dump.count + (uint64_t)e + 1);
        if (i < 0)
            continue;
        expected_shape(i, entry->sequence, shape);
        if (strncmp(entry->shape, shape, strlen(shape)) != 0)
            rank_fail("the recorder says '%s' instead of '%s…'", entry->shape, shape);
        if (strcmp(entry->state, "done") != 0 || entry->waiting_for != -1 || entry->us > 60e6)
            rank_fail("'%s' is '%s', waits for %d, took %.1f us", entry->shape, entry->state, entry->waiting_for,
                      entry->us);
    }
}

static void run_history_of(int own, int place)
{
    gyre_comm *twin, *world, *others[GYRE_PAGE_COMMS];
    gyre_request *requests[4];
    rank = own;
    comm = world = rank_begin(50);
    size = gyre_comm_size(comm);
    for (int i = 0; i < place; i++) {
        OK(world, gyre_comm_duplicate(world, &others[i]));
        comm = others[i];
    }
    OK(comm, gyre_comm_duplicate(comm, &twin)); /* two operations on comm */
    for (int i = 0; i < HISTORY; i += 4) {
        bool together = i % 3 == 0; /* as requests, one of them on each communicator; else one after the other */
        for (int k = 0; k < 4; k++) {
            OK(comm, start(comm, i + k, &requests[k]));
            if (!together)
                OK(comm, gyre_wait(&requests[k]));
        }
        if (i < 40)
            OK(twin, gyre_barrier(twin));
        if (together)
            OK(comm, gyre_wait_all(requests, 4));
        if (i == 200)
            check_history(comm, 204, 2);
    }
    check_history(comm, HISTORY, 2);
    take_dump(twin);
    CHECK(dump.started == 10 && dump.done == 10 && dump.count == 10);
    OK(twin, gyre_barrier(comm));
    OK(twin, gyre_comm_destroy(twin));
    for (int i = 0; i < place; i++)
        OK(NULL, gyre_comm_destroy(others[i]));
    OK(NULL, gyre_comm_destroy(world));
}

static void run_history(int own)
{
    run_history_of(own, 0);
}

static void run_history_outside(int own)
{
    run_history_of(own, GYRE_PAGE_COMMS);
}

/* Outside the page: the first operation is under way when the second one makes room for more. */
static void run_growth(int own)
{
    gyre_comm *world;
    gyre_request *requests[2];
    rank = own;
    comm = world = rank_begin(50);
    size = gyre_comm_size(comm);
    for (int i = 0; i < GYRE_PAGE_COMMS; i++)
        OK(world, gyre_comm_duplicate(world, &comm));
    for (int i = 0; i < 2; i++)
        OK(comm, start(comm, i, &requests[i]));
    OK(comm, gyre_wait_all(requests, 2));
    check_history(comm, 2, 0);
    OK(world, gyre_barrier(world));
    _exit(0);
}

static int *step; /* shared: how far the others are */

static void wait_for_step(int wanted)
{
    while (__atomic_load_n(step, __ATOMIC_ACQUIRE) < wanted)
        usleep(1000);
}

/* Rank 1 is late: what rank 0 has under way says so. */
static void run_late(int own)
{
    gyre_request *requests[2];
    rank = own;
    comm = rank_begin(50);
    size = gyre_comm_size(comm);
    OK(comm, gyre_barrier(comm));
    if (rank == 1)
        wait_for_step(1);
    OK(comm, gyre_all_reduce_start(comm, input, output, 3000, GYRE_FLOAT32, GYRE_SUM, &requests[0]));
    OK(comm, gyre_barrier_start(comm, &requests[1]));
    if (rank == 0) {
        for (int i = 0; i < 100; i++)
            CHECK(gyre_test(&requests[0]) == GYRE_IN_PROGRESS);
        take_dump(comm);
        CHECK(dump.started == 3 && dump.done == 1 && dump.failed == 0 && dump.count == 3);
        for (int e = 1; e < 3; e++) {
            const struct entry *entry = &dump.entries[e];
            if (strcmp(entry->state, "running") != 0 || (e == 1 && entry->waiting_for != 1))
                rank_fail("'%s' is '%s' and waits for %d", entry->shape, entry->state, entry->waiting_for);
        }
        __atomic_store_n(step, 1, __ATOMIC_RELEASE);
    }
    OK(comm, gyre_wait_all(requests, 2));
    take_dump(comm);
    CHECK(dump.done == 3 && strcmp(last()->state, "done") == 0 && last()->waiting_for == -1);
    OK(NULL, gyre_comm_destroy(comm));
}

/* Rank 1 dies: rank 0 finds its recorder on its standard error, and in the dump. */
static void run_death(int own)
{
    rank = own;
    int log = memfd_create("log", MFD_CLOEXEC);
    CHECK(log >= 0 && dup2(log, 2) == 2);
    setenv("GYRE_LOG", "info", 1);
    comm = rank_begin(50);
    size = gyre_comm_size(comm);
    for (int i = 0; i < 20; i++)
        OK(comm, gyre_all_reduce(comm, input, output, 2000, GYRE_FLOAT32, GYRE_SUM));
    if (rank == 1) { /* when rank 0 is through the last of them too */
        wait_for_step(2);
        kill(getpid(), SIGKILL);
    }
    __atomic_store_n(step, 2, __ATOMIC_RELEASE);
    GIVES(GYRE_PEER_DEAD, comm, gyre_all_reduce(comm, input, output, 2000, GYRE_FLOAT32, GYRE_SUM));
    for (int way = 0; way < 2; way++) {
        if (way == 0)
            CHECK(parse(log, 0));
        else
            take_dump(comm);
        CHECK(dump.rank == 0 && dump.started == 21 && dump.done == 20 && dump.failed == 1 && dump.count == 21);
        CHECK(strcmp(dump.entries[19].state, "done") == 0);
        if (last()->sequence != 21 || strcmp(last()->state, "failed") != 0 || last()->waiting_for != 1 ||
            strncmp(last()->shape, "all_reduce #21 (float32 x 2000, sum, ", 37) != 0)
            rank_fail("the last operation is '%s', '%s', and waited for %d", last()->shape, last()->state,
                      last()->waiting_for);
    }
    CHECK(!parse(log, 1)); /* once */
    OK(NULL, gyre_comm_destroy(comm));
}

int main(void)
{
    step = launch_share(sizeof *step);
    if (!launch(3, run_history, 50, "history") || !launch(3, run_history_outside, 50, "history outside the page") ||
        !launch(2, run_growth, 50, "growth") || !launch(2, run_late, 50, "late"))
        return 1;
    launch_may_die = 1;
    return launch(2, run_death, 50, "death") ? 0 : 1;
}

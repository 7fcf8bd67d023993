/* One rank of the test that what is forced (GYRE_ALGORITHM, the attribute `algorithm`) is for the user's calls
 * alone. For every collective and every algorithm that serves it, whether these ranks can run it or not:
 *
 * - a call of that collective uses it, or is refused, before and after all that gyre does by calls of its own
 * - communicators and windows are made and destroyed, attributes set, joiners awaited, by the same operations with
 *   the same algorithms as when nothing is forced
 * - it can be taken back, by the communicator that a shrink makes of this one, too
 *
 * Argument "set": one after the other is set; "begun": the world has begun with one. */
#include "collectives/schedule/schedule.h"
#include "support/rank.h"

#define TICKET 6 /* words: a call of the user's that looks like one of gyre's own */
#define OPERATIONS 64
#define LATE 5000 /* microseconds, each rank later than the one before */

struct choice {
    const char *collective, *algorithm;
};

static const char *const collectives[] = {[GY_ALL_REDUCE] = "all_reduce", [GY_REDUCE_SCATTER] = "reduce_scatter",
                                          [GY_ALL_GATHER] = "all_gather", [GY_BROADCAST] = "broadcast",
                                          [GY_BARRIER] = "barrier",       [GY_REDUCE_TO] = "reduce",
                                          [GY_GATHER_TO] = "gather",      [GY_SCATTER_FROM] = "scatter",
                                          [GY_ALL_TO_ALL] = "all_to_all"};
static const struct algorithm {
    const char *name;
    unsigned serves; /* bits of collectives */
} algorithms[] = {
#define ROW(constant, name, builder, serves, counts, flags) {name, serves},
    GY_ALGORITHM_ROWS(ROW)
#undef ROW
};

/* What has been started, in that order. */
struct trace {
    int count;
    struct choice operation[OPERATIONS];
};

static gyre_comm *comm;
static int rank, size;
static struct trace seen, usual;

static void note(void *user, const gyre_trace_event *event)
{
    struct trace *trace = user;
    if (event->ended)
        return;
    CHECK(trace->count < OPERATIONS);
    trace->operation[trace->count++] = (struct choice){event->collective, event->algorithm};
}

static gyre_status gather(bool start)
{
    int32_t in[TICKET], out[16 * TICKET] = {0};
    gyre_request *request;
    for (int i = 0; i < TICKET; i++)
        in[i] = rank * TICKET + i;
    gyre_status status = start ? gyre_all_gather_start(comm, in, out, TICKET, GYRE_INT32, &request)
                               : gyre_all_gather(comm, in, out, TICKET, GYRE_INT32);
    if (start && status == GYRE_SUCCESS)
        status = gyre_wait(&request);
    for (int i = 0; i < size * TICKET && status == GYRE_SUCCESS; i++)
        CHECK(out[i] == i);
    return status;
}

/* Word i of rank r's input is r + i. */
static gyre_status move(enum gy_collective collective)
{
    int32_t in[16 * TICKET], out[16 * TICKET] = {0}, first = rank * TICKET;
    int results = TICKET, ranks = size * (size - 1) / 2; /* the sum of their numbers */
    gyre_status status;
    for (int i = 0; i < size * TICKET; i++)
        in[i] = rank + i;
    switch (collective) {
    case GY_ALL_REDUCE: status = gyre_all_reduce(comm, in, out, TICKET, GYRE_INT32, GYRE_SUM); break;
    case GY_REDUCE_SCATTER: status = gyre_reduce_scatter(comm, in, out, TICKET, GYRE_INT32, GYRE_SUM); break;
    case GY_REDUCE_TO: status = gyre_reduce(comm, in, out, TICKET, GYRE_INT32, GYRE_SUM, 0); break;
    case GY_GATHER_TO: status = gyre_gather(comm, in, out, TICKET, GYRE_INT32, 0); break;
    case GY_SCATTER_FROM: status = gyre_scatter(comm, in, out, TICKET, GYRE_INT32, 0); break;
    default: status = gyre_all_to_all(comm, in, out, TICKET, GYRE_INT32);
    }
    if (collective == GY_GATHER_TO || collective == GY_ALL_TO_ALL)
        results = size * TICKET;
    if (status != GYRE_SUCCESS || (rank > 0 && (collective == GY_REDUCE_TO || collective == GY_GATHER_TO)))
        return status;
    for (int i = 0; i < results; i++) {
        int word = i % TICKET, from = i / TICKET;
        switch (collective) {
        case GY_ALL_REDUCE:
        case GY_REDUCE_TO: CHECK(out[i] == ranks + size * i); break;
        case GY_REDUCE_SCATTER: CHECK(out[i] == ranks + size * (first + i)); break;
        case GY_GATHER_TO: CHECK(out[i] == from + word); break;
        case GY_SCATTER_FROM: CHECK(out[i] == first + word); break;
        default: CHECK(out[i] == from + first + word);
        }
    }
    return status;
}

static gyre_status call(const char *collective, bool start)
{
    if (strcmp(collective, "all_gather") == 0)
        return gather(start);
    if (strcmp(collective, "barrier") == 0)
        return gyre_barrier(comm);
    for (int c = 0; c < GY_SEND_TO; c++)
        if (strcmp(collective, collectives[c]) == 0 && c != GY_BROADCAST)
            return move((enum gy_collective)c);
    int32_t words[TICKET] = {rank ? 0 : 7};
    gyre_status status = gyre_broadcast(comm, words, words, TICKET, GYRE_INT32, 0);
    CHECK(status != GYRE_SUCCESS || words[0] == 7);
    return status;
}

/* The user's call goes by what is forced, or not at all. */
static void expect_forced(const struct choice *choice)
{
    size_t bytes = strcmp(choice->collective, "barrier") ? TICKET * sizeof(int32_t) : 0;
    const char *known = gyre_comm_algorithm(comm, choice->collective, bytes, GYRE_UINT8);
    CHECK(!known || strcmp(known, choice->algorithm) == 0);
    for (int i = 0; i < 4; i++) {
        seen.count = 0;
        GIVES(known ? GYRE_SUCCESS : GYRE_UNSUPPORTED, comm, call(choice->collective, i % 2 == 1));
        CHECK(seen.count == (known ? 1 : 0));
        if (known && strcmp(seen.operation[0].algorithm, choice->algorithm) != 0)
            rank_fail("%s of the user's by %s instead of %s", choice->collective, seen.operation[0].algorithm,
                      choice->algorithm);
    }
}

/* Everything for which gyre makes calls of its own. */
static void work(void)
{
    gyre_comm *other = NULL, *none = NULL;
    gyre_window *window;
    int32_t memory[4] = {0};
    OK(comm, gyre_comm_duplicate(comm, &other));
    OK(comm, gyre_comm_destroy(other));
    OK(comm, gyre_comm_split(comm, rank % 2, 0, &other));
    OK(comm, gyre_comm_destroy(other));
    OK(comm, gyre_window_create(comm, memory, sizeof memory, &window));
    OK(comm, gyre_window_put(window, &rank, 1, GYRE_INT32, (rank + 1) % size, 0));
    OK(comm, gyre_window_flush(window, -1));
    usleep((useconds_t)rank * LATE); /* an early rank waits for the others, whose flush it answers */
    OK(comm, gyre_window_destroy(window));
    CHECK(memory[0] == (rank + size - 1) % size);
    OK(comm, gyre_comm_set(comm, "order", "canonical"));
    OK(comm, gyre_comm_set(comm, "order", "shape"));
    OK(comm, gyre_comm_grow(comm, 0, 0, &none));
    CHECK(!none);
}

static void expect_usual(const char *forced)
{
    seen.count = 0;
    work();
    CHECK(seen.count == usual.count);
    for (int i = 0; i < seen.count; i++)
        if (strcmp(seen.operation[i].collective, usual.operation[i].collective) != 0 ||
            strcmp(seen.operation[i].algorithm, usual.operation[i].algorithm) != 0)
            rank_fail("with %s operation %d is %s by %s instead of %s by %s", forced, i, seen.operation[i].collective,
                      seen.operation[i].algorithm, usual.operation[i].collective, usual.operation[i].algorithm);
}

/* Twice: what is remembered of calls, of the user's or of gyre's, is not for the other kind. */
static void try(const struct choice *choice)
{
    char setting[64];
    snprintf(setting, sizeof setting, "%s:%s", choice->collective, choice->algorithm);
    for (int i = 0; i < 2; i++)
        OK(comm, call(choice->collective, i == 1));
    OK(comm, gyre_comm_set(comm, "algorithm", setting));
    for (int i = 0; i < 2; i++) {
        expect_forced(choice);
        expect_usual(setting);
    }
    expect_forced(choice);
    OK(comm, gyre_comm_set(comm, "algorithm", ""));
    OK(comm, call(choice->collective, false));
}

/* A communicator that begins with what another one had: it says so, and is rid of it. */
static void take_back(const char *setting)
{
    char text[64];
    OK(comm, gyre_comm_get(comm, "algorithm", text, sizeof text));
    CHECK(strcmp(text, setting) == 0);
    OK(comm, gyre_comm_set(comm, "algorithm", ""));
    OK(comm, gather(false));
    OK(comm, gyre_barrier(comm));
}

static void test_set(void)
{
    static const char *const both = "all_gather:direct_two_shot,barrier:direct_one_shot";
    gyre_comm *next = NULL;
    OK(comm, gyre_comm_trace(comm, note, &seen));
    work();
    seen.count = 0;
    work();
    usual = seen;
    CHECK(usual.count > 10);
    for (int c = 0; c < GY_SEND_TO; c++)
        for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++)
            if (algorithms[a].serves & GY_SERVES(c))
                try(&(struct choice){collectives[c], algorithms[a].name});
    OK(comm, gyre_comm_set(comm, "algorithm", both));
    OK(comm, gyre_comm_shrink(comm, &next));
    OK(comm, gyre_comm_destroy(comm));
    comm = next;
    take_back(both);
}

/* What GYRE_ALGORITHM says may be what only some communicators can do, and is not for the comparisons of
 * GYRE_VERIFY. */
static void test_begun(void)
{
    const char *setting = getenv("GYRE_ALGORITHM");
    const char *known = gyre_comm_algorithm(comm, "all_gather", TICKET, GYRE_INT32);
    gyre_comm *world = comm;
    for (int i = 0; i < 20; i++)
        GIVES(known ? GYRE_SUCCESS : GYRE_UNSUPPORTED, comm, gather(i % 2 == 1));
    work();
    OK(world, gyre_comm_duplicate(world, &comm));
    take_back(setting);
    OK(comm, gyre_comm_destroy(comm));
    comm = world;
    take_back(setting);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    comm = rank_begin(100);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    CHECK(size <= 16);
    (strcmp(argv[1], "begun") == 0 ? test_begun : test_set)();
    OK(comm, gyre_comm_destroy(comm));
    return 0;
}

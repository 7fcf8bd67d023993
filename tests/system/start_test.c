/* Starts of short vectors over slots that find what the others have published (collectives/call/eager_call.c),
 * between two ranks:
 *
 *   last      a start after the other rank has published its part is complete when it returns, however it is collected,
 *             and its rank may write over its buffers at once; the other has its result all the same
 *   behind    a start that finds everything there, behind one that waits, does not overtake it
 *   several   four wait at once, of one collective and two kinds, so that what is kept of the call before is replaced
 *             while it waits, or persistent ones with roots of their own; the fourth is waited for first
 *   full      more are started than may be published at once; when some are over, another one is: it does not overtake
 *             what waits
 *   dies      three wait, one behind another, and the other rank takes part in the first and dies: the others end so,
 *             the older of them is the one that is named, and they are counted as failed
 *   gone      the same where the communicator is destroyed instead: they are aborted, and their handles can be
 *             collected after it */
#include <stdatomic.h>

#include "support/launcher.h"

#define MOST 1000
#define ROUNDS 48
#define WAYS 4
#define AT_ONCE 4

static struct page {
    _Atomic int step;
} * page;

struct ends {
    int count;
    uint64_t last;
};

static gyre_comm *comm;
static struct ends ends;

static void note(void *user, const gyre_trace_event *event)
{
    struct ends *seen = user;
    if (!event->ended)
        return;
    if (event->sequence <= seen->last)
        rank_fail("number %llu ended after number %llu", (unsigned long long)event->sequence,
                  (unsigned long long)seen->last);
    seen->last = event->sequence;
    seen->count++;
}

static void tell(int step)
{
    atomic_store(&page->step, step);
}

static void await(int step)
{
    while (atomic_load(&page->step) < step)
        usleep(50);
}

struct call {
    int32_t input[MOST], output[2 * MOST];
    size_t count;
    bool gathers;
    gyre_request *request;
};

static int32_t value(int rank, int round, size_t i)
{
    return (int32_t)i * 7 + round * 31 + rank * 1009;
}

static void start(struct call *it, int rank, int round)
{
    static const size_t counts[] = {1, 40, MOST};
    it->count = counts[round % 3];
    it->gathers = round % 2;
    for (size_t i = 0; i < it->count; i++)
        it->input[i] = value(rank, round, i);
    memset(it->output, 0x55, sizeof it->output);
    OK(comm, it->gathers
                 ? gyre_all_gather_start(comm, it->input, it->output, it->count, GYRE_INT32, &it->request)
                 : gyre_all_reduce_start(comm, it->input, it->output, it->count, GYRE_INT32, GYRE_SUM, &it->request));
}

static void check(struct call *it, int round)
{
    for (size_t i = 0; i < (it->gathers ? 2 : 1) * it->count; i++)
        CHECK(it->output[i] ==
              (it->gathers ? value(i >= it->count, round, i % it->count) : value(0, round, i) + value(1, round, i)));
}

static void collect(struct call *it, int way)
{
    ptrdiff_t index;
    size_t indices[1], completed;
    gyre_request *kept = it->request;
    gyre_status status = GYRE_IN_PROGRESS;
    switch (way) {
    case 0: OK(comm, gyre_wait(&it->request)); break;
    case 1:
        while (status == GYRE_IN_PROGRESS)
            status = gyre_test(&it->request);
        OK(comm, status);
        break;
    case 2: OK(comm, gyre_wait_any(&it->request, 1, &index)); break;
    default: OK(comm, gyre_wait_some(&it->request, 1, indices, &completed)); break;
    }
    CHECK(!it->request);
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_wait(&kept)); /* it has been had */
}

/* Makes requests, which later calls find: what has none left to take goes the long way. */
static void make_requests(void)
{
    gyre_request *requests[8];
    for (int i = 0; i < 8; i++)
        OK(comm, gyre_barrier_start(comm, &requests[i]));
    OK(comm, gyre_wait_all(requests, 8));
}

/* The first calls make what the others find. */
static struct call *begin(int rank)
{
    comm = rank_begin(30);
    make_requests();
    struct call *it = calloc(2, sizeof *it);
    CHECK(it);
    for (int round = 0; round < 6; round++) {
        start(&it[0], rank, round);
        OK(comm, gyre_wait(&it[0].request));
        check(&it[0], round);
    }
    OK(comm, gyre_comm_trace(comm, note, &ends));
    return it;
}

static void run_last(int rank)
{
    struct call *it = begin(rank);
    for (int round = 0; round < ROUNDS; round++) {
        const bool last = rank == round / 6 % 2;
        OK(comm, gyre_barrier(comm));
        ends.count = 0;
        if (last)
            await(2 * round + 1);
        start(it, rank, round);
        CHECK(ends.count == last);
        if (last) {
            memset(it->input, 0x33, sizeof it->input);
            check(it, round);
            collect(it, round % WAYS);
        }
        tell(2 * round + (last ? 2 : 1));
        await(2 * round + 2);
        if (!last)
            collect(it, round % WAYS);
        CHECK(ends.count == 1);
        check(it, round);
    }
    OK(comm, gyre_comm_destroy(comm));
}

static void run_behind(int rank)
{
    struct call *it = begin(rank);
    for (int round = 0; round < ROUNDS; round++) {
        const bool first = rank == round / 6 % 2;
        OK(comm, gyre_barrier(comm));
        ends.count = 0;
        if (!first)
            await(3 * round + 1);
        start(&it[0], rank, round);
        CHECK(ends.count == !first);
        if (first) {
            tell(3 * round + 1);
            await(3 * round + 2);
        }
        start(&it[1], rank, round + 1);
        CHECK(first || ends.count == 1);
        tell(3 * round + (first ? 3 : 2));
        await(3 * round + 3);
        for (int i = 2; i-- > 0;) /* the last one first */
            collect(&it[i], round % WAYS);
        CHECK(ends.count == 2);
        check(&it[0], round);
        check(&it[1], round + 1);
    }
    OK(comm, gyre_comm_destroy(comm));
}

/* So many that wait, with results that tell them apart: two alike, and two others. */
struct several {
    float input[AT_ONCE][8], output[AT_ONCE][8];
    gyre_request *requests[AT_ONCE];
};

static size_t count_of(int i, int round)
{
    return (size_t)(1 + (i / 2 + round) % 8);
}

static void begin_several(struct several *it, int rank, int round, bool persistent)
{
    for (int i = 0; i < AT_ONCE; i++) {
        for (int k = 0; k < 8; k++)
            it->input[i][k] = (float)(round * 100 + i * 10 + k + 1000 * rank);
        if (!persistent)
            OK(comm, gyre_all_reduce_start(comm, it->input[i], it->output[i], count_of(i, round), GYRE_FLOAT32,
                                           i / 2 ? GYRE_MAX : GYRE_SUM, &it->requests[i]));
        else
            OK(comm, gyre_start(it->requests[i]));
    }
}

static void end_several(struct several *it, int round, bool persistent)
{
    gyre_request *waited[AT_ONCE];
    memcpy(waited, it->requests, sizeof waited);
    OK(comm, gyre_wait(&waited[AT_ONCE - 1]));
    OK(comm, gyre_wait_all(waited, AT_ONCE));
    for (int i = 0; i < AT_ONCE; i++)
        for (size_t k = 0; k < (persistent ? 4 : count_of(i, round)); k++) {
            float zero = (float)(round * 100 + i * 10 + (int)k), one = zero + 1000;
            float wanted = persistent ? (i % 2 ? one : zero) : i / 2 ? one : zero + one;
            CHECK(memcmp(&it->output[i][k], &wanted, sizeof wanted) == 0);
        }
}

static void run_several(int rank)
{
    begin(rank);
    struct several it = {0}, kept = {0};
    for (int i = 0; i < AT_ONCE; i++)
        OK(comm, gyre_broadcast_init(comm, kept.input[i], kept.output[i], 4, GYRE_FLOAT32, i % 2, &kept.requests[i]));
    for (int round = 0; round < ROUNDS; round++) {
        const bool first = rank == round / 6 % 2, persistent = round % 2;
        struct several *now = persistent ? &kept : &it;
        OK(comm, gyre_barrier(comm));
        if (!first)
            await(round + 1);
        begin_several(now, rank, round, persistent);
        if (first)
            tell(round + 1);
        end_several(now, round, persistent);
    }
    for (int i = 0; i < AT_ONCE; i++)
        OK(comm, gyre_request_free(&kept.requests[i]));
    OK(comm, gyre_comm_destroy(comm));
}

/* One more than may be shown at once, and one more when two are over. */
static void run_full(int rank)
{
    enum { CALLS = AT_ONCE + 2, EARLY = 2 };
    struct call *it = begin(rank), *calls = calloc(CALLS, sizeof *calls);
    CHECK(it && calls);
    for (int round = 0; round < ROUNDS; round++) {
        const bool first = rank == round / 6 % 2;
        OK(comm, gyre_barrier(comm));
        ends.count = 0;
        int started = 0;
        if (!first)
            await(3 * round + 1);
        while (started < (first ? CALLS - 1 : EARLY))
            start(&calls[started++], rank, round);
        tell(3 * round + (first ? 1 : 2));
        if (first)
            await(3 * round + 2);
        for (int more = 2; first && (ends.count < EARLY || more-- > 0);) /* at its turns the fifth is shown */
            OK(comm, gyre_progress(comm));
        if (first) {
            start(&calls[started++], rank, round);
            tell(3 * round + 3);
        }
        await(3 * round + 3);
        while (started < CALLS)
            start(&calls[started++], rank, round);
        for (int i = CALLS; i-- > 0;)
            collect(&calls[i], round % WAYS);
        CHECK(ends.count == CALLS);
        for (int i = 0; i < CALLS; i++)
            check(&calls[i], round);
    }
    OK(comm, gyre_comm_destroy(comm));
}

#define LEFT 3

static void leave_some(struct several *it, int rank)
{
    for (int i = 0; i < LEFT; i++)
        OK(comm, gyre_all_reduce_start(comm, it->input[i], it->output[i], 2, GYRE_FLOAT32, GYRE_SUM, &it->requests[i]));
    CHECK(rank == 0);
}

static void run_dies(int rank)
{
    begin(rank);
    gyre_counters before = {.size = sizeof before}, after = {.size = sizeof after};
    struct several it = {0};
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_comm_counters(comm, &before));
    if (rank == 1) {
        await(1);
        OK(comm, gyre_all_reduce(comm, it.input[0], it.output[0], 2, GYRE_FLOAT32, GYRE_SUM));
        await(2);
        kill(getpid(), SIGKILL);
    }
    leave_some(&it, rank);
    tell(1);
    OK(comm, gyre_wait(&it.requests[0]));
    tell(2);
    for (int i = LEFT; i-- > 1;)
        GIVES(GYRE_PEER_DEAD, comm, gyre_wait(&it.requests[i]));
    char oldest[40];
    snprintf(oldest, sizeof oldest, "in all_reduce #%llu ", (unsigned long long)before.started + 2);
    if (!strstr(gyre_last_error(comm), oldest) || !strstr(gyre_last_error(comm), "waiting for rank 1"))
        rank_fail("not '%s', or not whom it waits for: %s", oldest, gyre_last_error(comm));
    OK(comm, gyre_comm_counters(comm, &after));
    CHECK(after.failed - before.failed == LEFT - 1 && after.started - before.started == LEFT);
    gyre_comm_destroy(comm);
}

static void run_gone(int rank)
{
    begin(rank);
    gyre_comm *world = comm;
    struct several it = {0};
    OK(world, gyre_comm_duplicate(world, &comm));
    for (int i = 0; i < 3; i++)
        OK(comm, gyre_all_reduce(comm, it.input[0], it.output[0], 2, GYRE_FLOAT32, GYRE_SUM));
    OK(world, gyre_barrier(world));
    if (rank == 0) {
        leave_some(&it, rank);
        OK(world, gyre_comm_destroy(comm));
        for (int i = LEFT; i-- > 0;)
            GIVES(GYRE_ABORTED, world, gyre_wait(&it.requests[i]));
        tell(1);
    } else {
        await(1);
        gyre_comm_destroy(comm);
    }
    OK(world, gyre_barrier(world));
    OK(world, gyre_comm_destroy(world));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(int rank);
    } suites[] = {{"last", run_last}, {"behind", run_behind}, {"several", run_several},
                  {"full", run_full}, {"dies", run_dies},     {"gone", run_gone}};
    const char *name = argc > 1 ? argv[1] : "last";
    page = launch_share(sizeof *page);
    if (strcmp(name, "dies") == 0)
        launch_may_die = 1;
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++)
        if (strcmp(name, suites[i].name) == 0)
            return !launch(2, suites[i].run, 35, name);
    fprintf(stderr, "start_test: there is no '%s'\n", name);
    return 2;
}

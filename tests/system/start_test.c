/* Starts of short vectors over windows that find what the others have shown (collectives/tiny.c), between two ranks:
 *
 *   last     who starts when the other has shown its part is through when the start returns, however it collects that, and may write
 *            over its buffers at once; the other has its result all the same
 *   behind   a start that finds everything there, behind one that waits, does not overtake it */
#include <stdatomic.h>

#include "support/launcher.h"

#define MOST 1000
#define ROUNDS 48
#define WAYS 4

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

/* The first calls make what the others find. */
static struct call *begin(int rank)
{
    comm = rank_begin(30);
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

int main(int argc, char **argv)
{
    const bool behind = argc > 1 && strcmp(argv[1], "behind") == 0;
    page = launch_share(sizeof *page);
    return !launch(2, behind ? run_behind : run_last, 35, behind ? "behind" : "last");
}

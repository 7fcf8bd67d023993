/* Broadcasts and reductions to a root that run inside the blocking call (collectives/call/shm_rooted_mapped.c): of
 * private memory through slots, of memory of gyre where it lies, or of some ranks so and of others so:
 *
 *   order    three ranks: each by its own dice blocks or not, comes late or not, has a request of another communicator
 *            under way or not; what a rank gets back is overwritten at once; each call is counted and traced as one
 *   away     a rank is away for a second while it reads or writes its operand, in the middle of a tile: nothing else
 *            happens
 *   dies     it dies there instead, and the other one is told so
 *   aborts   meanwhile the other rank's second thread aborts: both are told so
 *   late     a rank does not come: the others are told so after the timeout, which counts from the call on
 *
 * In the middle of a tile is where a page of the operand lies that may not be touched: the signal's handler does the
 * rest. Ranks count cores for all of them: where they share cores all of this uses requests. */
#include <pthread.h>
#include <stdatomic.h>

#include "support/cores.h"
#include "support/launcher.h"

#define COUNT \
    131072 /* of 8 bytes: 1 MiB, eight tiles for four slots, so that no rank can be through without the other one */
#define LEAST 2048 /* twice what is exchanged directly */
#define BYTES ((size_t)COUNT * sizeof(int64_t))
#define PAGE 4096
#define VICTIM 1
#define ROUNDS 400
#define CLOCK_S 3

static struct page {
    _Atomic int there, aborted;
} * page;
static const char *scenario;
static int64_t *memory[2][2], *aside; /* memory: [of gyre][input, output] */
static unsigned char *forbidden;      /* a page */

static struct {
    int begun, ended;
    uint64_t sequence;
    gyre_status status;
} traced;

static bool is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

static void trace(void *user, const gyre_trace_event *event)
{
    CHECK(user == &traced);
    *(event->ended ? &traced.ended : &traced.begun) += 1;
    if (!event->ended)
        traced.sequence++;
    CHECK(event->sequence == traced.sequence && event->began <= event->time);
    traced.status = event->status;
}

/* From here on `calls` of so many bytes all in all have been made, one of which has failed or not. */
static void expect_counted(gyre_comm *comm, const gyre_counters *before, uint64_t calls, uint64_t bytes,
                           gyre_status status)
{
    gyre_counters now = {.size = sizeof now};
    OK(comm, gyre_comm_counters(comm, &now));
    CHECK(now.started - before->started == calls && now.failed - before->failed == (status != GYRE_SUCCESS));
    CHECK(now.done - before->done == calls - (status != GYRE_SUCCESS));
    CHECK(now.bytes - before->bytes == bytes && now.window_bytes - before->window_bytes == bytes);
    CHECK(traced.begun == (int)calls && traced.ended == (int)calls && traced.status == status);
}

static void begin_trace(gyre_comm *comm, gyre_counters *counters_p)
{
    *counters_p = (gyre_counters){.size = sizeof *counters_p};
    OK(comm, gyre_comm_counters(comm, counters_p));
    traced.sequence = counters_p->started;
    OK(comm, gyre_comm_trace(comm, trace, &traced));
}

/* ---- One call ---- */

struct call {
    bool reduces;
    int root, rank, size;
    size_t count;
    gyre_op op;
    int64_t *input, *output;
};

static int64_t value(int rank, int round, size_t i)
{
    return (int64_t)(rank + 1) * round * 6 + (int64_t)(i % 1009) * 6;
}

static gyre_status run(gyre_comm *comm, const struct call *it)
{
    return it->reduces ? gyre_reduce(comm, it->input, it->output, it->count, GYRE_INT64, it->op, it->root)
                       : gyre_broadcast(comm, it->input, it->output, it->count, GYRE_INT64, it->root);
}

static gyre_status start(gyre_comm *comm, const struct call *it, gyre_request **request_p)
{
    return it->reduces
               ? gyre_reduce_start(comm, it->input, it->output, it->count, GYRE_INT64, it->op, it->root, request_p)
               : gyre_broadcast_start(comm, it->input, it->output, it->count, GYRE_INT64, it->root, request_p);
}

static void fill(const struct call *it, int round)
{
    for (size_t i = 0; i < it->count; i++) {
        it->output[i] = -1;
        it->input[i] = value(it->rank, round, i); /* last: it may be the same place */
    }
}

static int64_t wanted(const struct call *it, int round, size_t i)
{
    int64_t sum = 0;
    if (!it->reduces)
        return value(it->root, round, i);
    for (int p = 0; p < it->size; p++)
        sum += value(p, round, i);
    return it->op == GYRE_AVERAGE ? sum / it->size : it->op == GYRE_MAX ? value(it->size - 1, round, i) : sum;
}

static void check(const struct call *it, const int64_t *result, int round)
{
    for (size_t i = 0; i < it->count && !(it->reduces && it->rank != it->root); i++)
        if (result[i] != wanted(it, round, i))
            rank_fail("round %d: %s, root %d, op %d: element %zu of %zu is %lld instead of %lld", round,
                      it->reduces ? "reduce" : "broadcast", it->root, (int)it->op, i, it->count, (long long)result[i],
                      (long long)wanted(it, round, i));
}

static void take_memory(gyre_comm *comm)
{
    for (int i = 0; i < 2; i++) {
        void *shared;
        OK(comm, gyre_mem_alloc(comm, BYTES, &shared));
        memory[1][i] = shared;
        memory[0][i] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory[0][i] != MAP_FAILED);
    }
    aside = malloc(BYTES);
    CHECK(aside != NULL);
}

/* ---- order ---- */

static void run_ordered(int rank)
{
    static const gyre_op ops[] = {GYRE_SUM, GYRE_AVERAGE, GYRE_MAX};
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    gyre_comm *comm = rank_begin(80), *other;
    unsigned common = 11, own = (unsigned)rank * 57 + 1;
    uint64_t bytes = 0;
    gyre_counters before;
    struct call it = {.rank = rank, .size = gyre_comm_size(comm)};
    OK(comm, gyre_comm_duplicate(comm, &other));
    take_memory(comm);
    OK(comm, gyre_barrier(comm));
    begin_trace(comm, &before);
    for (int round = 1; round <= ROUNDS; round++) {
        int64_t one = rank, all = -1;
        gyre_request *request = NULL, *beside = NULL;
        it.reduces = rand_r(&common) % 2;
        it.root = rand_r(&common) % it.size;
        it.op = ops[rand_r(&common) % 3];
        it.count = LEAST + (size_t)rand_r(&common) % (rand_r(&common) % 3 ? 8 * LEAST : COUNT - LEAST + 1);
        it.input = memory[rand_r(&own) % 3 == 0][0];
        it.output = rand_r(&own) % 4 ? memory[rand_r(&own) % 2][1] : it.input;
        bool two = rand_r(&common) % 4 == 0;
        fill(&it, round);
        if (rand_r(&own) % 4 == 0)
            usleep((unsigned)rand_r(&own) % 1000);
        if (two && rand_r(&own) % 2)
            OK(other, gyre_all_reduce_start(other, &one, &all, 1, GYRE_INT64, GYRE_SUM, &beside));
        else if (two)
            OK(other, gyre_all_reduce(other, &one, &all, 1, GYRE_INT64, GYRE_SUM));
        if (rand_r(&own) % 4) {
            OK(comm, run(comm, &it));
        } else {
            OK(comm, start(comm, &it, &request));
            OK(comm, gyre_wait(&request));
        }
        bytes += it.count * sizeof *it.input;
        memcpy(aside, it.output, it.count * sizeof *aside);
        memset(it.input, 0x33, it.count * sizeof *it.input);
        memset(it.output, 0x44, it.count * sizeof *it.output);
        check(&it, aside, round);
        if (beside)
            OK(other, gyre_wait(&beside));
        CHECK(!two || all == (int64_t)it.size * (it.size - 1) / 2);
    }
    expect_counted(comm, &before, ROUNDS, bytes, GYRE_SUCCESS);
    OK(comm, gyre_comm_trace(comm, NULL, NULL));
    OK(comm, gyre_barrier(comm));
    OK(other, gyre_comm_destroy(other));
    OK(comm, gyre_comm_destroy(comm));
}

/* ---- In the middle of a tile ---- */

static void at_forbidden_page(int signal_number, siginfo_t *info, void *context)
{
    (void)context;
    unsigned char *at = info->si_addr;
    if (!forbidden || at < forbidden || at >= forbidden + PAGE)
        _exit(100 + signal_number);
    atomic_store(&page->there, 1);
    if (is("dies"))
        raise(SIGKILL);
    if (is("away"))
        usleep(1000000);
    while (is("aborts") && !atomic_load(&page->aborted))
        usleep(1000);
    mprotect(forbidden, PAGE, PROT_READ | PROT_WRITE);
}

static void *abort_meanwhile(void *comm)
{
    while (!atomic_load(&page->there))
        usleep(1000);
    usleep(20000);
    OK(comm, gyre_comm_abort(comm));
    atomic_store(&page->aborted, 1);
    return NULL;
}

static bool reduces, victim_is_root;

static void forbid(const struct call *it)
{
    bool output = it->rank == it->root ? it->reduces : !it->reduces;
    const struct sigaction action = {.sa_sigaction = at_forbidden_page, .sa_flags = SA_SIGINFO | SA_NODEFER};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
    forbidden = (unsigned char *)(output ? it->output : it->input) + BYTES / 8 * 2 + BYTES / 16 / PAGE * PAGE;
    CHECK(mprotect(forbidden, PAGE, PROT_NONE) == 0);
}

static gyre_status expected(void)
{
    return is("dies") ? GYRE_PEER_DEAD : is("aborts") ? GYRE_ABORTED : is("late") ? GYRE_PEER_LATE : GYRE_SUCCESS;
}

static void run_disturbed(int rank)
{
    gyre_comm *comm = rank_begin(40);
    struct call it = {.rank = rank, .size = gyre_comm_size(comm), .reduces = reduces, .count = COUNT, .op = GYRE_SUM};
    pthread_t thread;
    gyre_counters before;
    it.root = victim_is_root ? VICTIM : 0;
    take_memory(comm);
    it.input = memory[0][0];
    it.output = memory[0][1];
    for (int round = 1; round <= 4; round++) { /* the first one makes what the others find */
        fill(&it, round);
        OK(comm, run(comm, &it));
        check(&it, it.output, round);
    }
    fill(&it, 5);
    OK(comm, gyre_barrier(comm));
    begin_trace(comm, &before);
    if (rank == VICTIM && is("late")) {
        usleep((CLOCK_S * 2 + 1) * 1000000);
        GIVES(GYRE_PEER_LATE, comm, run(comm, &it));
        return;
    }
    if (rank == VICTIM)
        forbid(&it);
    else if (is("aborts"))
        CHECK(pthread_create(&thread, NULL, abort_meanwhile, comm) == 0);
    int64_t began = rank_now_ns();
    GIVES(expected(), comm, run(comm, &it));
    int64_t took = rank_now_ns() - began;
    CHECK(!is("late") || (took > CLOCK_S * INT64_C(990000000) && took < (CLOCK_S + 10) * INT64_C(1000000000)));
    CHECK(expected() == GYRE_SUCCESS || is("aborts") || strncmp(gyre_last_error(comm), "rank 1", 6) == 0);
    CHECK(is("late") || atomic_load(&page->there)); /* neither was through before */
    expect_counted(comm, &before, 1, BYTES, expected());
    if (expected() == GYRE_SUCCESS) {
        check(&it, it.output, 5);
        OK(comm, gyre_comm_trace(comm, NULL, NULL));
        OK(comm, gyre_barrier(comm));
    } else if (is("aborts") && rank != VICTIM) {
        CHECK(pthread_join(thread, NULL) == 0);
    }
    OK(comm, gyre_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? argv[1] : "order";
    page = launch_share(sizeof *page);
    if (is("order"))
        return !launch(3, run_ordered, 85, scenario);
    setenv("GYRE_SHM_READ", "0", 1);
    if (is("late"))
        launch_set_number("GYRE_TIMEOUT", CLOCK_S);
    launch_may_die = is("dies") ? VICTIM : -1;
    for (int way = 0; way < 4; way++) {
        char what[64];
        reduces = way / 2;
        victim_is_root = way % 2;
        memset(page, 0, sizeof *page);
        snprintf(what, sizeof what, "%s, %s, victim %s", scenario, reduces ? "reduce" : "broadcast",
                 victim_is_root ? "is the root" : "is not the root");
        if (!launch(2, run_disturbed, 45, what))
            return 1;
    }
    return 0;
}

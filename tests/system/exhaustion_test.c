/* Exhaustion of memory, descriptors and space. One rank of three is the victim. A whole program (create, every
 * collective blocking and as requests, duplicate, memory, destroy) runs again and again, and each time another
 * allocation fails, until none fails any more: the N-th allocation; the N-th descriptor; what comes after N times 64
 * KiB of shared memory, where a page that was not reserved would be a SIGBUS (exhaustion_space.c).
 *
 *   the victim   its failing call returns GYRE_NO_MEMORY or GYRE_NO_DESCRIPTORS and an error message; the call either
 *                can be repeated, with the communicator as it was, or the communicator is failed and stays so
 *   the others   go on, with right data, or soon get an error that names the victim and its reason: it lives and can
 *                tell the reason, so it may not be declared dead. Only one that fails before any connection is
 *                missing
 *   all          end in time, and leave no descriptor open
 *
 * Arguments: memory|descriptors|space, the victim's rank. */
#include <sys/resource.h>

#include "core/mem.h"
#include "exhaustion_space.h"
#include "support/launcher.h"

#define RANKS 3
#define MOST 5000
#define LARGE 60000u
#define SOON_NS (30 * INT64_C(1000000000)) /* a busy machine's; every clock of gyre is ten times as long */
#define MEETING_NS (30 * INT64_C(1000000000))
#define HEARING_NAPS 1500 /* of a millisecond: on a busy machine they last as much longer as the others' turns do */
#define HEARING_NS (8 * INT64_C(1000000000))

struct shared {
    volatile int64_t hit_ns; /* when the victim's call failed */
    int64_t ahead_ns;        /* of the true time are the clocks of all ranks */
    int checked;             /* others, whose making of the world has failed as well */
    int64_t told_ns;         /* the longest that another waited for its error */
    volatile int victim_failed, fired, repeated, other_status, round;
    char text[1024];
};

static struct shared *shared;
static const char *scenario;
static int victim, step, rank, size;
static bool failing; /* this rank's own failure has been provoked and may come */
static gyre_comm *comm;
static int32_t *in[8], *out[8];
static gyre_request *requests[8];

extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static bool is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

/* ---- time ----
 *
 * A rank that fails before any connection is missing, and that is known when the bootstrap's timeout has passed.
 * That is long, so that no other rank is missing on a busy machine; the rest of it passes at once, when the victim
 * has failed and the others have had the time to hear of it. */

int64_t __real_gy_now(void);
int64_t __wrap_gy_now(void);
int64_t __real_gy_now_coarse(void);
int64_t __wrap_gy_now_coarse(void);

static int64_t ahead(void)
{
    return shared ? __atomic_load_n(&shared->ahead_ns, __ATOMIC_RELAXED) : 0;
}

int64_t __wrap_gy_now(void)
{
    return __real_gy_now() + ahead();
}

int64_t __wrap_gy_now_coarse(void)
{
    return __real_gy_now_coarse() + ahead();
}

static void end_meeting(void)
{
    int64_t limit = rank_now_ns() + HEARING_NS;
    for (int naps = 0; naps < HEARING_NAPS && rank_now_ns() < limit; naps++) {
        if (__atomic_load_n(&shared->checked, __ATOMIC_ACQUIRE) == RANKS - 1)
            return;
        usleep(1000);
    }
    __atomic_store_n(&shared->ahead_ns, MEETING_NS, __ATOMIC_RELAXED);
}

/* ---- calls and their data: call k of the list, on its own buffers ---- */

static const struct {
    int kind; /* 0 all_reduce, 1 reduce_scatter, 2 all_gather, 3 broadcast, 4 barrier */
    uint32_t count;
    int root;
} calls[] = {{0, 3, 0}, {0, LARGE, 0}, {1, 5, 0}, {1, LARGE / 3, 0}, {2, 70, 0}, {3, LARGE, 0}, {3, 90, 1}, {4, 0, 0}};
#define CALLS (sizeof calls / sizeof *calls)

static int32_t give(int who, uint32_t i)
{
    return (int32_t)(i % 1000) * (who + 1) + who;
}

static uint32_t input_count(size_t k)
{
    return calls[k].kind == 1 ? calls[k].count * (uint32_t)size : calls[k].count;
}

static int32_t sum_at(uint32_t i)
{
    int32_t sum = 0;
    for (int r = 0; r < size; r++)
        sum += give(r, i);
    return sum;
}

static void fill(size_t k)
{
    for (uint32_t i = 0; i < input_count(k); i++)
        in[k][i] = give(rank, i);
    memset(out[k], 0x5a, (size_t)size * LARGE * sizeof(int32_t));
}

static void check(size_t k)
{
    uint32_t n = calls[k].count, outputs = calls[k].kind == 2 ? n * (uint32_t)size : n;
    for (uint32_t i = 0; i < outputs; i++) {
        int32_t wanted = 0;
        switch (calls[k].kind) {
        case 0: wanted = sum_at(i); break;
        case 1: wanted = sum_at((uint32_t)rank * n + i); break;
        case 2: wanted = give((int)(i / n), i % n); break;
        default: wanted = give(calls[k].root, i);
        }
        if (out[k][i] != wanted)
            rank_fail("step %d: call %zu gave %d at %u instead of %d", step, k, out[k][i], i, wanted);
    }
}

static gyre_status start(size_t k)
{
    uint32_t n = calls[k].count;
    switch (calls[k].kind) {
    case 0: return gyre_all_reduce_start(comm, in[k], out[k], n, GYRE_INT32, GYRE_SUM, &requests[k]);
    case 1: return gyre_reduce_scatter_start(comm, in[k], out[k], n, GYRE_INT32, GYRE_SUM, &requests[k]);
    case 2: return gyre_all_gather_start(comm, in[k], out[k], n, GYRE_INT32, &requests[k]);
    case 3: return gyre_broadcast_start(comm, in[k], out[k], n, GYRE_INT32, calls[k].root, &requests[k]);
    default: return gyre_barrier_start(comm, &requests[k]);
    }
}

static gyre_status blocking(size_t k)
{
    uint32_t n = calls[k].count;
    switch (calls[k].kind) {
    case 0: return gyre_all_reduce(comm, in[k], out[k], n, GYRE_INT32, GYRE_SUM);
    case 1: return gyre_reduce_scatter(comm, in[k], out[k], n, GYRE_INT32, GYRE_SUM);
    case 2: return gyre_all_gather(comm, in[k], out[k], n, GYRE_INT32);
    case 3: return gyre_broadcast(comm, in[k], out[k], n, GYRE_INT32, calls[k].root);
    default: return gyre_barrier(comm);
    }
}

/* ---- judgement ---- */

static gyre_status wanted_status(void)
{
    return is("descriptors") ? GYRE_NO_DESCRIPTORS : GYRE_NO_MEMORY;
}

static void check_victim(gyre_status status, const char *text, const char *what)
{
    shared->hit_ns = rank_now_ns();
    if (status != wanted_status() || !*text)
        rank_fail("step %d: the victim's %s gave %s: '%s'", step, what, gyre_status_name(status), text);
    if (is("descriptors") && (!strstr(text, "ulimit -n") || !strstr(text, "descriptors")))
        rank_fail("step %d: the victim's %s does not say what to raise: '%s'", step, what, text);
}

static void check_other(gyre_status status, const char *text, const char *what)
{
    char name[24];
    snprintf(name, sizeof name, "rank %d", victim);
    shared->other_status = (int)status;
    snprintf(shared->text, sizeof shared->text, "%s", text);
    if (status != wanted_status() && !(status == GYRE_MEETING_FAILED && !comm) &&
        !(status == GYRE_ABORTED && is("space")))
        rank_fail("step %d: %s gave %s instead of the victim's reason: '%s'", step, what, gyre_status_name(status),
                  text);
    if (!strstr(text, name))
        rank_fail("step %d: %s gave %s, which does not name %s: '%s'", step, what, gyre_status_name(status), name,
                  text);
    int64_t took = shared->hit_ns ? rank_now_ns() - shared->hit_ns : 0;
    if (took > shared->told_ns)
        shared->told_ns = took;
    if (took > SOON_NS)
        rank_fail("step %d: %s gave %s only %.1f s after the victim's: '%s'", step, what, gyre_status_name(status),
                  (double)took / 1e9, text);
}

/* After a call that failed: can it be repeated? false: the communicator is failed, as it then stays. */
static bool go_on(gyre_status status, const char *what, gyre_status (*call)(size_t k), size_t k)
{
    if (status == GYRE_SUCCESS)
        return true;
    if (rank == victim) {
        if (failing)
            check_victim(status, gyre_last_error(comm), what);
        failing = is("space"); /* the cgroup stays full */
        shared->repeated++;
        if (call && call(k) == GYRE_SUCCESS)
            return true;
        shared->victim_failed = 1;
        if (is("space")) /* the communicator is as it was, but this rank cannot go on */
            OK(comm, gyre_comm_abort(comm));
    } else {
        check_other(status, gyre_last_error(comm), what);
    }
    CHECK(gyre_barrier(comm) != GYRE_SUCCESS);
    CHECK(*gyre_last_error(comm) != 0);
    return false;
}

/* ---- the program ---- */

static bool run_blocking(void)
{
    for (size_t k = 0; k < CALLS; k++) {
        char what[32];
        snprintf(what, sizeof what, "call %zu", k);
        fill(k);
        if (!go_on(blocking(k), what, blocking, k))
            return false;
        check(k);
    }
    return true;
}

static bool run_requests(void)
{
    bool good = true;
    for (size_t k = 0; k < CALLS && good; k++) {
        fill(k);
        good = go_on(start(k), "start", start, k);
    }
    for (size_t k = 0; k < CALLS; k++) { /* whatever was started is waited for */
        gyre_status status = gyre_wait(&requests[k]);
        CHECK(requests[k] == NULL);
        if (good && status == GYRE_SUCCESS)
            check(k);
        else if (good)
            good = go_on(status, "wait", NULL, k);
    }
    return good;
}

static gyre_comm *twin;

static gyre_status duplicate(size_t k)
{
    (void)k;
    return gyre_comm_duplicate(comm, &twin);
}

static bool run_duplicate(void)
{
    bool good = go_on(duplicate(0), "duplicate", duplicate, 0);
    if (good) {
        gyre_comm *world = comm;
        comm = twin;
        good = run_blocking();
        comm = world;
        OK(comm, gyre_comm_destroy(twin));
    }
    return good;
}

static void *memory;

static gyre_status allocate(size_t k)
{
    (void)k;
    return gyre_mem_alloc(comm, 100000, &memory);
}

static bool run_memory(void)
{
    gyre_status status = allocate(0);
    if (status == GYRE_NO_MEMORY && rank == victim) { /* local: the communicator is as it was */
        check_victim(status, gyre_last_error(comm), "mem_alloc");
        shared->repeated++;
        if (is("space") || allocate(0) != GYRE_SUCCESS)
            return true;
    } else if (!go_on(status, "mem_alloc", allocate, 0)) {
        return false;
    }
    memset(memory, 1, 100000);
    OK(comm, gyre_mem_free(comm, memory));
    return true;
}

/* ---- what runs out ---- */

static struct rlimit limit_before;

static void begin_failing(void)
{
    failing = true;
    if (is("memory")) {
        gy_alloc_fail_at((uint64_t)step);
    } else if (is("space")) {
        space_join((size_t)step << 16);
    } else {
        int next = dup(0);
        CHECK(next >= 0 && getrlimit(RLIMIT_NOFILE, &limit_before) == 0);
        close(next);
        struct rlimit limit = {(rlim_t)(next + step - 1), limit_before.rlim_max};
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    }
}

static void end_failing(uint64_t allocations)
{
    if (is("memory"))
        shared->fired = gy_alloc_count() - allocations >= (uint64_t)step;
    else if (is("descriptors"))
        CHECK(setrlimit(RLIMIT_NOFILE, &limit_before) == 0);
    else
        space_leave();
}

static void run_rank(int own)
{
    rank = own;
    size = RANKS;
    alarm(70);
    for (size_t k = 0; k < CALLS; k++) {
        in[k] = malloc(RANKS * LARGE * sizeof(int32_t));
        out[k] = malloc(RANKS * LARGE * sizeof(int32_t));
        CHECK(in[k] && out[k]);
    }
    int descriptors = rank_count_descriptors();
    uint64_t allocations = gy_alloc_count();
    if (rank == victim)
        begin_failing();
    gyre_status status = gyre_comm_create(NULL, &comm);
    if (status == GYRE_SUCCESS) {
        (void)(run_blocking() && run_requests() && run_memory() && run_duplicate() && run_blocking());
        OK(NULL, gyre_comm_destroy(comm));
    } else if (rank == victim) {
        shared->victim_failed = 1;
        check_victim(status, gyre_last_error(NULL), "create");
        end_meeting();
    } else {
        check_other(status, gyre_last_error(NULL), "create");
        __atomic_fetch_add(&shared->checked, 1, __ATOMIC_RELEASE);
    }
    if (rank == victim)
        end_failing(allocations);
    if (is("space"))
        space_check();
    if (rank_count_descriptors() != descriptors)
        rank_fail("step %d: %d descriptors are left", step, rank_count_descriptors() - descriptors);
    for (size_t k = 0; k < CALLS; k++) {
        free(in[k]);
        free(out[k]);
    }
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
        rank_fail("step %d: memory is left", step);
}

int main(int argc, char **argv)
{
    unsigned seen[64] = {0}, repeated = 0, failed = 0;
    scenario = argc > 1 ? argv[1] : "memory";
    victim = argc > 2 ? atoi(argv[2]) : 0;
    const char *only = getenv("GYRE_TEST_STEP");
    launch_set_number("GYRE_MEET_TIMEOUT", MEETING_NS / 1000000000);
    launch_set_number("GYRE_TIMEOUT", 300);
    launch_set_number("GYRE_STALL_TIMEOUT", 300);
    launch_set_number("GYRE_PEER_TIMEOUT", 300);
    shared = launch_share(sizeof *shared);
    if (is("space") && victim != 0) /* rings, and with the other victim windows */
        setenv("GYRE_ALGORITHM", "all_reduce:ring,all_gather:ring", 1);
    if (is("space"))
        space_begin(&shared->round);
    /* The program's end is found as well by every second step: two victims share the work, but in a full run. */
    bool shares = is("memory") && !getenv("GYRE_TEST_FULL");
    for (step = only ? atoi(only) : shares ? 1 + victim : 1; step < MOST; step += shares ? 2 : 1) {
        char what[64];
        int64_t began = rank_now_ns();
        memset(shared, 0, sizeof *shared);
        shared->round = step;
        if (is("space"))
            space_reset();
        snprintf(what, sizeof what, "%s, step %d", scenario, step);
        bool good = launch(RANKS, run_rank, 60, what);
        if (getenv("GYRE_TEST_VERBOSE"))
            fprintf(stderr, "%s: %.0f ms, victim %s%s; after %.0f ms %s: %s\n", what,
                    (double)(rank_now_ns() - began) / 1e6, shared->victim_failed ? "failed" : "went on",
                    shared->repeated ? " after repeating" : "", (double)shared->told_ns / 1e6,
                    gyre_status_name((gyre_status)shared->other_status), shared->text);
        if (good && !shared->victim_failed && shared->other_status) {
            fprintf(stderr, "%s: the victim went on, but another rank got %s\n", what,
                    gyre_status_name((gyre_status)shared->other_status));
            good = false;
        }
        if (!good) {
            if (is("space"))
                space_end();
            return 1;
        }
        seen[shared->other_status]++;
        repeated += shared->repeated && !shared->victim_failed;
        failed += (unsigned)shared->victim_failed;
        bool through = is("memory") ? !shared->fired : !shared->victim_failed && !shared->repeated;
        if (through || only)
            break;
    }
    if (is("space"))
        space_end();
    CHECK(step < MOST && (only || (step > 5 && failed > 0)));
    printf("%s of rank %d: %d steps; %u failed the world, %u were repeated, the others went on\n", scenario, victim,
           step - 1, failed, repeated);
    for (int s = 1; s < 64; s++)
        if (seen[s])
            printf("  what another rank was told: %-18s %u times\n", gyre_status_name((gyre_status)s), seen[s]);
    return 0;
}

/* Recovery: ranks are killed one after the other, and the survivors go on. Arguments: scenario, ranks, hosts (0: as
 * the machine is). GYRE_TEST_DEATHS: how many deaths at least (24); GYRE_TEST_SEED repeats a run's choices, not its
 * timing.
 *
 *   one       one dies at a random moment; a rank that fails revokes and shrinks
 *   agree     the same, with an agreement before each shrink
 *   more      two or three die a few milliseconds apart, so that one falls into the agreement, the shrinking or the
 *             making of the new world that the one before has caused
 *   frozen    one is stopped for longer than GYRE_STALL_TIMEOUT, and goes on when the others have: EXCLUDED, and they
 *             do not notice
 *   halts     one dies, and another is stopped at one of the first calls by which it goes on: the others go on without
 *             both; resumed, it is EXCLUDED
 *   severed   one cuts all of its connections, and lives: at most one of two goes on, since neither is proved to be
 *             dead
 *   calls     what the calls return where nothing fails, after an abort, a revoke, wrong arguments, on a part of a
 *             world
 *
 * A job of N ranks is thinned out to one rank, in a random order that lets every rank number die equally often over
 * the jobs. Each rank adds its own bit in one all_reduce after the other, so that a sum says exactly which ranks
 * were in it. After each death all survivors must come to the sum of just the survivors. Two times are printed as
 * median, 99th percentile and maximum, and compared with a deadline that only a hang exceeds: from a death (of
 * several, the first) to the error on the slowest survivor, and from a death (the last) to the slowest survivor's
 * next good sum. GYRE_TEST_SAMPLES: a file that gets a line for each time and each death, for perf/soak. */
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "system/mortals.h"

#define STOP_BIT (UINT64_C(1) << 40)
#define EPOCHS_MOST 32
#define TIMES_MOST 100000

struct page {
    _Atomic int stop;
    struct report {
        _Atomic uint64_t calls, mask; /* good all_reduces in this epoch; the ranks in the last */
        _Atomic int64_t since;        /* when `mask` was first seen */
        _Atomic int64_t failed;       /* when a call first gave an error; 0: not since the launcher looked */
        _Atomic int epoch;
        _Atomic uint64_t agreed[EPOCHS_MOST]; /* what the agreement at the end of an epoch said; 0: nothing */
        _Atomic int excluded;
    } rank[RANKS_MOST];
};

static struct page *page;
static bool agrees;
static int together = 1;     /* how many die in a row, at most */
static uint64_t calls_least; /* of every rank that lives, before a job goes on */
static struct times {
    const char *name, *what;
    int count;
    double ms[TIMES_MOST];
} told = {.name = "told", .what = "a death to its error on the slowest survivor"},
  next_good = {.name = "next", .what = "the last death to the next good all_reduce on all survivors"};

/* ---- a rank ---- */

static gyre_status reduce(gyre_comm *comm, int own, uint64_t *sum_p)
{
    /* of different sizes, so that deaths fall into different algorithms */
    static uint64_t in[20000], out[20000];
    static const size_t sizes[] = {1, 600, 20000};
    uint64_t calls = atomic_load(&page->rank[own].calls);
    size_t count = sizes[calls % 3];
    uint64_t mine = UINT64_C(1) << own;
    if (gyre_comm_rank(comm) == 0 && atomic_load(&page->stop))
        mine |= STOP_BIT;
    for (size_t i = 0; i < count; i++)
        in[i] = mine;
    gyre_status status = gyre_all_reduce(comm, in, out, count, GYRE_UINT64, GYRE_SUM);
    for (size_t i = 1; status == GYRE_SUCCESS && i < count; i++)
        if (out[i] != out[0])
            rank_fail("element %zu of a sum is %#lx, the first is %#lx", i, (unsigned long)out[i],
                      (unsigned long)out[0]);
    *sum_p = out[0];
    return status;
}

/* NULL: this rank is out. */
static gyre_comm *go_on(gyre_comm *comm, struct report *report, int own)
{
    gyre_comm *next;
    uint64_t bits = 0;
    gyre_status status;
    int epoch = atomic_load(&report->epoch);
    gyre_comm_revoke(comm);
    if (agrees && (status = gyre_comm_agree(comm, ~(UINT64_C(1) << own), &bits)) == GYRE_SUCCESS)
        atomic_store(&report->agreed[epoch % EPOCHS_MOST], bits);
    status = gyre_comm_shrink(comm, &next);
    if (status == GYRE_EXCLUDED) {
        if (!strstr(gyre_last_error(comm), "excluded"))
            rank_fail("EXCLUDED says %s", gyre_last_error(comm));
        atomic_store(&report->excluded, 1);
        gyre_comm_destroy(comm);
        return NULL;
    }
    if (status != GYRE_SUCCESS)
        rank_fail("shrink: %s: %s", gyre_status_name(status), gyre_last_error(comm));
    int count = 0;
    for (int r = 0; r < gyre_comm_size(comm); r++) {
        gyre_failure failure = {.size = sizeof failure};
        OK(comm, gyre_comm_failed(comm, r, &failure));
        if (failure.status != GYRE_SUCCESS && (failure.status < GYRE_PEER_DEAD || failure.status > GYRE_PEER_LEFT ||
                                               !failure.why[0] || failure.when == 0))
            rank_fail("rank %d failed with status %d: %s", r, failure.status, failure.why);
        count += failure.status != GYRE_SUCCESS;
    }
    if (gyre_comm_size(comm) - gyre_comm_size(next) > count)
        rank_fail("%d ranks are gone, failed knows of %d", gyre_comm_size(comm) - gyre_comm_size(next), count);
    gyre_comm_destroy(comm);
    atomic_store(&report->calls, 0);
    atomic_store(&report->epoch, epoch + 1);
    return next;
}

static void run_rank(int own)
{
    struct report *report = &page->rank[own];
    gyre_comm *comm = rank_begin(280);
    uint64_t sum = 0;
    while (comm) {
        gyre_status status = reduce(comm, own, &sum);
        if (status == GYRE_SUCCESS) {
            uint64_t mask = sum & ~STOP_BIT;
            if (__builtin_popcountll(mask) != gyre_comm_size(comm) || !(mask >> own & 1))
                rank_fail("a sum over %d ranks is %#lx", gyre_comm_size(comm), (unsigned long)sum);
            if (mask != atomic_load(&report->mask)) {
                atomic_store(&report->since, rank_now_ns());
                atomic_store(&report->mask, mask);
            }
            atomic_fetch_add(&report->calls, 1);
            if (sum & STOP_BIT)
                break;
        } else if (status >= GYRE_PEER_DEAD && status != GYRE_MISMATCH && status != GYRE_INTERNAL) {
            int64_t never = 0;
            atomic_compare_exchange_strong(&report->failed, &never, rank_now_ns());
            comm = go_on(comm, report, own);
        } else {
            rank_fail("all_reduce: %s: %s", gyre_status_name(status), gyre_last_error(comm));
        }
    }
    gyre_comm_destroy(comm);
}

/* ---- the launcher ---- */

static void tell(int own)
{
    struct report *r = &page->rank[own];
    fprintf(stderr, "epoch %d, %lu calls, sum %#lx\n", atomic_load(&r->epoch), (unsigned long)atomic_load(&r->calls),
            (unsigned long)atomic_load(&r->mask));
}

static bool has_summed(int own)
{
    struct report *r = &page->rank[own];
    return atomic_load(&r->mask) == mortals.alive && atomic_load(&r->calls) >= calls_least;
}

/* Until every rank that lives has summed up just these. */
static void await(uint64_t calls)
{
    calls_least = calls;
    mortals_await(mortals.alive, has_summed);
}

static void start(int ranks)
{
    memset(page, 0, sizeof *page);
    for (int i = 0; i < ranks; i++)
        mortals_start(ranks, NULL, run_rank);
    await(2);
}

static void check_agreed(int ranks)
{
    for (int epoch = 0; epoch < EPOCHS_MOST; epoch++) {
        uint64_t bits = 0;
        for (int i = 0; i < ranks; i++) {
            uint64_t mine = atomic_load(&page->rank[i].agreed[epoch]);
            if (!mortals_lives(i) || mine == 0)
                continue;
            if (bits != 0 && bits != mine)
                mortals_give_up("ranks did not agree");
            bits = mine;
        }
    }
}

static void note(struct times *times, int64_t from, int64_t to)
{
    if (times->count < TIMES_MOST)
        times->ms[times->count++] = (double)(to - from) / 1e6;
}

/* Of all survivors the slowest counts. */
static void note_survivors(int ranks, int64_t first, int64_t last)
{
    int64_t failed = first, since = last;
    for (int i = 0; i < ranks; i++) {
        struct report *r = &page->rank[i];
        if (!mortals_lives(i))
            continue;
        failed = atomic_load(&r->failed) > failed ? atomic_load(&r->failed) : failed;
        since = atomic_load(&r->since) > since ? atomic_load(&r->since) : since;
        atomic_store(&r->failed, 0);
    }
    note(&told, first, failed);
    note(&next_good, last, since);
}

static void end(int ranks)
{
    atomic_store(&page->stop, 1);
    for (int i = 0; i < ranks; i++)
        if (mortals_lives(i))
            mortals_reap(i, false);
}

/* Ranks die in the order of `order`, up to `together` at a time; the last one stays. */
static int thin_out(int ranks, const int *order, int job)
{
    int dead = 0;
    (void)job;
    start(ranks);
    while (dead < ranks - 1) {
        int batch = together > 1 ? 2 + (int)mortals_draw((uint64_t)together - 1) : 1;
        int64_t first = 0, last = 0;
        if (batch > ranks - 1 - dead)
            batch = ranks - 1 - dead;
        usleep((useconds_t)mortals_draw(3000));
        for (int i = 0; i < batch; i++) {
            if (i > 0)
                usleep((useconds_t)mortals_draw(mortals_draw(2) ? 2000 : 20000));
            last = rank_now_ns();
            first = first ? first : last;
            mortals_kill(order[dead + i]);
        }
        for (int i = 0; i < batch; i++)
            mortals_reap(order[dead + i], true);
        dead += batch;
        await(1);
        check_agreed(ranks);
        note_survivors(ranks, first, last);
    }
    end(ranks);
    return dead;
}

/* Stopped, given up, woken; the others have gone on and do so. */
static int freeze(int ranks, const int *order, int job)
{
    int victim = job % ranks;
    (void)order;
    start(ranks);
    kill(mortals.pids[victim], SIGSTOP);
    mortals_forget(victim);
    await(2);
    kill(mortals.pids[victim], SIGCONT);
    mortals_reap(victim, false);
    if (!atomic_load(&page->rank[victim].excluded))
        mortals_give_up("a rank that was stopped is not excluded");
    for (int i = 0; i < ranks; i++)
        if (mortals_lives(i) && atomic_load(&page->rank[i].epoch) != 1)
            mortals_give_up("a rank that woke disturbed the others");
    await(atomic_load(&page->rank[victim ? 0 : 1].calls) + 10);
    end(ranks);
    return 1;
}

static int halt(int ranks, const int *order, int job)
{
    int stopped = order[1];
    (void)job;
    start(ranks);
    mortals_stop_at(stopped, 1 + (int)mortals_draw(40));
    mortals_kill(order[0]);
    mortals_reap(order[0], true);
    calls_least = 2;
    if (mortals_await_stop(stopped, has_summed)) {
        mortals_forget(stopped);
        await(2);
        mortals_wake(stopped);
        mortals_reap(stopped, false);
        if (!atomic_load(&page->rank[stopped].excluded))
            mortals_give_up("a rank that was stopped while it went on is not excluded");
        mortals.deaths[stopped]++;
    }
    end(ranks);
    return 1;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_times(struct times *times)
{
    qsort(times->ms, (size_t)times->count, sizeof *times->ms, by_value);
    printf("from %s, ms: median %.1f, p99 %.1f, max %.1f\n", times->what, times->ms[times->count / 2],
           times->ms[times->count * 99 / 100], times->ms[times->count - 1]);
}

static void save(const char *path, int ranks)
{
    const struct times *all[] = {&told, &next_good};
    FILE *file = path ? fopen(path, "a") : NULL;
    CHECK(file || !path);
    for (int t = 0; file && t < 2; t++)
        for (int i = 0; i < all[t]->count; i++)
            fprintf(file, "%s %d %.3f\n", all[t]->name, ranks, all[t]->ms[i]);
    for (int i = 0; file && i < ranks; i++)
        fprintf(file, "dead %d %d %d\n", ranks, i, mortals.deaths[i]);
    if (file)
        fclose(file);
}

/* ---- severed ---- */

static void sever(void)
{
    struct sockaddr_storage peer;
    for (int fd = 3; fd < 256; fd++) {
        socklen_t bytes = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &bytes) == 0 && peer.ss_family != AF_UNIX)
            CHECK(shutdown(fd, SHUT_RDWR) == 0);
    }
}

static void await_flag(_Atomic uint64_t *flag, uint64_t value)
{
    for (int64_t limit = rank_now_ns() + MORTALS_HANG_NS; atomic_load(flag) < value; usleep(1000))
        CHECK(rank_now_ns() < limit);
}

static void severed(int own)
{
    gyre_comm *comm = rank_begin(60), *next = NULL;
    gyre_status status;
    OK(comm, gyre_barrier(comm));
    atomic_store(&page->rank[own].calls, 1);
    if (own == 1) {
        await_flag(&page->rank[0].calls, 1); /* it is through the barrier, too */
        sever();
    }
    while ((status = gyre_barrier(comm)) == GYRE_SUCCESS)
        ;
    CHECK(status >= GYRE_PEER_DEAD);
    status = gyre_comm_shrink(comm, &next);
    if (status != GYRE_EXCLUDED && status != (own ? GYRE_PARTITIONED : GYRE_SUCCESS))
        rank_fail("shrink: %s: %s", gyre_status_name(status), gyre_last_error(comm));
    if (status == GYRE_SUCCESS)
        CHECK(gyre_comm_size(next) == 1);
    atomic_store(&page->rank[own].calls, 2);
    await_flag(&page->rank[!own].calls, 2); /* its end would be a proof */
    OK(next, gyre_comm_destroy(next));
    OK(comm, gyre_comm_destroy(comm));
}

/* ---- calls ---- */

/* One aborts, and stays, when the others have failed already and are about to agree: they end, too. */
static void abort_late(gyre_comm *comm, int own)
{
    int ranks = gyre_comm_size(comm);
    int64_t limit = rank_now_ns() + MORTALS_HANG_NS;
    uint64_t bits;
    OK(comm, gyre_comm_revoke(comm));
    GIVES(GYRE_REVOKED, comm, gyre_barrier(comm));
    if (own != ranks - 1) {
        GIVES(GYRE_ABORTED, comm, gyre_comm_agree(comm, 1, &bits));
        CHECK(strstr(gyre_last_error(comm), "aborted"));
        atomic_fetch_add(&page->stop, 1);
        return;
    }
    usleep(50000);
    OK(comm, gyre_comm_abort(comm));
    while (atomic_load(&page->stop) < ranks - 1 && rank_now_ns() < limit) {
        gyre_failure failure = {.size = sizeof failure};
        OK(comm, gyre_comm_failed(comm, 0, &failure)); /* any call passes it on */
        usleep(1000);
    }
    CHECK(atomic_load(&page->stop) == ranks - 1);
    GIVES(GYRE_ABORTED, comm, gyre_comm_agree(comm, 1, &bits));
}

static void sum_up(gyre_comm *comm, int ranks)
{
    uint64_t sum, mine = 1;
    OK(comm, gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
    CHECK(sum == (uint64_t)ranks);
}

/* Nothing fails: all take part, and the world stays as it is. Returns the one that follows it. */
static gyre_comm *go_on_unharmed(gyre_comm *comm, int own)
{
    gyre_comm *next;
    int ranks = gyre_comm_size(comm);
    uint64_t bits;
    gyre_failure failure = {.size = sizeof failure, .when = 1};
    OK(comm, gyre_comm_failed(comm, ranks - 1, &failure));
    CHECK(failure.status == GYRE_SUCCESS && failure.when == 0 && !failure.why[0]);
    for (uint64_t i = 0; i < 20; i++) {
        OK(comm, gyre_comm_agree(comm, ~(UINT64_C(1) << own) ^ i << 20, &bits));
        CHECK(bits == (~((UINT64_C(1) << ranks) - 1) ^ i << 20));
        sum_up(comm, ranks);
    }
    OK(comm, gyre_comm_shrink(comm, &next));
    CHECK(gyre_comm_rank(next) == own && gyre_comm_size(next) == ranks);
    sum_up(next, ranks);
    sum_up(comm, ranks); /* the old one still works */
    OK(comm, gyre_comm_destroy(comm));
    return next;
}

/* A part of a world: its order, and no other rank waits. */
static void shrink_part(gyre_comm *comm, int own)
{
    gyre_comm *half, *pair;
    int ranks = gyre_comm_size(comm);
    OK(comm, gyre_comm_split(comm, own % 2, -own, &half));
    if (own % 2 == 0) {
        OK(half, gyre_comm_shrink(half, &pair));
        CHECK(gyre_comm_size(pair) == (ranks + 1) / 2 && gyre_comm_rank(pair) == gyre_comm_size(pair) - 1 - own / 2);
        sum_up(pair, (ranks + 1) / 2);
        OK(pair, gyre_comm_destroy(pair));
    }
    OK(half, gyre_comm_destroy(half));
    OK(comm, gyre_barrier(comm));
}

static void differ(gyre_comm *comm, int own)
{
    gyre_comm *none;
    uint64_t bits;
    gyre_status status = own == 0 ? gyre_comm_agree(comm, 1, &bits) : gyre_comm_shrink(comm, &none);
    if (gyre_comm_size(comm) > 1)
        GIVES(GYRE_MISMATCH, comm, status);
    OK(comm, gyre_comm_agree(comm, 7, &bits));
    CHECK(bits == 7);
}

/* All wait for a rank that does not come, but revokes. Returns the world that follows. */
static gyre_comm *wait_in_vain(gyre_comm *comm, int own)
{
    gyre_comm *next;
    int ranks = gyre_comm_size(comm);
    uint64_t bits, sum, mine = 1;
    if (own == ranks - 1)
        OK(comm, gyre_comm_revoke(comm));
    GIVES(GYRE_REVOKED, comm, gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
    GIVES(GYRE_REVOKED, comm, gyre_barrier(comm));
    OK(comm, gyre_comm_agree(comm, 5, &bits));
    CHECK(bits == 5);
    OK(comm, gyre_comm_shrink(comm, &next));
    OK(comm, gyre_comm_destroy(comm));
    sum_up(next, ranks);
    return next;
}

/* A rank that leaves is not waited for. NULL: it is this rank. */
static gyre_comm *leave(gyre_comm *comm, int own)
{
    gyre_comm *next;
    int last = gyre_comm_size(comm) - 1;
    gyre_failure failure = {.size = sizeof failure};
    if (own == last) {
        OK(comm, gyre_comm_destroy(comm));
        return NULL;
    }
    OK(comm, gyre_comm_shrink(comm, &next));
    CHECK(gyre_comm_size(next) == last);
    OK(comm, gyre_comm_failed(comm, last, &failure));
    CHECK(failure.status == GYRE_PEER_LEFT && failure.when > 0 && failure.why[0]);
    OK(comm, gyre_comm_destroy(comm));
    return next;
}

static void calls(int own)
{
    gyre_comm *comm = go_on_unharmed(rank_begin(60), own), *next;
    gyre_status status;
    uint64_t bits;
    OK(comm, gyre_comm_shrink(comm, &next));
    abort_late(next, own);
    OK(next, gyre_comm_destroy(next));
    shrink_part(comm, own);
    differ(comm, own);
    comm = leave(wait_in_vain(comm, own), own);
    if (!comm)
        return;
    if (own == 0)
        OK(comm, gyre_comm_abort(comm));
    do /* one may have ended before the abort comes, not all of them */
        status = gyre_comm_agree(comm, 1, &bits);
    while (status == GYRE_SUCCESS);
    GIVES(GYRE_ABORTED, comm, status);
    GIVES(GYRE_ABORTED, comm, gyre_comm_shrink(comm, &next));
    OK(comm, gyre_comm_destroy(comm));
}

static int thin_out_all(const char *scenario, int ranks, int most)
{
    bool more = !strcmp(scenario, "more"), frozen = !strcmp(scenario, "frozen"), halts = !strcmp(scenario, "halts");
    CHECK(more || frozen || halts || !strcmp(scenario, "one") || !strcmp(scenario, "agree"));
    agrees = more || !strcmp(scenario, "agree");
    together = more ? 3 : 1;
    mortals.tell = tell;
    mortals_run_jobs(scenario, ranks, most, frozen ? freeze : halts ? halt : thin_out);
    if (told.count == 0)
        return 0;
    print_times(&told);
    print_times(&next_good);
    save(getenv("GYRE_TEST_SAMPLES"), ranks);
    return 0;
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 1 ? argv[1] : "one", *wanted = getenv("GYRE_TEST_DEATHS");
    int ranks = argc > 2 ? atoi(argv[2]) : 4;
    CHECK(ranks >= 1 && ranks <= RANKS_MOST);
    mortals.hosts = argc > 3 ? atoi(argv[3]) : 0;
    page = launch_share(sizeof *page);
    if (!strcmp(scenario, "calls"))
        return launch(ranks, calls, 60, scenario) ? 0 : 1;
    if (!strcmp(scenario, "severed")) {
        int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
        if (fd < 0) /* then the end of a connection is all the proof there is */
            return 77;
        close(fd);
        return launch(2, severed, 60, scenario) ? 0 : 1;
    }
    return thin_out_all(scenario, ranks, wanted ? atoi(wanted) : 24);
}

/* Growing: processes join a world that is there, and others leave it by SIGKILL, meanwhile too. Arguments: scenario, ranks at
 * first, hosts (0: as the machine is). GYRE_TEST_ROUNDS: how many changes (12); GYRE_TEST_SEED repeats a run's choices, not
 * its timing.
 *
 *   plain     one newcomer, then two at once, one of them at the address of a member that is not rank 0; then nobody
 *   refused   a wrong secret, another setting, another number of interfaces: refused, and the world neither grows nor notices
 *   heirs     the rank that the file:// leads to dies, several times: who comes later finds the world all the same, also
 *             when it consists of newcomers, whose order has become another than that of their settings, and of whom some
 *             have come to a member's own address
 *   changes   newcomers come and ranks of every number die at random moments, several at once, so that deaths fall into
 *             growing, shrinking and the making of the next world
 *   frozen    a newcomer is stopped before the door, a member inside: the others go on; woken, the newcomer comes in and the
 *             member is EXCLUDED
 *   halts     a newcomer, or a member when one comes, is stopped at one of the first calls by which it takes part, between the
 *             newcomer's HERE and the end of the making of the new world, say: the others go on, and lose nobody else; woken,
 *             the member is EXCLUDED, and the newcomer, too, or comes in. GYRE_TEST_AT: at which calls, from this one on
 *   apart     a newcomer is on another host, and the world has no transport but shared memory: all say which two ranks have
 *             none in common; the members go on without it
 *
 * Every process has a bit of its own, which it adds in one all_reduce after the other: a sum says exactly who was in it.
 * After each third one the ranks grow. After each change all who live must come to the sum of just these, with dense ranks
 * and the members' order kept; a deadline that only a hang exceeds is the judge. */
#include <stdatomic.h>
#include <stddef.h>

#include "system/mortals.h"

#define ALIVE_MOST 6
#define STOP_BIT (UINT64_C(1) << 50)

struct page {
    _Atomic int stop;
    char address[128]; /* of the member that is rank 1 in the first world */
    struct report {
        _Atomic uint64_t mask, calls;   /* of the last good sum; how many since the world is this one */
        _Atomic int epoch, rank, ended; /* ended: a status, with which the process is out; −1: REFUSED */
        _Atomic int before;             /* its rank in the world before, −1: none */
        char address[128];              /* its own, for newcomers; written before `epoch` */
        char why[1024];                 /* the sentence with which it last shrank, or came in vain */
    } of[MORTALS_MOST];
};

static struct page *page;
static const char *address; /* where the next newcomer goes; NULL: to the file */
static bool inherits;       /* the first world changes an attribute that newcomers are not started with */

/* ---- a process ---- */

static void enter(gyre_comm *comm, struct report *report, int before)
{
    atomic_store(&report->calls, 0);
    atomic_store(&report->rank, gyre_comm_rank(comm));
    atomic_store(&report->before, before);
    if (inherits)
        OK(comm, gyre_comm_get(comm, "meeting", report->address, sizeof report->address));
    atomic_fetch_add(&report->epoch, 1);
}

static gyre_status reduce(gyre_comm *comm, int own, uint64_t *sum_p)
{
    static uint64_t in[5000], out[5000]; /* of different sizes, so that deaths fall into different algorithms */
    size_t count = atomic_load(&page->of[own].calls) % 2 ? 5000 : 1;
    uint64_t mine = UINT64_C(1) << own | (gyre_comm_rank(comm) == 0 && atomic_load(&page->stop) ? STOP_BIT : 0);
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

/* NULL: this process is out. */
static gyre_comm *shrink(gyre_comm *comm, struct report *report)
{
    gyre_comm *next;
    snprintf(report->why, sizeof report->why, "%s", gyre_last_error(comm));
    gyre_comm_revoke(comm);
    gyre_status status = gyre_comm_shrink(comm, &next);
    if (status != GYRE_SUCCESS && status != GYRE_EXCLUDED)
        rank_fail("shrink: %s: %s", gyre_status_name(status), gyre_last_error(comm));
    if (status == GYRE_EXCLUDED)
        atomic_store(&report->ended, status);
    else
        enter(next, report, gyre_comm_rank(comm));
    gyre_comm_destroy(comm);
    return status == GYRE_SUCCESS ? next : NULL;
}

static gyre_comm *grow(gyre_comm *comm, struct report *report, gyre_status *status_p)
{
    gyre_comm *next = comm;
    *status_p = gyre_comm_grow(comm, 0, 0, &next);
    if (*status_p != GYRE_SUCCESS || !next)
        return comm;
    if (gyre_comm_rank(next) > gyre_comm_rank(comm))
        rank_fail("rank %d of %d is rank %d of %d after growing", gyre_comm_rank(comm), gyre_comm_size(comm),
                  gyre_comm_rank(next), gyre_comm_size(next));
    enter(next, report, gyre_comm_rank(comm));
    gyre_comm_destroy(comm);
    return next;
}

/* NULL: this process is out before it has come in. */
static gyre_comm *begin_process(struct report *report)
{
    gyre_comm *comm;
    alarm(280);
    gyre_status status = gyre_comm_create(NULL, &comm);
    if (status == GYRE_SUCCESS)
        return comm;
    if (status != GYRE_EXCLUDED || !getenv("GYRE_JOIN"))
        rank_fail("create: %s: %s", gyre_status_name(status), gyre_last_error(NULL));
    snprintf(report->why, sizeof report->why, "%s", gyre_last_error(NULL));
    atomic_store(&report->ended, status);
    return NULL;
}

static void run(int own)
{
    struct report *report = &page->of[own];
    gyre_comm *comm = begin_process(report);
    uint64_t sum = 0;
    if (!comm)
        return;
    if (inherits && !getenv("GYRE_JOIN"))
        OK(comm, gyre_comm_set(comm, "order", "canonical"));
    enter(comm, report, -1);
    while (comm) {
        gyre_status status = reduce(comm, own, &sum);
        uint64_t mask = sum & ~STOP_BIT;
        if (status == GYRE_SUCCESS) {
            if (__builtin_popcountll(mask) != gyre_comm_size(comm) || !(mask >> own & 1))
                rank_fail("a sum over %d ranks is %#lx", gyre_comm_size(comm), (unsigned long)sum);
            atomic_store(&report->mask, mask);
            if (sum & STOP_BIT)
                break;
            if (atomic_fetch_add(&report->calls, 1) % 3 == 2)
                comm = grow(comm, report, &status);
        }
        if (status != GYRE_SUCCESS && (status < GYRE_PEER_DEAD || status == GYRE_MISMATCH || status == GYRE_INTERNAL))
            rank_fail("%s: %s", gyre_status_name(status), gyre_last_error(comm));
        if (status != GYRE_SUCCESS)
            comm = shrink(comm, report);
    }
    gyre_comm_destroy(comm);
}

/* ---- the launcher ---- */

static void tell(int own)
{
    struct report *r = &page->of[own];
    fprintf(stderr, "epoch %d, rank %d, %lu calls, sum %#lx, ended %d\n", atomic_load(&r->epoch), atomic_load(&r->rank),
            (unsigned long)atomic_load(&r->calls), (unsigned long)atomic_load(&r->mask), atomic_load(&r->ended));
}

static void go_to_address(int own)
{
    (void)own;
    if (address)
        setenv("GYRE_ADDRESS", address, 1);
}

static int start(void (*body)(int own))
{
    return mortals_start(0, go_to_address, body);
}

static bool has_summed(int own)
{
    struct report *r = &page->of[own];
    return atomic_load(&r->mask) == mortals.alive && atomic_load(&r->calls) >= 2;
}

/* Until all that live have summed up just themselves. */
static void await(void)
{
    mortals_await(mortals.alive, has_summed);
}

/* Ranks are dense, and whoever was there before whom has the lower one. */
static void check_order(void)
{
    uint64_t seen = 0;
    for (int i = 0; i < mortals.started; i++)
        if (mortals_lives(i))
            seen |= UINT64_C(1) << atomic_load(&page->of[i].rank);
    if (seen != (UINT64_C(1) << __builtin_popcountll(mortals.alive)) - 1)
        mortals_give_up("the ranks are not dense");
    for (int i = 0; i < mortals.started; i++)
        for (int j = 0; j < mortals.started; j++) {
            struct report *a = &page->of[i], *b = &page->of[j];
            int was_a = atomic_load(&a->before), was_b = atomic_load(&b->before);
            bool both = mortals_lives(i) && mortals_lives(j) && i != j && was_a >= 0;
            if (both && (was_b < 0 || was_a < was_b) && atomic_load(&a->rank) > atomic_load(&b->rank))
                mortals_give_up("a member's order is not kept");
        }
}

static void end(void)
{
    atomic_store(&page->stop, 1);
    for (int i = 0; i < mortals.started; i++) {
        int status = mortals.pids[i] > 0 ? mortals_wait(i) : 0;
        if (mortals_lives(i) ? status != 0 : status != 0 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
            mortals_give_up("a process ended wrongly");
    }
}

static void begin(int ranks)
{
    for (int i = 0; i < ranks; i++)
        mortals_start(ranks, NULL, run);
    await();
}

/* ---- scenarios ---- */

/* Nobody comes: the communicator goes on, and so do those who shrink it. */
static void end_in_vain(gyre_comm *comm, int newcomers)
{
    gyre_comm *next;
    OK(comm, gyre_comm_grow(comm, newcomers, 0.05, &next));
    CHECK(next == NULL);
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_comm_shrink(comm, &next));
    OK(comm, gyre_comm_destroy(comm));
    OK(next, gyre_barrier(next));
    OK(next, gyre_comm_destroy(next));
}

static void plain_newcomer(int own)
{
    /* the world as it was: neither means anything to a newcomer, wherever it is said */
    gyre_config config = {.size = sizeof config, .rank = 0, .world_size = 3, .join = 1};
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "3", 1);
    gyre_comm *comm, *next;
    alarm(120);
    OK(NULL, gyre_comm_create(&config, &comm));
    uint64_t mine = UINT64_C(1) << own, sum;
    bool first = gyre_comm_size(comm) == 4;
    CHECK(gyre_comm_rank(comm) >= 3);
    OK(comm, gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
    CHECK(sum == (first ? 15u : 63u));
    char order[16];
    OK(comm, gyre_comm_get(comm, "order", order, sizeof order));
    CHECK(strcmp(order, "canonical") == 0);
    OK(comm, gyre_comm_get(comm, "ends", order, sizeof order));
    CHECK(strcmp(order, "uniform") == 0);
    if (first) {
        OK(comm, gyre_barrier(comm));
        OK(comm, gyre_comm_grow(comm, 0, 0, &next)); /* what it gives means nothing: rank 0 waits for two */
        OK(comm, gyre_comm_destroy(comm));
        comm = next;
        OK(comm, gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
        CHECK(sum == 63 && gyre_comm_rank(comm) == 3);
    }
    end_in_vain(comm, 0);
}

static void plain_member(int own)
{
    gyre_config shorter = {.size = offsetof(gyre_config, join),
                           .join = 1}; /* of an older header: the rest is not read */
    gyre_comm *comm, *next;
    uint64_t mine = UINT64_C(1) << own, sum;
    alarm(120);
    OK(NULL, gyre_comm_create(&shorter, &comm));
    OK(comm, gyre_comm_set(comm, "order", "canonical"));
    OK(comm, gyre_comm_set(comm, "ends", "uniform"));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_comm_grow(comm, -1, 0, &next));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_comm_grow(comm, 1, -1, &next));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_comm_grow(comm, 1, 1, NULL));
    if (own == 1)
        OK(comm, gyre_comm_get(comm, "meeting", page->address, sizeof page->address));
    for (int round = 0; round < 2; round++) {
        OK(comm, gyre_barrier(comm));
        if (own == 0)
            atomic_fetch_add(&page->stop, 1); /* the launcher starts the newcomers of this round */
        OK(comm, gyre_comm_grow(comm, 1 + round, 60, &next));
        CHECK(next && gyre_comm_size(next) == (round ? 6 : 4) && gyre_comm_rank(next) == own);
        OK(comm, gyre_comm_destroy(comm));
        comm = next;
        OK(comm, gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
        CHECK(sum == (round ? 63u : 15u));
    }
    end_in_vain(comm, 1);
}

static void await_round(int round)
{
    int64_t limit = rank_now_ns() + MORTALS_HANG_NS;
    while (atomic_load(&page->stop) < round) {
        if (rank_now_ns() > limit)
            mortals_give_up("the members do not come to the growing");
        usleep(500);
    }
}

static void plain(void)
{
    for (int i = 0; i < 3; i++)
        mortals_start(3, NULL, plain_member);
    await_round(1);
    start(plain_newcomer);
    await_round(2);
    start(plain_newcomer);
    address = page->address;
    start(plain_newcomer);
    for (int i = 0; i < mortals.started; i++)
        mortals_reap(i, false);
}

static void refused(int own)
{
    static const struct {
        const char *name, *value, *words;
    } unfit[] = {{"GYRE_SECRET", "another-secret-of-the-tests-9876", "wrong secret"},
                 {"GYRE_ORDER", "canonical", "GYRE_ORDER differs: shape on rank 0, canonical"},
                 {"GYRE_INTERFACE", "127.0.0.1,127.0.0.2", "GYRE_INTERFACE differs: 1 name on rank 0, 2 names"}};
    gyre_comm *comm;
    alarm(60);
    setenv(unfit[own % 3].name, unfit[own % 3].value, 1);
    gyre_status status = gyre_comm_create(NULL, &comm);
    const char *text = gyre_last_error(NULL);
    if (status != GYRE_REFUSED || !strstr(text, unfit[own % 3].words))
        rank_fail("a newcomer that does not fit: %s: %s", gyre_status_name(status), text);
}

static void refuse(int ranks)
{
    begin(ranks);
    int epoch = atomic_load(&page->of[0].epoch);
    for (int i = 0; i < 3; i++) {
        int stranger = start(refused);
        mortals_reap(stranger, false);
        mortals_forget(stranger);
    }
    await();
    if (atomic_load(&page->of[0].epoch) != epoch)
        mortals_give_up("a newcomer that does not fit has changed the world");
    start(run);
    await();
    end();
}

static int with_rank(int rank)
{
    for (int i = 0; i < mortals.started; i++)
        if (mortals_lives(i) && atomic_load(&page->of[i].rank) == rank)
            return i;
    mortals_give_up("there is no such rank");
}

static void inherit(int ranks, int rounds)
{
    inherits = true;
    begin(ranks);
    for (int i = 0; i < rounds; i++) {
        /* such a one is rank 0 two rounds later, and who comes then goes to the file */
        address = i % 4 < 2 ? page->of[with_rank(ranks - 1)].address : NULL;
        mortals_kill(with_rank(0));
        if (i % 2) /* else it comes while they still notice */
            await();
        start(run);
        await();
        check_order();
    }
    end();
}

/* With the last member the world ends, and newcomers wait in vain. */
static bool has_member_but(int victim)
{
    for (int i = 0; i < mortals.started; i++)
        if (mortals_lives(i) && i != victim && atomic_load(&page->of[i].epoch) > 0)
            return true;
    return false;
}

static void change(int ranks, int rounds)
{
    begin(ranks);
    for (int i = 0; i < rounds; i++) {
        for (int more = 1 + (int)mortals_draw(3); more > 0; more--) {
            int living = __builtin_popcountll(mortals.alive), victim = (int)mortals_draw((uint64_t)mortals.started);
            usleep((useconds_t)mortals_draw(mortals_draw(2) ? 3000 : 30000));
            if (living < ALIVE_MOST && mortals.started < MORTALS_MOST && (living < 3 || mortals_draw(2)))
                start(run);
            while (living >= 3 && mortals_draw(2) && !mortals_lives(victim))
                victim = (int)mortals_draw((uint64_t)mortals.started);
            if (living >= 3 && mortals_lives(victim) && has_member_but(victim))
                mortals_kill(victim);
        }
        await();
        check_order();
    }
    end();
}

static void freeze(int ranks)
{
    begin(ranks);
    uint64_t before = mortals.alive;
    int newcomer = start(run);
    usleep((useconds_t)mortals_draw(20000)); /* wherever it is then; it may even be a member already */
    kill(mortals.pids[newcomer], SIGSTOP);
    sleep(1);
    kill(mortals.pids[newcomer], SIGCONT);
    await();
    int member = with_rank((int)mortals_draw((uint64_t)ranks));
    kill(mortals.pids[member], SIGSTOP);
    mortals_forget(member);
    await();
    kill(mortals.pids[member], SIGCONT);
    mortals_reap(member, false);
    if (atomic_load(&page->of[member].ended) != GYRE_EXCLUDED)
        mortals_give_up("a member that was stopped is not excluded");
    start(run);
    await();
    if (mortals.alive == before)
        mortals_give_up("nobody has come in");
    end();
}

static int epochs_before[MORTALS_MOST];
static uint64_t calls_before[MORTALS_MOST];

/* Has it grown, or been about to, since? */
static bool has_gone_on(int own)
{
    struct report *r = &page->of[own];
    bool same = atomic_load(&r->epoch) == epochs_before[own];
    return has_summed(own) && atomic_load(&r->calls) >= (same ? calls_before[own] : 0) + 6;
}

/* Those who live go on, with just one another. */
static void await_going_on(void)
{
    for (int i = 0; i < mortals.started; i++) {
        epochs_before[i] = atomic_load(&page->of[i].epoch);
        calls_before[i] = atomic_load(&page->of[i].calls);
    }
    mortals_await(mortals.alive, has_gone_on);
}

/* Woken it is out, or comes in. */
static void await_verdict(int victim, bool newcomer)
{
    uint64_t with = mortals.alive | UINT64_C(1) << victim;
    int64_t limit = rank_now_ns() + MORTALS_HANG_NS;
    mortals_wake(victim);
    while (!mortals_has_ended(victim) && !(newcomer && atomic_load(&page->of[victim].mask) == with)) {
        if (rank_now_ns() > limit)
            mortals_give_up("one that was stopped is not told that it is out");
        usleep(500);
    }
    if (!mortals_has_ended(victim)) {
        mortals.alive = with;
        return;
    }
    mortals_reap(victim, false);
    if (atomic_load(&page->of[victim].ended) != GYRE_EXCLUDED)
        mortals_give_up("one that was stopped is not excluded");
}

static void halt(int ranks, int rounds)
{
    int first = getenv("GYRE_TEST_AT") ? atoi(getenv("GYRE_TEST_AT")) : 0, stops = 0;
    begin(ranks);
    for (int i = 0; i < rounds; i++) {
        bool newcomer = first ? getenv("GYRE_TEST_MEMBER") == NULL : i % 2 == 0;
        int victim = newcomer ? mortals.started : with_rank((int)mortals_draw((uint64_t)ranks));
        int calls = first ? first + i : 1 + (int)mortals_draw(newcomer ? 40 : 60);
        mortals_stop_at(victim, calls);
        start(run);
        bool stopped = mortals_await_stop(victim, has_summed);
        if (getenv("GYRE_TEST_VERBOSE"))
            printf("%d: %s %d at call %d: %s\n", i, newcomer ? "newcomer" : "member", victim, calls,
                   stopped ? "stopped" : "through");
        stops += stopped;
        if (stopped) {
            mortals_forget(victim);
            await_going_on();
            await_verdict(victim, newcomer);
        }
        await();
        check_order();
        while (__builtin_popcountll(mortals.alive) > ranks) {
            mortals_kill(with_rank((int)mortals_draw((uint64_t)ranks)));
            await();
        }
    }
    printf("%d of %d were stopped\n", stops, rounds);
    end();
}

static void be_here(int own)
{
    (void)own;
    setenv("GYRE_HOST_ID", "here", 1);
}

static void be_there(int own)
{
    (void)own;
    setenv("GYRE_HOST_ID", "there", 1);
}

static void be_in_two(int own)
{
    (own ? be_there : be_here)(own);
}

static void count_line(void *user, gyre_log_level level, const char *line)
{
    *(int *)user += level == GYRE_LOG_ERROR && strstr(line, "no transport in common");
}

static void meet_in_vain(int own)
{
    (void)own;
    gyre_comm *comm;
    int lines = 0;
    alarm(60);
    gyre_log_set(count_line, &lines);
    gyre_status status = gyre_comm_create(NULL, &comm);
    if (status != GYRE_PEER_UNREACHABLE || !strstr(gyre_last_error(NULL), "ranks 0 and 1 have no transport in common"))
        rank_fail("a world without a transport: %s: %s", gyre_status_name(status), gyre_last_error(NULL));
    gyre_log_set(NULL, NULL);
    if (lines > 1) /* none: the other one's word was there before */
        rank_fail("it is logged %d times", lines);
}

static void keep_apart(int ranks)
{
    for (int i = 0; i < 2; i++)
        mortals_start(2, be_in_two, meet_in_vain);
    for (int i = 0; i < 2; i++)
        mortals_reap(i, false);
    mortals_end();
    mortals_begin();
    char pair[64];
    for (int i = 0; i < ranks; i++)
        mortals_start(ranks, be_here, run);
    await();
    int stranger = mortals_start(0, be_there, run);
    mortals_reap(stranger, false);
    mortals_forget(stranger);
    await_going_on();
    for (int i = 0; i <= ranks;
         i++) { /* each names a pair that it is one of, if the other's word was not there before */
        bool named = false;
        for (int member = 0; member < ranks; member++) {
            snprintf(pair, sizeof pair, "ranks %d and %d have no transport in common", member, ranks);
            named |= strstr(page->of[i].why, pair) != NULL;
        }
        if (!named) {
            fprintf(stderr, "process %d says: %s\n", i, page->of[i].why);
            mortals_give_up("it is not said which ranks have no transport in common");
        }
    }
    end();
}

/* The last owner removes the file. */
static void check_file(void)
{
    char file[64];
    snprintf(file, sizeof file, "%s/meet", mortals.folder);
    if (access(file, F_OK) == 0)
        mortals_give_up("the last rank 0 has left its file");
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "plain";
    int ranks = count > 2 ? atoi(arguments[2]) : 3;
    int rounds = getenv("GYRE_TEST_ROUNDS") ? atoi(getenv("GYRE_TEST_ROUNDS")) : 12;
    mortals.hosts = count > 3 ? atoi(arguments[3]) : 0;
    mortals.tell = tell;
    page = launch_share(sizeof *page);
    mortals_seed();
    mortals_begin();
    if (strcmp(what, "plain") == 0)
        plain();
    else if (strcmp(what, "refused") == 0)
        refuse(ranks);
    else if (strcmp(what, "heirs") == 0)
        inherit(ranks, rounds);
    else if (strcmp(what, "changes") == 0)
        change(ranks, rounds);
    else if (strcmp(what, "halts") == 0)
        halt(ranks, rounds);
    else if (strcmp(what, "apart") == 0)
        keep_apart(ranks);
    else
        freeze(ranks);
    check_file();
    mortals_end();
    return 0;
}

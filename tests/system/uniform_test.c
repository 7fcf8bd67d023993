/* Uniform completion: ranks are killed at random moments, and the survivors must say the same of every operation.
 * Arguments: scenario, ranks, hosts (0: as the machine is). GYRE_TEST_DEATHS: how many deaths at least (16);
 * GYRE_TEST_SEED repeats a run's choices, not its timing.
 *
 *   kill       one or two die in a row; the survivors fail, shrink and go on, down to the last
 *   leave      one dies; a rank that fails destroys its communicator and ends at once, whatever the others do
 *   settings   what the attribute takes and gives, and that it must be the same on all ranks
 *   siblings   the communicators of one split, of which each has come to another number
 *   away       a rank starts or tests an operation, and then computes for longer than GYRE_STALL_TIMEOUT, before a
 *              failure and after it: it is not declared stopped
 *   pending    an operation is under way on a duplicate when the world is shrunk, which has failed, or fails when ranks
 *              are inside: it has ended, alike, when that returns
 *
 * The operations of an epoch are numbered, and each rank goes through all kinds of them in the same order: blocking,
 * several requests that are waited for in the reverse order, persistent ones, groups. Every success is compared with
 * what it must give, element by element. A failure comes after all successes, so a rank tells how many these were.
 * This number must be the same on all that have come to the end of the epoch, although some died in the next one.
 * With GYRE_ENDS=local it is not, and the test fails. */
#include <stdatomic.h>

#include "system/mortals.h"

#define EPOCHS_MOST 8
#define LONG 3000
#define AWAY_US 2600000 /* longer than GYRE_STALL_TIMEOUT, and that longer than a rank waits for a core */

struct page {
    _Atomic int stop;
    struct report {
        _Atomic int epoch;
        _Atomic uint64_t calls;             /* successes in this epoch */
        _Atomic uint64_t good[EPOCHS_MOST]; /* 1 + the same at its end; 0: it has not come to its end */
    } rank[RANKS_MOST];
};

static struct page *page;
static bool leaves;
static int job;
static int epochs_before[RANKS_MOST]; /* of every rank, when the last ones died */

/* ---- a rank ---- */

/* A communicator and its operations so far. */
struct run {
    gyre_comm *comm;
    int rank, size;
    uint64_t number, good; /* of the operation at hand; successes */
    gyre_status failure;   /* the first one */
    gyre_request *kept;    /* persistent */
    uint64_t kept_in[1], kept_out[1];
};

static uint64_t value(uint64_t number, int rank, size_t i)
{
    return number * 1000 + (uint64_t)rank * 10 + i % 7;
}

static uint64_t total(uint64_t number, int size, size_t i)
{
    return number * 1000 * (uint64_t)size + 5 * (uint64_t)(size * (size - 1)) + i % 7 * (uint64_t)size;
}

/* The end of an operation. A success after a failure would be a hole. */
static bool ended(struct run *run, gyre_status status, const char *what)
{
    if (status != GYRE_SUCCESS && (status < GYRE_PEER_DEAD || status == GYRE_MISMATCH || status == GYRE_INTERNAL))
        rank_fail("%s: %s: %s", what, gyre_status_name(status), gyre_last_error(run->comm));
    if (status == GYRE_SUCCESS && run->failure != GYRE_SUCCESS)
        rank_fail("%s succeeds after an earlier operation failed", what);
    if (status == GYRE_SUCCESS)
        run->good++;
    else if (run->failure == GYRE_SUCCESS)
        run->failure = status;
    return status == GYRE_SUCCESS;
}

static void expect(uint64_t is, uint64_t wanted, const char *what, size_t i)
{
    if (is != wanted)
        rank_fail("%s: element %zu is %lu instead of %lu", what, i, (unsigned long)is, (unsigned long)wanted);
}

static void reduce(struct run *run, size_t count, bool grouped)
{
    static uint64_t in[LONG], out[LONG];
    for (size_t i = 0; i < count; i++)
        in[i] = value(run->number, run->rank, i);
    if (grouped)
        gyre_group_begin();
    gyre_status status = gyre_all_reduce(run->comm, in, out, count, GYRE_UINT64, GYRE_SUM);
    if (grouped) {
        gyre_status all = gyre_group_end();
        status = status == GYRE_SUCCESS ? all : status;
    }
    if (ended(run, status, "all_reduce"))
        for (size_t i = 0; i < count; i++)
            expect(out[i], total(run->number, run->size, i), "all_reduce", i);
}

static void broadcast(struct run *run, size_t count)
{
    static uint64_t in[LONG], out[LONG];
    int root = (int)(run->number % (uint64_t)run->size);
    for (size_t i = 0; i < count; i++)
        in[i] = value(run->number, root, i);
    memset(out, 0, sizeof out);
    if (ended(run, gyre_broadcast(run->comm, in, out, count, GYRE_UINT64, root), "broadcast"))
        for (size_t i = 0; i < count; i++)
            expect(out[i], value(run->number, root, i), "broadcast", i);
}

static void gather(struct run *run, size_t count)
{
    static uint64_t in[LONG], out[LONG * RANKS_MOST];
    for (size_t i = 0; i < count; i++)
        in[i] = value(run->number, run->rank, i);
    memset(out, 0, sizeof out);
    if (ended(run, gyre_all_gather(run->comm, in, out, count, GYRE_UINT64), "all_gather"))
        for (size_t i = 0; i < count * (size_t)run->size; i++)
            expect(out[i], value(run->number, (int)(i / count), i % count), "all_gather", i);
}

/* Several under way; an operation that fails is followed by none that succeeds, in whatever order they are waited
 * for. */
static void several(struct run *run)
{
    static uint64_t in[3], out[3], all[RANKS_MOST];
    gyre_request *requests[3] = {0};
    gyre_status status[3];
    int root = (int)(run->number % (uint64_t)run->size);
    for (int i = 0; i < 3; i++)
        in[i] = value(run->number + (uint64_t)i, i == 1 ? root : run->rank, 0);
    status[0] = gyre_all_reduce_start(run->comm, in, out, 1, GYRE_UINT64, GYRE_SUM, &requests[0]);
    status[1] = gyre_broadcast_start(run->comm, in + 1, out + 1, 1, GYRE_UINT64, root, &requests[1]);
    status[2] = gyre_all_gather_start(run->comm, in + 2, all, 1, GYRE_UINT64, &requests[2]);
    for (int i = 2; i >= 0; i--) {
        gyre_status end = i == 1 ? GYRE_IN_PROGRESS : gyre_wait(&requests[i]);
        while (end == GYRE_IN_PROGRESS)
            end = gyre_test(&requests[i]);
        status[i] = status[i] == GYRE_SUCCESS ? end : status[i];
    }
    if (ended(run, status[0], "started all_reduce"))
        expect(out[0], total(run->number, run->size, 0), "started all_reduce", 0);
    if (ended(run, status[1], "started broadcast"))
        expect(out[1], value(run->number + 1, root, 0), "started broadcast", 0);
    if (ended(run, status[2], "started all_gather"))
        for (int r = 0; r < run->size; r++)
            expect(all[r], value(run->number + 2, r, 0), "started all_gather", (size_t)r);
    run->number += 2;
}

static void keep(struct run *run)
{
    run->kept_in[0] = value(run->number, run->rank, 0);
    gyre_status status = gyre_start(run->kept);
    if (status == GYRE_SUCCESS)
        status = gyre_wait(&run->kept);
    if (ended(run, status, "persistent all_reduce"))
        expect(run->kept_out[0], total(run->number, run->size, 0), "persistent all_reduce", 0);
}

/* What the ranks decide together: false, it is the end. */
static bool go_on(struct run *run)
{
    uint64_t stop = run->rank == 0 && atomic_load(&page->stop), any = 0;
    gyre_status status = gyre_all_reduce(run->comm, &stop, &any, 1, GYRE_UINT64, GYRE_SUM);
    return ended(run, status, "all_reduce of the end") ? any == 0 : true;
}

/* Until a failure: true; or to the end: false. */
static bool fails(struct run *run, struct report *report)
{
    run->rank = gyre_comm_rank(run->comm);
    run->size = gyre_comm_size(run->comm);
    gyre_status status = gyre_all_reduce_init(run->comm, run->kept_in, run->kept_out, 1, GYRE_UINT64, GYRE_SUM,
                                              &run->kept);
    if (status != GYRE_SUCCESS && status < GYRE_PEER_DEAD)
        rank_fail("init: %s", gyre_last_error(run->comm));
    if (status != GYRE_SUCCESS) /* it was dead before we came */
        return true;
    for (; run->failure == GYRE_SUCCESS; run->number++) {
        if (mortals_draw(8) == 0) /* so that deaths find ranks in different operations */
            usleep((useconds_t)mortals_draw(400));
        switch (run->number % 9) {
        case 0:
            if (!go_on(run))
                return false;
            break;
        case 1: broadcast(run, 1); break;
        case 2: reduce(run, LONG, false); break;
        case 3: several(run); break;
        case 6: keep(run); break;
        case 7: reduce(run, 100, true); break;
        default: run->number % 2 ? gather(run, 200) : broadcast(run, LONG);
        }
        atomic_store(&report->calls, run->good);
    }
    return true;
}

static void run_rank(int own)
{
    struct report *report = &page->rank[own];
    struct run run = {.comm = rank_begin(120)};
    while (fails(&run, report)) {
        int epoch = atomic_load(&report->epoch), habit = (own + job + epoch) % 3;
        uint64_t in = 1, out;
        gyre_comm *next;
        atomic_store(&report->good[epoch], run.good + 1);
        if (habit == 1 && gyre_all_reduce(run.comm, &in, &out, 1, GYRE_UINT64, GYRE_SUM) == GYRE_SUCCESS)
            rank_fail("a call on a failed communicator succeeds");
        if (leaves)
            break;
        if (habit == 2)
            gyre_comm_revoke(run.comm);
        OK(run.comm, gyre_comm_shrink(run.comm, &next));
        OK(run.comm, gyre_comm_destroy(run.comm));
        run = (struct run){.comm = next};
        atomic_store(&report->calls, 0);
        atomic_store(&report->epoch, epoch + 1);
    }
    OK(run.comm, gyre_comm_destroy(run.comm));
}

/* ---- the launcher ---- */

static void tell(int own)
{
    struct report *r = &page->rank[own];
    fprintf(stderr, "epoch %d, %lu calls\n", atomic_load(&r->epoch), (unsigned long)atomic_load(&r->calls));
}

/* It has had a success in an epoch after those. */
static bool has_gone_on(int own)
{
    return atomic_load(&page->rank[own].epoch) > epochs_before[own] && atomic_load(&page->rank[own].calls) > 0;
}

static void be_uniform(int own)
{
    (void)own;
    setenv("GYRE_ENDS", "uniform", 0);
}

static void start(int ranks)
{
    memset(page, 0, sizeof *page);
    memset(epochs_before, 0xff, sizeof epochs_before);
    for (int i = 0; i < ranks; i++)
        mortals_start(ranks, be_uniform, run_rank);
    mortals_await(mortals.alive, has_gone_on);
}

/* Of each epoch: all ranks that have come to its end and lived to tell. */
static void compare(int ranks)
{
    for (int epoch = 0; epoch < EPOCHS_MOST; epoch++) {
        uint64_t first = 0;
        for (int i = 0; i < ranks; i++) {
            uint64_t mine = atomic_load(&page->rank[i].good[epoch]);
            if (mine != 0 && first != 0 && mine != first) {
                fprintf(stderr, "epoch %d: rank %d has seen %lu operations succeed, a rank before it %lu\n", epoch, i,
                        (unsigned long)mine - 1, (unsigned long)first - 1);
                mortals_give_up("not uniform");
            }
            first = mine ? mine : first;
        }
    }
}

/* Ranks die in the order of `order`, one or two at a time; the last one stays. */
static int thin_out(int ranks, const int *order, int number)
{
    int dead = 0;
    job = number;
    start(ranks);
    while (dead < ranks - 1) {
        int batch = dead < ranks - 2 && !leaves ? 1 + (int)mortals_draw(2) : 1;
        usleep((useconds_t)mortals_draw(3000));
        for (int i = 0; i < ranks; i++)
            epochs_before[i] = atomic_load(&page->rank[i].epoch);
        for (int i = 0; i < batch; i++) {
            if (i > 0)
                usleep((useconds_t)mortals_draw(mortals_draw(2) ? 500 : 5000));
            mortals_kill(order[dead + i]);
        }
        for (int i = 0; i < batch; i++)
            mortals_reap(order[dead + i], true);
        dead += batch;
        if (leaves)
            break;
        mortals_await(mortals.alive, has_gone_on);
    }
    atomic_store(&page->stop, 1);
    for (int i = 0; i < ranks; i++)
        if (mortals_lives(i))
            mortals_reap(i, false);
    compare(ranks);
    return dead;
}

/* ---- settings ---- */

static void settings(int own)
{
    char text[16];
    setenv("GYRE_ENDS", "local", 1);
    gyre_comm *comm = rank_begin(60), *other;
    gyre_request *before;
    uint64_t mine = 1, sum;
    OK(comm, gyre_all_reduce_init(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM, &before));
    OK(comm, gyre_comm_get(comm, "ends", text, sizeof text));
    CHECK(!strcmp(text, "local"));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_comm_set(comm, "ends", "sudden"));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_comm_set(comm, "ends", own ? "local" : "uniform"));
    OK(comm, gyre_comm_set(comm, "ends", "uniform"));
    OK(comm, gyre_comm_duplicate(comm, &other));
    OK(other, gyre_comm_get(other, "ends", text, sizeof text));
    CHECK(!strcmp(text, "uniform"));
    for (int i = 0; i < 50; i++) {
        gyre_comm *on = i % 3 ? comm : other;
        OK(on, gyre_all_reduce(on, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
        CHECK(sum == (uint64_t)gyre_comm_size(comm));
        sum = 0;
        OK(comm, gyre_start(before)); /* made when ends were local */
        OK(comm, gyre_wait(&before));
        CHECK(sum == (uint64_t)gyre_comm_size(comm));
        if (i == 25)
            OK(comm, gyre_comm_set(comm, "ends", "local"));
    }
    OK(comm, gyre_request_free(&before));
    OK(other, gyre_comm_destroy(other));
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_comm_destroy(comm));
}

/* ---- siblings ---- */

static void await_flag(_Atomic int *flag)
{
    for (int64_t limit = rank_now_ns() + MORTALS_HANG_NS; !atomic_load(flag); usleep(200))
        CHECK(rank_now_ns() < limit);
}

/* Even and odd ranks have a communicator each. An operation of the even ones has succeeded on all but its root, which
 * has sent all that it has to and then is not inside gyre, when the world fails; the odd ones have none. */
static void siblings(int own)
{
    setenv("GYRE_ENDS", "uniform", 0);
    gyre_comm *comm = rank_begin(60), *half;
    int ranks = gyre_comm_size(comm), last = (ranks - 1) / 2 * 2;
    uint64_t mine = 7, got = 0;
    gyre_request *request;
    OK(comm, gyre_comm_split(comm, own % 2, own, &half));
    if (own % 2 == 0) {
        OK(half, gyre_broadcast(half, &mine, &got, 1, GYRE_UINT64, last / 2)); /* links are open */
        OK(half, gyre_barrier(half));
    } else {
        atomic_store(&page->rank[own].epoch, 1); /* through the split */
    }
    if (own == last) {
        OK(half, gyre_broadcast_start(half, &mine, &got, 1, GYRE_UINT64, last / 2, &request));
        for (int i = 0; i < 1000; i++)
            GIVES(GYRE_IN_PROGRESS, half, gyre_test(&request));
        atomic_store(&page->rank[last].epoch, 1);
        await_flag(&page->stop);
        for (int odd = 1; odd < ranks; odd += 2)
            await_flag(&page->rank[odd].epoch);
        OK(comm, gyre_comm_revoke(comm));
        OK(half, gyre_wait(&request));
    } else if (own % 2 == 0) {
        await_flag(&page->rank[last].epoch);
        OK(half, gyre_broadcast(half, &mine, &got, 1, GYRE_UINT64, last / 2));
        CHECK(got == 7);
        atomic_store(&page->stop, own == 0);
    }
    GIVES(GYRE_REVOKED, comm, gyre_barrier(comm));
    OK(comm, gyre_comm_destroy(half));
    OK(comm, gyre_comm_destroy(comm));
}

/* ---- away ---- */

/* Each in turn starts a broadcast, of which it is the root, and stays away before its end. */
static void leave_broadcast(gyre_comm *comm, int away)
{
    uint64_t mine = 7, got = 0;
    gyre_request *request;
    OK(comm, gyre_broadcast_start(comm, &mine, &got, 1, GYRE_UINT64, away, &request));
    if (gyre_comm_rank(comm) == away)
        usleep(AWAY_US);
    OK(comm, gyre_wait(&request));
    CHECK(got == 7);
}

/* All ranks have come here as often as this one, and have started what is to be under way: a rank that starts it
 * later than another revokes is told so instead. */
static void await_everyone(int own, int ranks)
{
    uint64_t calls = atomic_fetch_add(&page->rank[own].calls, 1) + 1;
    for (int i = 0; i < ranks; i++)
        for (int64_t limit = rank_now_ns() + MORTALS_HANG_NS; atomic_load(&page->rank[i].calls) < calls; usleep(200))
            CHECK(rank_now_ns() < limit);
}

/* The world fails; it tests once, and stays away before it is agreed on how what is under way ends. */
static void leave_agreement(gyre_comm *comm, int away)
{
    int own = gyre_comm_rank(comm), ranks = gyre_comm_size(comm), missing = (away + 1) % ranks;
    uint64_t mine = 1, sum;
    gyre_request *request = NULL;
    OK(comm, gyre_barrier(comm));
    if (own != missing)
        OK(comm, gyre_all_reduce_start(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM, &request));
    await_everyone(own, ranks);
    if (own == away) {
        OK(comm, gyre_comm_revoke(comm));
        for (int i = 0; i < 20; i++, usleep(1000)) /* it has joined the agreement */
            GIVES(GYRE_IN_PROGRESS, comm, gyre_test(&request));
        atomic_store(&page->rank[away].epoch, 1);
        usleep(AWAY_US);
    } else {
        await_flag(&page->rank[away].epoch);
    }
    while (own == missing && gyre_progress(comm) == GYRE_SUCCESS) /* it has heard: its call is no other operation */
        usleep(1000);
    GIVES(GYRE_REVOKED, comm, own == missing ? gyre_barrier(comm) : gyre_wait(&request));
}

static void away(int own)
{
    setenv("GYRE_ENDS", "uniform", 0);
    gyre_comm *comm = rank_begin(60), *next;
    int ranks = gyre_comm_size(comm);
    for (int who = 0; who < ranks; who += ranks - 1) { /* the coordinator of the agreement, and another one */
        leave_broadcast(comm, who);
        leave_agreement(comm, who);
        OK(comm, gyre_comm_shrink(comm, &next));
        CHECK(gyre_comm_size(next) == ranks && gyre_comm_rank(next) == own);
        OK(comm, gyre_comm_destroy(comm));
        comm = next;
    }
    OK(comm, gyre_comm_destroy(comm));
}

/* ---- pending ---- */

/* What is to be pending has been started on ranks 0, stride, 2 * stride ...: a rank that starts it later than another
 * revokes is told so. Such calls are counted by `number`. */
static void started(int own, int ranks, int stride, int number)
{
    atomic_store(&page->rank[own].epoch, number);
    for (int i = 0; i < ranks; i += stride)
        for (int64_t limit = rank_now_ns() + MORTALS_HANG_NS; atomic_load(&page->rank[i].epoch) < number; usleep(200))
            CHECK(rank_now_ns() < limit);
}

/* The end of the even ranks' operation needs the odd ones' input, which compute while the even ones shrink. */
static void shrink_half(gyre_comm *comm, int number)
{
    int own = gyre_comm_rank(comm);
    uint64_t mine = 1, sum;
    gyre_comm *half, *other, *next;
    gyre_request *request = NULL;
    OK(comm, gyre_comm_split(comm, own % 2, own, &half));
    OK(half, gyre_comm_duplicate(half, &other));
    OK(comm, gyre_barrier(comm));
    if (own % 2)
        usleep(500000);
    else if (own > 0)
        OK(other, gyre_all_reduce_start(other, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM, &request));
    started(own, gyre_comm_size(comm), 2, number);
    OK(comm, gyre_comm_revoke(comm));
    OK(half, gyre_comm_shrink(half, &next));
    CHECK(gyre_comm_size(next) == gyre_comm_size(half));
    if (request)
        GIVES(GYRE_REVOKED, other, gyre_test(&request));
    OK(next, gyre_barrier(next));
    OK(next, gyre_comm_destroy(next));
    OK(other, gyre_comm_destroy(other));
    OK(half, gyre_comm_destroy(half));
}

enum how { ALL_REVOKE, LATE_REVOKES, LATE_DIES };

/* An operation that one rank does not take part in, and a shrinking: all know before that the world has failed, or all
 * but the last rank are inside when it fails, for that one comes late, and revokes, or dies. */
static gyre_comm *shrink_past(gyre_comm *comm, int number, enum how how)
{
    int own = gyre_comm_rank(comm), ranks = gyre_comm_size(comm);
    bool late = how != ALL_REVOKE && own == ranks - 1, takes_part = own != number % ranks;
    uint64_t mine = 1, sum;
    gyre_comm *other, *next;
    gyre_request *request = NULL;
    OK(comm, gyre_comm_duplicate(comm, &other));
    OK(comm, gyre_barrier(comm));
    if (takes_part)
        OK(other, gyre_all_reduce_start(other, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM, &request));
    started(own, ranks, 1, number);
    if (late)
        usleep(30000); /* should the others not be inside by then, that is the first case */
    if (late && how == LATE_DIES)
        _exit(0);
    if (late || how == ALL_REVOKE)
        OK(comm, gyre_comm_revoke(comm));
    OK(comm, gyre_comm_shrink(comm, &next));
    CHECK(gyre_comm_size(next) == ranks - (how == LATE_DIES));
    if (takes_part)
        GIVES(how == LATE_DIES ? GYRE_PEER_DEAD : GYRE_REVOKED, other, gyre_test(&request));
    OK(other, gyre_comm_destroy(other));
    OK(comm, gyre_comm_destroy(comm));
    return next;
}

static void pending(int own)
{
    (void)own;
    setenv("GYRE_ENDS", "uniform", 0);
    gyre_comm *comm = rank_begin(60), *next;
    int number = 1;
    for (; number <= 12; number++)
        comm = shrink_past(comm, number, number % 3 ? ALL_REVOKE : LATE_REVOKES);
    shrink_half(comm, number++);
    OK(comm, gyre_comm_shrink(comm, &next));
    OK(comm, gyre_comm_destroy(comm));
    comm = shrink_past(next, number, LATE_DIES);
    OK(comm, gyre_comm_destroy(comm));
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 1 ? argv[1] : "kill", *wanted = getenv("GYRE_TEST_DEATHS");
    int ranks = argc > 2 ? atoi(argv[2]) : 4;
    CHECK(ranks >= 2 && ranks <= RANKS_MOST);
    mortals.hosts = argc > 3 ? atoi(argv[3]) : 0;
    page = launch_share(sizeof *page);
    if (!strcmp(scenario, "settings"))
        return launch(ranks, settings, 60, scenario) ? 0 : 1;
    if (!strcmp(scenario, "siblings"))
        return launch(ranks, siblings, 60, scenario) ? 0 : 1;
    if (!strcmp(scenario, "away"))
        return launch(ranks, away, 60, scenario) ? 0 : 1;
    if (!strcmp(scenario, "pending"))
        return launch(ranks, pending, 60, scenario) ? 0 : 1;
    leaves = !strcmp(scenario, "leave");
    CHECK(leaves || !strcmp(scenario, "kill"));
    mortals.tell = tell;
    mortals_run_jobs(scenario, ranks, wanted ? atoi(wanted) : 16, thin_out);
    puts("every operation ended alike on all who were left");
    return 0;
}

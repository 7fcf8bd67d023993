/* See grow_world.h. */
#include "system/grow_world.h"

struct grow_page *grow_page;
const char *grow_address;
bool grow_inherits;

/* ---- a process ---- */

static void enter(gyre_comm *comm, struct report *report, int before)
{
    atomic_store(&report->calls, 0);
    atomic_store(&report->rank, gyre_comm_rank(comm));
    atomic_store(&report->before, before);
    if (grow_inherits)
        OK(comm, gyre_comm_get(comm, "meeting", report->address, sizeof report->address));
    atomic_fetch_add(&report->epoch, 1);
}

static gyre_status reduce(gyre_comm *comm, int own, uint64_t *sum_p)
{
    static uint64_t in[5000], out[5000]; /* of different sizes, so that deaths fall into different algorithms */
    size_t count = atomic_load(&grow_page->of[own].calls) % 2 ? 5000 : 1;
    uint64_t mine = UINT64_C(1) << own |
                    (gyre_comm_rank(comm) == 0 && atomic_load(&grow_page->stop) ? GROW_STOP_BIT : 0);
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

void grow_run(int own)
{
    struct report *report = &grow_page->of[own];
    gyre_comm *comm = begin_process(report);
    uint64_t sum = 0;
    if (!comm)
        return;
    if (grow_inherits && !getenv("GYRE_JOIN"))
        OK(comm, gyre_comm_set(comm, "order", "canonical"));
    enter(comm, report, -1);
    while (comm) {
        gyre_status status = reduce(comm, own, &sum);
        uint64_t mask = sum & ~GROW_STOP_BIT;
        if (status == GYRE_SUCCESS) {
            if (__builtin_popcountll(mask) != gyre_comm_size(comm) || !(mask >> own & 1))
                rank_fail("a sum over %d ranks is %#lx", gyre_comm_size(comm), (unsigned long)sum);
            atomic_store(&report->mask, mask);
            if (sum & GROW_STOP_BIT)
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

void grow_tell(int own)
{
    struct report *r = &grow_page->of[own];
    fprintf(stderr, "epoch %d, rank %d, %lu calls, sum %#lx, ended %d\n", atomic_load(&r->epoch), atomic_load(&r->rank),
            (unsigned long)atomic_load(&r->calls), (unsigned long)atomic_load(&r->mask), atomic_load(&r->ended));
}

static void go_to_address(int own)
{
    (void)own;
    if (grow_address)
        setenv("GYRE_ADDRESS", grow_address, 1);
}

int grow_start(void (*body)(int own))
{
    return mortals_start(0, go_to_address, body);
}

bool grow_has_summed(int own)
{
    struct report *r = &grow_page->of[own];
    return atomic_load(&r->mask) == mortals.alive && atomic_load(&r->calls) >= 2;
}

/* Until all that live have summed up just themselves. */
void grow_await(void)
{
    mortals_await(mortals.alive, grow_has_summed);
}

/* Ranks are dense, and of two members the older one has the lower rank. */
void grow_check_order(void)
{
    uint64_t seen = 0;
    for (int i = 0; i < mortals.started; i++)
        if (mortals_lives(i))
            seen |= UINT64_C(1) << atomic_load(&grow_page->of[i].rank);
    if (seen != (UINT64_C(1) << __builtin_popcountll(mortals.alive)) - 1)
        mortals_give_up("the ranks are not dense");
    for (int i = 0; i < mortals.started; i++)
        for (int j = 0; j < mortals.started; j++) {
            struct report *a = &grow_page->of[i], *b = &grow_page->of[j];
            int was_a = atomic_load(&a->before), was_b = atomic_load(&b->before);
            bool both = mortals_lives(i) && mortals_lives(j) && i != j && was_a >= 0;
            if (both && (was_b < 0 || was_a < was_b) && atomic_load(&a->rank) > atomic_load(&b->rank))
                mortals_give_up("a member's order is not kept");
        }
}

void grow_end(void)
{
    atomic_store(&grow_page->stop, 1);
    for (int i = 0; i < mortals.started; i++) {
        int status = mortals.pids[i] > 0 ? mortals_wait(i) : 0;
        if (mortals_lives(i) ? status != 0 : status != 0 && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
            mortals_give_up("a process ended wrongly");
    }
}

void grow_begin(int ranks)
{
    for (int i = 0; i < ranks; i++)
        mortals_start(ranks, NULL, grow_run);
    grow_await();
}

int grow_with_rank(int rank)
{
    for (int i = 0; i < mortals.started; i++)
        if (mortals_lives(i) && atomic_load(&grow_page->of[i].rank) == rank)
            return i;
    mortals_give_up("there is no such rank");
}

static int epochs_before[MORTALS_MOST];
static uint64_t calls_before[MORTALS_MOST];

/* True if it has grown, or been about to, since. */
static bool has_gone_on(int own)
{
    struct report *r = &grow_page->of[own];
    bool same = atomic_load(&r->epoch) == epochs_before[own];
    return grow_has_summed(own) && atomic_load(&r->calls) >= (same ? calls_before[own] : 0) + 6;
}

/* The survivors go on, with just one another. */
void grow_await_going_on(void)
{
    for (int i = 0; i < mortals.started; i++) {
        epochs_before[i] = atomic_load(&grow_page->of[i].epoch);
        calls_before[i] = atomic_load(&grow_page->of[i].calls);
    }
    mortals_await(mortals.alive, has_gone_on);
}

/* Recovery without memory: in a world of three that has been revoked, each allocation in turn fails once on one rank,
 * in the agreement, the shrinking, and the first sum over the new communicator. Arguments: that rank; "awaited": the
 * others are in an operation with uniform ends, in which that rank has nothing under way when they call it to agree on
 * how it ends.
 *
 * It may be told NO_MEMORY, and asks again; or be EXCLUDED, where the others could not wait for it. These agree in any
 * case, go on with it or without, to a sum that is exact, and nothing waits for a clock; nothing leaks, no descriptor
 * stays. */

#include "core/mem.h"
#include "support/launcher.h"

#define RANKS 3
#define MOST 2000

static struct shared {
    volatile int fired, refused, out, left, done[RANKS];
} * shared;
static int victim, step;
static bool awaited;

extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

/* True if `status` is allowed here. Only the victim may be refused, and once. */
static bool refused(gyre_comm *comm, int own, gyre_status status)
{
    if (status == GYRE_SUCCESS)
        return false;
    if (own != victim || (status != GYRE_NO_MEMORY && status != GYRE_EXCLUDED) || !*gyre_last_error(comm))
        rank_fail("step %d: %s: %s", step, gyre_status_name(status), gyre_last_error(comm));
    shared->refused++;
    return true;
}

/* NULL: this rank is out. */
static gyre_comm *go_on(gyre_comm *comm, int own)
{
    gyre_comm *next;
    uint64_t bits = 0;
    OK(comm, gyre_comm_revoke(comm));
    gyre_status status = gyre_comm_agree(comm, ~(UINT64_C(1) << own), &bits);
    if (refused(comm, own, status))
        status = gyre_comm_agree(comm, ~(UINT64_C(1) << own), &bits);
    if (!refused(comm, own, status) && (bits >> own & 1))
        rank_fail("step %d: rank %d agreed to %#lx", step, own, (unsigned long)bits);
    status = gyre_comm_shrink(comm, &next);
    bool again = refused(comm, own, status);
    if (again)
        status = gyre_comm_shrink(comm, &next);
    if (again && status == GYRE_SUCCESS && gyre_comm_size(next) != gyre_comm_size(comm))
        rank_fail("step %d: the victim, refused, goes on in a world of %d", step, gyre_comm_size(next));
    if (refused(comm, own, status)) {
        shared->out = 1;
        next = NULL;
    }
    OK(NULL, gyre_comm_destroy(comm));
    return next;
}

/* Checks the ranks that the sum lacks: the victim, which has been told, or which had its sum when another's call
 * failed. */
static void check_sum(uint64_t sum, int own, int size)
{
    shared->done[own] = 1;
    if (!(sum >> own & 1) || __builtin_popcountll(sum) != size)
        rank_fail("step %d: a sum over %d ranks is %#lx", step, size, (unsigned long)sum);
    for (int r = 0; r < RANKS; r++) {
        if (sum >> r & 1 || shared->done[r])
            continue;
        if (r != victim || own == victim)
            rank_fail("step %d: rank %d goes on without rank %d", step, own, r);
        shared->left = 1;
    }
}

static void run_rank(int own)
{
    uint64_t mine = UINT64_C(1) << own, sum = 0, before = 0;
    int descriptors = rank_count_descriptors();
    gyre_comm *comm = rank_begin(40);
    gyre_status status = gyre_barrier(comm);
    CHECK(status == GYRE_SUCCESS || status == GYRE_REVOKED); /* another has left it, and revokes */
    if (awaited && own != victim)
        CHECK(gyre_barrier(comm) == GYRE_REVOKED);
    if (own == victim) {
        before = gy_alloc_count();
        gy_alloc_fail_at((uint64_t)step);
    }
    comm = go_on(comm, own);
    while (comm) {
        status = gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM);
        if (status == GYRE_SUCCESS)
            break;
        comm = go_on(comm, own);
    }
    if (comm)
        check_sum(sum, own, gyre_comm_size(comm));
    gyre_comm_destroy(comm);
    if (own == victim) {
        shared->fired = gy_alloc_count() - before >= (uint64_t)step;
        gy_alloc_fail_at(0);
    }
    if (rank_count_descriptors() != descriptors)
        rank_fail("step %d: %d descriptors are left", step, rank_count_descriptors() - descriptors);
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
        rank_fail("step %d: memory is left", step);
}

int main(int argc, char **argv)
{
    const char *only = getenv("GYRE_TEST_STEP");
    int refusals = 0, outs = 0, stride = getenv("GYRE_TEST_FULL") ? 1 : 2;
    bool through = false;
    victim = argc > 1 ? atoi(argv[1]) : 0;
    awaited = argc > 2 && !strcmp(argv[2], "awaited");
    if (awaited)
        setenv("GYRE_ENDS", "uniform", 1);
    shared = launch_share(sizeof *shared);
    setenv("GYRE_PEER_TIMEOUT", "60", 1); /* a clock is no way out */
    setenv("GYRE_STALL_TIMEOUT", "60", 1);
    for (step = only ? atoi(only) : 1 + victim % stride; !through && step < MOST; step += stride) {
        char what[64];
        memset(shared, 0, sizeof *shared);
        snprintf(what, sizeof what, "step %d", step);
        if (!launch(RANKS, run_rank, 30, what))
            return 1;
        if (shared->left && !shared->refused) {
            fprintf(stderr, "step %d: rank %d was told nothing, and the others went on without it\n", step, victim);
            return 1;
        }
        refusals += shared->refused > 0;
        outs += shared->out;
        through = !shared->fired || only;
    }
    CHECK(through && (only || refusals > 5));
    printf("rank %d of %d: %d allocations; %d times it was refused, %d times it stayed behind\n", victim, RANKS,
           step - 1 - stride, refusals, outs);
    return 0;
}

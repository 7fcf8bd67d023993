/* Two ranks that have a core each by the count, and are on one core all the same, as the scheduler may place them:
 * the waiting rank yields, instead of polling until its time is over. Measured by the processor time that a call
 * takes, which has no other program's time slices: 2 to 7 microseconds, and 70 to 170 where a rank keeps the core
 * while it polls. */
#include "support/cores.h"
#include "support/launcher.h"

#define CALLS 100
#define BLOCKS 10
#define LIMIT_NS 40000

static int64_t used_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

static void stay_on_one_core(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
}

/* Processor time of a call, the least of some blocks: in one of them the ranks may have been interrupted. */
static int64_t time_of(gyre_comm *comm, size_t count)
{
    static float vector[16384];
    int64_t least = INT64_MAX;
    CHECK(count <= sizeof vector / sizeof *vector);
    for (int block = 0; block < BLOCKS; block++) {
        int64_t begun = used_ns();
        for (int call = 0; call < CALLS; call++)
            OK(comm, gyre_all_reduce(comm, vector, vector, count, GYRE_FLOAT32, GYRE_SUM));
        int64_t took = (used_ns() - begun) / CALLS;
        least = took < least ? took : least;
    }
    return least;
}

static void run_rank(int rank)
{
    (void)rank;
    gyre_comm *comm = rank_begin(40);
    stay_on_one_core();
    for (size_t count = 2; count <= 16384; count *= 8192) {
        int64_t took = time_of(comm, count);
        if (took > LIMIT_NS)
            rank_fail("an all_reduce of %zu bytes takes %lld ns of the processor", count * sizeof(float),
                      (long long)took);
    }
    OK(comm, gyre_comm_destroy(comm));
}

int main(void)
{
    return !launch(2, run_rank, 50, "two ranks on one core");
}

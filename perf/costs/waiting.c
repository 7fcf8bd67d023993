/* gyre-waiting: tests that no rank spins on a core that another rank needs.
 *
 *     gyre-run -n 4 gyre-waiting [MS [ROUNDS]]        250, 5; GYRE_TRANSPORT says over what
 *
 * In each round one rank after the other computes until it has had MS milliseconds of a processor, while all others
 * wait for it in an all_reduce. The processor time of each waiting rank is divided by the time that it waited. The
 * largest share of any rank in any round is the result: above MOST the exit status is 1. Shares do not depend on the
 * load of the machine: a waiting rank sleeps. A wait shorter than MS counts as one of MS. A further column: by how
 * much the elapsed time of the computing rank exceeds its processor time. */
#include <math.h>

#include "turns.h"

#define MOST 0.05

static double compute(double ns)
{
    static volatile double sink;
    int64_t start = turns_now(), own = turns_clock(CLOCK_THREAD_CPUTIME_ID);
    while ((double)(turns_clock(CLOCK_THREAD_CPUTIME_ID) - own) < ns)
        for (int i = 0; i < 10000; i++)
            sink = sink + 1;
    return (double)(turns_now() - start) / ns;
}

/* Returns the share of the processor that this rank used while it waited, for `least` ns at least. A rank that got
 * no core before finds the others already there and waits for a moment; a share of that moment has no meaning. */
static double wait_for(gyre_comm *comm, double least)
{
    double in = 1, out;
    int64_t start = turns_now(), used = turns_clock(CLOCK_PROCESS_CPUTIME_ID);
    EXPECT(comm, gyre_all_reduce(comm, &in, &out, 1, GYRE_FLOAT64, GYRE_SUM));
    return (double)(turns_clock(CLOCK_PROCESS_CPUTIME_ID) - used) / fmax((double)(turns_now() - start), least);
}

int main(int argc, char **argv)
{
    double ns = (double)(argc > 1 ? turns_number("gyre-waiting", argv[1], 60000) : 250) * 1e6, worst = 0, longest = 0;
    long rounds = argc > 2 ? turns_number("gyre-waiting", argv[2], TURNS_MOST) : 5;
    gyre_comm *comm;
    EXPECT(NULL, gyre_comm_create(NULL, &comm));
    int rank = gyre_comm_rank(comm), ranks = gyre_comm_size(comm);
    for (long turn = 0; turn < rounds * ranks; turn++) {
        double figures[2] = {0, 0};
        EXPECT(comm, gyre_barrier(comm));
        if (rank == (int)(turn % ranks)) {
            figures[1] = compute(ns);
            wait_for(comm, ns);
        } else {
            figures[0] = wait_for(comm, ns);
        }
        EXPECT(comm, gyre_all_reduce(comm, figures, figures, 2, GYRE_FLOAT64, GYRE_MAX));
        worst = fmax(worst, figures[0]);
        longest = fmax(longest, figures[1]);
    }
    if (rank == 0)
        printf("%d ranks: who waits uses at most %.3f of a processor; who computes takes at most %.2f times its own "
               "time\n",
               ranks, worst, longest);
    gyre_comm_destroy(comm);
    return worst > MOST;
}

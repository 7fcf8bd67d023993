/* A death is heard of in time where other programs have this rank's core as well: letting them go first then takes as
 * long as their turns, and a call that waits may do so only a few times before it looks for news. Here every
 * sched_yield takes TURN, and three ranks think that they have two cores. Rank 2 dies while the others wait for it in a
 * call of each kind; counted is how often they let others go first from then on. */
#include <sched.h>

#include "support/launcher.h"

#define TURN 20000         /* us; more than a tick of any kernel */
#define DIES_AFTER 60000   /* us; rank 0 is inside by then, and for good */
#define YIELDS_MOST 2      /* the shortest way, and the request that it becomes */
#define LARGE (48u << 10)  /* bytes, as a direct reduction takes */
#define WHOLE (512u << 10) /* of a schedule */

#define RANKS 3
#define VICTIM 2
#define CORES 2

static int yields, kind;
static int *dead; /* shared: rank 2 is about to be */

/* The library's, too. */
__attribute__((visibility("default"))) int sched_yield(void)
{
    yields += __atomic_load_n(dead, __ATOMIC_ACQUIRE);
    usleep(TURN);
    return 0;
}

__attribute__((visibility("default"))) int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *set)
{
    CHECK(process == 0);
    CPU_ZERO_S(bytes, set);
    for (size_t core = 0; core < CORES; core++)
        CPU_SET_S(core, bytes, set);
    return 0;
}

enum { SHORT, LINES, DIRECT, PLAN, FROM_ROOT, SCATTERED, BARRIER, MESSAGE, KINDS };
static const char *const names[KINDS] = {"all_reduce of 4 bytes",
                                         "all_gather of 1 KiB",
                                         "all_reduce of 48 KiB",
                                         "all_reduce of 512 KiB",
                                         "broadcast",
                                         "reduce_scatter",
                                         "barrier",
                                         "receive"};

static float input[WHOLE / sizeof(float)], output[WHOLE / sizeof(float)];

static gyre_status exchange_messages(gyre_comm *comm)
{
    if (gyre_comm_rank(comm) != VICTIM)
        return gyre_recv(comm, output, 1, GYRE_FLOAT32, VICTIM);
    for (int rank = 0; rank < VICTIM; rank++)
        OK(comm, gyre_send(comm, input, 1, GYRE_FLOAT32, rank));
    return GYRE_SUCCESS;
}

static gyre_status call(gyre_comm *comm)
{
    switch (kind) {
    case SHORT: return gyre_all_reduce(comm, input, output, 1, GYRE_FLOAT32, GYRE_SUM);
    case LINES: return gyre_all_gather(comm, input, output, 256, GYRE_FLOAT32);
    case DIRECT: return gyre_all_reduce(comm, input, output, LARGE / sizeof *input, GYRE_FLOAT32, GYRE_SUM);
    case PLAN: return gyre_all_reduce(comm, input, output, WHOLE / sizeof *input, GYRE_FLOAT32, GYRE_SUM);
    case FROM_ROOT: return gyre_broadcast(comm, input, output, LARGE / sizeof *input, GYRE_FLOAT32, VICTIM);
    case SCATTERED: return gyre_reduce_scatter(comm, input, output, 4096, GYRE_FLOAT32, GYRE_SUM);
    case BARRIER: return gyre_barrier(comm);
    default: return exchange_messages(comm);
    }
}

static void run(int rank)
{
    gyre_comm *comm = rank_begin(30);
    for (int i = 0; i < 3; i++) /* from the second one on by the shortest way */
        OK(comm, call(comm));
    OK(comm, gyre_barrier(comm));
    if (rank == VICTIM) {
        usleep(DIES_AFTER);
        __atomic_store_n(dead, 1, __ATOMIC_RELEASE);
        kill(getpid(), SIGKILL);
    }
    GIVES(GYRE_PEER_DEAD, comm, call(comm));
    if (yields > YIELDS_MOST)
        rank_fail("%s let others go first %d times before it heard of a death", names[kind], yields);
    OK(NULL, gyre_comm_destroy(comm));
}

int main(void)
{
    launch_may_die = VICTIM;
    dead = launch_share(sizeof *dead);
    for (kind = 0; kind < KINDS; kind++) {
        *dead = 0;
        if (!launch(RANKS, run, 30, names[kind]))
            return 1;
    }
    return 0;
}

/* The BLAS threads of all ranks on the same cores should not exceed these cores. The communicator knows the ranks of
 * this host; LOCAL_WORLD_SIZE is set by torchrun and gyre-run. A number that was set by a call, or in the
 * environment that OpenBLAS reads, stays as it is. */
#include "backend/openblas.h"

#include "backend/thread_pool.h"
#include "base/error.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

static atomic_bool chosen; /* by the user of this library */

void gyre_nn_set_blas_threads(int threads)
{
    if (threads < 1) {
        gy_nn_fail(GYRE_INVALID_ARGUMENT, "gyre_nn_set_blas_threads: %d threads; at least 1 is needed", threads);
        return;
    }
    atomic_store(&chosen, true);
    gy_nn_blas_threads(threads);
}

/* As OpenBLAS does, which takes what is no number above 0 for not set. */
static bool asked_for(void)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *text = getenv(names[i]);
        if (text && atoi(text) > 0)
            return true;
    }
    return atomic_load(&chosen);
}

/* The ranks of the communicator that are on this host, from the nearest numbers to the farthest. */
struct crowd {
    gyre_comm *comm;
    gyre_rank_place own;
    cpu_set_t cores; /* of this rank */
    int unseen;      /* ranks of this host that have not been looked at */
    int apart;       /* ranks of this host that run on none of `cores` */
};

#define FARTHEST 256 /* a rank's place takes a pass over all ranks; a rank farther away counts as one that shares */

/* A rank whose cores cannot be read (it is in another name space) is not apart. */
static void look_at(struct crowd *crowd, int rank)
{
    gyre_rank_place place = {.size = sizeof(place)};
    cpu_set_t theirs;
    if (rank < 0 || rank >= gyre_comm_size(crowd->comm) ||
        gyre_comm_topology(crowd->comm, rank, &place) != GYRE_SUCCESS || place.host != crowd->own.host)
        return;
    crowd->unseen--;
    if (sched_getaffinity((pid_t)place.process, sizeof(theirs), &theirs) != 0)
        return;
    CPU_AND(&theirs, &theirs, &crowd->cores);
    crowd->apart += CPU_COUNT(&theirs) == 0;
}

/* Returns the number of ranks that share this rank's cores, itself included. LOCAL_WORLD_SIZE counts more ranks than
 * a communicator that is a part of the world. But a rank that alone has its cores, among all ranks it sees, is bound
 * to them. */
static int count_sharers(struct crowd *crowd)
{
    const char *text = getenv("LOCAL_WORLD_SIZE");
    int known = text ? atoi(text) : 1, rank = gyre_comm_rank(crowd->comm), locals = crowd->own.locals;
    crowd->unseen = locals - 1;
    for (int distance = 1; crowd->unseen > 0 && distance <= FARTHEST; distance++) {
        look_at(crowd, rank - distance);
        look_at(crowd, rank + distance);
    }
    if (locals > 1 && crowd->apart == locals - 1)
        return 1;
    return (known > locals ? known : locals) - crowd->apart;
}

void gyre_nn_share_cores(const gyre_comm *comm)
{
    struct crowd crowd = {.comm = (gyre_comm *)(uintptr_t)comm, .own = {.size = sizeof(crowd.own)}};
    struct gy_nn_grid grid = gy_nn_team_grid();
    if (!comm || grid.rows * grid.cols > 1 || asked_for()) /* with a grid gyre's threads share them */
        return;
    bool known = sched_getaffinity(0, sizeof(crowd.cores), &crowd.cores) == 0;
    if (gyre_comm_topology(crowd.comm, gyre_comm_rank(comm), &crowd.own) != GYRE_SUCCESS)
        return;
    int cores = known ? CPU_COUNT(&crowd.cores) : 1, sharers = known ? count_sharers(&crowd) : crowd.own.locals;
    if (sharers > 1 || crowd.own.locals > 1)
        gy_nn_blas_threads(cores / sharers > 1 ? cores / sharers : 1);
}

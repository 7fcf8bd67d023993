/* Threads of BLAS times ranks of this host should not exceed the cores; LOCAL_WORLD_SIZE is torchrun's and
 * gyre-run's. What somebody has asked for, by a call or in the environment that OpenBLAS reads, stays as it is. */
#include "threads.h"

#include "team.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_bool chosen; /* by the user of this library */

void gyre_nn_set_blas_threads(int threads)
{
    if (threads < 1)
        return;
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

void gyre_nn_share_cores(const gyre_comm *comm)
{
    cpu_set_t cpus;
    const char *text = getenv("LOCAL_WORLD_SIZE");
    int local = !comm ? 1 : text ? atoi(text) : gyre_comm_size(comm);
    int cores = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    struct gy_nn_grid grid = gy_nn_team_grid();
    if (local > 1 && grid.rows * grid.cols == 1 && !asked_for()) /* else gyre's threads share them */
        gy_nn_blas_threads(cores / local > 1 ? cores / local : 1);
}

/* Threads of BLAS times ranks of this host should not exceed the cores; LOCAL_WORLD_SIZE is torchrun's and
 * gyre-run's. */
#include "team.h"

#include <gyre/nn.h>
#include <sched.h>
#include <stdlib.h>

void gyre_nn_share_cores(const gyre_comm *comm)
{
    cpu_set_t cpus;
    const char *text = getenv("LOCAL_WORLD_SIZE");
    int local = !comm ? 1 : text ? atoi(text) : gyre_comm_size(comm);
    int cores = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    struct gy_nn_grid grid = gy_nn_team_grid();
    if (local > 1 && grid.rows * grid.cols == 1) /* else gyre's threads share them */
        gyre_nn_set_blas_threads(cores / local > 1 ? cores / local : 1);
}

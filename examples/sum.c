#include <gyre/gyre.h>
#include <stdio.h>

int main(void)
{
    gyre_comm *comm = NULL; /* rank, size and address come from the launcher: gyre-run, torchrun, mpirun, srun */
    if (gyre_comm_create(NULL, &comm) != GYRE_SUCCESS)
        return 1;

    float x[4];
    for (int i = 0; i < 4; i++)
        x[i] = (float)(gyre_comm_rank(comm) + i);
    gyre_status status = gyre_all_reduce(comm, x, x, 4, GYRE_FLOAT32, GYRE_SUM); /* in place, blocking */

    if (status == GYRE_SUCCESS)
        printf("rank %d of %d: %g %g %g %g\n", gyre_comm_rank(comm), gyre_comm_size(comm), x[0], x[1], x[2], x[3]);
    else
        fprintf(stderr, "%s\n", gyre_last_error(comm)); /* which rank failed, in which operation */
    gyre_comm_destroy(comm);
    return status != GYRE_SUCCESS;
}

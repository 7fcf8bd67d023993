/* Adds up a vector over all ranks: gyre-run -n 4 ./all_reduce */
#include <gyre/gyre.h>
#include <stdio.h>

static int fail(gyre_comm *comm, const char *what)
{
    fprintf(stderr, "%s: %s\n", what, gyre_last_error(comm));
    gyre_comm_destroy(comm);
    return 1;
}

int main(void)
{
    gyre_comm *comm = NULL;
    if (gyre_comm_create(NULL, &comm) !=
        GYRE_SUCCESS) /* everything from the environment: gyre-run or torchrun sets it */
        return fail(comm, "meeting");

    float x[4];
    for (int i = 0; i < 4; i++)
        x[i] = (float)(gyre_comm_rank(comm) + i);
    if (gyre_all_reduce(comm, x, x, 4, GYRE_FLOAT32, GYRE_SUM) != GYRE_SUCCESS) /* in place, blocking */
        return fail(comm, "all_reduce");

    gyre_request *request = NULL; /* the same again, while this rank does something else */
    if (gyre_all_reduce_start(comm, x, x, 4, GYRE_FLOAT32, GYRE_MAX, &request) != GYRE_SUCCESS)
        return fail(comm, "all_reduce_start");
    gyre_progress(comm);
    if (gyre_wait(&request) != GYRE_SUCCESS)
        return fail(comm, "wait");

    printf("rank %d of %d: %g %g %g %g\n", gyre_comm_rank(comm), gyre_comm_size(comm), x[0], x[1], x[2], x[3]);
    return gyre_comm_destroy(comm) != GYRE_SUCCESS;
}

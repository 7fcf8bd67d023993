/* MPI's own operations go on while a rank waits inside a call that gyre has taken over. Without that these calls never
 * return. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"

enum { LONG = 4 << 20 }; /* a message that the receiver has to ask for */

static int rank;

/* Rank 1 comes to the barrier when it has the message that rank 0, inside of the barrier, still has to send. */
static void message(int bytes)
{
    char *data = calloc(1, (size_t)bytes);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0) {
        data[bytes - 1] = 7;
        MPI_Isend(data, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    } else if (rank == 1) {
        usleep(20000);
        MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (data[bytes - 1] != 7)
            check_fail("the message of rank 0 is wrong");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(data);
}

/* The same of a collective call that does not block. */
static void request(void)
{
    int mine = rank + 1, sum = 0, other = 0, size;
    MPI_Request pending;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &pending);
    if (rank == 1) {
        usleep(20000);
        MPI_Wait(&pending, MPI_STATUS_IGNORE);
    }
    MPI_Allreduce(&mine, &other, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    if (sum != size * (size + 1) / 2 || other != size)
        check_fail("MPI_Iallreduce, or MPI_Allreduce beside it, is wrong");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    message(8);
    message(LONG);
    request();
    MPI_Finalize();
    return check_failures() > 0;
}

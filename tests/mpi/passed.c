/* What the interposer leaves to the MPI library: two groups, one rank, other functions, invalid arguments. */
#include <mpi.h>
#include <stdlib.h>

#include "check.h"

static int rank, size;

static void expect(int value, int expected, const char *sentence)
{
    if (value != expected)
        check_fail(sentence);
}

/* Of all ranks of a parity. */
static int sum_of(int parity)
{
    int sum = 0;
    for (int r = parity; r < size; r += 2)
        sum += r;
    return sum;
}

static void between_groups(void)
{
    const int mine = rank % 2;
    int root = mine ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, value = mine ? 0 : 42, sum = -1;
    MPI_Comm group, both;
    MPI_Comm_split(MPI_COMM_WORLD, mine, rank, &group);
    MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, 1 - mine, 5, &both);
    MPI_Barrier(both);
    MPI_Bcast(&value, 1, MPI_INT, root, both);
    expect(value, 42, "MPI_Bcast between groups is wrong");
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both);
    expect(sum, sum_of(1 - mine), "MPI_Allreduce between groups is wrong");
    MPI_Comm_free(&both);
    MPI_Comm_free(&group);
}

static void one_rank(void)
{
    int in = 5, out = 0;
    MPI_Barrier(MPI_COMM_SELF);
    MPI_Allreduce(&in, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    expect(out, 5, "MPI_Allreduce on MPI_COMM_SELF is wrong");
}

static void other_functions(void)
{
    int sum = 0;
    MPI_Scan(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(sum, rank * (rank + 1) / 2, "MPI_Scan is wrong");
}

/* The library's own checks, by the communicator's error handler; every rank finds the error, and none waits. */
static void invalid_arguments(void)
{
    int value = 0, class = 0, code;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    code = MPI_Bcast(&value, 1, MPI_INT, size, comm);
    MPI_Error_class(code, &class);
    expect(class, MPI_ERR_ROOT, "MPI_Bcast from a root that is no rank is no MPI_ERR_ROOT");
    code = MPI_Bcast(&value, -1, MPI_INT, 0, comm);
    MPI_Error_class(code, &class);
    expect(class, MPI_ERR_COUNT, "MPI_Bcast of -1 elements is no MPI_ERR_COUNT");
    if (MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DATATYPE_NULL, MPI_SUM, comm) == MPI_SUCCESS)
        check_fail("MPI_Allreduce of MPI_DATATYPE_NULL is no error");
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    between_groups();
    one_rank();
    other_functions();
    invalid_arguments();
    MPI_Finalize();
    return check_failures() > 0;
}

/* Every collective function that the interposer takes over, with datatypes, operations, communicators, sizes, roots and
 * forms. Exit status 1: a result was wrong. */
#include <mpi.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "forms.h"

static void in_world(void)
{
    static const size_t counts[] = {0, 1, 100, 20000};
    forms_reduce(MPI_COMM_WORLD, 3, true);
    forms_move(MPI_COMM_WORLD, 3, true);
    forms_lists(MPI_COMM_WORLD, 3);
    forms_large(MPI_COMM_WORLD, 3);
    for (int i = 0; i < 4; i++) {
        forms_reduce(MPI_COMM_WORLD, counts[i], false);
        forms_move(MPI_COMM_WORLD, counts[i], false);
        forms_lists(MPI_COMM_WORLD, counts[i]);
        forms_large(MPI_COMM_WORLD, counts[i]);
    }
    forms_layouts(MPI_COMM_WORLD, 1);
    forms_layouts(MPI_COMM_WORLD, 289);
}

/* Two communicators whose ranks are in another order. */
static void in_halves(void)
{
    int rank;
    MPI_Comm half;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    forms_move(half, 5, false);
    forms_reduce(half, 5, false);
    MPI_Comm_free(&half);
}

/* The library gives handles again. */
static void in_duplicates(void)
{
    MPI_Comm copy;
    for (int i = 0; i < 3; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        forms_move(copy, 100, false);
        MPI_Comm_free(&copy);
    }
}

/* The same clock for all ranks of a host; MPI_Wtime may begin with the process. */
static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* No rank leaves a barrier before the last one has come. */
static void meet(void)
{
    int rank, size;
    double times[2], came, left;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int late = 0; late < size; late++) {
        if (rank == late)
            usleep(5000);
        times[0] = now();
        MPI_Barrier(MPI_COMM_WORLD);
        times[1] = now();
        MPI_Allreduce(&times[0], &came, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(&times[1], &left, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
        if (left < came)
            check_fail("a rank left MPI_Barrier before the last one had come");
    }
}

int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    types_begin();
    in_world();
    in_duplicates();
    if (size >= 4)
        in_halves();
    meet();
    types_end();
    MPI_Finalize();
    return check_failures() > 0;
}

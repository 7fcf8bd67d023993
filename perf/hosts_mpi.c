/* Times an all_reduce of MPI as gyre-perf times one. All ranks meet; a call's time is from the latest start to the
 * latest end, on the clock that the hosts of scripts/hosts share. Prints the median in µs, after one call to warm up
 * and one whose result is checked.
 *   hosts_mpi BYTES CALLS        built and started by perf/hosts_beside_open_mpi.sh */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CALLS_MOST 1000

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

static double time_call(const float *input, float *output, int count)
{
    double mine[2], latest[2];
    MPI_Barrier(MPI_COMM_WORLD);
    mine[0] = now();
    MPI_Allreduce(input, output, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    mine[1] = now();
    MPI_Allreduce(mine, latest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return latest[1] - latest[0];
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    double times[CALLS_MOST];
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int count = argc == 3 ? atoi(argv[1]) / (int)sizeof(float) : 0, calls = argc == 3 ? atoi(argv[2]) : 0;
    if (count < 1 || calls < 1 || calls > CALLS_MOST)
        MPI_Abort(MPI_COMM_WORLD, 2);
    float *input = malloc((size_t)count * sizeof(float)), *output = malloc((size_t)count * sizeof(float));
    if (!input || !output)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < count; i++)
        input[i] = (float)((i + rank) % 16);
    time_call(input, output, count);
    for (int i = 0; i < count; i++) {
        float sum = 0;
        for (int r = 0; r < ranks; r++)
            sum += (float)((i + r) % 16);
        if (output[i] != sum)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < calls; i++)
        times[i] = time_call(input, output, count);
    qsort(times, (size_t)calls, sizeof(times[0]), ascending);
    if (rank == 0)
        printf("%.1f\n", (times[(calls - 1) / 2] + times[calls / 2]) / 2);
    free(input);
    free(output);
    MPI_Finalize();
    return 0;
}

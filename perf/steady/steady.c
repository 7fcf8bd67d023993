/* Measures how much calls of one size differ: every rank makes CALLS blocking in-place all_reduces of BYTES, one
 * after the other. Rank 0 prints a JSON object: the 10th, 50th and 90th percentile of a call's time, and the mean of
 * the worst 100 consecutive calls after the first 200, in us. perf/steady/run builds it for gyre, and with mpicc and
 * -DSTEADY_MPI for MPI, and starts it. */
#ifdef STEADY_MPI
#include <mpi.h>
#else
#include <gyre/gyre.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEFT_OUT 200 /* calls: what comes first is not steady yet */
#define RUN 100      /* calls in a row */

static void fail(const char *text)
{
    fprintf(stderr, "gyre-steady: %s\n", text);
    exit(1);
}

#ifdef STEADY_MPI
static int begin(void)
{
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static void call(float *vector, size_t count)
{
    MPI_Allreduce(MPI_IN_PLACE, vector, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void end(void)
{
    MPI_Finalize();
}
#else
static gyre_comm *comm;

static int begin(void)
{
    if (gyre_comm_create(NULL, &comm) != GYRE_SUCCESS)
        fail(gyre_last_error(NULL));
    return gyre_comm_rank(comm);
}

static void call(float *vector, size_t count)
{
    if (gyre_all_reduce(comm, vector, vector, count, GYRE_FLOAT32, GYRE_SUM) != GYRE_SUCCESS)
        fail(gyre_last_error(comm));
}

static void end(void)
{
    gyre_comm_destroy(comm);
}
#endif

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of every run that begins after those that are left out. */
static double worst_run(const double *times, size_t calls)
{
    double worst = 0, sum = 0;
    for (size_t i = LEFT_OUT; i < calls; i++) {
        sum += times[i];
        if (i >= LEFT_OUT + RUN)
            sum -= times[i - RUN];
        if (i >= LEFT_OUT + RUN - 1 && sum > worst)
            worst = sum;
    }
    return worst / RUN;
}

int main(int argc, char **argv)
{
    size_t bytes = argc == 3 ? strtoull(argv[1], NULL, 10) : 0, calls = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    if (bytes < sizeof(float) || bytes >> 31 || calls < LEFT_OUT + RUN || calls > 1000000)
        fail("usage: gyre-steady BYTES CALLS, of each rank; 4 bytes to 2 GiB, 300 to 1000000 calls");
    float *vector = malloc(bytes);
    double *times = malloc(calls * sizeof *times);
    if (!vector || !times)
        fail("no memory");
    memset(vector, 0, bytes);
    int rank = begin();
    for (size_t i = 0; i < calls; i++) {
        double begun = now_us();
        call(vector, bytes / sizeof *vector);
        times[i] = now_us() - begun;
    }
    double worst = worst_run(times, calls);
    qsort(times, calls, sizeof *times, by_value);
    if (rank == 0)
        printf("{\"bytes\": %zu, \"p10\": %.2f, \"p50\": %.2f, \"p90\": %.2f, \"worst\": %.2f}\n", bytes,
               times[calls / 10], times[calls / 2], times[calls * 9 / 10], worst);
    free(vector);
    free(times);
    end();
    return 0;
}

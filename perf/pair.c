/* Two ranks, one program for gyre and, with -DPAIR_MPI and an mpicc, for MPI. perf/rdma.sh compares it with the
 * device's own tools. A line per size:
 *
 *   latency BYTES US       half of a round trip, median over calls: what ib_write_lat calls typical
 *   bandwidth BYTES MB/S   rank 0 sends FLIGHT messages at a time and gets an empty answer: median over batches,
 *                          10^6 bytes
 *   all_reduce BYTES US    float32, sum, back to back: median over calls
 *
 *   pair CALLS BYTES...    CALLS of each; fewer of large ones */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLIGHT 16
#define MOST (4u << 20)

#ifdef PAIR_MPI
#include <mpi.h>

static int rank, size;
static void begin(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}
static void end(void)
{
    MPI_Finalize();
}
static void *memory(size_t bytes)
{
    return calloc(bytes, 1);
}
static void send_one(const void *data, size_t bytes)
{
    MPI_Send(data, (int)bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
}
static void receive_one(void *data, size_t bytes)
{
    MPI_Recv(data, (int)bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void batch(void *data, size_t bytes)
{
    MPI_Request requests[FLIGHT];
    for (int i = 0; i < FLIGHT; i++)
        if (rank == 0)
            MPI_Isend(data, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Irecv(data, (int)bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(FLIGHT, requests, MPI_STATUSES_IGNORE);
}
static void all_reduce(const void *input, void *output, size_t bytes)
{
    MPI_Allreduce(input, output, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}
#else
#include <gyre/gyre.h>

static gyre_comm *comm;
static int rank, size;
static void good(gyre_status status)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "pair: %s\n", gyre_last_error(comm));
    exit(1);
}
static void begin(void)
{
    good(gyre_comm_create(NULL, &comm));
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
}
static void end(void)
{
    good(gyre_barrier(comm));
    good(gyre_comm_destroy(comm));
}
static void *memory(size_t bytes) /* announced, as perftest registers its own */
{
    void *data = calloc(bytes, 1);
    if (data)
        good(gyre_mem_register(comm, data, bytes));
    return data;
}
static void send_one(const void *data, size_t bytes)
{
    good(gyre_send(comm, data, bytes, GYRE_UINT8, 1 - rank));
}
static void receive_one(void *data, size_t bytes)
{
    good(gyre_recv(comm, data, bytes, GYRE_UINT8, 1 - rank));
}
static void batch(void *data, size_t bytes)
{
    gyre_request *requests[FLIGHT];
    for (int i = 0; i < FLIGHT; i++)
        if (rank == 0)
            good(gyre_send_start(comm, data, bytes, GYRE_UINT8, 1, &requests[i]));
        else
            good(gyre_recv_start(comm, data, bytes, GYRE_UINT8, 0, &requests[i]));
    for (int i = 0; i < FLIGHT; i++)
        good(gyre_wait(&requests[i]));
}
static void all_reduce(const void *input, void *output, size_t bytes)
{
    good(gyre_all_reduce(comm, input, output, bytes / 4, GYRE_FLOAT32, GYRE_SUM));
}
#endif

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), by_value);
    return values[count / 2];
}

static void say(const char *what, size_t bytes, double figure)
{
    if (rank == 0)
        printf("%s %zu %.3f\n", what, bytes, figure);
    fflush(stdout);
}

static void measure(void *data, void *other, size_t bytes, int calls)
{
    double *times = calloc((size_t)calls, sizeof(*times));
    int batches = calls / FLIGHT + 1;

    if (!times)
        exit(1);
    for (int i = -calls / 10 - 1; i < calls; i++) {
        double start = now();
        if (rank == 0)
            send_one(data, bytes);
        receive_one(data, bytes);
        if (rank == 1)
            send_one(data, bytes);
        if (i >= 0)
            times[i] = now() - start;
    }
    say("latency", bytes, median(times, calls) / 2 * 1e6);
    for (int i = -1; i < batches; i++) {
        double start = now();
        batch(data, bytes);
        if (rank == 0)
            receive_one(other, 1);
        else
            send_one(other, 1);
        if (i >= 0)
            times[i] = (double)(bytes * FLIGHT) / (now() - start) / 1e6;
    }
    say("bandwidth", bytes, median(times, batches));
    if (bytes >= 4 && bytes % 4 == 0) {
        memset(data, 0, bytes); /* floats, all of them zero: what the sum is does not matter to its time */
        all_reduce(data, other, bytes);
        for (int i = 0; i < calls; i++) {
            double start = now();
            all_reduce(data, other, bytes);
            times[i] = now() - start;
        }
        say("all_reduce", bytes, median(times, calls) * 1e6);
    }
    free(times);
}

int main(int argc, char **argv)
{
    int calls = argc > 2 ? atoi(argv[1]) : 0;

    if (calls < 1) {
        fprintf(stderr, "pair CALLS BYTES...\n");
        return 2;
    }
    begin();
    void *data = memory(MOST), *other = memory(MOST);
    if (size != 2 || !data || !other) {
        fprintf(stderr, "pair: %s\n", size != 2 ? "two ranks are wanted" : "no memory");
        return 1;
    }
    for (int i = 2; i < argc; i++) {
        size_t bytes = strtoul(argv[i], NULL, 10);
        if (bytes >= 1 && bytes <= MOST)
            measure(data, other, bytes, bytes > 100000 ? calls / 8 + 1 : calls);
    }
    end();
    return 0;
}

/* Time of MPI's collective calls, per call and size: one line each on rank 0, "CALL BYTES MICROSECONDS". The time is
 * that of the slowest rank, the least of several rounds. Bytes are those of one block, as in IMB.
 *
 *   loop [CALL...]      default: all calls */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MOST (1 << 20)
#define ROUNDS 7

static char *in, *out;
static int *counts, *places, size, rank, root;

static void barrier(int bytes)
{
    (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void bcast(int bytes)
{
    MPI_Bcast(out, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void reduce(int bytes)
{
    MPI_Reduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, root, MPI_COMM_WORLD);
}

static void allreduce(int bytes)
{
    MPI_Allreduce(in, out, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter(int bytes)
{
    for (int r = 0; r < size; r++)
        counts[r] = bytes / 4 / size;
    MPI_Reduce_scatter(in, out, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void reduce_scatter_block(int bytes)
{
    MPI_Reduce_scatter_block(in, out, bytes / 4 / size, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void allgather(int bytes)
{
    MPI_Allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void list(int bytes)
{
    for (int r = 0; r < size; r++) {
        counts[r] = bytes;
        places[r] = bytes * r;
    }
}

static void allgatherv(int bytes)
{
    list(bytes);
    MPI_Allgatherv(in, bytes, MPI_BYTE, out, counts, places, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoall(int bytes)
{
    MPI_Alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void alltoallv(int bytes)
{
    list(bytes);
    MPI_Alltoallv(in, counts, places, MPI_BYTE, out, counts, places, MPI_BYTE, MPI_COMM_WORLD);
}

static void gather(int bytes)
{
    MPI_Gather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void gatherv(int bytes)
{
    list(bytes);
    MPI_Gatherv(in, bytes, MPI_BYTE, out, counts, places, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void scatter(int bytes)
{
    MPI_Scatter(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void scatterv(int bytes)
{
    list(bytes);
    MPI_Scatterv(in, counts, places, MPI_BYTE, out, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
}

static const struct row {
    const char *name;
    void (*call)(int bytes);
} rows[] = {{"Barrier", barrier},
            {"Bcast", bcast},
            {"Reduce", reduce},
            {"Allreduce", allreduce},
            {"Reduce_scatter", reduce_scatter},
            {"Reduce_scatter_block", reduce_scatter_block},
            {"Allgather", allgather},
            {"Allgatherv", allgatherv},
            {"Alltoall", alltoall},
            {"Alltoallv", alltoallv},
            {"Gather", gather},
            {"Gatherv", gatherv},
            {"Scatter", scatter},
            {"Scatterv", scatterv}};

/* Calls without a barrier between them, and the root goes around, as in IMB. */
static double round_of(const struct row *row, int bytes, int calls)
{
    double mine, slowest;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime();
    for (int i = 0; i < calls; i++) {
        row->call(bytes);
        root = (root + 1) % size;
    }
    mine = (MPI_Wtime() - began) / calls;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static void measure(const struct row *row, int bytes)
{
    int calls = bytes <= 4096 ? 1000 : bytes <= 65536 ? 200 : 30;
    double least = round_of(row, bytes, 10);
    for (int i = 0; i < ROUNDS; i++) {
        double time = round_of(row, bytes, calls);
        least = time < least ? time : least;
    }
    if (rank == 0)
        printf("%s %d %.3f\n", row->name, bytes, least * 1e6);
}

static int is_chosen(const struct row *row, int names, char **name)
{
    for (int i = 0; i < names; i++)
        if (strcasecmp(row->name, name[i]) == 0)
            return 1;
    return names == 0;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    in = calloc((size_t)size, MOST);
    out = calloc((size_t)size, MOST);
    counts = calloc((size_t)size, sizeof(*counts));
    places = calloc((size_t)size, sizeof(*places));
    if (!in || !out || !counts || !places)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (!is_chosen(&rows[i], argc - 1, argv + 1))
            continue;
        for (int bytes = 8; bytes <= (rows[i].call == barrier ? 8 : MOST); bytes *= 2)
            measure(&rows[i], bytes);
    }
    MPI_Finalize();
    return 0;
}

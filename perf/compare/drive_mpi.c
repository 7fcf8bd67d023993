/* Open MPI or MPICH: one source, since both speak MPI; which one it is shows in the compiler that `run` takes. */
#include <mpi.h>

#include <string.h>

#include "driver.h"

#ifdef OPEN_MPI
#define NAME "openmpi"
#define RANK_VARIABLE "OMPI_COMM_WORLD_RANK"
#else
#define NAME "mpich"
#define RANK_VARIABLE "PMI_RANK"
#endif

static void must(int error)
{
    if (error != MPI_SUCCESS)
        gy_die("MPI error %d", error);
}

static struct gy_world join(struct gy_world world)
{
    struct gy_world found;
    (void)world;
    must(MPI_Init(NULL, NULL));
    must(MPI_Comm_rank(MPI_COMM_WORLD, &found.rank));
    must(MPI_Comm_size(MPI_COMM_WORLD, &found.size));
    return found;
}

static const char *version(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    must(MPI_Get_library_version(text, &length));
    text[strcspn(text, "\n,")] = '\0';
    for (char *tab; (tab = strchr(text, '\t'));)
        *tab = ' ';
    return text;
}

static void all_reduce(const struct gy_call *it)
{
    must(MPI_Allreduce(it->input, it->output, (int)it->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
}

static void reduce_scatter(const struct gy_call *it)
{
    must(MPI_Reduce_scatter_block(it->input, it->output, (int)it->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD));
}

static void all_gather(const struct gy_call *it)
{
    must(MPI_Allgather(it->input, (int)it->count, MPI_FLOAT, it->output, (int)it->count, MPI_FLOAT, MPI_COMM_WORLD));
}

static void broadcast(const struct gy_call *it)
{
    must(MPI_Bcast(it->output, (int)it->count, MPI_FLOAT, 0, MPI_COMM_WORLD));
}

static void reduce(const struct gy_call *it)
{
    must(MPI_Reduce(it->input, it->output, (int)it->count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD));
}

static void all_to_all(const struct gy_call *it)
{
    must(MPI_Alltoall(it->input, (int)it->count, MPI_FLOAT, it->output, (int)it->count, MPI_FLOAT, MPI_COMM_WORLD));
}

static void barrier(const struct gy_call *it)
{
    (void)it;
    must(MPI_Barrier(MPI_COMM_WORLD));
}

static void leave(void)
{
    must(MPI_Finalize());
}

const struct gy_driver gy_driver = {
    .name = NAME,
    .rank_variable = RANK_VARIABLE,
    .init = join,
    .version = version,
    .call = {[GY_ALL_REDUCE] = all_reduce,
             [GY_REDUCE_SCATTER] = reduce_scatter,
             [GY_ALL_GATHER] = all_gather,
             [GY_BROADCAST] = broadcast,
             [GY_REDUCE] = reduce,
             [GY_ALL_TO_ALL] = all_to_all,
             [GY_BARRIER] = barrier},
    .finish = leave,
};

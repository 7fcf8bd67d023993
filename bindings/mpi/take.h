/* The calls as gyre does them, with counts of any width: one function per call, named as the call. Each returns
 * MPI_SUCCESS, an error code after the error handler has been called, or GM_PASS: the call is left to the MPI library.
 *
 * GM_PASS is the same on every rank of the communicator. It depends on the communicator and, in a reduction, on
 * datatype and operation, which MPI wants to be the same everywhere; or an argument is invalid, which the MPI library
 * reports before it sends anything. What a rank alone can see does not count: MPI_IN_PLACE, buffers, the datatype of
 * data that only moves. Such data are bytes for gyre. */
#ifndef GYRE_MPI_TAKE_H
#define GYRE_MPI_TAKE_H

#include <mpi.h>

#include "blocks.h"
#include "data.h"
#include "failure.h"
#include "progress.h"
#include "twin.h"

#define GM_PASS (-1)

int gm_barrier(MPI_Comm comm);
int gm_bcast(struct gm_data data, int root, MPI_Comm comm);
int gm_reduce(const void *input, struct gm_data output, MPI_Op op, int root, MPI_Comm comm);
int gm_allreduce(const void *input, struct gm_data output, MPI_Op op, MPI_Comm comm);
int gm_reduce_scatter_block(const void *input, struct gm_data output, MPI_Op op, MPI_Comm comm);
int gm_reduce_scatter(const void *input, void *output, struct gm_counts counts, MPI_Datatype type, MPI_Op op,
                      MPI_Comm comm);
int gm_allgather(struct gm_data input, struct gm_data output, MPI_Comm comm);
int gm_allgatherv(struct gm_data input, struct gm_blocks output, MPI_Comm comm);
int gm_gather(struct gm_data input, struct gm_data output, int root, MPI_Comm comm);
int gm_gatherv(struct gm_data input, struct gm_blocks output, int root, MPI_Comm comm);
int gm_scatter(struct gm_data input, struct gm_data output, int root, MPI_Comm comm);
int gm_scatterv(struct gm_blocks input, struct gm_data output, int root, MPI_Comm comm);
int gm_alltoall(struct gm_data input, struct gm_data output, MPI_Comm comm);
int gm_alltoallv(struct gm_blocks input, struct gm_blocks output, MPI_Comm comm);

/* Before and after each call of gyre's that may wait. The end gives MPI's result of gyre's. */
static inline void gm_take_begin(struct gm_twin *twin)
{
    gm_progress_enter(&twin->idle);
}

static inline int gm_take_end(struct gm_twin *twin, gyre_status status, enum gm_call call)
{
    gm_progress_leave();
    return gm_failure_end(twin, status, call);
}

/* Broadcasts the twin's list 0, the bytes of every rank, from the root to all; and their sum. */
int gm_take_counts(struct gm_twin *twin, int root, enum gm_call call);
size_t gm_take_sum(const struct gm_twin *twin);

static inline bool gm_is_rank(const struct gm_twin *twin, int rank)
{
    return rank >= 0 && rank < twin->size;
}

#endif

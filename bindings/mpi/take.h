/* The calls that gyre takes over, with counts of either width: one function per call, with the name of the call. Each
 * returns MPI_SUCCESS, an error code after the error handler has been called, or GM_PASS: the call is left to the MPI
 * library.
 *
 * All ranks of the communicator return GM_PASS, or none. It depends on the communicator, and in a reduction on datatype
 * and operation, which MPI requires to be the same on every rank. It is also returned for an invalid argument, which
 * the MPI library reports before it sends anything. It must not depend on what differs between ranks: MPI_IN_PLACE,
 * buffers, and the datatype of data that are only moved. Such data are bytes for gyre. */
#ifndef GYRE_MPI_TAKE_H
#define GYRE_MPI_TAKE_H

#include <mpi.h>

#include "blocks.h"
#include "data.h"
#include "failure.h"
#include "progress.h"
#include "shadow.h"

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

/* Called before and after each gyre call that may wait. The end converts gyre's status to MPI's error code. */
static inline void gm_take_begin(struct gm_shadow *shadow)
{
    gm_progress_enter(&shadow->idle);
}

static inline int gm_take_end(struct gm_shadow *shadow, gyre_status status, enum gm_call call)
{
    gm_progress_leave();
    return gm_failure_end(shadow, status, call);
}

/* gm_take_counts broadcasts the shadow's list 0, the bytes of each rank, from the root. gm_take_sum returns the sum of
 * the list. */
int gm_take_counts(struct gm_shadow *shadow, int root, enum gm_call call);
size_t gm_take_sum(const struct gm_shadow *shadow);

static inline bool gm_is_rank(const struct gm_shadow *shadow, int rank)
{
    return rank >= 0 && rank < shadow->size;
}

#endif

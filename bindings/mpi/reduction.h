/* A reduction of MPI's, a datatype and an operation, as one of gyre's. */
#ifndef GYRE_MPI_REDUCTION_H
#define GYRE_MPI_REDUCTION_H

#include <gyre/gyre.h>
#include <mpi.h>
#include <stdbool.h>

/* One element of MPI's is `factor` elements of gyre's, `bytes` bytes together. */
struct gm_reduction {
    gyre_dtype dtype;
    gyre_op op;
    size_t factor, bytes;
};

/* False: gyre has no such reduction. The answer depends on type and operation alone, which MPI wants to be the same on
 * all ranks, so that all ranks get the same answer. */
bool gm_reduction_find(MPI_Datatype type, MPI_Op op, struct gm_reduction *reduction_p);

#endif

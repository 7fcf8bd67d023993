/* The translation of an MPI reduction, a datatype and an operation, to one of gyre. */
#ifndef GYRE_MPI_REDUCTION_H
#define GYRE_MPI_REDUCTION_H

#include <gyre/gyre.h>
#include <mpi.h>
#include <stdbool.h>

/* One MPI element is `factor` gyre elements, `bytes` bytes in total. */
struct gm_reduction {
    gyre_dtype dtype;
    gyre_op op;
    size_t factor, bytes;
};

/* Returns false if gyre has no such reduction. The result depends only on datatype and operation, which MPI requires to
 * be the same on all ranks. All ranks therefore get the same result. */
bool gm_reduction_find(MPI_Datatype type, MPI_Op op, struct gm_reduction *reduction_p);

#endif

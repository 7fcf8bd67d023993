/* The twin of an MPI communicator: a gyre communicator of the same ranks. It is made at the communicator's first call
 * that gyre may take, kept as an attribute of the communicator, and ends with it, or with MPI_Finalize. */
#ifndef GYRE_MPI_TWIN_H
#define GYRE_MPI_TWIN_H

#include <gyre/gyre.h>
#include <mpi.h>
#include <stdbool.h>

#include "call.h"

struct gm_twin {
    gyre_comm *comm; /* NULL: every call is left to the MPI library */
    MPI_Comm mpi;
    int rank, size;
    bool near;                     /* few ranks with cores of their own, which share memory: the same on every rank */
    unsigned mask;                 /* of the calls that are taken over: the same on every rank */
    bool reported;                 /* a failure has been written to standard error */
    MPI_Request idle;              /* never complete: a test of it makes the MPI library progress */
    size_t *lists;                 /* GM_LISTS lists of `size` numbers each, for the calls with one count per rank */
    unsigned long taken[GM_CALLS]; /* calls of each kind so far */
    struct gm_twin *next;
};

#define GM_LISTS 4

/* The twin that takes over this call on `comm`; NULL: the call is left to the MPI library. Collective over `comm` at
 * its first call. */
struct gm_twin *gm_twin_find(MPI_Comm comm, enum gm_call call);

/* One of the twin's lists of `size` numbers. */
static inline size_t *gm_twin_list(const struct gm_twin *twin, int number)
{
    return twin->lists + (size_t)number * (size_t)twin->size;
}

#endif

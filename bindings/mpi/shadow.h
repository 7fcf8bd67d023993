/* The shadow of an MPI communicator: a gyre communicator of the same ranks. It is created by the first call on the MPI
 * communicator that gyre may take over, and is stored as an attribute of that communicator. It is destroyed with that
 * communicator, or by MPI_Finalize. */
#ifndef GYRE_MPI_SHADOW_H
#define GYRE_MPI_SHADOW_H

#include <gyre/gyre.h>
#include <mpi.h>
#include <stdbool.h>

#include "call.h"

struct gm_shadow {
    gyre_comm *comm; /* NULL: every call is left to the MPI library */
    MPI_Comm mpi;
    int rank, size;
    bool near;                     /* few ranks, which share memory and each have a core; the same on every rank */
    unsigned mask;                 /* the calls that are taken over, by enum gm_call; the same on every rank */
    bool reported;                 /* a failure has already been written to standard error */
    MPI_Request idle;              /* never complete: testing it makes the MPI library progress */
    size_t *lists;                 /* GM_LISTS lists of `size` numbers each, for calls with one count per rank */
    unsigned long taken[GM_CALLS]; /* number of calls of each kind that have been taken over */
    struct gm_shadow *next;
};

#define GM_LISTS 4

/* Returns the shadow for this call on `comm`, or NULL: the call is left to the MPI library. The first call on `comm` is
 * collective over `comm`. */
struct gm_shadow *gm_shadow_find(MPI_Comm comm, enum gm_call call);

/* Returns one of the shadow's lists of `size` numbers. */
static inline size_t *gm_shadow_list(const struct gm_shadow *shadow, int number)
{
    return shadow->lists + (size_t)number * (size_t)shadow->size;
}

#endif

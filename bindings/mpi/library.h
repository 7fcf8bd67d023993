/* The MPI library's own functions: the next definitions of the PMPI names in the loader's search order. A plain call of
 * PMPI_Allreduce would call the interposer, since the interposer for Open MPI defines that name, too: see calls.c. */
#ifndef GYRE_MPI_LIBRARY_H
#define GYRE_MPI_LIBRARY_H

#include <mpi.h>

#include "call.h"

struct gm_library {
#define GM_MEMBER(name, upper) __typeof__(PMPI_##name) *name;
    GM_CALL_MAP(GM_MEMBER)
#undef GM_MEMBER
};

/* Filled in when the interposer is loaded. */
extern struct gm_library gm_library;

#endif

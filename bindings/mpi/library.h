/* The functions of the MPI library behind the interposer: the next definitions of the PMPI names in the order of the
 * loader. A plain call of PMPI_Allreduce would not reach the library, because the interposer for Open MPI defines that
 * name as well: see calls.c. */
#ifndef GYRE_MPI_LIBRARY_H
#define GYRE_MPI_LIBRARY_H

#include <mpi.h>

#include "call.h"

struct gm_library {
#define GM_MEMBER(name, upper) __typeof__(PMPI_##name) *name;
    GM_CALL_MAP(GM_MEMBER)
#undef GM_MEMBER
};

/* Filled when the interposer is loaded. */
extern struct gm_library gm_library;

#endif

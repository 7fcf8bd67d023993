/* What a rank does while it waits for gyre. MPI wants a rank inside a collective call to take part in the progress of its other
 * operations: the receiver of an MPI_Isend may have to get the message before it calls the same collective. The MPI library has no public function
 * for progress; a test of a request that is not complete does it. */
#ifndef GYRE_MPI_IDLE_H
#define GYRE_MPI_IDLE_H

#include <gyre/gyre.h>
#include <mpi.h>

#include "twin.h"

/* Makes a generalized request that is complete only at its end. */
void gm_idle_begin(MPI_Request *request);
void gm_idle_end(MPI_Request *request);

/* Waits for gyre's request, with progress of the MPI library. */
gyre_status gm_idle_wait(struct gm_twin *twin, gyre_request **request);

#endif

/* A failure of gyre as an error of MPI. */
#ifndef GYRE_MPI_FAILURE_H
#define GYRE_MPI_FAILURE_H

#include <gyre/gyre.h>

#include "twin.h"

/* The end of a call: MPI_SUCCESS, and the call is counted; or the error code of `status`, after the communicator's
 * error handler has been called with it. */
int gm_failure_end(struct gm_twin *twin, gyre_status status, enum gm_call call);

/* The same of a call for which this rank has no memory. The other ranks' calls fail as well. */
int gm_failure_memory(struct gm_twin *twin, enum gm_call call);

#endif

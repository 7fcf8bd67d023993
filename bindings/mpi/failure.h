/* Failures of gyre, reported as MPI errors. */
#ifndef GYRE_MPI_FAILURE_H
#define GYRE_MPI_FAILURE_H

#include <gyre/gyre.h>

#include "shadow.h"

/* Ends a call. After success it counts the call and returns MPI_SUCCESS. After a failure it calls the communicator's
 * error handler with the error code of `status`, and returns that code. */
int gm_failure_end(struct gm_shadow *shadow, gyre_status status, enum gm_call call);

/* Ends a call for which this rank has no memory. The other ranks' calls fail as well. */
int gm_failure_no_memory(struct gm_shadow *shadow, enum gm_call call);

#endif

/* Creation of the shadows of a communicator by its ranks. */
#ifndef GYRE_MPI_BOOTSTRAP_H
#define GYRE_MPI_BOOTSTRAP_H

#include "shadow.h"

/* Creates shadow->comm. Leaves it NULL on every rank if a rank fails or is not `ready`. Sets shadow->mask to the calls
 * that every rank wants to take over. Collective over the communicator. */
void gm_bootstrap_run(struct gm_shadow *shadow, bool ready);

#endif

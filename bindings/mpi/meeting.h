/* How the ranks of a communicator make their twins. */
#ifndef GYRE_MPI_MEETING_H
#define GYRE_MPI_MEETING_H

#include "twin.h"

/* Makes twin->comm, or leaves it NULL on every rank when any rank fails or is not `ready`. Sets twin->mask, the calls
 * that every rank wants to take over. Collective over the communicator. */
void gm_meeting_hold(struct gm_twin *twin, bool ready);

#endif

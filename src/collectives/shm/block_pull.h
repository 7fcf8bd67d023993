/* Blocks that are only moved, taken whole from the ranks that offer their input (zero_copy.h): who reads there needs neither slots
 * nor tiles.
 *
 *   by the plan   tile t of every rank's block, when everyone's counter says that tile t is there
 *   here          the whole block of one rank after the other, as they arrive; when all are here, the lane counts its last
 *                 iteration at once
 *
 * So a rank reads those who are there while others have still to get their turn on a core, and goes from the arrival of the last
 * one to the end without a look at anybody's counters.
 *
 * It is right for the reasons for which an offer is: an input lies ready before its rank shows its arrival, and is its caller's
 * again only when every counter of every rank has reached the end. Of this rank's output it wants that nobody else uses it; so an
 * all_to_all in place, whose input others have still to get from here tile by tile, goes by the plan. */
#ifndef GY_COLLECTIVES_SHM_BLOCK_PULL_H
#define GY_COLLECTIVES_SHM_BLOCK_PULL_H

#include "collectives/engine/request.h"

/* At launch of a collective that may find offers. */
void gy_block_pull_begin(struct gyre_request *request);
/* Does the step move what others have published, or offer? */
bool gy_block_pull_reads(const struct gy_step *step);
/* A block of somebody who has arrived and offers it, or a piece of a long one; false: there is none now. Each is
 * compared first: not taken where the peer has called something else. */
bool gy_block_pull(struct gyre_request *request, const struct gy_step *step);
/* Has the block of `rank` been taken? Have those of everyone from whom the step moves anything? */
bool gy_block_pull_has(const struct gyre_request *request, int rank);
bool gy_block_pull_is_all(const struct gyre_request *request, const struct gy_step *step);

#endif

/* Blocks that are only moved, pulled in one piece from the ranks that expose their input (zero_copy.h): the reader
 * needs neither slots nor tiles.
 *
 *   by the schedule   tile t of every rank's block, when the counters of all ranks say that tile t is there
 *   here          the block of one rank after the other, as they arrive; when all are here, the lane counts its last
 *                 iteration at once
 *
 * So a rank reads the blocks of early ranks while others still wait for their time slice on a core. It reads no
 * counter between the arrival of the last rank and the end.
 *
 * The argument is that of exposed buffers. An input is ready before its rank publishes its entry, and belongs to its
 * caller again only when every counter of every rank has reached the end. No other rank may use this rank's output
 * meanwhile. So an in-place all_to_all, whose input others still read from here tile by tile, uses the schedule. */
#ifndef GY_COLLECTIVES_SHM_BLOCK_PULL_H
#define GY_COLLECTIVES_SHM_BLOCK_PULL_H

#include "collectives/engine/request.h"

/* At the launch of a collective that may find exposed buffers. */
void gy_block_pull_begin(struct gyre_request *request);
/* True if the step moves blocks that others have published or exposed. */
bool gy_block_pull_reads(const struct gy_step *step);
/* Pulls a block, or a piece of a long one, from a rank that has arrived and exposes it. Returns false if there is
 * none now. Compares the signature first: nothing is pulled from a peer with a different call. */
bool gy_block_pull(struct gyre_request *request, const struct gy_step *step);
/* has: true if the block of `rank` has been pulled. has_all: true if those of all ranks from which the step moves
 * anything have been. */
bool gy_block_pull_has(const struct gyre_request *request, int rank);
bool gy_block_pull_is_all(const struct gyre_request *request, const struct gy_step *step);

#endif

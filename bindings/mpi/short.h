/* Short calls with a root. gyre's make two trips between ranks, one with the data and one that says that they have been
 * taken; its all_gather and its all_reduce make one. Where the data are short that is the time of the call, and more
 * copies of them cost less: between ranks that are near, the functions below take the call that makes one trip, and
 * gyre's own otherwise. */
#ifndef GYRE_MPI_SHORT_H
#define GYRE_MPI_SHORT_H

#include <gyre/gyre.h>
#include <stdbool.h>
#include <stddef.h>

#include "reduction.h"
#include "twin.h"

#define GM_SHORT 2048 /* bytes that each rank gets */

/* `blocks` blocks of `bytes` bytes are short: the same on every rank if the numbers are. */
static inline bool gm_is_short(const struct gm_twin *twin, size_t bytes, int blocks)
{
    return twin->near && bytes <= GM_SHORT / (size_t)blocks;
}

/* Of two ranks each knows how much passes between them: no counts are sent then, and nothing where it is nothing. */
static inline bool gm_passes_little(const struct gm_twin *twin, size_t bytes)
{
    return twin->size == 2 && gm_is_short(twin, bytes, 2);
}

gyre_status gm_short_broadcast(struct gm_twin *twin, void *buffer, size_t bytes, int root);
gyre_status gm_short_gather(struct gm_twin *twin, const void *input, void *output, size_t bytes, int root);
gyre_status gm_short_scatter(struct gm_twin *twin, const void *input, void *output, size_t bytes, int root);

/* `count` elements of MPI's. */
gyre_status gm_short_reduce(struct gm_twin *twin, const void *input, void *output, size_t count,
                            const struct gm_reduction *how, int root);

#endif

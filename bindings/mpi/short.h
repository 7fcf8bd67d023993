/* Short rooted calls. A rooted call of gyre takes two message latencies: the data, and the acknowledgement that they
 * have been consumed. Its all_gather and all_reduce take one. For short data the latency decides, and the additional
 * copies cost less. For ranks that are near (shadow.h) the functions below therefore use all_gather or all_reduce. In
 * all other cases they use gyre's rooted call. */
#ifndef GYRE_MPI_SHORT_H
#define GYRE_MPI_SHORT_H

#include <gyre/gyre.h>
#include <stdbool.h>
#include <stddef.h>

#include "reduction.h"
#include "shadow.h"

#define GM_SHORT 2048 /* the largest result of such a call on each rank, in bytes */

/* True if `blocks` blocks of `bytes` bytes are short. The result is the same on every rank if the arguments are. */
static inline bool gm_is_short(const struct gm_shadow *shadow, size_t bytes, int blocks)
{
    return shadow->near && bytes <= GM_SHORT / (size_t)blocks;
}

/* True for short data between two ranks. Both ranks know the length, so no counts are sent, and no message if the
 * length is 0. */
static inline bool gm_is_short_pair(const struct gm_shadow *shadow, size_t bytes)
{
    return shadow->size == 2 && gm_is_short(shadow, bytes, 2);
}

gyre_status gm_short_broadcast(struct gm_shadow *shadow, void *buffer, size_t bytes, int root);
gyre_status gm_short_gather(struct gm_shadow *shadow, const void *input, void *output, size_t bytes, int root);
gyre_status gm_short_scatter(struct gm_shadow *shadow, const void *input, void *output, size_t bytes, int root);

/* `count`: MPI elements. */
gyre_status gm_short_reduce(struct gm_shadow *shadow, const void *input, void *output, size_t count,
                            const struct gm_reduction *how, int root);

#endif

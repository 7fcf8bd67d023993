/* An argument with one count per rank, and a view of its data as bytes. */
#ifndef GYRE_MPI_BLOCKS_H
#define GYRE_MPI_BLOCKS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "datatype.h"
#include "shadow.h"

/* Counts of either width: one of the two is not NULL. Both are NULL if the program passes NULL. */
struct gm_counts {
    const int *narrow;
    const MPI_Count *wide;
};

struct gm_displs {
    const int *narrow;
    const MPI_Aint *wide;
};

struct gm_blocks {
    void *buffer; /* or MPI_IN_PLACE */
    struct gm_counts counts;
    struct gm_displs displs; /* in units of the datatype's extent */
    MPI_Datatype type;
};

/* Block r is the `counts[r]` bytes at bytes + displs[r]. The bytes lie in the buffer itself if the datatype is plain
 * (datatype.h) and the blocks are in ascending order, and in a packed copy otherwise. */
struct gm_blocks_view {
    char *bytes;
    size_t *counts, *displs;
    size_t length; /* sum of the lengths of all blocks */
    bool packed;
    struct gm_blocks blocks;
    struct gm_layout layout;
    int size;
};

/* Sets all fields but `bytes` and the displacements. Counts and displacements use the shadow's lists `list` and list +
 * 1. Returns false if an argument is invalid. */
bool gm_blocks_measure(struct gm_blocks_view *view, const struct gm_blocks *blocks, const struct gm_shadow *shadow,
                       int list);

/* Sets `bytes`, and makes a copy where one is needed. `fill`: the data are copied to it. `joined`: the caller needs
 * blocks without gaps. Returns false if there is no memory. */
bool gm_blocks_open(struct gm_blocks_view *view, bool fill, bool joined);

/* True if all blocks have the same length. gyre's calls with one count are faster than those with one count per
 * rank. */
bool gm_are_equal(const size_t *counts, int size);

/* Frees the copy. `back`: its blocks are copied to the buffer first. Does nothing for a view that has not been
 * opened. */
void gm_blocks_close(struct gm_blocks_view *view, bool back);

static inline MPI_Count gm_count(struct gm_counts counts, int rank)
{
    return counts.narrow ? counts.narrow[rank] : counts.wide[rank];
}

static inline MPI_Aint gm_displ(struct gm_displs displs, int rank)
{
    return displs.narrow ? displs.narrow[rank] : displs.wide[rank];
}

#endif

/* The data of an argument with one count per rank, and a view of them as bytes. */
#ifndef GYRE_MPI_BLOCKS_H
#define GYRE_MPI_BLOCKS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "datatype.h"
#include "twin.h"

/* Counts of either width: one of the two is not NULL. */
struct gm_counts {
    const int *narrow;
    const MPI_Count *wide;
};

struct gm_places {
    const int *narrow;
    const MPI_Aint *wide;
};

struct gm_blocks {
    void *buffer; /* or MPI_IN_PLACE */
    struct gm_counts counts;
    struct gm_places places; /* in extents of the datatype */
    MPI_Datatype type;
};

/* Block r is the `counts[r]` bytes at bytes + places[r]. They lie in the buffer itself where the datatype is plain and
 * the blocks come one after the other, and in a packed copy otherwise. */
struct gm_blocks_view {
    char *bytes;
    size_t *counts, *places;
    size_t length; /* of all blocks together */
    bool packed;
    struct gm_blocks blocks;
    struct gm_layout layout;
    int size;
};

/* Everything but bytes and places; counts and places will be the twin's lists `list` and list + 1. False: an argument
 * is invalid. */
bool gm_blocks_measure(struct gm_blocks_view *view, const struct gm_blocks *blocks, const struct gm_twin *twin,
                       int list);

/* Finds or makes the bytes; `fill`: the copy gets the data; `joined`: each block is to begin where the one before it
 * ends. False: there is no memory. */
bool gm_blocks_open(struct gm_blocks_view *view, bool fill, bool joined);

/* All blocks are of the same length. gyre's calls with one count are faster than those with one count per rank. */
bool gm_are_equal(const size_t *counts, int size);

/* Frees the copy; `back`: after its blocks have gone to the buffer. A view that was never opened is allowed. */
void gm_blocks_close(struct gm_blocks_view *view, bool back);

static inline MPI_Count gm_count(struct gm_counts counts, int rank)
{
    return counts.narrow ? counts.narrow[rank] : counts.wide[rank];
}

static inline MPI_Aint gm_place(struct gm_places places, int rank)
{
    return places.narrow ? places.narrow[rank] : places.wide[rank];
}

#endif

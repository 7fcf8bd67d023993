/* An argument of buffer, count and datatype, and a view of its data as bytes in the order of the type signature. */
#ifndef GYRE_MPI_DATA_H
#define GYRE_MPI_DATA_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "datatype.h"

struct gm_data {
    void *buffer; /* or MPI_IN_PLACE */
    MPI_Count count;
    MPI_Datatype type;
};

/* The bytes that gyre transfers: the buffer itself if the datatype is plain (datatype.h), and a packed copy
 * otherwise. */
struct gm_view {
    char *bytes;
    size_t length;
    bool packed;
    struct gm_data data;
    struct gm_layout layout;
};

/* Sets all fields but `bytes`. Returns false if count or datatype is invalid; the MPI library is to report that. */
bool gm_view_measure(struct gm_view *view, struct gm_data data);

/* Sets `bytes` for `times` as many elements, and makes a copy where one is needed. `fill`: the data are copied to it.
 * Returns false if there is no memory. */
bool gm_view_open(struct gm_view *view, int times, bool fill);

/* Frees the copy. `back`: its bytes are copied to the buffer first. Does nothing for a view that has not been
 * opened. */
void gm_view_close(struct gm_view *view, bool back);

/* Packs `count` elements at `buffer` into `bytes`, or unpacks them. Returns false after an error of MPI. */
bool gm_pack(const void *buffer, MPI_Count count, MPI_Datatype type, const struct gm_layout *layout, char *bytes);
bool gm_unpack(const char *bytes, void *buffer, MPI_Count count, MPI_Datatype type, const struct gm_layout *layout);

static inline struct gm_data gm_data(const void *buffer, MPI_Count count, MPI_Datatype type)
{
    return (struct gm_data){(void *)(uintptr_t)buffer, count, type};
}

#endif

/* The data of one argument: buffer, count, datatype; and a view of them as bytes in the order of the type signature. */
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

/* Bytes as gyre moves them. They are the buffer itself where the datatype is plain, and a packed copy otherwise. */
struct gm_view {
    char *bytes;
    size_t length;
    bool packed;
    struct gm_data data;
    struct gm_layout layout;
};

/* Everything but the bytes. False: count or datatype are invalid, and the MPI library is to report it. */
bool gm_view_measure(struct gm_view *view, struct gm_data data);

/* Finds or makes the bytes of `times` times as many elements; `fill`: the copy gets the data. False: there is no
 * memory. */
bool gm_view_open(struct gm_view *view, int times, bool fill);

/* Frees the copy; `back`: after its bytes have gone to the buffer. A view that was never opened is allowed. */
void gm_view_close(struct gm_view *view, bool back);

/* Packs `count` elements at `buffer` into `bytes`, or unpacks them. */
bool gm_pack(const void *buffer, MPI_Count count, MPI_Datatype type, const struct gm_layout *layout, char *bytes);
bool gm_unpack(const char *bytes, void *buffer, MPI_Count count, MPI_Datatype type, const struct gm_layout *layout);

static inline struct gm_data gm_data(const void *buffer, MPI_Count count, MPI_Datatype type)
{
    return (struct gm_data){(void *)(uintptr_t)buffer, count, type};
}

#endif

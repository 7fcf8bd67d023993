/* Properties of MPI datatypes that gyre needs. */
#ifndef GYRE_MPI_DATATYPE_H
#define GYRE_MPI_DATATYPE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* The groups of datatypes to which MPI applies its operations. GM_MOVED has no operations here. */
enum gm_kind { GM_SIGNED, GM_UNSIGNED, GM_FLOAT, GM_COMPLEX, GM_BOOLEAN, GM_BYTE, GM_MOVED };

struct gm_datatype {
    MPI_Datatype handle;
    enum gm_kind kind;
    size_t bytes; /* of one element */
};

/* Returns the row of a predefined datatype without holes; NULL: it is another datatype. */
const struct gm_datatype *gm_datatype_find(MPI_Datatype type);

/* The layout of one element: the bytes of its signature, and the distance to the next element. It is plain if its bytes
 * in memory are those of the signature, in the same order and without holes. */
struct gm_layout {
    size_t bytes;
    MPI_Aint extent;
    bool plain;
};

/* Returns false if the datatype is invalid. The call is then left to the MPI library, which reports it. */
bool gm_datatype_layout(MPI_Datatype type, struct gm_layout *layout_p);

#endif

/* MPI datatypes as gyre sees them. */
#ifndef GYRE_MPI_DATATYPE_H
#define GYRE_MPI_DATATYPE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* The groups of datatypes to which MPI applies its operations. */
enum gm_kind { GM_SIGNED, GM_UNSIGNED, GM_FLOAT, GM_COMPLEX, GM_BOOLEAN, GM_BYTE, GM_MOVED };

struct gm_datatype {
    MPI_Datatype handle;
    enum gm_kind kind;
    size_t bytes; /* of one element */
};

/* The row of a predefined datatype without holes; NULL: the datatype is another one. */
const struct gm_datatype *gm_datatype_find(MPI_Datatype type);

/* Of one element: the bytes of its signature, the bytes from it to the next one, and whether memory is as the signature
 * says, in its order and without holes. */
struct gm_layout {
    size_t bytes;
    MPI_Aint extent;
    bool plain;
};

/* False: there is no such datatype. The call is then left to the MPI library, which reports it. */
bool gm_datatype_layout(MPI_Datatype type, struct gm_layout *layout_p);

#endif

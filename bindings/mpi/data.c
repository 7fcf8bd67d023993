#include "data.h"

#include <limits.h>
#include <stdlib.h>

#define PIECE (1 << 30) /* bytes packed by one call, since the sizes of PMPI_Pack are of type int */

/* Elements packed by one call; 0: a single element is too long. */
static MPI_Count elements_of_piece(const struct gm_layout *layout)
{
    return layout->bytes > INT_MAX ? 0 : layout->bytes > PIECE ? 1 : PIECE / (MPI_Count)layout->bytes;
}

static char *place_of(const void *buffer, MPI_Count element, const struct gm_layout *layout)
{
    return (char *)((uintptr_t)buffer + (uintptr_t)(element * layout->extent));
}

/* A buffer and a datatype that mean the same as the caller's. MPICH's MPI_Pack refuses the address MPI_BOTTOM. In that
 * case the buffer begins one byte later, and the datatype one byte earlier. */
struct base {
    const void *buffer;
    MPI_Datatype type;
    bool made;
};

static struct base base_of(const void *buffer, MPI_Datatype type, const struct gm_layout *layout)
{
    struct base base = {buffer, type, false};
    MPI_Datatype moved;
    const int one = 1;
    const MPI_Aint back = -1;
    if (buffer)
        return base;
    PMPI_Type_create_hindexed(1, &one, &back, type, &moved);
    PMPI_Type_create_resized(moved, 0, layout->extent, &base.type);
    PMPI_Type_commit(&base.type);
    PMPI_Type_free(&moved);
    base.buffer = place_of(NULL, 1, &(struct gm_layout){.extent = 1});
    base.made = true;
    return base;
}

static void base_end(struct base *base)
{
    if (base->made)
        PMPI_Type_free(&base->type);
}

bool gm_pack(const void *buffer, MPI_Count count, MPI_Datatype type, const struct gm_layout *layout, char *bytes)
{
    MPI_Count piece = elements_of_piece(layout);
    struct base base = base_of(buffer, type, layout);
    bool packed = piece > 0;
    for (MPI_Count done = 0; done < count && packed; done += piece) {
        int elements = (int)(count - done < piece ? count - done : piece);
        int length = (int)((size_t)elements * layout->bytes), position = 0;
        packed = PMPI_Pack(place_of(base.buffer, done, layout), elements, base.type,
                           bytes + (size_t)done * layout->bytes, length, &position, MPI_COMM_SELF) == MPI_SUCCESS;
    }
    base_end(&base);
    return packed;
}

bool gm_unpack(const char *bytes, void *buffer, MPI_Count count, MPI_Datatype type, const struct gm_layout *layout)
{
    MPI_Count piece = elements_of_piece(layout);
    struct base base = base_of(buffer, type, layout);
    bool unpacked = piece > 0;
    for (MPI_Count done = 0; done < count && unpacked; done += piece) {
        int elements = (int)(count - done < piece ? count - done : piece);
        int length = (int)((size_t)elements * layout->bytes), position = 0;
        unpacked = PMPI_Unpack(bytes + (size_t)done * layout->bytes, length, &position,
                               place_of(base.buffer, done, layout), elements, base.type, MPI_COMM_SELF) == MPI_SUCCESS;
    }
    base_end(&base);
    return unpacked;
}

bool gm_view_measure(struct gm_view *view, struct gm_data data)
{
    *view = (struct gm_view){.data = data};
    if (data.count < 0 || !gm_datatype_layout(data.type, &view->layout))
        return false;
    view->length = (size_t)data.count * view->layout.bytes;
    return true;
}

bool gm_view_open(struct gm_view *view, int times, bool fill)
{
    view->bytes = view->data.buffer;
    view->data.count *= times;
    view->length *= (size_t)times;
    if (view->layout.plain || view->length == 0)
        return true;
    view->bytes = malloc(view->length);
    view->packed = view->bytes != NULL;
    return view->packed &&
           (!fill || gm_pack(view->data.buffer, view->data.count, view->data.type, &view->layout, view->bytes));
}

void gm_view_close(struct gm_view *view, bool back)
{
    if (!view->packed)
        return;
    if (back)
        gm_unpack(view->bytes, view->data.buffer, view->data.count, view->data.type, &view->layout);
    free(view->bytes);
}

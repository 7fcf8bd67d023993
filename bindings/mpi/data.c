#include "data.h"

#include <limits.h>
#include <stdlib.h>

#define PIECE (1 << 30) /* bytes that are packed by one call, whose sizes are of type int */

/* Elements of one call; 0: one element is too long. */
static MPI_Count elements_of_piece(const struct gm_layout *layout)
{
    return layout->bytes > INT_MAX ? 0 : layout->bytes > PIECE ? 1 : PIECE / (MPI_Count)layout->bytes;
}

static char *place_of(const void *buffer, MPI_Count element, const struct gm_layout *layout)
{
    return (char *)((uintptr_t)buffer + (uintptr_t)(element * layout->extent));
}

bool gm_pack(const void *buffer, MPI_Count count, MPI_Datatype type, const struct gm_layout *layout, char *bytes)
{
    MPI_Count piece = elements_of_piece(layout);
    for (MPI_Count done = 0; done < count && piece > 0; done += piece) {
        int elements = (int)(count - done < piece ? count - done : piece);
        int length = (int)((size_t)elements * layout->bytes), position = 0;
        if (PMPI_Pack(place_of(buffer, done, layout), elements, type, bytes + (size_t)done * layout->bytes, length,
                      &position, MPI_COMM_SELF) != MPI_SUCCESS)
            return false;
    }
    return piece > 0;
}

bool gm_unpack(const char *bytes, void *buffer, MPI_Count count, MPI_Datatype type, const struct gm_layout *layout)
{
    MPI_Count piece = elements_of_piece(layout);
    for (MPI_Count done = 0; done < count && piece > 0; done += piece) {
        int elements = (int)(count - done < piece ? count - done : piece);
        int length = (int)((size_t)elements * layout->bytes), position = 0;
        if (PMPI_Unpack(bytes + (size_t)done * layout->bytes, length, &position, place_of(buffer, done, layout),
                        elements, type, MPI_COMM_SELF) != MPI_SUCCESS)
            return false;
    }
    return piece > 0;
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

#include "blocks.h"

#include <stdint.h>
#include <stdlib.h>

#include "data.h"

bool gm_blocks_measure(struct gm_blocks_view *view, const struct gm_blocks *blocks, const struct gm_twin *twin,
                       int list)
{
    *view = (struct gm_blocks_view){.blocks = *blocks, .size = twin->size};
    if ((!blocks->counts.narrow && !blocks->counts.wide) || (!blocks->places.narrow && !blocks->places.wide) ||
        !gm_datatype_layout(blocks->type, &view->layout))
        return false;
    view->counts = gm_twin_list(twin, list);
    view->places = gm_twin_list(twin, list + 1);
    for (int rank = 0; rank < view->size; rank++) {
        MPI_Count count = gm_count(blocks->counts, rank);
        if (count < 0)
            return false;
        view->counts[rank] = (size_t)count * view->layout.bytes;
        view->length += view->counts[rank];
    }
    return true;
}

/* Where the block begins in the buffer: bytes after its beginning. The place of an empty block may be anything. */
static MPI_Aint offset_of(const struct gm_blocks_view *view, int rank)
{
    return gm_place(view->blocks.places, rank) * view->layout.extent;
}

/* One after the other, and, where they are to be joined, without gaps. */
static bool are_in_place(const struct gm_blocks_view *view, bool joined)
{
    bool any = false;
    MPI_Aint end = 0;
    for (int rank = 0; rank < view->size; rank++) {
        if (view->counts[rank] == 0)
            continue;
        if (any && (joined ? offset_of(view, rank) != end : offset_of(view, rank) < end))
            return false;
        end = offset_of(view, rank) + (MPI_Aint)view->counts[rank];
        any = true;
    }
    return true;
}

static char *block_of(const struct gm_blocks_view *view, int rank)
{
    return (char *)((uintptr_t)view->blocks.buffer + (uintptr_t)offset_of(view, rank));
}

/* Places cannot be negative in gyre: they count from the first block. */
static void use_buffer(struct gm_blocks_view *view)
{
    MPI_Aint base = 0;
    bool any = false;
    for (int rank = 0; rank < view->size; rank++) {
        if (view->counts[rank] > 0 && !any)
            base = offset_of(view, rank);
        any = any || view->counts[rank] > 0;
        view->places[rank] = view->counts[rank] > 0 ? (size_t)(offset_of(view, rank) - base) : 0;
    }
    view->bytes = (char *)((uintptr_t)view->blocks.buffer + (uintptr_t)base);
}

static bool fill_copy(const struct gm_blocks_view *view)
{
    for (int rank = 0; rank < view->size; rank++)
        if (view->counts[rank] > 0 && !gm_pack(block_of(view, rank), gm_count(view->blocks.counts, rank),
                                               view->blocks.type, &view->layout, view->bytes + view->places[rank]))
            return false;
    return true;
}

static bool use_copy(struct gm_blocks_view *view)
{
    size_t at = 0;
    view->bytes = malloc(view->length);
    view->packed = view->bytes != NULL;
    for (int rank = 0; rank < view->size; at += view->counts[rank++])
        view->places[rank] = at;
    return view->packed;
}

bool gm_are_equal(const size_t *counts, int size)
{
    for (int rank = 1; rank < size; rank++)
        if (counts[rank] != counts[0])
            return false;
    return true;
}

bool gm_blocks_open(struct gm_blocks_view *view, bool fill, bool joined)
{
    if (view->length == 0 || (view->layout.plain && are_in_place(view, joined))) {
        use_buffer(view);
        return true;
    }
    return use_copy(view) && (!fill || fill_copy(view));
}

void gm_blocks_close(struct gm_blocks_view *view, bool back)
{
    if (!view->packed)
        return;
    for (int rank = 0; rank < view->size && back; rank++)
        if (view->counts[rank] > 0)
            gm_unpack(view->bytes + view->places[rank], block_of(view, rank), gm_count(view->blocks.counts, rank),
                      view->blocks.type, &view->layout);
    free(view->bytes);
}

#include "blocks.h"

#include <stdint.h>
#include <stdlib.h>

#include "data.h"

bool gm_blocks_measure(struct gm_blocks_view *view, const struct gm_blocks *blocks, const struct gm_shadow *shadow,
                       int list)
{
    *view = (struct gm_blocks_view){.blocks = *blocks, .size = shadow->size};
    if ((!blocks->counts.narrow && !blocks->counts.wide) || (!blocks->displs.narrow && !blocks->displs.wide) ||
        !gm_datatype_layout(blocks->type, &view->layout))
        return false;
    view->counts = gm_shadow_list(shadow, list);
    view->displs = gm_shadow_list(shadow, list + 1);
    for (int rank = 0; rank < view->size; rank++) {
        MPI_Count count = gm_count(blocks->counts, rank);
        if (count < 0)
            return false;
        view->counts[rank] = (size_t)count * view->layout.bytes;
        view->length += view->counts[rank];
    }
    return true;
}

/* Returns the offset of a block in the buffer, in bytes. That of an empty block may be anything. */
static MPI_Aint offset_of(const struct gm_blocks_view *view, int rank)
{
    return gm_displ(view->blocks.displs, rank) * view->layout.extent;
}

/* True if the blocks are in ascending order, and, if they are to be joined, without gaps. */
static bool are_usable(const struct gm_blocks_view *view, bool joined)
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

/* Displacements of gyre cannot be negative: they are relative to the first block that is not empty. */
static void use_buffer(struct gm_blocks_view *view)
{
    MPI_Aint base = 0;
    bool any = false;
    for (int rank = 0; rank < view->size; rank++) {
        if (view->counts[rank] > 0 && !any)
            base = offset_of(view, rank);
        any = any || view->counts[rank] > 0;
        view->displs[rank] = view->counts[rank] > 0 ? (size_t)(offset_of(view, rank) - base) : 0;
    }
    view->bytes = (char *)((uintptr_t)view->blocks.buffer + (uintptr_t)base);
}

static bool fill_copy(const struct gm_blocks_view *view)
{
    for (int rank = 0; rank < view->size; rank++)
        if (view->counts[rank] > 0 && !gm_pack(block_of(view, rank), gm_count(view->blocks.counts, rank),
                                               view->blocks.type, &view->layout, view->bytes + view->displs[rank]))
            return false;
    return true;
}

static bool use_copy(struct gm_blocks_view *view)
{
    size_t at = 0;
    view->bytes = malloc(view->length);
    view->packed = view->bytes != NULL;
    for (int rank = 0; rank < view->size; at += view->counts[rank++])
        view->displs[rank] = at;
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
    if (view->length == 0 || (view->layout.plain && are_usable(view, joined))) {
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
            gm_unpack(view->bytes + view->displs[rank], block_of(view, rank), gm_count(view->blocks.counts, rank),
                      view->blocks.type, &view->layout);
    free(view->bytes);
}

/* A layout: where the blocks of a call's vector begin, as elements of the vector and in the user's buffer.
 *
 *   balanced   block b covers elements [total*b/blocks, total*(b+1)/blocks)          the ordinary collectives
 *   counted    block b has the length that the user gave                              the v-forms
 *   placed     and lies where the user said, with gaps or out of order                displacements
 *
 * Schedules work on blocks only and do not depend on the layout. Tiles cut ranges of blocks; both sides of a link, and
 * all users of a region, compute the same number of tiles. */
#ifndef GY_COLLECTIVES_SCHEDULE_LAYOUT_H
#define GY_COLLECTIVES_SCHEDULE_LAYOUT_H

#include "core/base.h"

struct gy_layout {
    size_t total; /* elements */
    int32_t blocks;
    const size_t *starts; /* [blocks + 1] first element of each block; NULL: balanced */
    const size_t *places; /* [blocks] first element of each block in the user's buffer; NULL: as in the vector */
    size_t largest;       /* longest block; valid if starts are given */
};

struct gy_piece {
    size_t start, count; /* elements of the vector */
};

/* First element of block b. 128-bit safe: total up to 2^63. */
static inline size_t gy_layout_start(const struct gy_layout *layout, int32_t b)
{
    if (layout->starts)
        return layout->starts[b];
    if (layout->total <= UINT32_MAX) /* 64-bit division takes several times as long */
        return (size_t)((uint64_t)layout->total * (unsigned)b / (unsigned)layout->blocks);
    return (size_t)((unsigned __int128)layout->total * (unsigned)b / (unsigned)layout->blocks);
}

/* Elements of the longest range of `width` blocks, wherever it begins. */
static inline size_t gy_layout_longest(const struct gy_layout *layout, int32_t width)
{
    size_t longest = 0;
    if (layout->starts && width <= 1)
        return width == 0 ? 0 : layout->largest;
    if (layout->starts) {
        for (int32_t b = 0; b + width <= layout->blocks; b++)
            longest = gy_max_size(longest, layout->starts[b + width] - layout->starts[b]);
        return longest;
    }
    if (layout->total <= UINT32_MAX)
        return (size_t)(((uint64_t)layout->total * (unsigned)width + (unsigned)layout->blocks - 1) /
                        (unsigned)layout->blocks);
    unsigned __int128 parts = (unsigned __int128)layout->total * (unsigned)width;
    return (size_t)((parts + (unsigned)layout->blocks - 1) / (unsigned)layout->blocks);
}

/* Tiles of `tile` elements (> 0) in a range of `elements`; at least 1. */
static inline size_t gy_layout_tiles(size_t elements, size_t tile)
{
    return elements == 0 ? 1 : (elements - 1) / tile + 1;
}

/* Tile t of blocks [lo, lo + width); empty tiles have count 0. */
static inline struct gy_piece gy_layout_piece(const struct gy_layout *layout, int32_t lo, int32_t width, size_t tile,
                                              size_t t)
{
    size_t begin = gy_layout_start(layout, lo), length = gy_layout_start(layout, lo + width) - begin;
    size_t skip = t * tile < length ? t * tile : length;
    return (struct gy_piece){begin + skip, length - skip < tile ? length - skip : tile};
}

/* Returns the position of element `start`, which lies in block b or after it, in the user's buffer; its view begins
 * with block `view`. */
static inline size_t gy_layout_place(const struct gy_layout *layout, int32_t b, size_t start, int32_t view)
{
    if (layout->places)
        return layout->places[b] + (start - gy_layout_start(layout, b));
    return start - gy_layout_start(layout, view);
}

#endif

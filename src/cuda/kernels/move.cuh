/* Copies and exchanges between memory that one GPU can access. These kernels run the collectives that only move data
 * (broadcast, gather, scatter, all_gather, all_to_all) and messages, for ranks that share a GPU. They are also the
 * inner part of the same calls between GPUs.
 *
 * A launch contains moves of any size and alignment. The source and the destination of a move do not overlap. An
 * exchange swaps the two: all_to_all in place. The unit of a move is 16, 4 or 1 bytes: the largest for which both
 * addresses have the same remainder. */
#ifndef GY_CUDA_KERNELS_MOVE_CUH
#define GY_CUDA_KERNELS_MOVE_CUH

#include "cuda/kernels/arguments.h"
#include "language.h"

template <typename unit> GY_DEVICE void gy_move_unit(const gy_one_move &m, size_t at, bool exchanges)
{
    unit value = gy_load<unit>(m.src + at);
    if (exchanges)
        gy_store<unit>(m.src + at, gy_load<unit>(m.dst + at));
    gy_store<unit>(m.dst + at, value);
}

/* Handles units [0, units) from byte `start` on; a thread has four loads in flight. */
template <typename unit>
GY_DEVICE void gy_move_units(const gy_one_move &m, size_t start, size_t units, unsigned block, bool exchanges)
{
    enum { DEEP = 4 };
    const size_t threads = gy_threads(), tile = threads * DEEP, whole = units / tile * tile;
    size_t u = tile * block + gy_thread();
    for (; u < whole; u += tile * gy_blocks()) {
        unit value[DEEP], other[DEEP];
        GY_UNROLL
        for (int k = 0; k < DEEP; k++)
            value[k] = gy_load<unit>(m.src + start + (u + (size_t)k * threads) * sizeof(unit));
        GY_UNROLL
        for (int k = 0; k < DEEP; k++)
            other[k] = exchanges ? gy_load<unit>(m.dst + start + (u + (size_t)k * threads) * sizeof(unit)) : value[k];
        GY_UNROLL
        for (int k = 0; k < DEEP; k++) {
            gy_store<unit>(m.dst + start + (u + (size_t)k * threads) * sizeof(unit), value[k]);
            if (exchanges)
                gy_store<unit>(m.src + start + (u + (size_t)k * threads) * sizeof(unit), other[k]);
        }
    }
    if (u < whole + threads)
        for (int k = 0; k < DEEP && u < units; k++, u += threads)
            gy_move_unit<unit>(m, start + u * sizeof(unit), exchanges);
}

/* Handles the bytes before the first unit and after the last one, numbered from 0. */
GY_DEVICE void gy_move_ends(const gy_one_move &m, size_t head, size_t middle, size_t bytes, unsigned block,
                            bool exchanges)
{
    const size_t step = (size_t)gy_blocks() * gy_threads();
    for (size_t i = (size_t)block * gy_threads() + gy_thread(); i < bytes - middle; i += step)
        gy_move_unit<uint8_t>(m, i < head ? i : i + middle, exchanges);
}

/* Returns the number of tiles so far, which decides at which block the next move begins. */
GY_DEVICE size_t gy_do_move(const gy_one_move &m, size_t tiles_before)
{
    const uint64_t bytes = m.bytes & ~GY_EXCHANGE;
    const bool exchanges = (m.bytes & GY_EXCHANGE) != 0;
    const unsigned block = (unsigned)((gy_block() + gy_blocks() - tiles_before % gy_blocks()) % gy_blocks());
    const uintptr_t differ = (uintptr_t)m.dst ^ (uintptr_t)m.src;
    const unsigned unit = differ % 16 == 0 ? 16 : differ % 4 == 0 ? 4 : 1;
    size_t head = (unit - (uintptr_t)m.dst % unit) % unit;
    head = head < bytes ? head : bytes;
    const size_t units = (bytes - head) / unit;
    if (unit == 16)
        gy_move_units<gy_vector>(m, head, units, block, exchanges);
    else if (unit == 4)
        gy_move_units<uint32_t>(m, head, units, block, exchanges);
    else
        gy_move_units<uint8_t>(m, head, units, block, exchanges);
    gy_move_ends(m, head, units * unit, bytes, block, exchanges);
    return tiles_before + units / gy_threads() + 1;
}

GY_DEVICE void gy_do_moves(const gy_one_move *move, unsigned moves)
{
    size_t tiles = 0;
    for (unsigned k = 0; k < moves; k++)
        tiles = gy_do_move(move[k], tiles);
}

#if !defined(GY_REDUCTIONS_ONLY)
GY_KERNEL(gy_move, gy_moves)
{
    if (gy_aborted(a.abort))
        return;
    gy_do_moves(a.move, a.moves);
}
#endif

#endif

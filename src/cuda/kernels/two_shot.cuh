/* Collectives between GPUs over memory that each GPU can access: a barrier, the work, a barrier. Each rank runs its own
 * kernel on its own GPU, all with the same number of blocks. Block b of a rank waits only for block b of the other
 * ranks. A GPU therefore needs room for all blocks of its rank's kernel at the same time, and for no more.
 *
 *   first barrier    every rank's kernel has begun, so its inputs are ready and its output may be written
 *   work             a rank's pieces (fused.cuh) or moves; in an all_reduce its slice of all inputs to all outputs
 *   second barrier   every rank has stored its results, so the kernel may end
 *
 * The arrival counters `arrived[rank of the writer][block][2]` lie in the memory of each rank. A counter is set to the
 * step, so it only grows, modulo 2^32. A rank cannot begin the next step before its peers have read its counters, so a
 * comparison for equality would be correct, too. A comparison with `at least` lets an abort end a wait by storing a
 * later step.
 *
 * The step lies in device memory, so a launch that is replayed by a graph uses the next step. The last block of a
 * launch increments it. Within a block, gy_sync orders the plain stores of all threads before the fence of thread 0,
 * which then stores the counters. */
#ifndef GY_CUDA_KERNELS_TWO_SHOT_CUH
#define GY_CUDA_KERNELS_TWO_SHOT_CUH

#include "fused.cuh"
#include "move.cuh"

GY_DEVICE uint32_t *gy_arrival_counter(const gy_peer_sync &m, int at, int of, int which)
{
    return &m.arrived[at][((size_t)of * gy_blocks() + gy_block()) * 2 + (size_t)which];
}

/* Stores this block's counter at all peers, and waits for theirs. Called by thread 0. Returns false after an abort. */
GY_DEVICE bool gy_arrive_and_wait(const gy_peer_sync &m, int which, uint32_t step)
{
    gy_fence();
    for (int r = 0; r < m.ranks; r++)
        if (r != m.rank)
            gy_word_store(gy_arrival_counter(m, r, m.rank, which), step);
    for (int r = 0; r < m.ranks; r++)
        if (r != m.rank && !gy_wait(gy_arrival_counter(m, m.rank, r, which), step, m.abort,
                                    which ? "the end of a peer's work" : "the beginning of a peer's kernel"))
            return false;
    return true;
}

/* A barrier of this block with the same block of all peers. Called by all threads; has barriers of the block on both
 * sides. Returns false to all threads after an abort. */
GY_DEVICE bool gy_peer_barrier(const gy_peer_sync &m, int which, uint32_t step)
{
    bool aborted = false;
    gy_sync();
    if (gy_thread() == 0)
        aborted = !gy_arrive_and_wait(m, which, step);
    return !gy_sync_or(aborted);
}

/* Returns the step of this launch. */
GY_DEVICE uint32_t gy_current_step(const gy_peer_sync &m)
{
    return gy_word_relaxed(m.step) + 1;
}

/* Ends the step. All threads of the block have passed a barrier before. */
GY_DEVICE void gy_end_step(const gy_peer_sync &m, uint32_t step)
{
    if (gy_thread() == 0 && gy_word_add(m.finished, 1) == gy_blocks() - 1) {
        gy_word_store(m.finished, 0);
        gy_word_store(m.step, step);
    }
}

template <typename work> GY_DEVICE void gy_two_shot_run(const gy_two_shot &a)
{
    const uint32_t step = gy_current_step(a.sync);
    if (!gy_peer_barrier(a.sync, 0, step))
        return;
    gy_do_pieces<work>(a.piece, a.pieces);
    if (!gy_peer_barrier(a.sync, 1, step))
        return;
    gy_end_step(a.sync, step);
}

#if !defined(GY_REDUCTIONS_ONLY)
GY_KERNEL(gy_two_shot_move, gy_two_shot_moves)
{
    const uint32_t step = gy_current_step(a.sync);
    if (!gy_peer_barrier(a.sync, 0, step))
        return;
    gy_do_moves(a.move, a.moves);
    if (!gy_peer_barrier(a.sync, 1, step))
        return;
    gy_end_step(a.sync, step);
}
#endif

#endif

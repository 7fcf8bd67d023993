/* Collectives between GPUs over memory that each reaches: a barrier, the work, a barrier. Each rank runs its own kernel on
 * its own GPU, all with the same number of blocks; block b of a rank waits for block b of the others, so the launches
 * need room for all blocks of a rank at once, and no more.
 *
 *   first barrier    every rank's kernel has begun, so its operands are ready and its output may be written
 *   work             a rank's pieces (fused.cuh) or moves: for an all_reduce its slice of all inputs to all outputs
 *   second barrier   every rank's stores have been made, so the kernel may end
 *
 * The words are counters that only grow, cyclically: `arrived[rank of the writer][block][2]` in each rank's memory. No
 * rank can be a step ahead of a peer that still looks at its words, so a wait for equality would do as well; `at least`
 * lets whoever aborts satisfy a wait by a value far ahead. The step lies in device memory, so that a
 * graph that is replayed counts on; the last block of a launch counts it up. Plain stores of the threads of a block are
 * ordered by gy_sync before the one fence of the thread that tells the others. */
#ifndef GY_CUDA_KERNELS_TWO_SHOT_CUH
#define GY_CUDA_KERNELS_TWO_SHOT_CUH

#include "fused.cuh"
#include "move.cuh"

GY_DEVICE uint32_t *gy_arrival(const gy_meeting &m, int at, int of, int which)
{
    return &m.arrived[at][((size_t)of * gy_blocks() + gy_block()) * 2 + (size_t)which];
}

/* Tells and waits; called by thread 0. False: aborted. */
GY_DEVICE bool gy_meet(const gy_meeting &m, int which, uint32_t step)
{
    gy_fence();
    for (int r = 0; r < m.ranks; r++)
        if (r != m.rank)
            gy_word_store(gy_arrival(m, r, m.rank, which), step);
    for (int r = 0; r < m.ranks; r++)
        if (r != m.rank && !gy_wait(gy_arrival(m, m.rank, r, which), step, m.abort,
                                    which ? "the end of a peer's work" : "the beginning of a peer's kernel"))
            return false;
    return true;
}

/* For all threads of a block, with barriers on both sides. False: aborted, for all of them. */
GY_DEVICE bool gy_meet_block(const gy_meeting &m, int which, uint32_t step)
{
    bool aborted = false;
    gy_sync();
    if (gy_thread() == 0)
        aborted = !gy_meet(m, which, step);
    return !gy_sync_or(aborted);
}

/* The step of this launch. */
GY_DEVICE uint32_t gy_this_step(const gy_meeting &m)
{
    return gy_word_relaxed(m.step) + 1;
}

/* All threads of the block are past a barrier. */
GY_DEVICE void gy_step_over(const gy_meeting &m, uint32_t step)
{
    if (gy_thread() == 0 && gy_word_add(m.through, 1) == gy_blocks() - 1) {
        gy_word_store(m.through, 0);
        gy_word_store(m.step, step);
    }
}

template <typename work> GY_DEVICE void gy_two_shot_run(const gy_two_shot &a)
{
    const uint32_t step = gy_this_step(a.meeting);
    if (!gy_meet_block(a.meeting, 0, step))
        return;
    gy_do_pieces<work>(a.piece, a.pieces);
    if (!gy_meet_block(a.meeting, 1, step))
        return;
    gy_step_over(a.meeting, step);
}

#if !defined(GY_REDUCTIONS_ONLY)
GY_KERNEL(gy_two_shot_move, gy_two_shot_moves)
{
    const uint32_t step = gy_this_step(a.meeting);
    if (!gy_meet_block(a.meeting, 0, step))
        return;
    gy_do_moves(a.move, a.moves);
    if (!gy_meet_block(a.meeting, 1, step))
        return;
    gy_step_over(a.meeting, step);
}
#endif

#endif

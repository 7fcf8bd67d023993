/* A short all_reduce between GPUs in one exchange: every rank stores its operand, in lines that carry their own flags,
 * into every rank's inbox, and every rank reduces its inbox in rank order.
 *
 * A line is 16 bytes: two words of data, each beside the step. Lines arrive in halves, so both flags are looked at. An
 * inbox has two halves, used in turns by the parity of the step: a rank that has all lines of step e knows that every
 * rank has ended step e - 1, so lines of step e + 1 go where those of e - 1 were. Step 0 is left out, since an inbox is
 * zero at first. The step lies in device memory, so that a graph that is replayed counts on.
 *
 * A thread handles the same lines in both parts, and reads its input before it stores output: in place is allowed. */
#ifndef GY_CUDA_KERNELS_ONE_SHOT_CUH
#define GY_CUDA_KERNELS_ONE_SHOT_CUH

#include "two_shot.cuh"

GY_DEVICE uint32_t gy_one_shot_step(const gy_meeting &m)
{
    uint32_t step = gy_this_step(m);
    return step ? step : 2; /* keeps the parity's turn: 2^32 - 1 was odd */
}

/* The elements of line i, 8 bytes; those beyond the last are 0. */
template <typename work> GY_DEVICE uint64_t gy_line_input(const gy_one_shot &a, uint64_t scalar, size_t i)
{
    using bits = typename work::bits;
    constexpr size_t lanes = 8 / sizeof(bits);
    uint64_t data = 0;
    GY_ROLLED
    for (size_t k = 0; k < lanes && i * lanes + k < a.count; k++) {
        bits b = gy_load_any<bits>((const char *)a.in + (i * lanes + k) * sizeof(bits));
        data |= (uint64_t)work::begin(b, scalar) << (8 * sizeof(bits) * k);
    }
    return data;
}

/* Line i of a rank, when it has come. False: aborted. */
GY_DEVICE bool gy_line_wait(const gy_one_shot &a, const gy_line *p, uint32_t step, uint64_t *data_p)
{
    gy_line l = gy_line_load(p);
    GY_ROLLED
    for (unsigned n = 0; l.flag1 != step || l.flag2 != step; n++) {
        if (n % GY_SPINS == GY_SPINS - 1 && gy_aborted(a.meeting.abort))
            return false;
        gy_pause(&p->flag1, step, "a line of a peer");
        l = gy_line_load(p);
    }
    *data_p = l.data1 | (uint64_t)l.data2 << 32;
    return true;
}

template <typename work>
GY_DEVICE typename work::bits gy_line_element(const gy_one_shot &a, const uint64_t (&data)[GY_NEAR], int k)
{
    using bits = typename work::bits;
    using reduction = typename work::reduction;
    typename work::value v[GY_NEAR];
    GY_UNROLL
    for (int r = 0; r < GY_NEAR; r++)
        v[r] = reduction::load((bits)(data[r] >> (8 * (int)(sizeof(bits) % 8) * k)));
    if constexpr (work::tree) {
        GY_UNROLL
        for (int distance = 1; distance < GY_NEAR; distance *= 2)
            GY_UNROLL
        for (int r = 0; r + distance < GY_NEAR; r += 2 * distance)
            if (r + distance < a.meeting.ranks)
                v[r] = reduction::combine(v[r], v[r + distance]);
    } else {
        GY_UNROLL
        for (int r = 1; r < GY_NEAR; r++)
            if (r < a.meeting.ranks)
                v[0] = reduction::combine(v[0], v[r]);
    }
    return work::end(reduction::store(v[0]), a.divisor);
}

/* False: aborted. */
template <typename work>
GY_DEVICE bool gy_line_reduce(const gy_one_shot &a, const gy_line *half, uint32_t step, size_t i)
{
    using bits = typename work::bits;
    constexpr int lanes = 8 / (int)sizeof(bits);
    uint64_t data[GY_NEAR] = {};
    GY_UNROLL
    for (int r = 0; r < GY_NEAR; r++)
        if (r < a.meeting.ranks && !gy_line_wait(a, &half[(size_t)r * a.capacity + i], step, &data[r]))
            return false;
    GY_ROLLED
    for (int k = 0; k < lanes; k++)
        if (i * lanes + (size_t)k < a.count)
            gy_store_any<bits>((char *)a.out + (i * lanes + (size_t)k) * sizeof(bits),
                               gy_line_element<work>(a, data, k));
    return true;
}

template <typename work> GY_DEVICE void gy_one_shot_send(const gy_one_shot &a, size_t half, uint32_t step, size_t lines)
{
    const uint64_t scalar = work::op == GYRE_PREMUL_SUM ? gy_load_any<typename work::bits>(a.scalar) : 0;
    GY_ROLLED
    for (size_t i = (size_t)gy_block() * gy_threads() + gy_thread(); i < lines;
         i += (size_t)gy_blocks() * gy_threads()) {
        uint64_t data = gy_line_input<work>(a, scalar, i);
        gy_line l = {(uint32_t)data, step, (uint32_t)(data >> 32), step};
        GY_UNROLL
        for (int r = 0; r < GY_NEAR; r++)
            if (r < a.meeting.ranks)
                gy_line_store(&a.inbox[r][half + (size_t)a.meeting.rank * a.capacity + i], l);
    }
}

template <typename work> GY_DEVICE void gy_one_shot_run(const gy_one_shot &a)
{
    const uint32_t step = gy_one_shot_step(a.meeting);
    const size_t lines = ((size_t)a.count * sizeof(typename work::bits) + 7) / 8;
    const size_t half = (size_t)(step & 1) * a.meeting.ranks * a.capacity;
    bool aborted = false;
    gy_one_shot_send<work>(a, half, step, lines);
    const gy_line *inbox = a.inbox[0];
    GY_UNROLL
    for (int r = 1; r < GY_NEAR; r++)
        inbox = r == a.meeting.rank ? a.inbox[r] : inbox;
    const size_t first = (size_t)gy_block() * gy_threads() + gy_thread(), apart = (size_t)gy_blocks() * gy_threads();
    GY_ROLLED
    for (size_t i = first; i < lines && !aborted; i += apart)
        aborted = !gy_line_reduce<work>(a, inbox + half, step, i);
    if (!gy_sync_or(aborted))
        gy_step_over(a.meeting, step);
}

#endif

/* A short all_reduce between GPUs with one exchange. Every rank stores its operand into the inbox of every rank, in
 * lines that carry their own flags. Then every rank reduces its inbox in rank order.
 *
 * A line is 16 bytes: two words of data, each beside the step. The two 8-byte halves of a line may arrive separately,
 * so both flags are checked.
 *
 * An inbox has two halves; the parity of the step selects one. A rank that has received all lines of step e knows that
 * every rank has ended step e - 1. It may therefore overwrite the lines of step e - 1 in step e + 1. Step 0 is skipped,
 * since a new inbox contains zeros. The step lies in device memory, so a launch that is replayed by a graph uses the
 * next step.
 *
 * A thread sends and reduces the same lines, and reads its input before it stores output. The input may therefore be
 * the output. */
#ifndef GY_CUDA_KERNELS_ONE_SHOT_CUH
#define GY_CUDA_KERNELS_ONE_SHOT_CUH

#include "two_shot.cuh"

GY_DEVICE uint32_t gy_one_shot_step(const gy_peer_sync &m)
{
    uint32_t step = gy_current_step(m);
    return step ? step : 2; /* the step after 2^32 - 1, which is odd, must be even */
}

/* Returns the elements of line i, 8 bytes; those beyond the last element are 0. */
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

/* Waits for a line of a rank and returns its data. Returns false after an abort. */
GY_DEVICE bool gy_line_wait(const gy_one_shot &a, const gy_line *p, uint32_t step, uint64_t *data_p)
{
    gy_line l = gy_line_load(p);
    GY_ROLLED
    for (unsigned n = 0; l.flag1 != step || l.flag2 != step; n++) {
        if (n % GY_SPINS == GY_SPINS - 1 && gy_aborted(a.sync.abort))
            return false;
        gy_pause(&p->flag1, step, "a line of a peer");
        l = gy_line_load(p);
    }
    *data_p = l.data1 | (uint64_t)l.data2 << 32;
    return true;
}

template <typename work>
GY_DEVICE typename work::bits gy_line_element(const gy_one_shot &a, const uint64_t (&data)[GY_PEERS_MOST], int k)
{
    using bits = typename work::bits;
    using reduction = typename work::reduction;
    typename work::value v[GY_PEERS_MOST];
    GY_UNROLL
    for (int r = 0; r < GY_PEERS_MOST; r++)
        v[r] = reduction::load((bits)(data[r] >> (8 * (int)(sizeof(bits) % 8) * k)));
    if constexpr (work::tree) {
        GY_UNROLL
        for (int distance = 1; distance < GY_PEERS_MOST; distance *= 2)
            GY_UNROLL
        for (int r = 0; r + distance < GY_PEERS_MOST; r += 2 * distance)
            if (r + distance < a.sync.ranks)
                v[r] = reduction::combine(v[r], v[r + distance]);
    } else {
        GY_UNROLL
        for (int r = 1; r < GY_PEERS_MOST; r++)
            if (r < a.sync.ranks)
                v[0] = reduction::combine(v[0], v[r]);
    }
    return work::end(reduction::store(v[0]), a.divisor);
}

/* Returns false after an abort. */
template <typename work>
GY_DEVICE bool gy_line_reduce(const gy_one_shot &a, const gy_line *half, uint32_t step, size_t i)
{
    using bits = typename work::bits;
    constexpr int lanes = 8 / (int)sizeof(bits);
    uint64_t data[GY_PEERS_MOST] = {};
    GY_UNROLL
    for (int r = 0; r < GY_PEERS_MOST; r++)
        if (r < a.sync.ranks && !gy_line_wait(a, &half[(size_t)r * a.capacity + i], step, &data[r]))
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
        for (int r = 0; r < GY_PEERS_MOST; r++)
            if (r < a.sync.ranks)
                gy_line_store(&a.inbox[r][half + (size_t)a.sync.rank * a.capacity + i], l);
    }
}

template <typename work> GY_DEVICE void gy_one_shot_run(const gy_one_shot &a)
{
    const uint32_t step = gy_one_shot_step(a.sync);
    const size_t lines = ((size_t)a.count * sizeof(typename work::bits) + 7) / 8;
    const size_t half = (size_t)(step & 1) * a.sync.ranks * a.capacity;
    bool aborted = false;
    gy_one_shot_send<work>(a, half, step, lines);
    const gy_line *inbox = a.inbox[0];
    GY_UNROLL
    for (int r = 1; r < GY_PEERS_MOST; r++)
        inbox = r == a.sync.rank ? a.inbox[r] : inbox;
    const size_t first = (size_t)gy_block() * gy_threads() + gy_thread(), apart = (size_t)gy_blocks() * gy_threads();
    GY_ROLLED
    for (size_t i = first; i < lines && !aborted; i += apart)
        aborted = !gy_line_reduce<work>(a, inbox + half, step, i);
    if (!gy_sync_or(aborted))
        gy_end_step(a.sync, step);
}

#endif

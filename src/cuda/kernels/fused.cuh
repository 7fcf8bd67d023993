/* Reductions of operands that one GPU can access, without waiting for other GPUs. These kernels run the collectives of
 * ranks that share a GPU, several calls in one launch. They are also the inner part of the two-shot collectives.
 *
 * A launch contains pieces. A piece reduces elements [first, count) of its sources, in the order of the sources, into
 * each of its destinations:
 *
 *   all_reduce        one piece             every rank's input              -> every rank's output
 *   reduce            one piece             every rank's input              -> the root's output
 *   reduce_scatter    one piece per rank    its block of every rank's input -> its output
 *
 * A destination may be one of the sources; no other overlap is allowed.
 *
 * Vectors of 16 bytes are used if all pointers have the same offset modulo 16 and elements are aligned to their size.
 * Elements before the first whole vector, elements after the last one, and all elements in any other case are handled
 * one by one. The tiles of all pieces are distributed to the blocks round robin, so many small pieces keep all blocks
 * busy. */
#ifndef GY_CUDA_KERNELS_FUSED_CUH
#define GY_CUDA_KERNELS_FUSED_CUH

#include "cuda/element.h"
#include "cuda/kernels/arguments.h"
#include "language.h"

enum { GY_TREE_LEVELS = 7 }; /* enough for GY_GROUP_MOST sources */

/* The operands of a piece, in shared memory. */
struct gy_operands {
    const char *src[GY_GROUP_MOST];
    char *dst[GY_GROUP_MOST];
    uint64_t scalar[GY_GROUP_MOST]; /* the bits of each source's scalar */
};

/* The arithmetic of a kernel: `load` turns the bits of a contribution into a value, and `end` turns the bits of the
 * reduced value into the result. */
template <int type_of, int op_of, bool tree_of> struct gy_work {
    static constexpr int type = type_of, op = op_of;
    static constexpr bool tree = tree_of; /* reduces in canonical order */
    using reduction = gy_reduction<type, op>;
    using bits = typename reduction::bits;
    using value = typename reduction::value;
    GY_MEMBER bits begin(bits element, uint64_t scalar)
    {
        return op == GYRE_PREMUL_SUM ? gy_multiply<type>(element, (bits)scalar) : element;
    }
    GY_MEMBER value load(bits element, uint64_t scalar) { return reduction::load(begin(element, scalar)); }
    GY_MEMBER bits end(bits sum, int divisor)
    {
        return op == GYRE_AVERAGE && divisor ? gy_divide<type>(sum, divisor) : sum;
    }
};

/* ---- Single elements --------------------------------------------------------------------------------------------- */

/* The canonical tree (reduction_order.h), built like a binary counter: level l holds the value of 2^l adjacent
 * sources. */
template <typename work> struct gy_tree {
    typename work::value level[GY_TREE_LEVELS];
    GY_DEVICE_MEMBER void add(typename work::value v, int i)
    {
        bool carries = true;
        GY_UNROLL
        for (int l = 0; l < GY_TREE_LEVELS; l++) {
            if (carries && (i >> l & 1)) {
                v = work::reduction::combine(level[l], v);
            } else if (carries) {
                level[l] = v;
                carries = false;
            }
        }
    }
    GY_DEVICE_MEMBER typename work::value root(int n) const
    {
        typename work::value v = level[0];
        bool any = false;
        GY_UNROLL
        for (int l = 0; l < GY_TREE_LEVELS; l++) {
            if (n >> l & 1) {
                v = any ? work::reduction::combine(level[l], v) : level[l];
                any = true;
            }
        }
        return v;
    }
};

template <typename work> GY_DEVICE typename work::bits gy_reduce_element(const gy_operands &o, int n, size_t at)
{
    using bits = typename work::bits;
    using reduction = typename work::reduction;
    if constexpr (work::tree) {
        gy_tree<work> tree = {};
        GY_ROLLED
        for (int s = 0; s < n; s++)
            tree.add(work::load(gy_load_any<bits>(o.src[s] + at), o.scalar[s]), s);
        return reduction::store(tree.root(n));
    } else {
        auto v = work::load(gy_load_any<bits>(o.src[0] + at), o.scalar[0]);
        GY_ROLLED
        for (int s = 1; s < n; s++)
            v = reduction::combine(v, work::load(gy_load_any<bits>(o.src[s] + at), o.scalar[s]));
        return reduction::store(v);
    }
}

/* A single contribution keeps its bits; booleans are normalised to 0 and 1. */
template <typename work> GY_DEVICE void gy_do_element(const gy_operands &o, const gy_kernel_piece &p, size_t i)
{
    using bits = typename work::bits;
    size_t at = i * sizeof(bits);
    bits sum;
    if (p.nsrc > 1)
        sum = gy_reduce_element<work>(o, p.nsrc, at);
    else if (work::type == GYRE_BOOL)
        sum = work::reduction::store(work::load(gy_load_any<bits>(o.src[0] + at), o.scalar[0]));
    else
        sum = work::begin(gy_load_any<bits>(o.src[0] + at), o.scalar[0]);
    sum = work::end(sum, p.divisor);
    GY_ROLLED
    for (int d = 0; d < p.ndst; d++)
        gy_store_any<bits>(o.dst[d] + at, sum);
}

/* ---- Vectors ----------------------------------------------------------------------------------------------------- */

template <typename bits> GY_DEVICE bits gy_lane(const gy_vector &v, int lane)
{
    if constexpr (sizeof(bits) == 8)
        return (bits)v.word[2 * lane] | (bits)v.word[2 * lane + 1] << 32;
    constexpr int per_word = sizeof(bits) < 4 ? 4 / (int)sizeof(bits) : 1;
    return (bits)(v.word[lane / per_word] >> (lane % per_word * 8 * (int)(sizeof(bits) % 4)));
}
template <typename bits> GY_DEVICE void gy_set_lane(gy_vector &v, int lane, bits b)
{
    if constexpr (sizeof(bits) == 8) {
        v.word[2 * lane] = (uint32_t)b;
        v.word[2 * lane + 1] = (uint32_t)((uint64_t)b >> 32);
    } else {
        constexpr int per_word = 4 / (int)sizeof(bits);
        uint32_t shifted = (uint32_t)b << (lane % per_word * 8 * (int)(sizeof(bits) % 4));
        v.word[lane / per_word] = lane % per_word == 0 ? shifted : v.word[lane / per_word] | shifted;
    }
}

/* Reduces one lane of n <= most vectors. All loops have constant bounds, so arrays stay in registers. */
template <typename work, int most>
GY_DEVICE typename work::bits gy_reduce_lane(const gy_vector (&in)[most], const gy_operands &o, int n, int lane)
{
    using bits = typename work::bits;
    using reduction = typename work::reduction;
    typename work::value v[most];
    GY_UNROLL
    for (int s = 0; s < most; s++)
        v[s] = work::load(gy_lane<bits>(in[s], lane), o.scalar[s]);
    if constexpr (work::tree) {
        GY_UNROLL
        for (int distance = 1; distance < most; distance *= 2)
            GY_UNROLL
        for (int s = 0; s + distance < most; s += 2 * distance)
            if (s + distance < n)
                v[s] = reduction::combine(v[s], v[s + distance]);
    } else {
        GY_UNROLL
        for (int s = 1; s < most; s++)
            if (s < n)
                v[0] = reduction::combine(v[0], v[s]);
    }
    return reduction::store(v[0]);
}

/* Reduces the first word of n <= most sources. If elements are bytes, the word of each source is shifted out. Bytes are
 * handled one by one, since conversions of float8 would otherwise use too many registers. */
template <typename work, int most>
GY_DEVICE uint32_t gy_reduce_word(gy_vector (&in)[most], const gy_operands &o, const gy_kernel_piece &p)
{
    using bits = typename work::bits;
    constexpr int size = (int)sizeof(bits), lanes = size == 1 ? 1 : 4 / size, rounds = size == 1 ? 4 : 1;
    uint32_t word = 0;
    GY_ROLLED
    for (int round = 0; round < rounds; round++) {
        gy_vector reduced = {};
        GY_UNROLL
        for (int lane = 0; lane < lanes; lane++)
            gy_set_lane<bits>(reduced, lane, work::end(gy_reduce_lane<work, most>(in, o, p.nsrc, lane), p.divisor));
        if (rounds == 1)
            return reduced.word[0];
        word = word >> 8 | reduced.word[0] << 24;
        GY_UNROLL
        for (int s = 0; s < most; s++)
            in[s].word[0] >>= 8;
    }
    return word;
}

/* Reduces a vector of n <= most sources. If elements are smaller than a word, a loop over words keeps the code small.
 * The loop shifts the next word to the front of each vector, since registers cannot be indexed; this overwrites
 * `in`. */
template <typename work, int most>
GY_DEVICE gy_vector gy_reduce_vector(gy_vector (&in)[most], const gy_operands &o, const gy_kernel_piece &p)
{
    using bits = typename work::bits;
    gy_vector out = {};
    if constexpr (sizeof(bits) >= 4) {
        constexpr int lanes = 16 / (int)sizeof(bits);
        GY_UNROLL
        for (int lane = 0; lane < lanes; lane++)
            gy_set_lane<bits>(out, lane, work::end(gy_reduce_lane<work, most>(in, o, p.nsrc, lane), p.divisor));
    } else {
        GY_ROLLED
        for (int k = 0; k < 4; k++) {
            out = {{out.word[1], out.word[2], out.word[3], gy_reduce_word<work, most>(in, o, p)}};
            GY_UNROLL
            for (int s = 0; s < most; s++)
                in[s] = {{in[s].word[1], in[s].word[2], in[s].word[3], 0}};
        }
    }
    return out;
}

/* Handles the first `n`, at most `deep`, vectors of each source, which are `apart` bytes apart. All loads are issued
 * before the first use, which hides the latency of memory. */
template <typename work, int most, int deep>
GY_DEVICE void gy_do_vectors(const gy_operands &o, const gy_kernel_piece &p, size_t at, size_t apart, size_t n)
{
    gy_vector in[deep][most] = {};
    GY_UNROLL
    for (int k = 0; k < deep; k++)
        GY_UNROLL
    for (int s = 0; s < most; s++)
        if ((size_t)k < n)
            in[k][s] = gy_load<gy_vector>(o.src[s < p.nsrc ? s : 0] + at + (size_t)k * apart);
    GY_UNROLL
    for (int k = 0; k < deep; k++) {
        if ((size_t)k >= n)
            break;
        gy_vector out = gy_reduce_vector<work, most>(in[k], o, p);
        GY_ROLLED
        for (int d = 0; d < p.ndst; d++)
            gy_store<gy_vector>(o.dst[d] + at + (size_t)k * apart, out);
    }
}

/* Handles vectors [0, vectors) from byte `start` on; `block` is the index of this block within the piece. */
template <typename work, int most, int deep>
GY_DEVICE void gy_do_tiles(const gy_operands &o, const gy_kernel_piece &p, size_t start, size_t vectors, unsigned block)
{
    const size_t threads = gy_threads(), tile = threads * deep;
    GY_ROLLED
    for (size_t v = tile * block + gy_thread(); v < vectors; v += tile * gy_blocks())
        gy_do_vectors<work, most, deep>(o, p, start + 16 * v, 16 * threads, (vectors - v + threads - 1) / threads);
}

/* ---- Pieces ------------------------------------------------------------------------------------------------------ */

/* Copies the operands of a piece to shared memory, which can be indexed. Returns true if vectors are possible: all
 * addresses have one offset modulo 16, and elements are aligned. Ends with a barrier of the block. */
template <typename work> GY_DEVICE bool gy_fetch_operands(gy_operands &o, const gy_kernel_piece &p)
{
    using bits = typename work::bits;
    bool is_indirect = p.nsrc > GY_INLINE_OPERANDS || p.ndst > GY_INLINE_OPERANDS, disagree = false;
    uintptr_t one = (uintptr_t)(is_indirect ? gy_load<char *>(p.indirect_dst) : p.dst[0]);
    gy_sync();
    GY_ROLLED
    for (unsigned t = gy_thread(); t < GY_GROUP_MOST; t += gy_threads()) {
        if (t < p.nsrc) {
            o.src[t] = is_indirect ? gy_load<const char *>(p.indirect_src + t) : (const char *)p.src[t];
            disagree |= ((uintptr_t)o.src[t] ^ one) % 16 != 0;
            if (work::op == GYRE_PREMUL_SUM)
                o.scalar[t] = gy_load_any<bits>(is_indirect ? gy_load<const void *>(p.indirect_scalar + t)
                                                            : p.scalar[t]);
        }
        if (t < p.ndst) {
            o.dst[t] = is_indirect ? gy_load<char *>(p.indirect_dst + t) : (char *)p.dst[t];
            disagree |= ((uintptr_t)o.dst[t] ^ one) % 16 != 0;
        }
    }
    return !gy_sync_or(disagree) && one % sizeof(bits) == 0;
}

/* Returns the number of tiles so far, which decides at which block the next piece begins. */
template <typename work> GY_DEVICE size_t gy_do_piece(gy_operands &o, const gy_kernel_piece &p, size_t tiles_before)
{
    using bits = typename work::bits;
    constexpr size_t size = sizeof(bits);
    bool vectors = gy_fetch_operands<work>(o, p) && p.nsrc > 1 && p.nsrc <= GY_INLINE_OPERANDS;
    const unsigned block = (unsigned)((gy_block() + gy_blocks() - tiles_before % gy_blocks()) % gy_blocks());
    const size_t count = p.count > p.first ? p.count - p.first : 0;
    size_t head = count, middle = 0; /* elements */
    if (vectors) {
        head = (16 - ((uintptr_t)o.dst[0] + p.first * size) % 16) % 16 / size;
        head = head < count ? head : count;
        middle = (count - head) * size / 16;
    }
    const size_t start = (p.first + head) * size;
    if (p.nsrc == 2)
        gy_do_tiles<work, 2, 4>(o, p, start, middle, block);
    else if (p.nsrc <= 4)
        gy_do_tiles<work, 4, 2>(o, p, start, middle, block);
    else
        gy_do_tiles<work, 8, 1>(o, p, start, middle, block);
    /* The remaining elements are numbered from 0: first those of the head, then those of the tail. */
    const size_t done = middle * 16 / size;
    GY_ROLLED
    for (size_t i = (size_t)block * gy_threads() + gy_thread(); i < count - done;
         i += (size_t)gy_blocks() * gy_threads())
        gy_do_element<work>(o, p, p.first + (i < head ? i : i + done));
    return tiles_before + (middle + count - done) / gy_threads() + 1;
}

template <typename work> GY_DEVICE void gy_do_pieces(const gy_kernel_piece *piece, unsigned pieces)
{
    GY_SHARED(gy_operands, operands);
    size_t tiles = 0;
    GY_ROLLED
    for (unsigned k = 0; k < pieces; k++)
        tiles = gy_do_piece<work>(operands, piece[k], tiles);
}

template <typename work> GY_DEVICE void gy_fused_run(const gy_fused &a)
{
    if (gy_aborted(a.abort))
        return;
    gy_do_pieces<work>(a.piece, a.pieces);
}

#endif

/* The fused kernel on fibres, compared with the CPU bit for bit: every type and operation, in both orders, with 1 to 12
 * sources, in place and out of place, with several pieces per launch. Pointers have equal offsets modulo 16, different
 * ones, or are not aligned to an element. argv[1]: the first seed. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda/kernels/fused.cuh"
#include "emu.h"
#include "pairs.h"
#include "reference.h"

namespace
{
int failures, launches;
uint64_t state;

unsigned below(unsigned n)
{
    return (unsigned)(reference_random(&state) % n);
}

/* `bytes` bytes that begin `offset` bytes after a multiple of 16. One byte after them detects stores beyond the end. */
struct buffer {
    std::unique_ptr<char, void (*)(void *)> memory{nullptr, free};
    char *at = nullptr;
    buffer(size_t bytes, unsigned offset)
    {
        memory.reset((char *)malloc(offset + bytes + 1));
        at = memory.get() + offset;
        memset(memory.get(), 0xee, offset + bytes + 1);
    }
};

/* One piece with its buffers and the expected contents of every destination. */
struct part {
    std::vector<buffer> in, out;
    std::vector<unsigned char> scalars, expected;
    std::vector<const void *> src, scalar;
    std::vector<void *> dst;
    size_t first, count, size;
    gy_kernel_piece piece = {};

    void expect(int type, int op, bool canonical, int nsrc)
    {
        std::vector<std::vector<char>> scaled((size_t)nsrc);
        std::vector<const void *> from;
        expected.assign(count * size + 1, 0xee);
        for (int s = 0; s < nsrc; s++) {
            scaled[(size_t)s].assign((const char *)src[(size_t)s], (const char *)src[(size_t)s] + count * size);
            if (op == GYRE_PREMUL_SUM)
                reference_multiply(scaled[(size_t)s].data(), src[(size_t)s], scalar[(size_t)s], count, type);
            from.push_back(scaled[(size_t)s].data());
        }
        if (count == 0)
            return;
        reference_reduce(expected.data(), from.data(), nsrc, count, type, op, canonical);
        for (size_t i = 0; type == GYRE_BOOL && i < count; i++)
            expected[i] = expected[i] != 0;
    }

    part(int type, int op, bool canonical, int nsrc, int ndst, size_t elements, bool in_place)
    {
        const unsigned alignment = below(3), common = alignment == 0 ? 0 : below(16);
        size = gyre_dtype_size((gyre_dtype)type);
        count = elements;
        first = below(4) == 0 && count > 3 ? 3 : 0;
        scalars.resize((size_t)nsrc * size);
        reference_fill(scalars.data(), (size_t)nsrc, type, &state);
        for (int s = 0; s < nsrc; s++) {
            in.emplace_back(count * size, alignment == 2 ? below(16) : common);
            reference_fill(in.back().at, count, type, &state);
            src.push_back(in.back().at);
            scalar.push_back(&scalars[(size_t)s * size]);
        }
        for (int d = 0; d < ndst; d++) {
            out.emplace_back(count * size, alignment == 2 ? below(16) : common);
            dst.push_back(in_place && d < nsrc ? in[(size_t)d].at : out.back().at);
        }
        expect(type, op, canonical, nsrc);
        fill_piece(nsrc, ndst, op == GYRE_AVERAGE ? nsrc : 0);
    }

    void fill_piece(int nsrc, int ndst, int divisor)
    {
        piece.first = first;
        piece.count = count;
        piece.nsrc = (uint16_t)nsrc;
        piece.ndst = (uint16_t)ndst;
        piece.divisor = divisor;
        piece.indirect_src = src.data();
        piece.indirect_dst = dst.data();
        piece.indirect_scalar = scalar.data();
        for (int s = 0; s < nsrc && s < GY_INLINE_OPERANDS; s++)
            piece.src[s] = src[(size_t)s], piece.scalar[s] = scalar[(size_t)s];
        for (int d = 0; d < ndst && d < GY_INLINE_OPERANDS; d++)
            piece.dst[d] = dst[(size_t)d];
    }

    bool right(const char *what) const
    {
        for (size_t d = 0; d < dst.size(); d++) {
            const unsigned char *got = (const unsigned char *)dst[d];
            for (size_t k = first * size; k < count * size; k++)
                if (got[k] != expected[k]) {
                    printf("%s: nsrc %u, destination %zu, byte %zu of %zu is %02x, not %02x\n", what, piece.nsrc, d, k,
                           count * size, got[k], expected[k]);
                    return false;
                }
            if (got[count * size] != 0xee) {
                printf("%s: a store beyond destination %zu\n", what, d);
                return false;
            }
        }
        return true;
    }
};

template <int type, int op, bool canonical> void kernel(const void *a)
{
    gy_fused_run<gy_work<type, op, canonical>>(*(const gy_fused *)a);
}

struct check {
    template <int type, int op, bool canonical> void launch_parts(std::vector<part> &parts)
    {
        static uint32_t never = 0;
        char what[96];
        gy_fused a = {};
        snprintf(what, sizeof(what), "%s %s%s", gyre_dtype_name((gyre_dtype)type), gyre_op_name((gyre_op)op),
                 canonical ? " canonical" : "");
        a.abort = &never;
        a.pieces = (uint32_t)parts.size();
        for (size_t k = 0; k < parts.size(); k++)
            a.piece[k] = parts[k].piece;
        const emu_launch l = {"fused", kernel<type, op, canonical>, &a, sizeof(a), 0, 1 + below(3), 8 + 8 * below(4),
                              0};
        emu_submit(&l);
        if (emu_run(UINT64_MAX) != EMU_IDLE) {
            printf("%s: does not end\n%s", what, emu_report());
            emu_drop();
            failures++;
        }
        launches++;
        for (auto &p : parts)
            failures += !p.right(what);
    }

    template <int type, int op, bool canonical> void order()
    {
        for (int nsrc : {1, 2, 3, 4, 5, 8, 9, 12}) {
            std::vector<part> parts;
            for (unsigned k = 0, n = 1 + below(3); k < n; k++)
                parts.emplace_back(type, op, canonical, nsrc, below(2) ? nsrc : 1, below(3) ? below(300) : below(8),
                                   below(2));
            launch_parts<type, op, canonical>(parts);
        }
    }

    template <int type, int op> void pair()
    {
        order<type, op, false>();
        order<type, op, true>();
    }
};
} // namespace

int main(int argc, char **argv)
{
    const uint64_t seed = argc > 1 ? strtoull(argv[1], nullptr, 0) : 1;
    check all;

    for (uint64_t s = seed; s < seed + 2; s++) {
        state = s * 0x9E3779B97F4A7C15u + 1;
        emu_seed(s);
        for_pairs(all);
    }
    printf("%d launches from seed %llu on, %d failures, %u divergent barriers\n", launches, (unsigned long long)seed,
           failures, emu_divergent());
    return failures != 0 || emu_divergent() != 0;
}

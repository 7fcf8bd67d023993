/* Types and operations of the GPU kernels, compared with those of the CPU bit for bit: all pairs of 8-bit operands,
 * random operands of the other sizes, reductions of several operands, division by several numbers of ranks, and
 * multiplication. */
#include <cstdio>
#include <vector>

#include "pairs.h"
#include "reference.h"

namespace
{
int failures;

template <typename bits>
bool same(const std::vector<bits> &got, const std::vector<bits> &right, int type, const char *what)
{
    for (size_t i = 0; i < got.size(); i++) {
        if (got[i] != right[i]) {
            printf("%s %s: element %zu is %llx, not %llx\n", gyre_dtype_name((gyre_dtype)type), what, i,
                   (unsigned long long)got[i], (unsigned long long)right[i]);
            failures++;
            return false;
        }
    }
    return true;
}

/* All pairs of 8-bit elements in two sources; random elements otherwise. */
template <typename bits> std::vector<std::vector<bits>> operands(int type, int nsrc, uint64_t *state_p)
{
    const size_t count = sizeof(bits) == 1 && nsrc == 2 ? 1 << 16 : 50000;
    std::vector<std::vector<bits>> source((size_t)nsrc, std::vector<bits>(count));

    for (auto &s : source)
        reference_fill(s.data(), count, type, state_p);
    if (sizeof(bits) == 1 && nsrc == 2)
        for (size_t i = 0; i < count; i++) {
            source[0][i] = (bits)(i >> 8);
            source[1][i] = (bits)i;
        }
    return source;
}

struct check {
    uint64_t state = 88172645463325252;

    template <int type, int op> void reduce(int nsrc)
    {
        using r = gy_reduction<type, op>;
        auto source = operands<typename r::bits>(type, nsrc, &state);
        std::vector<typename r::bits> got(source[0].size()), right(got.size());
        const void *from[8];

        for (int s = 0; s < nsrc; s++)
            from[s] = source[(size_t)s].data();
        for (size_t i = 0; i < got.size(); i++) {
            auto value = r::load(source[0][i]);
            for (int s = 1; s < nsrc; s++)
                value = r::combine(value, r::load(source[(size_t)s][i]));
            got[i] = r::store(value);
            if (op == GYRE_AVERAGE)
                got[i] = gy_divide<type>(got[i], nsrc);
        }
        reference_reduce(right.data(), from, nsrc, got.size(), type, op, 0);
        same(got, right, type, gyre_op_name((gyre_op)op));
    }

    template <int type> void divide(int divisor)
    {
        using bits = typename gy_type<type>::bits;
        auto source = operands<bits>(type, 2, &state);
        std::vector<bits> got(source[1].size()), right(got.size());

        for (size_t i = 0; i < got.size(); i++)
            got[i] = gy_divide<type>(source[1][i], divisor);
        reference_divide(right.data(), source[1].data(), got.size(), type, divisor);
        same(got, right, type, "divided");
    }

    template <int type> void multiply()
    {
        using bits = typename gy_type<type>::bits;
        auto source = operands<bits>(type, 2, &state);
        std::vector<bits> got(source[1].size()), right(got.size());

        for (size_t k = 0; k < 256; k++) {
            bits scalar = source[0][k * (source[0].size() / 256)];
            size_t first = sizeof(bits) == 1 ? 0 : k * 100, n = sizeof(bits) == 1 ? 256 : 100;
            for (size_t i = first; i < first + n; i++)
                got[i] = gy_multiply<type>(source[1][i], scalar);
            reference_multiply(&right[first], &source[1][first], &scalar, n, type);
            if (!same(got, right, type, "multiplied"))
                return;
        }
    }

    template <int type, int op> void pair()
    {
        for (int nsrc : {2, 3, 8})
            reduce<type, op>(nsrc);
        if (op == GYRE_AVERAGE)
            for (int divisor : {1, 2, 3, 7, 127, 128, 255, 256, 1000})
                divide<type>(divisor);
        if (op == GYRE_PREMUL_SUM)
            multiply<type>();
    }
};
} // namespace

int main()
{
    check all;
    for_pairs(all);
    printf("%d comparisons with the CPU differ\n", failures);
    return failures != 0;
}

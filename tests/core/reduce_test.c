/* The reductions, bit for bit against one-element references written here from the rules in gyre.h. The source is
 * compiled in, so that the kernels of every instruction set which this CPU has are tested, not only the chosen one. */
#include <criterion/criterion.h>
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../src/core/reduce.c"

#define LONGEST 5001 /* elements: several tiles and a tail */
#define SOURCES 9

static const gyre_dtype dtypes[] = {GYRE_INT32, GYRE_FLOAT32, GYRE_FLOAT64};
static const gyre_op ops[] = {GYRE_SUM, GYRE_MIN, GYRE_MAX};

static uint64_t random_state = 42;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static const uint32_t specials_32[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff,
                                       0x00800000, 0x80800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff,
                                       0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7fc12345, 0xffffffff,
                                       0x7f800001, 0xff800001, 0x7fffffff, 0xffc00001};
static const uint64_t specials_64[] = {0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x8000000000000001,
                                       0x000fffffffffffff, 0x800fffffffffffff, 0x0010000000000000, 0x8010000000000000,
                                       0x3ff0000000000000, 0xbff0000000000000, 0x7fefffffffffffff, 0xffefffffffffffff,
                                       0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000000,
                                       0x7ff8000012345678, 0xffffffffffffffff, 0x7ff0000000000001, 0xfff0000000000001};

/* Random bits, half of them specials, the rest anything or of near magnitude (so that sums round). */
static void fill(unsigned char *bytes, size_t count, gyre_dtype dtype)
{
    size_t size = gyre_dtype_size(dtype);

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = random_bits();

        switch (random_bits() % 4) {
        case 0:
            bits = size == 4 ? specials_32[bits % GY_ARRAY_LENGTH(specials_32)]
                             : specials_64[bits % GY_ARRAY_LENGTH(specials_64)];
            break;
        case 1:
        case 2:
            bits = size == 4 ? (bits & 0x83ffffff) | 0x3c000000 : (bits & 0x80ffffffffffffff) | 0x3f00000000000000;
            break;
        default: break;
        }
        memcpy(bytes + i * size, &bits, size); /* little-endian: the low bytes */
    }
}

static uint32_t reference_32(uint32_t a, uint32_t b, gyre_op op)
{
    volatile float x, y, sum;
    uint32_t bits;

    memcpy((void *)&x, &a, 4);
    memcpy((void *)&y, &b, 4);
    if (isnan(x) || isnan(y))
        return 0x7fc00000;
    if (op == GYRE_SUM) {
        sum = x + y;
        memcpy(&bits, (void *)&sum, 4);
        return isnan(sum) ? 0x7fc00000 : bits;
    }
    if (x == 0 && y == 0)
        return op == GYRE_MIN ? a | b : a & b;
    return (op == GYRE_MIN) == (x < y) ? a : b;
}

static uint64_t reference_64(uint64_t a, uint64_t b, gyre_op op)
{
    volatile double x, y, sum;
    uint64_t bits;

    memcpy((void *)&x, &a, 8);
    memcpy((void *)&y, &b, 8);
    if (isnan(x) || isnan(y))
        return 0x7ff8000000000000;
    if (op == GYRE_SUM) {
        sum = x + y;
        memcpy(&bits, (void *)&sum, 8);
        return isnan(sum) ? 0x7ff8000000000000 : bits;
    }
    if (x == 0 && y == 0)
        return op == GYRE_MIN ? a | b : a & b;
    return (op == GYRE_MIN) == (x < y) ? a : b;
}

static uint32_t reference_int(uint32_t a, uint32_t b, gyre_op op)
{
    if (op == GYRE_SUM)
        return a + b;
    return (op == GYRE_MIN) == ((int32_t)a < (int32_t)b) ? a : b;
}

/* Left to right over the sources, element by element. */
static void reference(void *dst, const void *const *src, int nsrc, size_t count, gyre_dtype dtype, gyre_op op)
{
    size_t size = gyre_dtype_size(dtype);

    for (size_t i = 0; i < count; i++) {
        uint64_t sum = 0, next = 0;

        memcpy(&sum, (const char *)src[0] + i * size, size);
        for (int s = 1; s < nsrc; s++) {
            memcpy(&next, (const char *)src[s] + i * size, size);
            if (dtype == GYRE_FLOAT64)
                sum = reference_64(sum, next, op);
            else if (dtype == GYRE_FLOAT32)
                sum = reference_32((uint32_t)sum, (uint32_t)next, op);
            else
                sum = reference_int((uint32_t)sum, (uint32_t)next, op);
        }
        memcpy((char *)dst + i * size, &sum, size);
    }
}

static unsigned char *memory[SOURCES], *expected, *result, *second;
static const void *sources[SOURCES];

static void set_up(void)
{
    size_t bytes = LONGEST * 8 + 64;

    for (size_t i = 0; i < SOURCES; i++)
        memory[i] = malloc(bytes);
    expected = malloc(bytes);
    result = malloc(bytes);
    second = malloc(bytes);
}

TestSuite(reduce, .init = set_up);

/* Fresh data in the first nsrc sources; source i begins `skew * i` bytes off alignment. */
static void prepare(int nsrc, size_t skew, size_t count, gyre_dtype dtype, gyre_op op)
{
    for (int i = 0; i < nsrc; i++) {
        sources[i] = memory[i] + skew * (size_t)i;
        fill(memory[i] + skew * (size_t)i, count, dtype);
    }
    reference(expected, sources, nsrc, count, dtype, op);
}

static void assert_same(const void *got, size_t count, gyre_dtype dtype, gyre_op op, const char *what)
{
    size_t bytes = count * gyre_dtype_size(dtype);

    for (size_t i = 0; i < bytes; i++)
        cr_assert_eq(((const unsigned char *)got)[i], expected[i], "%s: %s %s of %zu: byte %zu", what,
                     gyre_dtype_name(dtype), gyre_op_name(op), count, i);
}

/* Calls body once for every type and operation. */
#define FOR_ALL_KINDS(dtype, op)                  \
    for (size_t t_ = 0; t_ < 3; t_++)             \
        for (size_t o_ = 0; o_ < 3; o_++)         \
            for (struct {                         \
                     gyre_dtype d;                \
                     gyre_op o;                   \
                     int once;                    \
                 } k_ = {dtypes[t_], ops[o_], 1}; \
                 k_.once; k_.once = 0)

Test(reduce, every_pair_of_special_values)
{
    FOR_ALL_KINDS(dtype, op)
    {
        size_t size = gyre_dtype_size(k_.d);
        const void *values = size == 4 ? (const void *)specials_32 : (const void *)specials_64;
        size_t number = size == 4 ? GY_ARRAY_LENGTH(specials_32) : GY_ARRAY_LENGTH(specials_64), count = 0;

        for (size_t a = 0; a < number; a++) {
            for (size_t b = 0; b < number; b++, count++) {
                memcpy(memory[0] + count * size, (const char *)values + a * size, size);
                memcpy(memory[1] + count * size, (const char *)values + b * size, size);
            }
        }
        sources[0] = memory[0];
        sources[1] = memory[1];
        reference(expected, sources, 2, count, k_.d, k_.o);
        gy_reduce2(result, sources[0], sources[1], count, k_.d, k_.o);
        assert_same(result, count, k_.d, k_.o, "pairs");
    }
}

Test(reduce, two_operands_any_count_and_alignment)
{
    FOR_ALL_KINDS(dtype, op)
    {
        for (size_t count = 0; count < 70; count++) {
            for (size_t skew = 0; skew < 4; skew++) {
                size_t bytes = count * gyre_dtype_size(k_.d);
                unsigned char *dst = result + 3 * skew;

                prepare(2, skew, count, k_.d, k_.o);
                memset(result, 0xee, LONGEST * 8 + 64);
                gy_reduce2(dst, sources[0], sources[1], count, k_.d, k_.o);
                assert_same(dst, count, k_.d, k_.o, "two");
                cr_assert_eq(dst[bytes], 0xee, "written past the end");
                cr_assert(skew == 0 || dst[-1] == 0xee, "written before the start");
            }
        }
    }
}

Test(reduce, two_operands_in_place)
{
    FOR_ALL_KINDS(dtype, op)
    {
        prepare(2, 1, 999, k_.d, k_.o);
        gy_reduce2(memory[0], sources[0], sources[1], 999, k_.d, k_.o);
        assert_same(memory[0], 999, k_.d, k_.o, "into left");
        prepare(2, 1, 999, k_.d, k_.o);
        gy_reduce2(memory[1] + 1, sources[0], sources[1], 999, k_.d, k_.o);
        assert_same(memory[1] + 1, 999, k_.d, k_.o, "into right");
    }
}

Test(reduce, many_operands_left_to_right)
{
    static const size_t counts[] = {0, 1, 3, 17, 1024, 2048, 2049, LONGEST};

    FOR_ALL_KINDS(dtype, op)
    {
        for (int nsrc = 2; nsrc <= SOURCES; nsrc++) {
            for (size_t c = 0; c < GY_ARRAY_LENGTH(counts); c++) {
                prepare(nsrc, 1, counts[c], k_.d, k_.o);
                gy_reduce_many(result, second + 1, sources, nsrc, counts[c], k_.d, k_.o);
                assert_same(result, counts[c], k_.d, k_.o, "many");
                assert_same(second + 1, counts[c], k_.d, k_.o, "many, second copy");
            }
        }
    }
}

Test(reduce, many_operands_into_any_source)
{
    FOR_ALL_KINDS(dtype, op)
    {
        for (int nsrc = 2; nsrc <= SOURCES; nsrc++) {
            for (int into = 0; into < nsrc; into++) {
                unsigned char *dst = memory[into] + into;

                prepare(nsrc, 1, 2500, k_.d, k_.o);
                gy_reduce_many(dst, NULL, sources, nsrc, 2500, k_.d, k_.o);
                assert_same(dst, 2500, k_.d, k_.o, "into a source");
            }
        }
    }
}

Test(reduce, one_operand_is_a_copy)
{
    prepare(1, 0, 100, GYRE_FLOAT32, GYRE_SUM);
    gy_reduce_many(result, second, sources, 1, 100, GYRE_FLOAT32, GYRE_SUM);
    cr_assert_eq(memcmp(result, memory[0], 400), 0);
    cr_assert_eq(memcmp(second, memory[0], 400), 0);
    gy_reduce_many(memory[0], NULL, sources, 1, 100, GYRE_FLOAT32, GYRE_SUM);
    cr_assert_eq(memcmp(second, memory[0], 400), 0);
}

typedef const gy_kernel_func kernel_table[KERNEL_TYPES][KERNEL_OPS];

static void check_kernels(kernel_table table, const char *name)
{
    FOR_ALL_KINDS(dtype, op)
    {
        for (int nsrc = 2; nsrc <= MOST_SOURCES; nsrc++) {
            for (size_t count = 1; count < 140; count += 3) {
                prepare(nsrc, 1, count, k_.d, k_.o);
                table[t_][o_]((char *)result, (char *)second, sources, nsrc, count * gyre_dtype_size(k_.d));
                assert_same(result, count, k_.d, k_.o, name);
                assert_same(second, count, k_.d, k_.o, name);
            }
        }
    }
}

Test(reduce, every_instruction_set_gives_the_same_bits)
{
    check_kernels(kernels_plain, "plain");
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        check_kernels(kernels_avx2, "avx2");
    if (__builtin_cpu_supports("avx512f"))
        check_kernels(kernels_avx512, "avx512");
#endif
}

Test(reduce, an_order_sensitive_sum_is_left_to_right)
{
    const float a = 1e8f, b = -1e8f, c = 1.0f;
    const void *forward[] = {&a, &b, &c}, *backward[] = {&c, &b, &a};
    float sum;

    gy_reduce_many(&sum, NULL, forward, 3, 1, GYRE_FLOAT32, GYRE_SUM);
    cr_assert(sum == 1.0f);
    gy_reduce_many(&sum, NULL, backward, 3, 1, GYRE_FLOAT32, GYRE_SUM);
    cr_assert(sum == 0.0f);
}

#if defined(__x86_64__)
static uint32_t mode_get(void)
{
    return __builtin_ia32_stmxcsr();
}

static void mode_set(uint32_t mode)
{
    __builtin_ia32_ldmxcsr(mode);
}
#define STRANGE_MODE (0x1f80u | 0x8040u | 0x4000u) /* flush to zero, denormals are zero, round up */

Test(reduce, the_caller_s_mode_changes_nothing)
{
    uint32_t own = mode_get(), saved;
    bool sensitive = false;

    for (size_t t = 1; t < 3; t++) {
        for (size_t o = 0; o < 3; o++) {
            prepare(2, 0, 2000, dtypes[t], ops[o]);
            mode_set(STRANGE_MODE);
            saved = gy_fp_enter();
            gy_reduce2(result, sources[0], sources[1], 2000, dtypes[t], ops[o]);
            gy_fp_leave(saved);
            cr_assert_eq(mode_get(), STRANGE_MODE, "the mode, or a sticky flag, was not put back");
            gy_reduce2(second, sources[0], sources[1], 2000, dtypes[t], ops[o]);
            mode_set(own);
            assert_same(result, 2000, dtypes[t], ops[o], "strange mode");
            sensitive |= memcmp(result, second, 2000 * gyre_dtype_size(dtypes[t])) != 0;
        }
    }
    cr_assert(sensitive, "the data do not notice the mode: the test proves nothing");
}

Test(reduce, traps_of_the_caller_do_not_fire)
{
    const float infinite = INFINITY, opposite = -INFINITY;
    float sum;
    uint32_t saved, bits;

    mode_set(0x1f80u & ~0x1f80u); /* every exception would trap */
    saved = gy_fp_enter();
    gy_reduce2(&sum, &infinite, &opposite, 1, GYRE_FLOAT32, GYRE_SUM);
    gy_fp_leave(saved);
    cr_assert_eq(mode_get(), 0);
    mode_set(0x1f80u);
    memcpy(&bits, &sum, 4);
    cr_assert_eq(bits, 0x7fc00000);
}
#endif

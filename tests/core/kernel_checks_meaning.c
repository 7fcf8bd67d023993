/* The checks of kernel_checks.h that ask what an operation means: division, scalars, the order of a sum, where it
 * rounds, stated values, the bound of the error, and that the caller's floating-point mode plays no part. */
#include <math.h>
#include <string.h>

#include "kernel_checks.h"
#include "kernel_data.h"

static const char *divide_type(gyre_dtype dtype)
{
    static const int divisors[] = {1, 2, 3, 5, 7, 10, 127, 256, 257, 65537, (1 << 24) - 1, INT32_MAX};
    size_t size = gyre_dtype_size(dtype), count = size < 4 ? (size_t)1 << (8 * size) : 5000;
    const struct gy_kernels *kernels;
    const char *text = NULL;

    fill(memory[0], count, dtype);
    for (size_t i = 0; size < 4 && i < count; i++)
        put(memory[0], i, size, i);
    for (size_t d = 0; d < GY_ARRAY_LENGTH(divisors); d++) {
        for (size_t i = 0; i < count; i++)
            put(expected, i, size, gy_reference_divide(dtype, get(memory[0], i, size), divisors[d]));
        for (int i = 0; !text && (kernels = gy_kernels_usable(i)) != NULL; i++) {
            kernels->divide[dtype]((char *)result, (const char *)memory[0], count * size, divisors[d]);
            text = compare(result, count, dtype, "division", kernels->name);
        }
    }
    memcpy(result, memory[0], count * size);
    gy_reduce_divide(result, result, count, dtype, INT32_MAX);
    return text ? text : compare(result, count, dtype, "division in place", "the best");
}

const char *gy_check_division(void)
{
    const char *text = NULL;

    set_up();
    for (int d = 0; d < GY_DTYPES && !text; d++) {
        if (gy_op_valid(GYRE_AVERAGE, (gyre_dtype)d))
            text = divide_type((gyre_dtype)d);
    }
    return text;
}

/* Several tiles and a tail, for every special scalar. */
const char *gy_check_multiplication_by_a_scalar(void)
{
    const size_t count = 5001;
    const char *text = NULL;
    uint64_t special[32];

    set_up();
    for (int d = 0; d < GY_DTYPES; d++) {
        gyre_dtype dtype = (gyre_dtype)d;
        size_t size = gyre_dtype_size(dtype), specials = make_specials(dtype, special);

        for (size_t s = 0; s < specials && !text; s++) {
            prepare(1, 0, count, dtype, GYRE_PRODUCT);
            for (size_t i = 0; i < count; i++) {
                const uint64_t element[] = {get(memory[0], i, size), special[s]};

                put(expected, i, size, gy_reference_reduce(dtype, GYRE_PRODUCT, element, 2));
            }
            gy_reduce_multiply(memory[0], memory[0], &special[s], count, dtype);
            text = compare(memory[0], count, dtype, "multiplication", "the best");
        }
    }
    return text;
}

const char *gy_check_one_source_is_a_copy(void)
{
    set_up();
    prepare(1, 0, 100, GYRE_FLOAT16, GYRE_SUM);
    memcpy(expected, memory[0], 200);
    gy_reduce_many(result, second, sources, 1, 100, GYRE_FLOAT16, GYRE_SUM);
    gy_reduce_many(memory[0], NULL, sources, 1, 100, GYRE_FLOAT16, GYRE_SUM);
    if (memcmp(result, expected, 200) != 0 || memcmp(second, expected, 200) != 0)
        return "the copy differs";
    return memcmp(memory[0], expected, 200) != 0 ? "the copy onto itself differs" : NULL;
}

const char *gy_check_order_is_left_to_right(void)
{
    const float a = 1e8f, b = -1e8f, c = 1.0f;
    const void *forward[] = {&a, &b, &c}, *backward[] = {&c, &b, &a};
    float first, last;

    gy_reduce_many(&first, NULL, forward, 3, 1, GYRE_FLOAT32, GYRE_SUM);
    gy_reduce_many(&last, NULL, backward, 3, 1, GYRE_FLOAT32, GYRE_SUM);
    return first == 1.0f && last == 0.0f ? NULL : wrong("%g and %g", (double)first, (double)last);
}

/* 256 + 1 is 256 in bfloat16, twice; 256 + (1 + 1) is 258. */
const char *gy_check_narrow_sums_round_once_a_pass(void)
{
    const uint16_t large = 0x4380, one = 0x3f80;
    const void *const src[] = {&large, &one, &one};
    uint16_t pass, hops;

    gy_reduce_many(&pass, NULL, src, 3, 1, GYRE_BFLOAT16, GYRE_SUM);
    gy_reduce2(&hops, &large, &one, 1, GYRE_BFLOAT16, GYRE_SUM);
    gy_reduce2(&hops, &hops, &one, 1, GYRE_BFLOAT16, GYRE_SUM);
    return pass == 0x4381 && hops == 0x4380 ? NULL : wrong("%x and %x", pass, hops);
}

/* What the header states, in literal bits: left, right, result. */
const char *gy_check_stated_values(void)
{
    static const struct {
        gyre_dtype dtype;
        gyre_op op;
        uint64_t left, right, result;
    } rows[] = {
        {GYRE_FLOAT8_E4M3, GYRE_SUM, 0x7e, 0x58, 0x7e},          /* 448 + 16 is the tie, and goes to 448 */
        {GYRE_FLOAT8_E4M3, GYRE_SUM, 0x7e, 0x59, 0x7f},          /* 448 + 18 overflows to the NaN */
        {GYRE_FLOAT8_E4M3, GYRE_SUM, 0xfe, 0xd9, 0x7f},          /* whose sign is plus */
        {GYRE_FLOAT8_E4M3, GYRE_PRODUCT, 0x01, 0x30, 0x00},      /* half the smallest denormal: to even */
        {GYRE_FLOAT8_E4M3, GYRE_MAX, 0x7e, 0xff, 0x7f},          /* either NaN wins */
        {GYRE_FLOAT8_E5M2, GYRE_SUM, 0x7b, 0x7b, 0x7c},          /* 57344 twice is infinity */
        {GYRE_FLOAT8_E5M2, GYRE_SUM, 0x7c, 0xfc, 0x7e},          /* inf − inf */
        {GYRE_FLOAT16, GYRE_SUM, 0x7bff, 0x4bff, 0x7bff},        /* 65504 + 15.99 */
        {GYRE_FLOAT16, GYRE_SUM, 0x7bff, 0x4c00, 0x7c00},        /* 65504 + 16: the tie goes to infinity */
        {GYRE_FLOAT16, GYRE_SUM, 0x0001, 0x0001, 0x0002},        /* denormals are kept */
        {GYRE_FLOAT16, GYRE_MIN, 0xfe01, 0x3c00, 0x7e00},        /* payload and sign are dropped */
        {GYRE_BFLOAT16, GYRE_SUM, 0x7f7f, 0x7f7f, 0x7f80},       /* overflow */
        {GYRE_BFLOAT16, GYRE_PRODUCT, 0x0001, 0x3f80, 0x0001},   /* a denormal times one */
        {GYRE_BFLOAT16, GYRE_SUM, 0x8000, 0x8000, 0x8000},       /* −0 − 0 */
        {GYRE_FLOAT32, GYRE_SUM, 0x3f800000, 0xbf800000, 0},     /* x − x is +0 */
        {GYRE_FLOAT32, GYRE_MIN, 0, 0x80000000, 0x80000000},     /* −0 is less */
        {GYRE_FLOAT32, GYRE_PRODUCT, 0x7f800000, 0, 0x7fc00000}, /* inf · 0 */
        {GYRE_INT8, GYRE_SUM, 0x7f, 0x01, 0x80},                 /* wraps */
        {GYRE_INT64, GYRE_PRODUCT, (uint64_t)1 << 63, 2, 0},
        {GYRE_UINT8, GYRE_MAX, 0x80, 0x7f, 0x80},
        {GYRE_INT8, GYRE_MAX, 0x80, 0x7f, 0x7f},
    };

    for (size_t i = 0; i < GY_ARRAY_LENGTH(rows); i++) {
        uint64_t got = 0;

        gy_reduce2(&got, &rows[i].left, &rows[i].right, 1, rows[i].dtype, rows[i].op);
        if (got != rows[i].result)
            return wrong("row %zu gives %llx", i, (unsigned long long)got);
    }
    return NULL;
}

/* Eight hops, rounding at each. The bound must hold, and must not be idle: the worst
 * error has to come within a factor of 64 of it. */
static const char *check_bound(gyre_dtype dtype)
{
    enum { HOPS = 8, ELEMENTS = 4096 };
    static const double bias = 0.6;
    double rounding = ldexp(1, -gy_format_of(dtype)->mantissa - 1), worst = 0;
    size_t size = gyre_dtype_size(dtype);
    static long double exact[ELEMENTS], absolute[ELEMENTS];

    if (gy_dtype_narrow(dtype))
        rounding += ldexp(1, -24);
    for (int hop = 0; hop <= HOPS; hop++) {
        for (size_t i = 0; i < ELEMENTS; i++) {
            double value = (double)(random_bits() >> 11) * 0x1p-53 - bias;
            uint64_t bits = gy_reference_encode(dtype, gy_dtype_narrow(dtype) || size == 4 ? (float)value : value);
            long double kept = gy_reference_decode(dtype, bits);

            exact[i] = hop == 0 ? kept : exact[i] + kept;
            absolute[i] = hop == 0 ? fabsl(kept) : absolute[i] + fabsl(kept);
            put(hop == 0 ? result : memory[0], i, size, bits);
        }
        if (hop > 0)
            gy_reduce2(result, result, memory[0], ELEMENTS, dtype, GYRE_SUM);
    }
    for (size_t i = 0; i < ELEMENTS; i++) {
        long double error = fabsl(gy_reference_decode(dtype, get(result, i, size)) - exact[i]);
        double part = (double)(error / ((powl(1 + (long double)rounding, HOPS) - 1) * absolute[i]));

        worst = part > worst ? part : worst;
    }
    if (worst > 1 || worst < 1.0 / 64)
        return wrong("%s: the worst error is %g of the bound", gyre_dtype_name(dtype), worst);
    return NULL;
}

const char *gy_check_error_stays_within_its_bound(void)
{
    const char *text = NULL;

    set_up();
    for (int d = 0; d < GY_DTYPES && !text; d++) {
        if (gy_format_of((gyre_dtype)d)->exponent > 0)
            text = check_bound((gyre_dtype)d);
    }
    return text;
}

/* Round up, flush to zero, denormals are zero; on ARM also the other format of halves. */
#if defined(__x86_64__)
#define STRANGE_MODE (0x1f80u | 0x8040u | 0x4000u)
static uint32_t mode_get(void)
{
    return __builtin_ia32_stmxcsr();
}
static void mode_set(uint32_t mode)
{
    __builtin_ia32_ldmxcsr(mode);
}
#else
#define STRANGE_MODE (1u << 26 | 1u << 24 | 1u << 22 | 1u << 19)
static uint32_t mode_get(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return (uint32_t)mode;
}
static void mode_set(uint32_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)mode));
}
#endif

static bool is_sensitive;

static const char *in_strange_mode(gyre_dtype dtype, gyre_op op)
{
    uint32_t own = mode_get(), strange, saved, after;

    prepare(2, 0, 2000, dtype, op);
    mode_set(STRANGE_MODE);
    strange = mode_get(); /* without the bits that this CPU lacks */
    saved = gy_fp_enter();
    gy_reduce2(result, sources[0], sources[1], 2000, dtype, op);
    gy_fp_leave(saved);
    after = mode_get();
    gy_reduce2(second, sources[0], sources[1], 2000, dtype, op);
    mode_set(own);
    is_sensitive |= memcmp(result, second, 2000 * gyre_dtype_size(dtype)) != 0;
    if (after != strange)
        return wrong("the mode %x, or a sticky flag, was not put back: %x", strange, after);
    return compare(result, 2000, dtype, gyre_op_name(op), "in a strange mode");
}

const char *gy_check_the_caller_s_mode_changes_nothing(void)
{
    const char *text = for_all_pairs(in_strange_mode);

    if (!text && !is_sensitive)
        return "the data do not notice the mode: the check proves nothing";
    return text;
}

/* Element types and operations of the kernels on a GPU. They give the bits of src/core/kernels_values.h; gyre.h states
 * the rules. The code is C++, for nvcc and for the compilers of the tests.
 *
 *   gy_reduction<type, op>   load(bits) -> value, combine(value, value) -> value, store(value) -> bits
 *   gy_divide, gy_multiply   the end of an average and the beginning of a pre-multiplied sum, on stored bits
 *
 * Bits are unsigned integers of the element's size. Partial results have the following type of value:
 *
 *   integers                   the bits; a minimum or maximum is compared as signed or unsigned, as the type says
 *   booleans                   all ones or zero
 *   sums and products          float32 for floats of 8, 16 and 32 bits, float64 for float64
 *   minima and maxima          a signed integer key with the order of the floats, -0 below +0, NaNs beyond all numbers
 *
 * No operation is contracted into a fused multiply-add: device code uses the intrinsics that round each operation, and
 * the tests are compiled with -ffp-contract=off. */
#ifndef GY_CUDA_ELEMENT_H
#define GY_CUDA_ELEMENT_H

#include <stdint.h>
#include <string.h>

#include "gyre/gyre.h"

#if defined(__CUDACC__)
#define GY_ELEMENT static __device__ __forceinline__
#define GY_MEMBER static __device__ __forceinline__
#else
#define GY_ELEMENT static inline
#define GY_MEMBER static inline
#endif

#if defined(__CUDA_ARCH__)
GY_ELEMENT uint32_t gy_bits(float value)
{
    return __float_as_uint(value);
}
GY_ELEMENT uint64_t gy_bits(double value)
{
    return (uint64_t)__double_as_longlong(value);
}
GY_ELEMENT float gy_float(uint32_t bits)
{
    return __uint_as_float(bits);
}
GY_ELEMENT double gy_double(uint64_t bits)
{
    return __longlong_as_double((long long)bits);
}
GY_ELEMENT float gy_add(float a, float b)
{
    return __fadd_rn(a, b);
}
GY_ELEMENT double gy_add(double a, double b)
{
    return __dadd_rn(a, b);
}
GY_ELEMENT float gy_product(float a, float b)
{
    return __fmul_rn(a, b);
}
GY_ELEMENT double gy_product(double a, double b)
{
    return __dmul_rn(a, b);
}
GY_ELEMENT float gy_quotient(float a, float b)
{
    return __fdiv_rn(a, b);
}
GY_ELEMENT double gy_quotient(double a, double b)
{
    return __ddiv_rn(a, b);
}
#else
GY_ELEMENT uint32_t gy_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}
GY_ELEMENT uint64_t gy_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}
GY_ELEMENT float gy_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}
GY_ELEMENT double gy_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}
GY_ELEMENT float gy_add(float a, float b)
{
    return a + b;
}
GY_ELEMENT double gy_add(double a, double b)
{
    return a + b;
}
GY_ELEMENT float gy_product(float a, float b)
{
    return a * b;
}
GY_ELEMENT double gy_product(double a, double b)
{
    return a * b;
}
GY_ELEMENT float gy_quotient(float a, float b)
{
    return a / b;
}
GY_ELEMENT double gy_quotient(double a, double b)
{
    return a / b;
}
#endif

/* ---- Types ------------------------------------------------------------------------------------------------------- */

enum gy_family { GY_FAMILY_INTEGER, GY_FAMILY_BOOL, GY_FAMILY_FLOAT };

template <int type> struct gy_type;
template <typename bits_type, typename number_type, gy_family family_of> struct gy_type_of {
    using bits = bits_type;     /* as stored */
    using number = number_type; /* the type of partial sums; integers are compared and divided in it */
    static constexpr gy_family family = family_of;
};
template <> struct gy_type<GYRE_INT8> : gy_type_of<uint8_t, int8_t, GY_FAMILY_INTEGER> {
};
template <> struct gy_type<GYRE_UINT8> : gy_type_of<uint8_t, uint8_t, GY_FAMILY_INTEGER> {
};
template <> struct gy_type<GYRE_INT32> : gy_type_of<uint32_t, int32_t, GY_FAMILY_INTEGER> {
};
template <> struct gy_type<GYRE_UINT32> : gy_type_of<uint32_t, uint32_t, GY_FAMILY_INTEGER> {
};
template <> struct gy_type<GYRE_INT64> : gy_type_of<uint64_t, int64_t, GY_FAMILY_INTEGER> {
};
template <> struct gy_type<GYRE_UINT64> : gy_type_of<uint64_t, uint64_t, GY_FAMILY_INTEGER> {
};
template <> struct gy_type<GYRE_BOOL> : gy_type_of<uint8_t, uint8_t, GY_FAMILY_BOOL> {
};

/* Floats: mantissa bits, exponent bias, the quiet NaN, and the largest code that is a number or an infinity. Types
 * narrower than float32 also have the largest float32 that does not become the NaN. */
template <typename bits_type, typename number_type, typename key_type, int mantissa, int exponent_bias,
          bits_type quiet_nan, bits_type largest_code, uint32_t beyond>
struct gy_float_type : gy_type_of<bits_type, number_type, GY_FAMILY_FLOAT> {
    using key = key_type;
    static constexpr int digits = mantissa, bias = exponent_bias;
    static constexpr bits_type quiet = quiet_nan, largest = largest_code;
    static constexpr uint32_t nan_above = beyond;
};
#define GY_BITS_INFINITY 0x7f800000u
#define GY_BITS_464 0x43e80000u /* halfway between 448, the largest float8_e4m3, and 480; ties round to 448 */
#define GY_BITS_448 0x43e00000u
template <>
struct gy_type<GYRE_FLOAT16> : gy_float_type<uint16_t, float, int16_t, 10, 15, 0x7e00, 0x7c00, GY_BITS_INFINITY> {
};
template <>
struct gy_type<GYRE_BFLOAT16> : gy_float_type<uint16_t, float, int16_t, 7, 127, 0x7fc0, 0x7f80, GY_BITS_INFINITY> {
};
template <>
struct gy_type<GYRE_FLOAT32>
    : gy_float_type<uint32_t, float, int32_t, 23, 127, 0x7fc00000, 0x7f800000, GY_BITS_INFINITY> {
};
template <>
struct gy_type<GYRE_FLOAT64>
    : gy_float_type<uint64_t, double, int64_t, 52, 1023, 0x7ff8000000000000, 0x7ff0000000000000, 0> {
};
template <> struct gy_type<GYRE_FLOAT8_E4M3> : gy_float_type<uint8_t, float, int8_t, 3, 7, 0x7f, 0x7e, GY_BITS_464> {
};
template <>
struct gy_type<GYRE_FLOAT8_E5M2> : gy_float_type<uint8_t, float, int8_t, 2, 15, 0x7e, 0x7c, GY_BITS_INFINITY> {
};

constexpr bool gy_op_defined(int type, int op)
{
    return op == GYRE_BIT_AND || op == GYRE_BIT_OR || op == GYRE_BIT_XOR ? type <= GYRE_UINT64 || type == GYRE_BOOL
                                                                         : op != GYRE_AVERAGE || type != GYRE_BOOL;
}

/* ---- Floats as numbers ------------------------------------------------------------------------------------------- */

/* Converts a float16 to float32, exactly. Codes below 2^10, the subnormals, are integers times 2^-24. */
GY_ELEMENT float gy_from_half(uint32_t code)
{
    uint32_t size = code & 0x7fff, result = (size << 13) + ((127 - 15) << 23);
    if (size < 1 << 10)
        result = gy_bits(gy_product((float)size, 0x1p-24f));
    if (size >= 0x7c00)
        result |= GY_BITS_INFINITY;
    return gy_float(result | (code & 0x8000) << 16);
}

/* Rounds a float32 to a narrower type, once, to nearest with ties to even. Returns the bits. */
template <int type> GY_ELEMENT uint32_t gy_round(float value)
{
    using t = gy_type<type>;
    constexpr int drop = 23 - t::digits, width = 8 * (int)sizeof(typename t::bits);
    constexpr uint32_t step = (uint32_t)(127 + 23 + 1 - t::bias - t::digits) << 23;
    uint32_t bits = gy_bits(value), size = bits & 0x7fffffff;
    uint32_t code = (size - ((uint32_t)(127 - t::bias) << 23) + ((1u << (drop - 1)) - 1) + (size >> drop & 1)) >> drop;
    if (code > t::largest)
        code = t::largest;
    /* In the subnormal range the addition rounds: the last bit of `step` has the weight of the smallest subnormal
     * number. */
    if (size < (uint32_t)(127 - t::bias + 1) << 23)
        code = gy_bits(gy_add(gy_float(size), gy_float(step))) - step;
    code |= bits >> (32 - width) & 1u << (width - 1);
    return size > t::nan_above ? t::quiet : code;
}

/* Converts stored bits to the type of arithmetic, and back. Every NaN is stored as the quiet NaN. */
template <int type> struct gy_number {
    using bits = typename gy_type<type>::bits;
    GY_MEMBER float load(bits b) { return gy_from_half(type == GYRE_FLOAT8_E5M2 ? (uint32_t)b << 8 : (uint32_t)b); }
    GY_MEMBER bits store(float value) { return (bits)gy_round<type>(value); }
};
template <> struct gy_number<GYRE_BFLOAT16> {
    GY_MEMBER float load(uint16_t b) { return gy_float((uint32_t)b << 16); }
    GY_MEMBER uint16_t store(float value)
    {
        uint32_t b = gy_bits(value);
        return value != value ? (uint16_t)0x7fc0 : (uint16_t)((b + 0x7fff + (b >> 16 & 1)) >> 16);
    }
};
template <> struct gy_number<GYRE_FLOAT8_E4M3> {
    GY_MEMBER float load(uint8_t b)
    {
        float value = gy_product(gy_from_half(((uint32_t)b & 0x80) << 8 | ((uint32_t)b & 0x7f) << 7), 256.0f);
        return (gy_bits(value) & 0x7fffffff) > GY_BITS_448 ? gy_float(0x7fc00000) : value;
    }
    GY_MEMBER uint8_t store(float value) { return (uint8_t)gy_round<GYRE_FLOAT8_E4M3>(value); }
};
template <> struct gy_number<GYRE_FLOAT32> {
    GY_MEMBER float load(uint32_t b) { return gy_float(b); }
    GY_MEMBER uint32_t store(float value) { return value != value ? 0x7fc00000 : gy_bits(value); }
};
template <> struct gy_number<GYRE_FLOAT64> {
    GY_MEMBER double load(uint64_t b) { return gy_double(b); }
    GY_MEMBER uint64_t store(double value) { return value != value ? 0x7ff8000000000000 : gy_bits(value); }
};

/* ---- Reductions -------------------------------------------------------------------------------------------------- */

/* Integers: arithmetic modulo 2^bits. It uses at least 32 bits, so that no operand is promoted to a signed type. */
template <int type, int op> struct gy_integer_reduction {
    using bits = typename gy_type<type>::bits;
    using number = typename gy_type<type>::number;
    using value = bits;
    GY_MEMBER value load(bits b) { return b; }
    GY_MEMBER bits store(value v) { return v; }
    GY_MEMBER value combine(value a, value b)
    {
        if (op == GYRE_PRODUCT)
            return (value)(sizeof(value) < 4 ? (uint32_t)a * (uint32_t)b : (uint64_t)a * (uint64_t)b);
        if (op == GYRE_MIN)
            return (number)b < (number)a ? b : a;
        if (op == GYRE_MAX)
            return (number)b > (number)a ? b : a;
        if (op == GYRE_BIT_AND)
            return a & b;
        if (op == GYRE_BIT_OR)
            return a | b;
        if (op == GYRE_BIT_XOR)
            return a ^ b;
        return (value)(a + b);
    }
};

template <int op> struct gy_bool_reduction {
    using bits = uint8_t;
    using value = uint8_t;
    GY_MEMBER value load(bits b) { return b ? 0xff : 0; }
    GY_MEMBER bits store(value v) { return v & 1; }
    GY_MEMBER value combine(value a, value b)
    {
        if (op == GYRE_PRODUCT || op == GYRE_MIN || op == GYRE_BIT_AND)
            return a & b;
        return op == GYRE_BIT_XOR ? (value)(a ^ b) : (value)(a | b);
    }
};

template <int type, int op> struct gy_float_reduction {
    using bits = typename gy_type<type>::bits;
    using value = typename gy_type<type>::number;
    GY_MEMBER value load(bits b) { return gy_number<type>::load(b); }
    GY_MEMBER bits store(value v) { return gy_number<type>::store(v); }
    GY_MEMBER value combine(value a, value b) { return op == GYRE_PRODUCT ? gy_product(a, b) : gy_add(a, b); }
};

/* The key of a negative float is its bits with all but the sign complemented; this mapping is its own inverse. A NaN is
 * mapped beyond all numbers: for a maximum, negative NaNs become the highest key; for a minimum, positive NaNs become
 * the lowest key. */
template <int type, bool is_min> struct gy_float_extreme {
    using t = gy_type<type>;
    using bits = typename t::bits;
    using value = typename t::key;
    static constexpr bits sign = (bits)((bits)1 << (8 * sizeof(bits) - 1)), most = (bits)(sign - 1);
    static constexpr value highest = (value)t::largest, lowest = (value)~t::largest;
    GY_MEMBER value key(bits b) { return (value)(b & sign ? (bits)(b ^ most) : b); }
    GY_MEMBER value load(bits b)
    {
        value k = key(b);
        if (is_min)
            return k > highest ? (value)sign : k;
        return k < lowest ? (value)most : k;
    }
    GY_MEMBER bits store(value v)
    {
        if (is_min ? v < lowest : v > highest)
            return t::quiet;
        return (bits)key((bits)v);
    }
    GY_MEMBER value combine(value a, value b)
    {
        if (is_min)
            return b < a ? b : a;
        return b > a ? b : a;
    }
};

template <bool yes, typename first, typename second> struct gy_either {
    using type = first;
};
template <typename first, typename second> struct gy_either<false, first, second> {
    using type = second;
};
template <gy_family family, int type, int op> struct gy_reduction_of {
    using kind = gy_integer_reduction<type, op>;
};
template <int type, int op> struct gy_reduction_of<GY_FAMILY_BOOL, type, op> {
    using kind = gy_bool_reduction<op>;
};
template <int type, int op> struct gy_reduction_of<GY_FAMILY_FLOAT, type, op> {
    using kind = typename gy_either<op == GYRE_MIN || op == GYRE_MAX, gy_float_extreme<type, op == GYRE_MIN>,
                                    gy_float_reduction<type, op>>::type;
};
/* Averages and pre-multiplied sums use the reduction of a sum. */
template <int type, int op> using gy_reduction = typename gy_reduction_of<gy_type<type>::family, type, op>::kind;

/* ---- Before and after a sum -------------------------------------------------------------------------------------- */

template <gy_family family, int type> struct gy_scaling { /* integers; the quotient is rounded toward zero */
    using bits = typename gy_type<type>::bits;
    using number = typename gy_type<type>::number;
    GY_MEMBER bits divide(bits b, int divisor) { return (bits)((number)b / (number)divisor); }
};
/* The divisor of an average of 8-bit integers may exceed the range of the type. */
template <> struct gy_scaling<GY_FAMILY_INTEGER, GYRE_INT8> {
    GY_MEMBER uint8_t divide(uint8_t b, int divisor) { return (uint8_t)((int)(int8_t)b / divisor); }
};
template <> struct gy_scaling<GY_FAMILY_INTEGER, GYRE_UINT8> {
    GY_MEMBER uint8_t divide(uint8_t b, int divisor) { return (uint8_t)((int)b / divisor); }
};
template <int type> struct gy_scaling<GY_FAMILY_BOOL, type> {
    GY_MEMBER uint8_t divide(uint8_t b, int) { return b; } /* no average is defined */
};
template <int type> struct gy_scaling<GY_FAMILY_FLOAT, type> {
    using bits = typename gy_type<type>::bits;
    GY_MEMBER bits divide(bits b, int divisor)
    {
        return gy_number<type>::store(gy_quotient(gy_number<type>::load(b), (typename gy_type<type>::number)divisor));
    }
};

/* Returns the stored sum of `divisor` ranks, divided by their number. */
template <int type> GY_ELEMENT typename gy_type<type>::bits gy_divide(typename gy_type<type>::bits sum, int divisor)
{
    return gy_scaling<gy_type<type>::family, type>::divide(sum, divisor);
}
/* Returns a stored contribution times the stored scalar of its rank. */
template <int type>
GY_ELEMENT typename gy_type<type>::bits gy_multiply(typename gy_type<type>::bits element,
                                                    typename gy_type<type>::bits scalar)
{
    using product = gy_reduction<type, GYRE_PRODUCT>;
    return product::store(product::combine(product::load(element), product::load(scalar)));
}

#endif

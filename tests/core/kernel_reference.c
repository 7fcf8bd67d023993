#include "kernel_reference.h"

#include <math.h>
#include <string.h>

const struct gy_format *gy_format_of(gyre_dtype dtype)
{
    static const struct gy_format formats[GY_DTYPES] = {
        [GYRE_INT8] = {.is_signed = true},       [GYRE_INT32] = {.is_signed = true},
        [GYRE_INT64] = {.is_signed = true},      [GYRE_FLOAT16] = {5, 10, true, true},
        [GYRE_BFLOAT16] = {8, 7, true, true},    [GYRE_FLOAT32] = {8, 23, true, true},
        [GYRE_FLOAT64] = {11, 52, true, true},   [GYRE_FLOAT8_E4M3] = {4, 3, false, true},
        [GYRE_FLOAT8_E5M2] = {5, 2, true, true},
    };
    return &formats[dtype];
}

static uint64_t low_mask(gyre_dtype dtype)
{
    return ~(uint64_t)0 >> (64 - 8 * gyre_dtype_size(dtype));
}

static uint64_t sign_bit(gyre_dtype dtype)
{
    return (uint64_t)1 << (8 * gyre_dtype_size(dtype) - 1);
}

static uint64_t infinity_of(const struct gy_format *f)
{
    return (((uint64_t)1 << f->exponent) - 1) << f->mantissa;
}

static uint64_t quiet_nan(const struct gy_format *f)
{
    if (!f->infinite)
        return infinity_of(f) | (((uint64_t)1 << f->mantissa) - 1);
    return infinity_of(f) | (uint64_t)1 << (f->mantissa - 1);
}

bool gy_reference_is_nan(gyre_dtype dtype, uint64_t bits)
{
    const struct gy_format *f = gy_format_of(dtype);
    uint64_t size = bits & ~sign_bit(dtype);

    return f->exponent > 0 && (f->infinite ? size > infinity_of(f) : size == quiet_nan(f));
}

double gy_reference_decode(gyre_dtype dtype, uint64_t bits)
{
    const struct gy_format *f = gy_format_of(dtype);
    uint64_t size = bits & ~sign_bit(dtype), fraction = size & (((uint64_t)1 << f->mantissa) - 1);
    int exponent = (int)(size >> f->mantissa), bias = (1 << (f->exponent - 1)) - 1;
    double value;

    if (gy_reference_is_nan(dtype, bits))
        return NAN;
    if (f->infinite && size == infinity_of(f))
        value = INFINITY;
    else if (exponent == 0)
        value = ldexp((double)fraction, 1 - bias - f->mantissa);
    else
        value = ldexp((double)(fraction | (uint64_t)1 << f->mantissa), exponent - bias - f->mantissa);
    return bits & sign_bit(dtype) ? -value : value;
}

/* The multiple of the step at its magnitude that is nearest, as a code. */
static uint64_t encode_size(const struct gy_format *f, double size)
{
    int bias = (1 << (f->exponent - 1)) - 1, exponent = size > 0 ? ilogb(size) : 1 - bias;
    double steps;

    if (exponent < 1 - bias)
        exponent = 1 - bias;
    steps = rint(ldexp(size, f->mantissa - exponent));
    /* A carry out of the mantissa lands in the exponent, as it should. */
    return (uint64_t)steps + ((uint64_t)(exponent + bias - 1) << f->mantissa);
}

uint64_t gy_reference_encode(gyre_dtype dtype, double value)
{
    const struct gy_format *f = gy_format_of(dtype);
    uint64_t largest = f->infinite ? infinity_of(f) : quiet_nan(f), size;

    if (isnan(value))
        return quiet_nan(f);
    size = isinf(value) ? largest : encode_size(f, fabs(value));
    if (size > largest)
        size = largest;
    if (!f->infinite && size == largest)
        return quiet_nan(f);
    return size | (signbit(value) ? sign_bit(dtype) : 0);
}

static double add_or_multiply(gyre_dtype dtype, gyre_op op, double a, double b)
{
    volatile float single;
    volatile double twice;

    if (dtype == GYRE_FLOAT64) {
        twice = op == GYRE_PRODUCT ? a * b : a + b;
        return twice;
    }
    single = op == GYRE_PRODUCT ? (float)a * (float)b : (float)a + (float)b;
    return single;
}

static uint64_t extreme_float(gyre_dtype dtype, gyre_op op, uint64_t a, uint64_t b)
{
    double x = gy_reference_decode(dtype, a), y = gy_reference_decode(dtype, b);

    if (isnan(x) || isnan(y))
        return quiet_nan(gy_format_of(dtype));
    if (x == 0 && y == 0)
        return op == GYRE_MIN ? a | b : a & b;
    return (op == GYRE_MIN) == (x < y) ? a : b;
}

static bool is_less(gyre_dtype dtype, uint64_t a, uint64_t b)
{
    uint64_t flip = gy_format_of(dtype)->is_signed ? sign_bit(dtype) : 0;

    return (a ^ flip) < (b ^ flip);
}

static uint64_t reduce_integers(gyre_dtype dtype, gyre_op op, uint64_t a, uint64_t b)
{
    switch (op) {
    case GYRE_PRODUCT: return a * b & low_mask(dtype);
    case GYRE_MIN: return is_less(dtype, a, b) ? a : b;
    case GYRE_MAX: return is_less(dtype, a, b) ? b : a;
    case GYRE_BIT_AND: return a & b;
    case GYRE_BIT_OR: return a | b;
    case GYRE_BIT_XOR: return a ^ b;
    default: return (a + b) & low_mask(dtype);
    }
}

/* 0 or 1, even of one element. */
static uint64_t reduce_booleans(gyre_op op, const uint64_t *element, int count)
{
    int trues = 0;

    for (int i = 0; i < count; i++)
        trues += element[i] != 0;
    if (op == GYRE_BIT_XOR)
        return (uint64_t)trues % 2;
    return op == GYRE_PRODUCT || op == GYRE_MIN || op == GYRE_BIT_AND ? trues == count : trues > 0;
}

uint64_t gy_reference_reduce(gyre_dtype dtype, gyre_op op, const uint64_t *element, int count)
{
    bool is_float = gy_format_of(dtype)->exponent > 0, extreme = op == GYRE_MIN || op == GYRE_MAX;
    uint64_t bits = element[0];
    double value;

    if (dtype == GYRE_BOOL)
        return reduce_booleans(op, element, count);
    if (!is_float || extreme) {
        for (int i = 1; i < count; i++)
            bits = is_float ? extreme_float(dtype, op, bits, element[i]) : reduce_integers(dtype, op, bits, element[i]);
        return bits;
    }
    value = gy_reference_decode(dtype, element[0]);
    for (int i = 1; i < count; i++)
        value = add_or_multiply(dtype, op, value, gy_reference_decode(dtype, element[i]));
    return gy_reference_encode(dtype, value);
}

uint64_t gy_reference_divide(gyre_dtype dtype, uint64_t bits, int divisor)
{
    uint64_t sign = sign_bit(dtype);
    volatile float single;
    volatile double twice;

    if (gy_format_of(dtype)->exponent > 0) {
        twice = gy_reference_decode(dtype, bits);
        single = (float)twice / (float)divisor;
        twice = twice / (double)divisor;
        return gy_reference_encode(dtype, dtype == GYRE_FLOAT64 ? twice : (double)single);
    }
    if (gy_format_of(dtype)->is_signed && (bits & sign)) /* −|x| / n, rounded toward zero */
        return -((-bits & low_mask(dtype)) / (uint64_t)divisor) & low_mask(dtype);
    return bits / (uint64_t)divisor;
}

/* The rules of gyre.h for single elements, in plain arithmetic that shares nothing with the kernels: floats are decoded
 * with ldexp and encoded with rint. Elements are the low bytes of a uint64_t. */
#ifndef GY_TESTS_KERNEL_REFERENCE_H
#define GY_TESTS_KERNEL_REFERENCE_H

#include "core/dtype.h"

struct gy_format {
    int exponent, mantissa; /* bits; exponent 0: an integer */
    bool infinite;          /* has infinities */
    bool is_signed;
};
const struct gy_format *gy_format_of(gyre_dtype dtype);

double gy_reference_decode(gyre_dtype dtype, uint64_t bits);
/* value, which is a float32 for narrow types, to the nearest. */
uint64_t gy_reference_encode(gyre_dtype dtype, double value);
bool gy_reference_is_nan(gyre_dtype dtype, uint64_t bits);

/* One element of gy_reduce_many, left to right. Averages and pre-multiplied sums are sums. */
uint64_t gy_reference_reduce(gyre_dtype dtype, gyre_op op, const uint64_t *element, int count);
uint64_t gy_reference_divide(gyre_dtype dtype, uint64_t bits, int divisor);

#endif

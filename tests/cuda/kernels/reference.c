#include "reference.h"

#include <string.h>

#include "collectives/comm/reduce_op.h"

void reference_reduce(void *dst, const void *const *src, int nsrc, size_t count, int type, int op, int canonical)
{
    struct gy_operation operation = {.dtype = (gyre_dtype)type, .op = (gyre_op)op};

    (canonical ? gy_combine_tree : gy_combine_many)(&operation, dst, NULL, src, nsrc, count);
    gy_operation_end(&operation, dst, count, nsrc);
}

void reference_divide(void *dst, const void *src, size_t count, int type, int divisor)
{
    uint32_t saved = gy_fp_enter();

    gy_reduce_divide(dst, src, count, (gyre_dtype)type, divisor);
    gy_fp_leave(saved);
}

void reference_multiply(void *dst, const void *src, const void *scalar, size_t count, int type)
{
    uint32_t saved = gy_fp_enter();

    gy_reduce_multiply(dst, src, scalar, count, (gyre_dtype)type);
    gy_fp_leave(saved);
}

uint64_t reference_random(uint64_t *state_p)
{
    uint64_t x = *state_p;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state_p = x;
}

/* Bits of mantissa of a float type; 0: the type is no float. */
static int mantissa_of(int type)
{
    switch (type) {
    case GYRE_FLOAT16: return 10;
    case GYRE_BFLOAT16: return 7;
    case GYRE_FLOAT32: return 23;
    case GYRE_FLOAT64: return 52;
    case GYRE_FLOAT8_E4M3: return 3;
    case GYRE_FLOAT8_E5M2: return 2;
    default: return 0;
    }
}

static uint64_t special_bits(int type, uint64_t random)
{
    int width = 8 * (int)gyre_dtype_size((gyre_dtype)type), mantissa = mantissa_of(type);
    uint64_t sign = (uint64_t)1 << (width - 1), hidden = (uint64_t)1 << (mantissa ? mantissa : width / 2);
    uint64_t largest = (sign - 1) & ~(hidden - 1);
    const uint64_t sizes[] = {0,           1,       2,           hidden / 2,           hidden - 1, hidden,  hidden + 1,
                              largest - 1, largest, largest + 1, largest | hidden / 2, sign - 2,   sign - 1};

    return sizes[random % GY_ARRAY_LENGTH(sizes)] | (random >> 32 & 1 ? sign : 0);
}

/* A float between 1/2 and 4, of either sign. */
static uint64_t near_one(int type, uint64_t random)
{
    int width = 8 * (int)gyre_dtype_size((gyre_dtype)type), mantissa = mantissa_of(type);
    uint64_t bias = ((uint64_t)1 << (width - 2 - mantissa)) - 1;

    return (random & (((uint64_t)1 << mantissa) - 1)) | (random >> 60 & 1) << (width - 1) |
           (bias - 1 + (random >> 56) % 3) << mantissa;
}

void reference_fill(void *to, size_t count, int type, uint64_t *state_p)
{
    size_t size = gyre_dtype_size((gyre_dtype)type);

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = reference_random(state_p), kind = reference_random(state_p) % 4;

        if (kind == 0)
            bits = special_bits(type, bits);
        else if (kind < 3 && mantissa_of(type))
            bits = near_one(type, bits);
        memcpy((char *)to + i * size, &bits, size);
    }
}

#include "order_data.h"

#include <float.h>
#include <string.h>

uint64_t order_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b + 1;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

enum column { MIXED, SPECIAL, SMALL };

/* All ranks' elements of a column are of a kind. */
static enum column column_of(uint64_t seed, size_t element)
{
    uint64_t choice = order_mix(seed, element) % 8;
    return choice == 0 ? SPECIAL : choice == 1 ? SMALL : MIXED;
}

/* A fraction in [−1, 1) of 24 bits, the same in float and double. */
static double fraction(uint64_t bits)
{
    return (double)(bits & 0xffffff) / 8388608.0 - 1.0;
}

static float special_float(uint64_t bits)
{
    static const uint32_t table[] = {0x7fc00000, 0xffc01234, 0x7f800001, 0xffbfffff, 0x7f800000,
                                     0xff800000, 0x00000000, 0x80000000, 0x7f7fffff, 0xff7fffff};
    uint32_t word = table[bits % (sizeof table / sizeof *table)];
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static double special_double(uint64_t bits)
{
    static const uint64_t table[] = {0x7ff8000000000000, 0xfff8000000001234, 0x7ff0000000000001, 0xfff7ffffffffffff,
                                     0x7ff0000000000000, 0xfff0000000000000, 0x0000000000000000, 0x8000000000000000,
                                     0x7fefffffffffffff, 0xffefffffffffffff};
    double value;
    memcpy(&value, &table[bits % (sizeof table / sizeof *table)], sizeof value);
    return value;
}

/* 2^power, as far as doubles go: 0 below. */
static double power_of_two(int power)
{
    if (power < -1074)
        return 0;
    uint64_t bits = power < -1022 ? (uint64_t)1 << (power + 1074) : (uint64_t)(power + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A third of a special column's elements are ordinary ones, so that not every sum is a NaN. */
static void fill_float(float *value_p, enum column column, uint64_t bits)
{
    int power = column == SMALL ? (int)(bits >> 32) % 24 - FLT_MANT_DIG - 125 : (int)(bits >> 32) % 17 - 8;
    float value = (float)(fraction(bits) * power_of_two(power)); /* 24 bits by a power of two: rounded once */
    if (column == SPECIAL && (bits >> 24) % 3 != 0)
        value = special_float(bits >> 32);
    memcpy(value_p, &value, sizeof value);
}

static void fill_double(double *value_p, enum column column, uint64_t bits)
{
    int power = column == SMALL ? (int)(bits >> 32) % 53 - DBL_MANT_DIG - 1021 : (int)(bits >> 32) % 17 - 8;
    double value = fraction(bits) / 3 * power_of_two(power);
    if (column == SPECIAL && (bits >> 24) % 3 != 0)
        value = special_double(bits >> 32);
    memcpy(value_p, &value, sizeof value);
}

void order_fill(void *memory, size_t count, gyre_dtype dtype, int rank, uint64_t seed)
{
    uint64_t mine = order_mix(seed, (uint64_t)rank + 1000003);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = order_mix(mine, i);
        if (dtype == GYRE_INT32)
            ((int32_t *)memory)[i] = (int32_t)(uint32_t)bits;
        else if (dtype == GYRE_FLOAT32)
            fill_float((float *)memory + i, column_of(seed, i), bits);
        else
            fill_double((double *)memory + i, column_of(seed, i), bits);
    }
}

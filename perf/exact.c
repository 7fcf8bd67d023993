/* value(i, rank, iteration) is an integer in [−8, 8) made by mixing (i mod 4093, rank, iteration): sums of up to 2^20
 * ranks fit the 24 bits of a float32 exactly. 4093 is prime, so that blocks and tiles, which are round numbers, never
 * repeat it in step; and since a reduction's expected values repeat too, they are computed once per iteration for 4093
 * elements. */
#include "exact.h"

#include <string.h>

#define PERIOD 4093

static int32_t value_of(size_t phase, int rank, uint64_t iteration)
{
    uint64_t x = phase * 0x9e3779b97f4a7c15u + (uint64_t)rank * 0xc2b2ae3d27d4eb4fu + iteration * 0x165667b19e3779f9u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return (int32_t)(x >> 60) - 8;
}

static int32_t reduced(size_t phase, gyre_op op, int size, uint64_t iteration)
{
    int32_t result = value_of(phase, 0, iteration);
    for (int rank = 1; rank < size; rank++) {
        int32_t value = value_of(phase, rank, iteration);
        if (op == GYRE_SUM)
            result += value;
        else if (op == GYRE_MIN ? value < result : value > result)
            result = value;
    }
    return result;
}

union element {
    int32_t i32;
    float f32;
    double f64;
    unsigned char bytes[8];
};

/* Zero is always +0: x + (−x) is +0 when rounding to nearest, and no −0 goes in. */
static union element element_of(int32_t value, gyre_dtype dtype)
{
    union element element = {.f64 = 0};
    if (dtype == GYRE_INT32)
        element.i32 = value;
    else if (dtype == GYRE_FLOAT32)
        element.f32 = (float)value;
    else
        element.f64 = (double)value;
    return element;
}

struct table {
    size_t width; /* of an element */
    unsigned char bytes[PERIOD * sizeof(double)];
};

/* The expected bytes of elements first, first + 1, … of one period; rank −1: reduced. Only as many as are asked for. */
static void make_table(struct table *table, size_t first, size_t count, gyre_dtype dtype, gyre_op op, int rank,
                       int size, uint64_t iteration)
{
    table->width = gyre_dtype_size(dtype);
    for (size_t i = 0; i < count && i < PERIOD; i++) {
        size_t phase = (first + i) % PERIOD;
        int32_t value = rank >= 0 ? value_of(phase, rank, iteration) : reduced(phase, op, size, iteration);
        union element element = element_of(value, dtype);
        memcpy(table->bytes + i * table->width, element.bytes, table->width);
    }
}

static size_t count_wrong(const struct table *table, const unsigned char *memory, size_t count)
{
    size_t wrong = 0, width = table->width;
    for (size_t done = 0; done < count; done += PERIOD) {
        size_t now = count - done < PERIOD ? count - done : PERIOD;
        const unsigned char *piece = memory + done * width;
        if (memcmp(piece, table->bytes, now * width) == 0)
            continue;
        for (size_t i = 0; i < now; i++)
            wrong += memcmp(piece + i * width, table->bytes + i * width, width) != 0;
    }
    return wrong;
}

void gy_exact_fill(void *memory, size_t first, size_t count, gyre_dtype dtype, int rank, uint64_t iteration)
{
    struct table table;
    unsigned char *bytes = memory;
    make_table(&table, first, count, dtype, GYRE_SUM, rank, 0, iteration);
    for (size_t done = 0; done < count; done += PERIOD) {
        size_t now = count - done < PERIOD ? count - done : PERIOD;
        memcpy(bytes + done * table.width, table.bytes, now * table.width);
    }
}

size_t gy_exact_wrong(const void *memory, size_t first, size_t count, gyre_dtype dtype, int rank, uint64_t iteration)
{
    struct table table;
    make_table(&table, first, count, dtype, GYRE_SUM, rank, 0, iteration);
    return count_wrong(&table, memory, count);
}

size_t gy_exact_wrong_reduced(const void *memory, size_t first, size_t count, gyre_dtype dtype, gyre_op op, int size,
                              uint64_t iteration)
{
    struct table table;
    make_table(&table, first, count, dtype, op, -1, size, iteration);
    return count_wrong(&table, memory, count);
}

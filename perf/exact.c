/* Every value is made by mixing (i mod 4093, rank, iteration) and is chosen so that no order of reducing rounds or
 * overflows, as long as there are at most gy_exact_ranks of them:
 *
 *   integers, sum, min, max, average   any bits: they wrap
 *   integers, product                  any odd number: the product never becomes zero
 *   bit operations                     any bits, three quarters of them ones (and) or zeros (or)
 *   booleans                           false, or any other byte; three quarters of them true (and) or false (or)
 *   floats, sum, min, max, average     integers in [−8, 8), in [−2, 2) for bfloat16
 *   8-bit floats, the same             −1, 0, 1, and of any 16 neighbours at most 8 that are not 0
 *   floats, product                    ±1, and of any 16 neighbours at most 4 that are ±2 or ±1/2
 *
 * 4093 is prime, so that blocks and tiles, which are round numbers, never repeat it in step; and since a reduction's
 * expected values repeat too, they are computed once per iteration for 4093 elements. An average is the exact sum,
 * divided and rounded as gyre.h says. */
#include "exact.h"

#include <limits.h>
#include <string.h>

#define PERIOD 4093
#define NEIGHBOURS 16
#define AS_IT_IS 0 /* instead of a number of ranks: what one rank has, not reduced */

/* Bits of a float's exponent and mantissa, of the integers in its data, and how many ranks its formats can take. */
struct format {
    int exponent, mantissa;
    int value_bits, ranks, product_ranks;
};

static const struct format formats[] = {
    [GYRE_FLOAT16] = {5, 10, 4, 256, 48},        /* integers to 2^11, powers to 2^15 */
    [GYRE_BFLOAT16] = {8, 7, 2, 128, 496},       /* 2^8, 2^127 */
    [GYRE_FLOAT32] = {8, 23, 4, 1 << 20, 496},   /* 2^24, 2^127 */
    [GYRE_FLOAT64] = {11, 52, 4, 1 << 20, 4080}, /* 2^53, 2^1023 */
    [GYRE_FLOAT8_E4M3] = {4, 3, 1, 32, 32},      /* 2^4, 2^8 */
    [GYRE_FLOAT8_E5M2] = {5, 2, 1, 16, 48},      /* 2^3, 2^15 */
};

/* NULL: an integer, or a boolean. */
static const struct format *format_of(gyre_dtype dtype)
{
    bool known = (size_t)dtype < sizeof formats / sizeof *formats;
    return known && formats[dtype].exponent ? &formats[dtype] : NULL;
}

bool gy_exact_has(gyre_dtype dtype, gyre_op op)
{
    if (op == GYRE_BIT_AND || op == GYRE_BIT_OR || op == GYRE_BIT_XOR)
        return !format_of(dtype);
    return op != GYRE_AVERAGE || dtype != GYRE_BOOL;
}

int gy_exact_ranks(gyre_dtype dtype, gyre_op op)
{
    const struct format *format = format_of(dtype);
    if (!format || op == GYRE_MIN || op == GYRE_MAX)
        return INT_MAX;
    return op == GYRE_PRODUCT ? format->product_ranks : format->ranks;
}

static uint64_t mix(size_t phase, int rank, uint64_t iteration)
{
    uint64_t x = phase * 0x9e3779b97f4a7c15u + (uint64_t)rank * 0xc2b2ae3d27d4eb4fu + iteration * 0x165667b19e3779f9u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 32;
    x *= 0x94d049bb133111ebu;
    return x ^ x >> 29;
}

static double float_of(const struct format *format, gyre_op op, size_t phase, int rank, uint64_t iteration)
{
    uint64_t x = mix(phase, rank, iteration);
    if (op != GYRE_PRODUCT && format->value_bits > 1)
        return (double)(int64_t)(x >> (64 - format->value_bits)) - (double)(1 << (format->value_bits - 1));
    uint64_t place = (mix(phase, -1, iteration) + (uint64_t)rank) % NEIGHBOURS;
    if (op != GYRE_PRODUCT)
        return place >= 8 ? 0 : x & 1 ? 1 : -1;
    double size = place >= 4 ? 1 : x & 1 ? 2 : 0.5;
    return x & 2 ? size : -size;
}

static uint64_t integer_of(gyre_op op, size_t phase, int rank, uint64_t iteration)
{
    uint64_t x = mix(phase, rank, iteration);
    switch (op) {
    case GYRE_PRODUCT: return x | 1;
    case GYRE_BIT_AND: return x | mix(phase, rank, ~iteration);
    case GYRE_BIT_OR: return x & mix(phase, rank, ~iteration);
    default: return x;
    }
}

static uint64_t bool_of(gyre_op op, size_t phase, int rank, uint64_t iteration)
{
    uint64_t x = mix(phase, rank, iteration), y = mix(phase, rank, ~iteration), byte = x >> 8 & 0xff;
    bool is_and = op == GYRE_PRODUCT || op == GYRE_MIN || op == GYRE_BIT_AND;
    bool is_true = (is_and ? x | y : op == GYRE_BIT_XOR ? x : x & y) & 1;
    return !is_true ? 0 : byte ? byte : 0x80;
}

static uint64_t bool_reduced(gyre_op op, size_t phase, int first, int count, uint64_t iteration)
{
    int trues = 0;
    for (int rank = first; rank < first + count; rank++)
        trues += bool_of(op, phase, rank, iteration) != 0;
    switch (op) {
    case GYRE_PRODUCT:
    case GYRE_MIN:
    case GYRE_BIT_AND: return trues == count;
    case GYRE_BIT_XOR: return trues & 1;
    default: return trues > 0;
    }
}

/* x / 2^bits, to the nearest, ties to even. */
static uint64_t shift_rounded(uint64_t x, int bits)
{
    if (bits == 0 || bits > 63)
        return bits ? 0 : x;
    uint64_t whole = x >> bits, rest = x - (whole << bits), half = (uint64_t)1 << (bits - 1);
    return whole + (rest > half || (rest == half && whole & 1));
}

/* The bits of the nearest number of the format; zero is always +0: x + (−x) is +0 when rounding to nearest, and no −0
 * goes in. Nothing here is an infinity, a NaN or a denormal double. */
static uint64_t encode(const struct format *format, double value)
{
    int bias = (1 << (format->exponent - 1)) - 1;
    uint64_t sign = value < 0 ? (uint64_t)1 << (format->exponent + format->mantissa) : 0, bits;
    if (value == 0)
        return 0;
    memcpy(&bits, &value, sizeof bits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023, least = exponent < 1 - bias ? 1 - bias : exponent;
    uint64_t significand = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    /* The leading one, or a carry out of the mantissa, adds to the exponent. */
    return sign + ((uint64_t)(least + bias - 1) << format->mantissa) +
           shift_rounded(significand, 52 - format->mantissa + least - exponent);
}

static bool is_signed(gyre_dtype dtype)
{
    return dtype == GYRE_INT8 || dtype == GYRE_INT32 || dtype == GYRE_INT64;
}

/* The low bits of an integer as a number of its type. */
static uint64_t extend(uint64_t bits, gyre_dtype dtype)
{
    unsigned unused = 64 - 8 * (unsigned)gyre_dtype_size(dtype);
    return is_signed(dtype) ? (uint64_t)((int64_t)(bits << unused) >> unused) : bits << unused >> unused;
}

static uint64_t reduce_integers(gyre_dtype dtype, gyre_op op, uint64_t a, uint64_t b)
{
    bool less = is_signed(dtype) ? (int64_t)a < (int64_t)b : a < b;
    switch (op) {
    case GYRE_PRODUCT: return extend(a * b, dtype);
    case GYRE_MIN: return less ? a : b;
    case GYRE_MAX: return less ? b : a;
    case GYRE_BIT_AND: return a & b;
    case GYRE_BIT_OR: return a | b;
    case GYRE_BIT_XOR: return a ^ b;
    default: return extend(a + b, dtype);
    }
}

static uint64_t integer_reduced(gyre_dtype dtype, gyre_op op, size_t phase, int first, int count, uint64_t iteration)
{
    uint64_t result = extend(integer_of(op, phase, first, iteration), dtype);
    for (int rank = first + 1; rank < first + count; rank++)
        result = reduce_integers(dtype, op, result, extend(integer_of(op, phase, rank, iteration), dtype));
    if (op != GYRE_AVERAGE || count == AS_IT_IS)
        return result;
    return is_signed(dtype) ? (uint64_t)((int64_t)result / count) : result / (uint64_t)count;
}

static double float_reduced(gyre_dtype dtype, gyre_op op, size_t phase, int first, int count, uint64_t iteration)
{
    double result = float_of(format_of(dtype), op, phase, first, iteration);
    for (int rank = first + 1; rank < first + count; rank++) {
        double value = float_of(format_of(dtype), op, phase, rank, iteration);
        if (op == GYRE_PRODUCT)
            result *= value;
        else if (op == GYRE_MIN || op == GYRE_MAX)
            result = (value < result) == (op == GYRE_MIN) ? value : result;
        else
            result += value;
    }
    if (op != GYRE_AVERAGE || count == AS_IT_IS)
        return result;
    return dtype == GYRE_FLOAT64 ? result / count : (double)((float)result / (float)count); /* as gyre.h says */
}

/* Element `phase` of the reduction of ranks first to first + count − 1, or with AS_IT_IS of rank `first`. */
static uint64_t element_of(gyre_dtype dtype, gyre_op op, size_t phase, int first, int count, uint64_t iteration)
{
    const struct format *format = format_of(dtype);
    if (dtype == GYRE_BOOL)
        return count == AS_IT_IS ? bool_of(op, phase, first, iteration)
                                 : bool_reduced(op, phase, first, count, iteration);
    return format ? encode(format, float_reduced(dtype, op, phase, first, count, iteration))
                  : integer_reduced(dtype, op, phase, first, count, iteration);
}

struct table {
    size_t width; /* of an element */
    unsigned char bytes[PERIOD * sizeof(double)];
};

/* Little-endian: the low bytes. */
static void put(unsigned char *bytes, uint64_t bits, size_t width)
{
    switch (width) {
    case 1: *bytes = (unsigned char)bits; break;
    case 2: memcpy(bytes, &bits, 2); break;
    case 4: memcpy(bytes, &bits, 4); break;
    default: memcpy(bytes, &bits, 8);
    }
}

/* The expected bytes of elements first, first + 1, … of one period. Only as many as are asked for. */
static void make_table(struct table *table, size_t first, size_t count, gyre_dtype dtype, gyre_op op, int rank,
                       int ranks, uint64_t iteration)
{
    table->width = gyre_dtype_size(dtype);
    for (size_t i = 0; i < count && i < PERIOD; i++)
        put(table->bytes + i * table->width, element_of(dtype, op, (first + i) % PERIOD, rank, ranks, iteration),
            table->width);
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

void gy_exact_fill(void *memory, size_t first, size_t count, gyre_dtype dtype, gyre_op op, int rank, uint64_t iteration)
{
    struct table table;
    unsigned char *bytes = memory;
    make_table(&table, first, count, dtype, op, rank, AS_IT_IS, iteration);
    for (size_t done = 0; done < count; done += PERIOD) {
        size_t now = count - done < PERIOD ? count - done : PERIOD;
        memcpy(bytes + done * table.width, table.bytes, now * table.width);
    }
}

size_t gy_exact_wrong(const void *memory, size_t first, size_t count, gyre_dtype dtype, gyre_op op, int rank,
                      uint64_t iteration)
{
    struct table table;
    make_table(&table, first, count, dtype, op, rank, AS_IT_IS, iteration);
    return count_wrong(&table, memory, count);
}

size_t gy_exact_wrong_reduced(const void *memory, size_t first, size_t count, gyre_dtype dtype, gyre_op op, int size,
                              uint64_t iteration)
{
    struct table table;
    make_table(&table, first, count, dtype, op, 0, size, iteration);
    return count_wrong(&table, memory, count);
}

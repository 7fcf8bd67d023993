/* See kernel_data.h. Expected results are computed once for the tables of all instruction sets. */
#include "kernel_data.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = (LONGEST + 64) * 8 };

unsigned char *memory[SOURCES], *expected, *result, *second;
const void *sources[SOURCES];
static uint64_t random_state = 42;

uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

void set_up(void)
{
    unsigned char **all[] = {&expected, &result, &second};

    if (expected)
        return;
    for (size_t i = 0; i < SOURCES + GY_ARRAY_LENGTH(all); i++) {
        void *room = aligned_alloc(64, ROOM);

        if (!room)
            abort();
        *(i < SOURCES ? &memory[i] : all[i - SOURCES]) = room;
    }
}

const char *wrong(const char *format, ...)
{
    static char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return text;
}

uint64_t get(const void *from, size_t i, size_t size)
{
    uint64_t bits = 0;

    memcpy(&bits, (const char *)from + i * size, size); /* little-endian: the low bytes */
    return bits;
}

void put(void *to, size_t i, size_t size, uint64_t bits)
{
    memcpy((char *)to + i * size, &bits, size);
}

size_t make_specials(gyre_dtype dtype, uint64_t special_p[32])
{
    struct gy_format f = *gy_format_of(dtype);
    size_t size = gyre_dtype_size(dtype), count = 0;
    uint64_t sign = (uint64_t)1 << (8 * size - 1), hidden, largest;

    if (f.exponent == 0)
        f.mantissa = (int)(4 * size);
    hidden = (uint64_t)1 << f.mantissa;
    largest = (sign - 1) & ~(hidden - 1); /* infinity where there is one */
    const uint64_t sizes[] = {0,
                              1,
                              2,
                              3,
                              hidden / 2,
                              hidden - 1,
                              hidden,
                              hidden + 1,
                              (sign >> 1) - hidden,
                              sign >> 1,
                              largest - 1,
                              largest,
                              largest + 1,
                              largest | hidden / 2,
                              sign - 2,
                              sign - 1};
    for (size_t i = 0; i < GY_ARRAY_LENGTH(sizes); i++) {
        special_p[count++] = sizes[i];
        special_p[count++] = sizes[i] | sign;
    }
    return count;
}

void fill(unsigned char *to, size_t count, gyre_dtype dtype)
{
    uint64_t special[32];
    size_t size = gyre_dtype_size(dtype), specials = make_specials(dtype, special);
    const struct gy_format *f = gy_format_of(dtype);
    int bias = (1 << f->exponent >> 1) - 1;

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = random_bits(), kind = random_bits() % 4;

        if (kind == 0)
            bits = special[bits % specials];
        else if (kind < 3 && f->exponent > 0)
            bits = (bits & (((uint64_t)1 << f->mantissa) - 1)) | (bits >> 60 & 1) << (8 * size - 1) |
                   (uint64_t)(bias + (int)(bits >> 56 & 3)) << f->mantissa;
        put(to, i, size, bits);
    }
}

void make_expected(int nsrc, size_t count, gyre_dtype dtype, gyre_op op)
{
    size_t size = gyre_dtype_size(dtype);
    uint64_t element[SOURCES];

    for (size_t i = 0; i < count; i++) {
        for (int s = 0; s < nsrc; s++)
            element[s] = get(sources[s], i, size);
        put(expected, i, size, gy_reference_reduce(dtype, op, element, nsrc));
    }
}

void prepare(int nsrc, size_t skew, size_t count, gyre_dtype dtype, gyre_op op)
{
    for (int i = 0; i < nsrc; i++) {
        sources[i] = memory[i] + skew * (size_t)i;
        fill(memory[i] + skew * (size_t)i, count, dtype);
    }
    make_expected(nsrc, count, dtype, op);
}

const char *compare(const void *got, size_t count, gyre_dtype dtype, const char *op, const char *who)
{
    size_t size = gyre_dtype_size(dtype);

    if (memcmp(got, expected, count * size) == 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = get(got, i, size), right = get(expected, i, size);

        if (bits != right)
            return wrong("%s %s %s: element %zu of %zu is %llx, not %llx", who, gyre_dtype_name(dtype), op, i, count,
                         (unsigned long long)bits, (unsigned long long)right);
    }
    return NULL;
}

const char *run_all(int nsrc, size_t count, gyre_dtype dtype, gyre_op op)
{
    const struct gy_kernels *kernels;
    const char *text = NULL;

    for (int i = 0; !text && (kernels = gy_kernels_usable(i)) != NULL; i++) {
        kernels->reduce[dtype][op]((char *)result, (char *)second + 1, sources, nsrc, count * gyre_dtype_size(dtype),
                                   0);
        text = compare(result, count, dtype, gyre_op_name(op), kernels->name);
        text = text ? text : compare(second + 1, count, dtype, gyre_op_name(op), kernels->name);
    }
    return text;
}

const char *for_all_pairs(pair_func check)
{
    const char *text = NULL;

    set_up();
    for (int dtype = 0; dtype < GY_DTYPES; dtype++) {
        for (int op = 0; op < GY_OPS && !text; op++) {
            if (gy_op_valid(op, (gyre_dtype)dtype))
                text = check((gyre_dtype)dtype, (gyre_op)op);
        }
    }
    return text;
}

const char *untouched(const unsigned char *dst, size_t bytes, const char *who)
{
    return dst[-1] != 0xee      ? wrong("%s writes before the start", who)
           : dst[bytes] != 0xee ? wrong("%s writes past the end", who)
                                : NULL;
}

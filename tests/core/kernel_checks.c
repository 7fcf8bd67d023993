/* See kernel_checks.h. Kernels are taken from the table of each instruction set, so that all are checked, not only the
 * one in use; expected results are computed once for all of them. */
#include "kernel_checks.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/kernels.h"
#include "kernel_reference.h"

enum { SOURCES = 9, LONGEST = 1 << 16, ROOM = (LONGEST + 64) * 8 };

static unsigned char *memory[SOURCES], *expected, *result, *second;
static const void *sources[SOURCES];
static uint64_t random_state = 42;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void set_up(void)
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

static const char *wrong(const char *format, ...) GY_PRINTF(1, 2);
static const char *wrong(const char *format, ...)
{
    static char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return text;
}

static uint64_t get(const void *from, size_t i, size_t size)
{
    uint64_t bits = 0;

    memcpy(&bits, (const char *)from + i * size, size); /* little-endian: the low bytes */
    return bits;
}

static void put(void *to, size_t i, size_t size, uint64_t bits)
{
    memcpy((char *)to + i * size, &bits, size);
}

/* Zeros, ones, denormals, extremes, infinities and NaNs, each with both signs; for integers the same bits, which are
 * their extremes too. Returns how many. */
static size_t make_specials(gyre_dtype dtype, uint64_t special_p[32])
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

/* A quarter are specials, half of near magnitude, so that sums round, the rest anything. */
static void fill(unsigned char *to, size_t count, gyre_dtype dtype)
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

static void make_expected(int nsrc, size_t count, gyre_dtype dtype, gyre_op op)
{
    size_t size = gyre_dtype_size(dtype);
    uint64_t element[SOURCES];

    for (size_t i = 0; i < count; i++) {
        for (int s = 0; s < nsrc; s++)
            element[s] = get(sources[s], i, size);
        put(expected, i, size, gy_reference_reduce(dtype, op, element, nsrc));
    }
}

/* Fresh data in the first nsrc sources; source i begins `skew * i` bytes off alignment. */
static void prepare(int nsrc, size_t skew, size_t count, gyre_dtype dtype, gyre_op op)
{
    for (int i = 0; i < nsrc; i++) {
        sources[i] = memory[i] + skew * (size_t)i;
        fill(memory[i] + skew * (size_t)i, count, dtype);
    }
    make_expected(nsrc, count, dtype, op);
}

/* The first element that differs from what is expected. */
static const char *compare(const void *got, size_t count, gyre_dtype dtype, const char *op, const char *who)
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

/* All kernels on the sources and the expected result that stand ready. */
static const char *run_all(int nsrc, size_t count, gyre_dtype dtype, gyre_op op)
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

/* Calls the statement for every valid pair, until one returns a text. */
typedef const char *(*pair_func)(gyre_dtype dtype, gyre_op op);
static const char *for_all_pairs(pair_func check)
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

const char *gy_check_a_kernel_for_every_valid_pair(void)
{
    const struct gy_kernels *kernels;

    for (int i = 0; (kernels = gy_kernels_usable(i)) != NULL; i++) {
        for (int d = 0; d < GY_DTYPES; d++) {
            for (int op = 0; op < GY_OPS; op++) {
                if ((kernels->reduce[d][op] != NULL) != gy_op_valid(op, (gyre_dtype)d))
                    return wrong("%s: type %d, operation %d", kernels->name, d, op);
            }
            if (!kernels->divide[d] || (kernels->widen[d] != NULL) != gy_dtype_narrow((gyre_dtype)d) ||
                (kernels->narrow[d] != NULL) != gy_dtype_narrow((gyre_dtype)d))
                return wrong("%s: type %d", kernels->name, d);
        }
    }
    return NULL;
}

/* Every one of `count` values of memory[0] with every one of `partners` of `partner`. */
static const char *check_partners(size_t count, const uint64_t *partner, size_t partners, gyre_dtype dtype, gyre_op op)
{
    size_t size = gyre_dtype_size(dtype);
    const char *text = NULL;

    sources[0] = memory[0];
    sources[1] = memory[1];
    for (size_t p = 0; p < partners && !text; p++) {
        for (size_t i = 0; i < count; i++)
            put(memory[1], i, size, partner[p]);
        make_expected(2, count, dtype, op);
        text = run_all(2, count, dtype, op);
    }
    return text;
}

static const char *special_pairs(gyre_dtype dtype, gyre_op op)
{
    uint64_t special[32];
    size_t count = make_specials(dtype, special);

    for (size_t i = 0; i < count; i++)
        put(memory[0], i, gyre_dtype_size(dtype), special[i]);
    return check_partners(count, special, count, dtype, op);
}

const char *gy_check_every_pair_of_special_values(void)
{
    return for_all_pairs(special_pairs);
}

static const char *pairs_of_8_bits(gyre_dtype dtype, gyre_op op)
{
    uint64_t value[256];

    if (gyre_dtype_size(dtype) != 1)
        return NULL;
    for (size_t i = 0; i < 256; i++)
        put(memory[0], i, 1, value[i] = i);
    return check_partners(256, value, 256, dtype, op);
}

const char *gy_check_every_pair_of_8_bit_values(void)
{
    return for_all_pairs(pairs_of_8_bits);
}

/* With a few specials and itself. */
static const char *values_of_16_bits(gyre_dtype dtype, gyre_op op)
{
    static const uint64_t partner[] = {0, 0x8000, 0x0001, 0x03ff, 0x3c01, 0xbf81, 0x7bff, 0x7f7f, 0x7c00, 0xff80};
    const char *text;

    if (gyre_dtype_size(dtype) != 2)
        return NULL;
    for (size_t i = 0; i < 1 << 16; i++)
        put(memory[0], i, 2, i);
    text = check_partners(1 << 16, partner, GY_ARRAY_LENGTH(partner), dtype, op);
    sources[1] = memory[0];
    make_expected(2, 1 << 16, dtype, op);
    return text ? text : run_all(2, 1 << 16, dtype, op);
}

const char *gy_check_every_16_bit_value(void)
{
    return for_all_pairs(values_of_16_bits);
}

static const char *widen_all(const struct gy_kernels *kernels, gyre_dtype dtype)
{
    size_t size = gyre_dtype_size(dtype), count = (size_t)1 << (8 * size);
    uint32_t saved = gy_fp_enter();

    for (size_t i = 0; i < count; i++)
        put(memory[0], i, size, i);
    kernels->widen[dtype]((char *)result, (const char *)memory[0], count);
    kernels->narrow[dtype]((char *)second, (const char *)result, count);
    gy_fp_leave(saved);
    for (size_t i = 0; i < count; i++) {
        float wide, exact = (float)gy_reference_decode(dtype, i);
        bool is_nan = gy_reference_is_nan(dtype, i);

        memcpy(&wide, result + 4 * i, 4);
        if (is_nan ? !isnan(wide) : memcmp(&wide, &exact, 4) != 0)
            return wrong("%s: %s %zx widens to %a", kernels->name, gyre_dtype_name(dtype), i, (double)wide);
        if (get(second, i, size) != (is_nan ? gy_reference_encode(dtype, NAN) : i))
            return wrong("%s: %s %zx comes back as %llx", kernels->name, gyre_dtype_name(dtype), i,
                         (unsigned long long)get(second, i, size));
    }
    return NULL;
}

const char *gy_check_every_narrow_value_widens_exactly(void)
{
    const struct gy_kernels *kernels;
    const char *text = NULL;

    set_up();
    for (int i = 0; (kernels = gy_kernels_usable(i)) != NULL; i++) {
        for (int d = 0; d < GY_DTYPES && !text; d++) {
            if (gy_dtype_narrow((gyre_dtype)d))
                text = widen_all(kernels, (gyre_dtype)d);
        }
    }
    return text;
}

/* Every upper half of a float32, with lower halves around the places where rounding turns. */
const char *gy_check_narrowing_rounds_to_nearest_even(void)
{
    static const uint16_t lower[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x2fff, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff};
    const struct gy_kernels *kernels;
    const char *text = NULL;

    set_up();
    for (int d = 0; d < GY_DTYPES; d++) {
        for (size_t l = 0; gy_dtype_narrow((gyre_dtype)d) && l < GY_ARRAY_LENGTH(lower); l++) {
            for (size_t i = 0; i < LONGEST; i++) {
                put(memory[0], i, 4, i << 16 | lower[l]);
                put(expected, i, gyre_dtype_size((gyre_dtype)d),
                    gy_reference_encode((gyre_dtype)d, gy_reference_decode(GYRE_FLOAT32, i << 16 | lower[l])));
            }
            for (int i = 0; !text && (kernels = gy_kernels_usable(i)) != NULL; i++) {
                kernels->narrow[d]((char *)result, (const char *)memory[0], LONGEST);
                text = compare(result, LONGEST, (gyre_dtype)d, "narrowing", kernels->name);
            }
        }
    }
    return text;
}

static const char *untouched(const unsigned char *dst, size_t bytes, const char *who)
{
    return dst[-1] != 0xee      ? wrong("%s writes before the start", who)
           : dst[bytes] != 0xee ? wrong("%s writes past the end", who)
                                : NULL;
}

static const char *counts_and_alignments(gyre_dtype dtype, gyre_op op)
{
    const struct gy_kernels *kernels;
    const char *text = NULL;

    for (size_t count = 0; count < 150; count += 1 + count / 64) {
        size_t skew = count % 5, bytes = count * gyre_dtype_size(dtype);
        unsigned char *dst = result + 64 + 3 * skew;

        prepare(2, skew, count, dtype, op);
        for (int i = 0; !text && (kernels = gy_kernels_usable(i)) != NULL; i++) {
            memset(result, 0xee, bytes + 256);
            kernels->reduce[dtype][op]((char *)dst, NULL, sources, 2, bytes, 0);
            text = compare(dst, count, dtype, gyre_op_name(op), kernels->name);
            text = text ? text : untouched(dst, bytes, kernels->name);
        }
    }
    return text;
}

const char *gy_check_any_count_and_alignment(void)
{
    return for_all_pairs(counts_and_alignments);
}

static const char *three_and_more(gyre_dtype dtype, gyre_op op)
{
    static const size_t counts[] = {1, 17, 333, 1025};
    const char *text = NULL;

    for (int nsrc = 3; nsrc <= SOURCES; nsrc++) {
        for (size_t c = 0; c < GY_ARRAY_LENGTH(counts) && !text; c++) {
            prepare(nsrc, 1, counts[c], dtype, op);
            text = run_all(nsrc, counts[c], dtype, op);
        }
    }
    return text;
}

const char *gy_check_many_sources(void)
{
    return for_all_pairs(three_and_more);
}

static const char *into_each(gyre_dtype dtype, gyre_op op)
{
    const struct gy_kernels *kernels;
    const char *text = NULL;

    for (int nsrc = 2; nsrc <= 4; nsrc++) {
        for (int into = 0; into < nsrc; into++) {
            for (int i = 0; !text && (kernels = gy_kernels_usable(i)) != NULL; i++) {
                char *dst = (char *)memory[into] + into;

                prepare(nsrc, 1, 300, dtype, op);
                kernels->reduce[dtype][op](dst, NULL, sources, nsrc, 300 * gyre_dtype_size(dtype), 0);
                text = compare(dst, 300, dtype, gyre_op_name(op), kernels->name);
            }
        }
    }
    return text;
}

const char *gy_check_into_any_source(void)
{
    return for_all_pairs(into_each);
}

static const char *stream_pair(gyre_dtype dtype, gyre_op op)
{
    const struct gy_kernels *kernels;
    const char *text = NULL;

    for (size_t skew = 0; skew < 10 && !text; skew += 1 + skew / 2) {
        unsigned char *dst = result + 64 + skew;
        size_t count = 100 * (skew + 1), bytes = count * gyre_dtype_size(dtype);

        prepare(3, 1, count, dtype, op);
        memset(result, 0xee, bytes + 256);
        gy_reduce_many_stream(dst, NULL, sources, 3, count, dtype, op, GY_STREAM_DST);
        text = compare(dst, count, dtype, gyre_op_name(op), "stream");
        text = text ? text : untouched(dst, bytes, "stream");
        for (unsigned which = 0; !text && which < 8; which++) { /* both of one alignment, and not */
            unsigned char *dst2 = second + 64 + skew + (which & 4 ? 3 : 0);

            memset(result, 0xee, bytes + 256);
            memset(second, 0xee, bytes + 256);
            gy_reduce_many_stream(dst, dst2, sources, 3, count, dtype, op, which & 3);
            gy_stream_fence();
            text = compare(dst, count, dtype, gyre_op_name(op), "stream of two");
            text = text ? text : compare(dst2, count, dtype, gyre_op_name(op), "second stream");
            text = text ? text : untouched(dst, bytes, "stream of two");
            text = text ? text : untouched(dst2, bytes, "second stream");
        }
        for (int i = 0; !text && (kernels = gy_kernels_usable(i)) != NULL; i++) {
            memset(result, 0xee, bytes + 256);
            kernels->reduce[dtype][op]((char *)result, NULL, sources, 3, bytes, GY_STREAM_DST);
            text = compare(result, count, dtype, gyre_op_name(op), kernels->name);
        }
    }
    return text;
}

/* Copies of every length and place around a line, through every table. */
static const char *copy_stream(void)
{
    const struct gy_kernels *kernels;
    unsigned char *from;

    set_up();
    from = second + 64;
    for (size_t i = 0; i < 4096; i++)
        from[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t bytes = 0; bytes < 4096; bytes += 1 + bytes / 9)
        for (size_t skew = 0; skew < 70; skew += 1 + skew / 3) {
            memset(result, 0xee, bytes + 256);
            gy_copy_stream(result + 64 + skew, from + skew / 2, bytes > skew ? bytes - skew : 0);
            if (memcmp(result + 64 + skew, from + skew / 2, bytes > skew ? bytes - skew : 0) != 0)
                return "gy_copy_stream copies something else";
            if (untouched(result + 64 + skew, bytes > skew ? bytes - skew : 0, "copy"))
                return "gy_copy_stream writes beyond its destination";
        }
    for (int i = 0; (kernels = gy_kernels_usable(i)) != NULL; i++) {
        memset(result, 0xee, 2048);
        kernels->copy((char *)result, (const char *)from + 1, 64 * 9);
        if (memcmp(result, from + 1, sizeof(char) * 64 * 9) != 0 || result[64 * 9] != 0xee)
            return "a table copies something else";
    }
    return NULL;
}

const char *gy_check_past_the_caches(void)
{
    const char *text = copy_stream();
    return text ? text : for_all_pairs(stream_pair);
}

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
    for (int d = 0; d < GY_DTYPES && !text; d++)
        text = divide_type((gyre_dtype)d);
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

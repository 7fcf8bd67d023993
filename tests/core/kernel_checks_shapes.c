/* The checks of kernel_checks.h that vary where operands lie: counts, alignments, numbers of sources, results in place
 * and past the caches. Kernels are taken from the table of each instruction set. */
#include <string.h>

#include "kernel_checks.h"
#include "kernel_data.h"

const char *gy_check_a_kernel_for_every_valid_pair(void)
{
    const struct gy_kernels *kernels;

    for (int i = 0; (kernels = gy_kernels_usable(i)) != NULL; i++) {
        for (int d = 0; d < GY_DTYPES; d++) {
            for (int op = 0; op < GY_OPS; op++) {
                if ((kernels->reduce[d][op] != NULL) != gy_op_valid(op, (gyre_dtype)d))
                    return wrong("%s: type %d, operation %d", kernels->name, d, op);
            }
            if ((kernels->divide[d] != NULL) != gy_op_valid(GYRE_AVERAGE, (gyre_dtype)d) ||
                (kernels->widen[d] != NULL) != gy_dtype_narrow((gyre_dtype)d) ||
                (kernels->narrow[d] != NULL) != gy_dtype_narrow((gyre_dtype)d))
                return wrong("%s: type %d", kernels->name, d);
        }
    }
    return NULL;
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
        kernels->copy((char *)result, (const char *)from + 1, NULL, NULL, 64 * 9, GY_STREAM_DST);
        if (memcmp(result, from + 1, sizeof(char) * 64 * 9) != 0 || result[64 * 9] != 0xee)
            return "a table copies something else";
    }
    return NULL;
}

/* Likewise to two places at once, by every choice of what goes past the caches. */
static const char *copy_both(void)
{
    static unsigned char other[4096 + 256];
    unsigned char *from = second + 64;

    for (size_t bytes = 0; bytes < 4000; bytes += 1 + bytes / 9)
        for (size_t skew = 0; skew < 70; skew += 1 + skew / 3)
            for (unsigned stream = 0; stream < 4; stream++) {
                memset(result, 0xee, bytes + 256);
                memset(other, 0xee, bytes + 256);
                gy_copy_both(result + 64 + skew, from + skew / 3, other + 64 + skew / 2, from + skew, bytes, stream);
                if (memcmp(result + 64 + skew, from + skew / 3, bytes) != 0 ||
                    memcmp(other + 64 + skew / 2, from + skew, bytes) != 0)
                    return "gy_copy_both copies something else";
                if (untouched(result + 64 + skew, bytes, "copy") || other[63 + skew / 2] != 0xee ||
                    other[64 + skew / 2 + bytes] != 0xee)
                    return "gy_copy_both writes beyond its destinations";
            }
    return NULL;
}

/* Out of lines that are claimed, by every table. */
static const char *copy_claim(void)
{
    static unsigned char before[4096 + 256];
    const struct gy_kernels *kernels;
    unsigned char *from = second + 64;

    memcpy(before, from, sizeof(before));
    for (size_t bytes = 0; bytes < 4000; bytes += 1 + bytes / 9)
        for (size_t skew = 0; skew < 70; skew += 1 + skew / 3) {
            memset(result, 0xee, bytes + 256);
            gy_copy_claim(result + 64 + skew / 2, from + skew, bytes);
            if (memcmp(result + 64 + skew / 2, from + skew, bytes) != 0)
                return "gy_copy_claim copies something else";
            if (untouched(result + 64 + skew / 2, bytes, "copy"))
                return "gy_copy_claim writes beyond its destination";
        }
    for (int i = 0; (kernels = gy_kernels_usable(i)) != NULL; i++) {
        memset(result, 0xee, 2048);
        kernels->claim((char *)result + 1, (char *)from, 64 * 9);
        if (memcmp(result + 1, from, sizeof(char) * 64 * 9) != 0 || result[1 + 64 * 9] != 0xee)
            return "a table copies something else from claimed lines";
    }
    return memcmp(before, from, sizeof(before)) == 0 ? NULL : "a claim changes what it claims";
}

const char *gy_check_past_the_caches(void)
{
    const char *text = copy_stream();
    text = text ? text : copy_both();
    text = text ? text : copy_claim();
    return text ? text : for_all_pairs(stream_pair);
}

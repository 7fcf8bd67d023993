/* Reductions of element arrays.
 *
 * Sums are IEEE additions, left to right; a result that is a NaN is stored as the quiet NaN with payload zero, because
 * the payload which an addition propagates depends on the order in which the compiler put its operands.
 *
 * Minima and maxima of floats are integer work, so that no mode of the floating-point unit can change them. A float's
 * bits become a key that orders as the number does, −0 below +0, with the NaNs outside:
 *
 *   key:   …negative NaNs…  −inf … −0  +0 … +inf  …positive NaNs…        key(bits) = bits ^ (bits >> 31 & 0x7fffffff)
 *
 * min pulls the positive NaNs to the lowest key and max the negative ones to the highest, so a NaN wins either; at the
 * store every key beyond the infinity becomes the quiet NaN. The key is its own inverse.
 *
 * The same kernels are compiled for several instruction sets; the choice is made per call from the CPU's flags. */
#include <string.h>

#include "dtype.h"

enum { KERNEL_TYPES = 3, KERNEL_OPS = 3 };
typedef void (*gy_kernel_func)(char *dst, char *dst2, const void *const *src, int nsources, size_t bytes);

#define MOST_SOURCES 4       /* of one kernel call */
#define TILE_BYTES (8 << 10) /* of partial results between kernel calls: stays in the first-level cache */

#define QUIET_NAN_32 0x7fc00000
#define INFINITY_KEY_32 0x7f800000
#define MINUS_INFINITY_KEY_32 (-0x7f800001)
#define QUIET_NAN_64 0x7ff8000000000000
#define INFINITY_KEY_64 0x7ff0000000000000
#define MINUS_INFINITY_KEY_64 (-0x7ff0000000000001)

/* `mask` is all ones or all zeros in each lane. */
#define SELECT(mask, yes, no) (((mask) & (yes)) | (~(mask) & (no)))
#define KEY(raw, bits, magnitude) ((bits) ^ (((bits) < 0) & (magnitude)))

#define GY_LOAD_BITS(raw, number, value, from) value = (number)(*(const raw *)(from));
#define GY_STORE_BITS(raw, number, out, value) out = (raw)(value);
#define GY_COMBINE_ADD(raw, number, value, next) value = value + next;
#define GY_COMBINE_MIN(raw, number, value, next) value = SELECT(next < value, next, value);
#define GY_COMBINE_MAX(raw, number, value, next) value = SELECT(next > value, next, value);

#define STORE_SUM(raw, out, value, nan)          \
    {                                            \
        raw is_nan = (value) != (value);         \
        out = SELECT(is_nan, nan, (raw)(value)); \
    }
#define LOAD_KEY(raw, value, from, magnitude, beyond, winner) \
    {                                                         \
        raw bits_ = *(const raw *)(from);                     \
        raw key_ = KEY(raw, bits_, magnitude);                \
        value = SELECT(key_ beyond, winner, key_);            \
    }
#define STORE_KEY(raw, out, value, magnitude, beyond, nan) out = SELECT((value)beyond, nan, KEY(raw, value, magnitude));

#define GY_STORE_SUM_32(raw, number, out, value) STORE_SUM(raw, out, value, QUIET_NAN_32)
#define GY_STORE_SUM_64(raw, number, out, value) STORE_SUM(raw, out, value, QUIET_NAN_64)
#define GY_LOAD_MIN_32(raw, number, value, from) LOAD_KEY(raw, value, from, INT32_MAX, > INFINITY_KEY_32, INT32_MIN)
#define GY_LOAD_MIN_64(raw, number, value, from) LOAD_KEY(raw, value, from, INT64_MAX, > INFINITY_KEY_64, INT64_MIN)
#define GY_LOAD_MAX_32(raw, number, value, from) \
    LOAD_KEY(raw, value, from, INT32_MAX, < MINUS_INFINITY_KEY_32, INT32_MAX)
#define GY_LOAD_MAX_64(raw, number, value, from) \
    LOAD_KEY(raw, value, from, INT64_MAX, < MINUS_INFINITY_KEY_64, INT64_MAX)
#define GY_STORE_MIN_32(raw, number, out, value) \
    STORE_KEY(raw, out, value, INT32_MAX, < MINUS_INFINITY_KEY_32, QUIET_NAN_32)
#define GY_STORE_MIN_64(raw, number, out, value) \
    STORE_KEY(raw, out, value, INT64_MAX, < MINUS_INFINITY_KEY_64, QUIET_NAN_64)
#define GY_STORE_MAX_32(raw, number, out, value) STORE_KEY(raw, out, value, INT32_MAX, > INFINITY_KEY_32, QUIET_NAN_32)
#define GY_STORE_MAX_64(raw, number, out, value) STORE_KEY(raw, out, value, INT64_MAX, > INFINITY_KEY_64, QUIET_NAN_64)

#define GY_ISA plain
#define GY_ISA_TARGET
#define GY_ISA_BYTES 16
#include "reduce_kernels.inc"

#if defined(__x86_64__)
#define GY_ISA avx2
#define GY_ISA_TARGET __attribute__((target("avx2")))
#define GY_ISA_BYTES 32
#include "reduce_kernels.inc"

#define GY_ISA avx512
#define GY_ISA_TARGET __attribute__((target("avx512f")))
#define GY_ISA_BYTES 64
#include "reduce_kernels.inc"
#endif

static gy_kernel_func kernel_find(gyre_dtype dtype, gyre_op op)
{
    int type = dtype == GYRE_INT32 ? 0 : dtype == GYRE_FLOAT32 ? 1 : 2;
    int verb = op == GYRE_SUM ? 0 : op == GYRE_MIN ? 1 : 2;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return kernels_avx512[type][verb];
    if (__builtin_cpu_supports("avx2"))
        return kernels_avx2[type][verb];
#endif
    return kernels_plain[type][verb];
}

void gy_reduce2(void *dst, const void *left, const void *right, size_t count, gyre_dtype dtype, gyre_op op)
{
    const void *const src[2] = {left, right};

    kernel_find(dtype, op)(dst, NULL, src, 2, count * gyre_dtype_size(dtype));
}

/* More sources than a kernel takes: tile by tile, the partial result of the sources so far is the first operand of the
 * next group. It lives in a tile of its own, because dst may be a source that is still to be read. */
static void reduce_grouped(gy_kernel_func kernel, char *dst, char *dst2, const void *const *src, int nsrc, size_t bytes)
{
    char partial[TILE_BYTES] __attribute__((aligned(64)));

    for (size_t at = 0; at < bytes; at += TILE_BYTES) {
        size_t length = gy_min_size(TILE_BYTES, bytes - at);
        const void *operand[MOST_SOURCES];
        int filled = 0;

        for (int i = 0; i < nsrc; i++) {
            operand[filled++] = (const char *)src[i] + at;
            if (i == nsrc - 1) {
                kernel(dst + at, dst2 ? dst2 + at : NULL, operand, filled, length);
            } else if (filled == MOST_SOURCES) {
                kernel(partial, NULL, operand, filled, length);
                operand[0] = partial;
                filled = 1;
            }
        }
    }
}

void gy_reduce_many(void *dst, void *dst2, const void *const *src, int nsrc, size_t count, gyre_dtype dtype, gyre_op op)
{
    size_t bytes = count * gyre_dtype_size(dtype);

    if (bytes == 0)
        return;
    if (nsrc == 1) {
        memmove(dst, src[0], bytes);
        if (dst2)
            memmove(dst2, dst, bytes);
    } else if (nsrc <= MOST_SOURCES) {
        kernel_find(dtype, op)(dst, dst2, src, nsrc, bytes);
    } else {
        reduce_grouped(kernel_find(dtype, op), dst, dst2, src, nsrc, bytes);
    }
}

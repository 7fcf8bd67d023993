/* The tables of reduction kernels: one per instruction set, all giving the same bits. kernels.inc is their only source;
 * kernels_*.c compile it, once per instruction set. Used by reduce.c, the tests and the benchmark. */
#ifndef GY_CORE_KERNELS_H
#define GY_CORE_KERNELS_H

#include "dtype.h"

/* Reduces nsrc >= 2 sources of `bytes` bytes from left to right, to dst and, unless NULL, to dst2. Both may equal
 * sources; any alignment. Partial results stay in registers, those of narrow floats as float32, for any number of
 * sources. stream, bits of enum gy_streamed: these outputs are aligned to 64 bytes and written by non-temporal stores.
 * A fence of the caller's makes them visible to others. */
typedef void (*gy_reduce_kernel)(char *dst, char *dst2, const void *const *src, int nsrc, size_t bytes,
                                 unsigned stream);
/* Copies `bytes`, a multiple of 64, from src to dst and, unless dst2 is NULL, from src2 to dst2; stream as above. Only
 * the sources may overlap. */
typedef void (*gy_copy_kernel)(char *dst, const char *src, char *dst2, const char *src2, size_t bytes, unsigned stream);
/* `bytes`, a multiple of 64, out of lines that are claimed (line.h), src being aligned to 64 bytes; no overlap. */
typedef void (*gy_claim_kernel)(char *dst, char *src, size_t bytes);
/* dst[i] = src[i] / divisor, for an integer toward zero. dst may equal src. */
typedef void (*gy_divide_kernel)(char *dst, const char *src, size_t bytes, int32_t divisor);
/* Between a narrow float and float32; no overlap. */
typedef void (*gy_convert_kernel)(char *dst, const char *src, size_t count);

struct gy_kernels {
    const char *name;
    gy_reduce_kernel reduce[GY_DTYPES][GY_OPS]; /* NULL where the operation has no meaning for the type */
    gy_divide_kernel divide[GY_DTYPES];         /* NULL for booleans */
    gy_copy_kernel copy;
    gy_claim_kernel claim;
    gy_convert_kernel widen[GY_DTYPES], narrow[GY_DTYPES]; /* NULL but for narrow floats */
};

#if defined(__x86_64__)
extern const struct gy_kernels gy_kernels_sse2, gy_kernels_avx2, gy_kernels_avx512;
#elif defined(__aarch64__)
extern const struct gy_kernels gy_kernels_neon;
#else
#error "gyre has no reduction kernels for this processor"
#endif

/* The index-th table that this CPU can run, from the plainest to the one in use; NULL past the last. */
const struct gy_kernels *gy_kernels_usable(int index);
/* The kernel of the table in use, as gy_reduce_many takes it; dtype and op are valid. NULL: an invalid pair. */
gy_reduce_kernel gy_reduction(unsigned dtype, unsigned op);

#endif

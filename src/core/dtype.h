/* Element types and the reduction kernels. The same bits on every machine and whatever the vector width: each element
 * is computed by the same scalar IEEE operation (no contraction, round to nearest even, no flush to zero). */
#ifndef GY_CORE_DTYPE_H
#define GY_CORE_DTYPE_H

#include "base.h"

bool gy_dtype_valid(int dtype);
bool gy_op_valid(int op);

/* dst[i] = left[i] op right[i]. A result that is a NaN, of a sum too, is the quiet NaN with payload zero. dst may equal
 * left or right; no other overlap; no alignment needed. The caller brackets it with gy_fp_enter and gy_fp_leave. */
void gy_reduce2(void *dst, const void *left, const void *right, size_t count, gyre_dtype dtype, gyre_op op);
/* dst[i] = ((src[0][i] op src[1][i]) op src[2][i]) ... in one pass over memory; dst may equal one of the sources.
 * If dst2 is not NULL the result is stored there too. */
void gy_reduce_many(void *dst, void *dst2, const void *const *src, int nsrc, size_t count, gyre_dtype dtype,
                    gyre_op op);

/* Sets round-to-nearest and clears flush-to-zero for the time of a reduction; returns what to restore. A few ns where
 * the mode is the usual one. */
uint32_t gy_fp_enter(void);
void gy_fp_leave(uint32_t saved);

#endif

/* Element types and the reduction kernels. The same bits on every machine and whatever the vector width: each element
 * is computed by the same scalar IEEE operations (no contraction, round to nearest even, no flush to zero); the rules
 * stand in gyre.h. */
#ifndef GY_CORE_DTYPE_H
#define GY_CORE_DTYPE_H

#include "base.h"

enum { GY_DTYPES = GYRE_BOOL + 1, GY_OPS = GYRE_PREMUL_SUM + 1 }; /* sizes of tables over them */

bool gy_dtype_valid(int dtype);
/* gyre_dtype_size of a valid one, without a call. */
static inline size_t gy_dtype_bytes(gyre_dtype dtype)
{
#define GY_DTYPE_BYTES(code, name, text, bytes) [code] = (bytes),
    static const uint8_t element_bytes[GY_DTYPES] = {GYRE_DTYPE_MAP(GY_DTYPE_BYTES)};
#undef GY_DTYPE_BYTES
    return element_bytes[dtype];
}
/* The type or operation of a name of gyre.h's lists or of another library's, in any case of letters; -1: none. */
int gy_dtype_find(const char *name);
int gy_op_find(const char *name);
/* Floats of 16 or 8 bits, which are computed in float32. */
bool gy_dtype_narrow(gyre_dtype dtype);
bool gy_op_known(int op);
/* True if the operation is defined for the type. dtype is valid. */
bool gy_op_valid(int op, gyre_dtype dtype);
/* Writes to text_p why it is not defined. op is known. */
void gy_op_explain(int op, gyre_dtype dtype, char *text_p, size_t size);
enum { GY_DTYPES_AVERAGED = GYRE_BOOL }; /* the types below have every operation up to the average */

/* Booleans as 0 and 1, in place: what a reduction leaves of a single contribution. */
void gy_bool_normalize(void *elements, size_t count);

/* For all of these: the caller brackets them with gy_fp_enter and gy_fp_leave; dtype and op are a valid pair; no
 * alignment is needed. Buffers may be equal where said; no other overlap is allowed. For averages and pre-multiplied
 * sums the reductions add; gy_reduce_divide and gy_reduce_multiply do the rest. */

/* What goes past the caches. */
enum gy_streamed { GY_STREAM_DST = 1, GY_STREAM_DST2 = 2 };

/* dst[i] = left[i] op right[i]. dst may equal left or right. */
void gy_reduce2(void *dst, const void *left, const void *right, size_t count, gyre_dtype dtype, gyre_op op);
/* dst[i] = ((src[0][i] op src[1][i]) op src[2][i]) ... in one pass over memory, narrow floats in float32 with one
 * rounding at the end; dst may equal one of the sources. If dst2 is not NULL the result is stored there too. One source
 * is copied. */
void gy_reduce_many(void *dst, void *dst2, const void *const *src, int nsrc, size_t count, gyre_dtype dtype,
                    gyre_op op);
/* The same bits, with dst, dst2 or both written by non-temporal stores: for results larger than the caches that no core
 * reads soon. dst2 may equal a source, too. It is streamed if its offset in a cache line equals that of dst. */
void gy_reduce_many_stream(void *dst, void *dst2, const void *const *src, int nsrc, size_t count, gyre_dtype dtype,
                           gyre_op op, unsigned stream);
/* memcpy past the caches. */
void gy_copy_stream(void *dst, const void *src, size_t bytes);
/* memcpy from src to dst and from src2 to dst2 in one pass. The outputs named in `stream` use non-temporal stores: dst2
 * only if its offset in a cache line equals that of dst. Only the sources may overlap. */
void gy_copy_both(void *dst, const void *src, void *dst2, const void *src2, size_t bytes, unsigned stream);
/* memcpy out of lines that are claimed in the same pass: see gy_line_claim. */
void gy_copy_claim(void *dst, const void *src, size_t bytes);
/* This thread's non-temporal stores become visible before the flag that it stores next. */
void gy_stream_fence(void);
/* dst[i] = src[i] / divisor, the end of an average: divisor > 0 is the number of ranks. dst may equal src. */
void gy_reduce_divide(void *dst, const void *src, size_t count, gyre_dtype dtype, int divisor);
/* dst[i] = src[i] * scalar[0], the beginning of a pre-multiplied sum; the same bits as a product. dst may equal src. */
void gy_reduce_multiply(void *dst, const void *src, const void *scalar, size_t count, gyre_dtype dtype);

/* A narrow float as float32, exactly, and back with one rounding: for partial results that travel as float32. A NaN
 * stays one; narrowing makes it the quiet one. dst and src do not overlap. */
void gy_widen(float *dst, const void *src, size_t count, gyre_dtype dtype);
void gy_narrow(void *dst, const float *src, size_t count, gyre_dtype dtype);

/* Sets round-to-nearest and clears flush-to-zero for the time of a reduction; returns what to restore. A few ns where
 * the mode is the usual one. */
uint32_t gy_fp_enter(void);
/* Instead of gy_fp_leave if no arithmetic was done since: reading the mode takes as long as a short vector's
 * reduction. */
void gy_fp_leave_unused(uint32_t saved);
void gy_fp_leave(uint32_t saved);

#endif

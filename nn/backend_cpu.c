/* The CPU backend: CBLAS for matrix products, plain loops for the rest. The loops are written once, in
 * backend_cpu_ops.h and backend_cpu_modules.h, and compiled for float and for double. Guarantee: for the same build,
 * machine, grid of threads and number of BLAS threads the same inputs give the same bits. */
#include "backend.h"
#include "random.h"
#include "team.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifndef OPENBLAS_VERSION
typedef int blasint;
#endif

/* Present in OpenBLAS only; any other CBLAS leaves it NULL. */
extern void gy_openblas_set_num_threads(int threads) __asm__("openblas_set_num_threads") __attribute__((weak));

void gyre_nn_set_blas_threads(int threads)
{
    if (gy_openblas_set_num_threads && threads > 0)
        gy_openblas_set_num_threads(threads);
}

/* What gy_nn_backend's gemm is given. */
struct gemm {
    bool transpose_a, transpose_b;
    size_t m, n, k;
    double alpha, beta;
    const void *a;
    size_t stride_a;
    const void *b;
    size_t stride_b;
    void *c;
    size_t stride_c;
};

#define LEAST_SHARED ((size_t)1 << 16) /* multiplications that are worth waking threads for */

static void *cpu_alloc(size_t bytes)
{
    size_t rounded = (bytes + 63) / 64 * 64;
    if (rounded < bytes)
        return NULL;
    void *memory = aligned_alloc(64, rounded ? rounded : 64);
    if (memory)
        memset(memory, 0, rounded);
    return memory;
}

static void cpu_copy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static void cpu_zero(void *x, size_t bytes)
{
    memset(x, 0, bytes);
}

#define REAL float
#define DTYPE GYRE_FLOAT32
#define NAME(x) float_##x
#define GEMM cblas_sgemm
#define EXP expf
#define TANH tanhf
#define LOG logf
#define SQRT sqrtf
#define ERF erff
#include "backend_cpu_modules.h"
#include "backend_cpu_ops.h"
#undef REAL
#undef DTYPE
#undef NAME
#undef GEMM
#undef EXP
#undef TANH
#undef LOG
#undef SQRT
#undef ERF

#define REAL double
#define DTYPE GYRE_FLOAT64
#define NAME(x) double_##x
#define GEMM cblas_dgemm
#define EXP exp
#define TANH tanh
#define LOG log
#define SQRT sqrt
#define ERF erf
#include "backend_cpu_modules.h"
#include "backend_cpu_ops.h"

const struct gyre_nn_backend *gy_nn_backend_cpu(gyre_dtype dtype)
{
    if (dtype == GYRE_FLOAT32)
        return &float_backend;
    return dtype == GYRE_FLOAT64 ? &double_backend : NULL;
}

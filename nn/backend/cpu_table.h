/* The CPU's tables for one instruction set. Each cpu_ISA.c includes this file once, defines GY_NN_ISA and is
 * compiled for that set. All tables give the same bits (except what CBLAS computes): every operation is written
 * element by element or in a fixed number of lanes, and contraction is off. */
#include "backend/cpu.h"
#include "backend/cpu_float.h"
#include "backend/thread_pool.h"
#include "base/random.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef __FMA__
#include <immintrin.h>
#endif

#ifndef OPENBLAS_VERSION
typedef int blasint;
#endif

/* What gyre_nn_backend's gemm is given. */
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

/* Before a loop whose turns do not depend on one another, though what it writes may be what it reads, element for
 * element. */
#ifdef __clang__
#define EACH
#else
#define EACH _Pragma("GCC ivdep")
#endif

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
#define FUSED(width) width##_fmadd_ps
#define EXP gy_nn_float_exp
#define TANH gy_nn_float_tanh
#define LOGISTIC gy_nn_float_logistic
#define NORMAL gy_nn_float_normal
#define LOG logf
#define SQRT sqrtf
#include "backend/cpu_ops.h"
#undef REAL
#undef DTYPE
#undef NAME
#undef GEMM
#undef FUSED
#undef EXP
#undef TANH
#undef LOGISTIC
#undef NORMAL
#undef LOG
#undef SQRT

#define REAL double
#define DTYPE GYRE_FLOAT64
#define NAME(x) double_##x
#define GEMM cblas_dgemm
#define FUSED(width) width##_fmadd_pd
#define EXP exp
#define TANH tanh
#define LOGISTIC gy_nn_double_logistic
#define NORMAL gy_nn_double_normal
#define LOG log
#define SQRT sqrt
#include "backend/cpu_ops.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
const struct gyre_nn_backend *const PASTE(gy_nn_cpu_, GY_NN_ISA)[2] = {&float_backend, &double_backend};

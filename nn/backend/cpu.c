/* The CPU backend: CBLAS for matrix products, plain loops for the rest. The loops are written once, in
 * cpu_ops.h and cpu_modules.h, and compiled for float and for double, and for each instruction set that
 * is worth it. Guarantee: for the same build, machine, grid of threads and number of BLAS threads the same inputs give
 * the same bits. */
#include "backend/cpu.h"

const struct gyre_nn_backend *const *gy_nn_cpu_usable(int index)
{
#ifdef __x86_64__
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (index == 1)
        return avx2 ? gy_nn_cpu_avx2 : NULL;
    if (index == 2)
        return avx512 ? gy_nn_cpu_avx512 : NULL;
#endif
    return index == 0 ? gy_nn_cpu_base : NULL;
}

const struct gyre_nn_backend *gy_nn_backend_cpu(gyre_dtype dtype)
{
    const struct gyre_nn_backend *const *best = NULL;
    for (int i = 0; gy_nn_cpu_usable(i); i++)
        best = gy_nn_cpu_usable(i);
    if (!best || (dtype != GYRE_FLOAT32 && dtype != GYRE_FLOAT64))
        return NULL;
    return best[dtype == GYRE_FLOAT64];
}

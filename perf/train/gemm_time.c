/* Measures the time of a program inside matrix products: LD_PRELOAD=libgyre-gemm-time.so PERF_GEMM_FILE=FILE
 * PROGRAM. Wraps CBLAS's two products and adds up the time of each call, except calls of gyre_nn_test, which is no
 * training. At the end of the program the seconds are appended to FILE, one line per process. Threads of BLAS are
 * inside their caller's time. */
#include <cblas.h>
#include <dlfcn.h>
#include <gyre/nn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static _Atomic int64_t spent;
static _Atomic bool testing;

static int64_t now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

#define PRODUCT(name, real)                                                                                       \
    __attribute__((visibility("default"))) void name(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE a_how,          \
                                                     enum CBLAS_TRANSPOSE b_how, blasint m, blasint n, blasint k, \
                                                     real alpha, const real *a, blasint lda, const real *b,       \
                                                     blasint ldb, real beta, real *c, blasint ldc)                \
    {                                                                                                             \
        static __typeof__(&name) next;                                                                            \
        if (!next)                                                                                                \
            *(void **)&next = dlsym(RTLD_NEXT, #name);                                                            \
        int64_t start = now();                                                                                    \
        next(order, a_how, b_how, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                  \
        if (!testing)                                                                                             \
            spent += now() - start;                                                                               \
    }
/* The parameters are CBLAS's. */
PRODUCT(cblas_sgemm, float)  // NOLINT(readability-function-size)
PRODUCT(cblas_dgemm, double) // NOLINT(readability-function-size)

__attribute__((visibility("default"))) gyre_status gyre_nn_test(gyre_nn_model *model, const gyre_nn_dataset *data,
                                                                const uint32_t *rows, size_t count, gyre_comm *comm,
                                                                double *loss_p, double *accuracy_p)
{
    static __typeof__(&gyre_nn_test) next;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "gyre_nn_test");
    testing = true;
    gyre_status status = next(model, data, rows, count, comm, loss_p, accuracy_p);
    testing = false;
    return status;
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("PERF_GEMM_FILE");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file)
        return;
    fprintf(file, "%.9f\n", (double)spent * 1e-9);
    fclose(file);
}

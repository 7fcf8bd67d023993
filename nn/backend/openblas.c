/* The number of threads of OpenBLAS. */
#include "backend/openblas.h"

/* Present in OpenBLAS only; any other CBLAS leaves it NULL. */
extern void gy_openblas_set_num_threads(int threads) __asm__("openblas_set_num_threads") __attribute__((weak));

void gy_nn_blas_threads(int threads)
{
    if (gy_openblas_set_num_threads && threads > 0)
        gy_openblas_set_num_threads(threads);
}

/* How many threads the BLAS library takes. */
#ifndef GY_NN_THREADS_H
#define GY_NN_THREADS_H

#include <gyre/nn.h>

/* In this process, where it is OpenBLAS; without effect elsewhere, and for numbers below 1. Unlike gyre_nn_set_blas_threads,
 * which is the user's, it is nobody's choice that gyre_nn_share_cores would have to leave. */
void gy_nn_blas_threads(int threads);

#endif

/* The number of threads of the BLAS library. */
#ifndef GY_NN_THREADS_H
#define GY_NN_THREADS_H

#include <gyre/nn.h>

/* Sets the threads of this process, where the library is OpenBLAS; no effect elsewhere, or for numbers below 1.
 * Unlike gyre_nn_set_blas_threads, which is the user's, it does not stop gyre_nn_share_cores from changing the
 * number. */
void gy_nn_blas_threads(int threads);

#endif

/* The CPU's tables of float and double, one pair for each instruction set. */
#ifndef GY_NN_BACKEND_CPU_H
#define GY_NN_BACKEND_CPU_H

#include "backend/backend.h"

extern const struct gyre_nn_backend *const gy_nn_cpu_base[2];
#ifdef __x86_64__
extern const struct gyre_nn_backend *const gy_nn_cpu_avx2[2], *const gy_nn_cpu_avx512[2];
#endif

/* The index-th pair that this CPU can run, from the plainest to the one in use; NULL past the last. */
const struct gyre_nn_backend *const *gy_nn_cpu_usable(int index);

#endif

/* The CPU's tables for AVX2 and FMA. */
#ifdef __x86_64__
#define GY_NN_ISA avx2
#include "backend/cpu_table.h"
#endif

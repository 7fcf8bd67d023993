/* The CPU's tables for AVX-512: F, BW, DQ and VL, with AVX2 and FMA. */
#ifdef __x86_64__
#define GY_NN_ISA avx512
#include "backend/cpu_table.h"
#endif

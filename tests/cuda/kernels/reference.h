/* The results of the CPU kernels (src/core), for tests in C++: plain types only. */
#ifndef GY_TESTS_CUDA_REFERENCE_H
#define GY_TESTS_CUDA_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* Reduces nsrc >= 1 sources, in rank order or in the order of the canonical tree. An average is divided by nsrc. */
void reference_reduce(void *dst, const void *const *src, int nsrc, size_t count, int type, int op, int canonical);
void reference_divide(void *dst, const void *src, size_t count, int type, int divisor);
void reference_multiply(void *dst, const void *src, const void *scalar, size_t count, int type);

/* Random elements: a quarter are zeros, extremes, denormals, infinities and NaNs, a half are numbers near 1, and the
 * rest have random bits. *state_p is the state of the generator, not 0. */
void reference_fill(void *to, size_t count, int type, uint64_t *state_p);
uint64_t reference_random(uint64_t *state_p);

#if defined(__cplusplus)
}
#endif

#endif

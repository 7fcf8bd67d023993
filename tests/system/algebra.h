/* Operations of a user's own, for tests: one that commutes and one that does not, as functions of two elements, and
 * over arrays, which need not be aligned, as gyre calls them. */
#ifndef GYRE_TESTS_SYSTEM_ALGEBRA_H
#define GYRE_TESTS_SYSTEM_ALGEBRA_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Four numbers modulo 2^16 as a 2 x 2 matrix in one element: products are associative and do not commute. */
static inline uint64_t algebra_product(uint64_t a, uint64_t b)
{
    uint16_t x[4], y[4], z[4];
    uint64_t result;
    memcpy(x, &a, 8);
    memcpy(y, &b, 8);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            z[2 * i + j] = (uint16_t)((uint32_t)x[2 * i] * y[j] + (uint32_t)x[2 * i + 1] * y[2 + j]);
    memcpy(&result, z, 8);
    return result;
}

static inline void algebra_products(const void *left, const void *right, void *result, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t a, b;
        memcpy(&a, (const char *)left + 8 * i, 8);
        memcpy(&b, (const char *)right + 8 * i, 8);
        a = algebra_product(a, b);
        memcpy((char *)result + 8 * i, &a, 8);
    }
}

/* Associative, and commutes. */
static inline uint32_t algebra_equivalence(uint32_t a, uint32_t b)
{
    return ~(a ^ b);
}

static inline void algebra_equivalences(const void *left, const void *right, void *result, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t a, b;
        memcpy(&a, (const char *)left + 4 * i, 4);
        memcpy(&b, (const char *)right + 4 * i, 4);
        a = algebra_equivalence(a, b);
        memcpy((char *)result + 4 * i, &a, 4);
    }
}

#endif

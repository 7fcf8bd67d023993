/* Test data for which every order of reducing is exact, so that results are compared bit for bit; other data in each
 * iteration. */
#ifndef GYRE_PERF_EXACT_H
#define GYRE_PERF_EXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gyre/gyre.h>

/* Has the operation a meaning for the type, as gyre.h says? */
bool gy_exact_has(gyre_dtype dtype, gyre_op op);
/* Up to how many ranks that holds for the type and operation. */
int gy_exact_ranks(gyre_dtype dtype, gyre_op op);
/* Elements [first, first + count) of rank `rank`'s vector for the operation in iteration `iteration`. */
void gy_exact_fill(void *memory, size_t first, size_t count, gyre_dtype dtype, gyre_op op, int rank,
                   uint64_t iteration);
/* How many of `count` elements differ from that. */
size_t gy_exact_wrong(const void *memory, size_t first, size_t count, gyre_dtype dtype, gyre_op op, int rank,
                      uint64_t iteration);
/* How many differ from the reduction of the vectors of ranks 0 to size − 1. */
size_t gy_exact_wrong_reduced(const void *memory, size_t first, size_t count, gyre_dtype dtype, gyre_op op, int size,
                              uint64_t iteration);

#endif

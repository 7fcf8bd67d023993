/* What the checks of the kernels share: memory for sources and results, values worth trying, the result that the
 * reference gives for them, and the comparison with it. All of it is of one thread. */
#ifndef GY_TESTS_KERNEL_DATA_H
#define GY_TESTS_KERNEL_DATA_H

#include "core/kernels.h"
#include "kernel_reference.h"

enum { SOURCES = 9, LONGEST = 1 << 16 };

/* Room for LONGEST elements of 8 bytes each, and some more, on a line; there after set_up. */
extern unsigned char *memory[SOURCES], *expected, *result, *second;
/* What run_all reduces: into memory. */
extern const void *sources[SOURCES];

void set_up(void);
uint64_t random_bits(void);
uint64_t get(const void *from, size_t i, size_t size);
void put(void *to, size_t i, size_t size, uint64_t bits);

/* A text that stands until the next one. */
const char *wrong(const char *format, ...) GY_PRINTF(1, 2);

/* Zeros, ones, denormals, extremes, infinities and NaNs, each with both signs; for integers the same bits, which are
 * their extremes too. Returns how many. */
size_t make_specials(gyre_dtype dtype, uint64_t special_p[32]);

/* A quarter are specials, half of near magnitude, so that sums round, the rest anything. */
void fill(unsigned char *to, size_t count, gyre_dtype dtype);

/* What the reference makes of the first nsrc sources. */
void make_expected(int nsrc, size_t count, gyre_dtype dtype, gyre_op op);

/* Fresh data in the first nsrc sources; source i begins `skew * i` bytes off alignment. */
void prepare(int nsrc, size_t skew, size_t count, gyre_dtype dtype, gyre_op op);

/* The first element that differs from what is expected, or NULL. */
const char *compare(const void *got, size_t count, gyre_dtype dtype, const char *op, const char *who);

/* All kernels on the sources and the expected result that stand ready. */
const char *run_all(int nsrc, size_t count, gyre_dtype dtype, gyre_op op);

/* Whether the bytes before and behind dst are still 0xee. */
const char *untouched(const unsigned char *dst, size_t bytes, const char *who);

/* Calls the statement for every valid pair, until one returns a text. */
typedef const char *(*pair_func)(gyre_dtype dtype, gyre_op op);
const char *for_all_pairs(pair_func check);

#endif

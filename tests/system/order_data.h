/* Data on which the order of reduction shows, as pure functions: every rank can make every rank's vector. */
#ifndef GYRE_TESTS_SYSTEM_ORDER_DATA_H
#define GYRE_TESTS_SYSTEM_ORDER_DATA_H

#include <stddef.h>
#include <stdint.h>

#include <gyre/gyre.h>

/* A hash of both, for data and for choices that all ranks make alike. */
uint64_t order_mix(uint64_t a, uint64_t b);

/* `count` elements of rank `rank`'s vector number `seed`. In most columns the magnitudes are mixed over 2^±8 and both
 * signs, so that another order of additions gives other bits; one column in eight holds NaNs of any payload,
 * infinities, zeros of both signs and the largest numbers; one in eight denormals and what is close to them. Integers
 * are any 32 bits. */
void order_fill(void *memory, size_t count, gyre_dtype dtype, int rank, uint64_t seed);

#endif

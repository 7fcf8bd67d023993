/* The mix of collectives that the ranks of a fault test go through: the same on every rank, and known to the
 * launcher. */
#ifndef GYRE_TESTS_SYSTEM_FAULT_CALLS_H
#define GYRE_TESTS_SYSTEM_FAULT_CALLS_H

#include <stdint.h>

#include <gyre/gyre.h>

/* Call number `number` (from 1) of the mix `seed`. */
gyre_status fault_call(gyre_comm *comm, uint64_t seed, uint64_t number);
/* The name of its collective, as gyre's error messages have it. */
const char *fault_call_name(uint64_t seed, uint64_t number);

/* splitmix64: the next number of a stream, below `below`. */
uint64_t fault_draw(uint64_t *stream, uint64_t below);

#endif

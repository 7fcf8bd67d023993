/* Two ranks with shared memory between them, and the counters that they signal with: what the yardsticks are made
 * of. Every counter has one writer, only grows, and has a pair of cache lines of its own. */
#ifndef GYRE_LIMITS_PAIR_H
#define GYRE_LIMITS_PAIR_H

#include <stdatomic.h>
#include <stdint.h>

#include "../compare/arena.h"
#include "../compare/driver.h"

struct gy_counter {
    _Alignas(128) _Atomic(uint64_t) value;
    float payload[14]; /* in the counter's own line */
};

static inline void gy_counter_raise(struct gy_counter *counter, uint64_t value)
{
    atomic_store_explicit(&counter->value, value, memory_order_release);
}

static inline uint64_t gy_counter_read(const struct gy_counter *counter)
{
    return atomic_load_explicit(&counter->value, memory_order_acquire);
}

/* The owner of the lower part is rank 0; the border is on a cache line where the vector is large. */
static inline size_t gy_pair_border(size_t count)
{
    return count / 2 / 16 * 16;
}

#endif

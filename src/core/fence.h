/* Fences: where what is ordered is not one atomic, but bytes beside it, or a store and a load of another location, which every
 * machine may swap otherwise. */
#ifndef GY_CORE_FENCE_H
#define GY_CORE_FENCE_H

#include <stdatomic.h>

/* ThreadSanitizer does not model fences. What they order lies in memory that processes share, where it sees no races anyway. */
static inline void gy_fence(memory_order order)
{
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
    atomic_thread_fence(order);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
}

static inline void gy_store_load_fence(void)
{
    gy_fence(memory_order_seq_cst);
}

#endif

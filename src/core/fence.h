/* Fences, for order that no single atomic gives: between an atomic and the bytes beside it, or between a store and a
 * load of another location, which every processor may reorder. */
#ifndef GY_CORE_FENCE_H
#define GY_CORE_FENCE_H

#include <stdatomic.h>

/* ThreadSanitizer does not model fences. The data ordered by them lie in memory shared by processes, where it detects
 * no races anyway. */
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

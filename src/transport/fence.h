/* The one full fence of the library: between a store and a load of another location, which every machine may swap
 * otherwise. */
#ifndef GY_TRANSPORT_FENCE_H
#define GY_TRANSPORT_FENCE_H

#include <stdatomic.h>

/* ThreadSanitizer does not model fences; what is ordered here are atomics only, so it reports nothing false without
 * them. */
static inline void gy_store_load_fence(void)
{
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
    atomic_thread_fence(memory_order_seq_cst);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
}

#endif

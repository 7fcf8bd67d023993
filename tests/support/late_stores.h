/* Stores past the caches that come as late as they may: not before the fence that stands behind them (gy_stream_fence).
 * A processor hardly ever lets the lack of one be seen; this does. For tests of which the linker sends calls of
 * gy_copy_stream, gy_copy_both and gy_stream_fence here first. One thread. */
#ifndef GYRE_TESTS_LATE_STORES_H
#define GYRE_TESTS_LATE_STORES_H

#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"

struct late_store {
    struct late_store *next;
    void *to;
    size_t bytes;
    unsigned char what[];
};

static struct late_store *late_stores, **late_stores_end = &late_stores;

static void late_store(void *to, const void *what, size_t bytes)
{
    struct late_store *store = malloc(sizeof(*store) + bytes);
    if (!store)
        abort();
    store->next = NULL;
    store->to = to;
    store->bytes = bytes;
    memcpy(store->what, what, bytes);
    *late_stores_end = store;
    late_stores_end = &store->next;
}

void __real_gy_stream_fence(void);
void __wrap_gy_stream_fence(void);
void __wrap_gy_stream_fence(void)
{
    while (late_stores) {
        struct late_store *store = late_stores;
        late_stores = store->next;
        memcpy(store->to, store->what, store->bytes);
        free(store);
    }
    late_stores_end = &late_stores;
    __real_gy_stream_fence();
}

#endif

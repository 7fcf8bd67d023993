/* Allocation through one door, so that tests can count allocations and make any one of them fail.
 *
 * Two atomic counters: `allocations` only grows; `fail_at` is the value of it at which one allocation fails, 0: never.
 * Their relaxed order is enough: each allocation owns the number that it drew, and exactly one draws `fail_at`. */
#include "mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t allocations;
static _Atomic uint64_t fail_at;
static pthread_once_t environment_once = PTHREAD_ONCE_INIT;

static void environment_read(void)
{
    const char *text = getenv("GYRE_TEST_FAIL_ALLOC");
    uint64_t nth = text ? strtoull(text, NULL, 10) : 0;

    if (nth > 0)
        atomic_store_explicit(&fail_at, nth, memory_order_relaxed);
}

/* Draws this allocation's number; true when it is the one that has to fail. */
static bool must_fail(void)
{
    uint64_t number;

    pthread_once(&environment_once, environment_read);
    number = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
    return number == atomic_load_explicit(&fail_at, memory_order_relaxed);
}

void *gy_alloc(size_t bytes)
{
    return must_fail() ? NULL : malloc(bytes ? bytes : 1);
}

void *gy_alloc_zero(size_t count, size_t bytes)
{
    size_t total;

    if (must_fail() || __builtin_mul_overflow(count, bytes, &total))
        return NULL;
    return calloc(1, total ? total : 1);
}

void *gy_alloc_aligned(size_t align, size_t bytes)
{
    void *memory = NULL;

    if (must_fail() || posix_memalign(&memory, gy_max_size(align, sizeof(void *)), bytes ? bytes : 1))
        return NULL;
    return memory;
}

void *gy_realloc(void *old, size_t bytes)
{
    return must_fail() ? NULL : realloc(old, bytes ? bytes : 1);
}

char *gy_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = gy_alloc(bytes);

    return copy ? memcpy(copy, text, bytes) : NULL;
}

void gy_free(void *memory)
{
    free(memory);
}

uint64_t gy_alloc_count(void)
{
    return atomic_load_explicit(&allocations, memory_order_relaxed);
}

void gy_alloc_fail_at(uint64_t nth)
{
    uint64_t number = 0;

    pthread_once(&environment_once, environment_read);
    if (nth)
        number = atomic_load_explicit(&allocations, memory_order_relaxed) + nth;
    atomic_store_explicit(&fail_at, number, memory_order_relaxed);
}

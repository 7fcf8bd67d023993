/* Allocation through one listener, so that tests can count allocations and make any one of them fail.
 *
 * Two atomic counters: `allocations` only grows; `fail_at` is the value of it at which one allocation fails, 0: never.
 * Their relaxed order is enough: each allocation owns the number that it drew, and exactly one draws `fail_at`. */
#include "mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t allocations;
static _Atomic uint64_t fail_at;
static _Atomic uint64_t outstanding;        /* allocated and not freed: the allocator may change when it is 0 */
static gyre_allocator given;                /* valid while `allocator` points to it */
static _Atomic(gyre_allocator *) allocator; /* NULL: libc */
static pthread_once_t environment_once = PTHREAD_ONCE_INIT;

static void environment_read(void)
{
    const char *text = getenv("GYRE_TEST_FAIL_ALLOC");
    uint64_t nth = text ? strtoull(text, NULL, 10) : 0;

    if (nth > 0)
        atomic_store_explicit(&fail_at, nth, memory_order_relaxed);
}

/* Takes this allocation's number; returns true if this is the one that has to fail. */
bool gy_alloc_must_fail(void)
{
    uint64_t number;

    pthread_once(&environment_once, environment_read);
    number = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
    return number == atomic_load_explicit(&fail_at, memory_order_relaxed);
}

static void *counted(void *memory)
{
    if (memory)
        atomic_fetch_add_explicit(&outstanding, 1, memory_order_relaxed);
    return memory;
}

static gyre_allocator *user_allocator(void)
{
    return atomic_load_explicit(&allocator, memory_order_acquire);
}

bool gy_mem_set_allocator(const gyre_allocator *wanted)
{
    if (atomic_load(&outstanding) != 0)
        return false;
    atomic_store(&allocator, NULL);
    if (wanted) {
        given = *wanted;
        atomic_store_explicit(&allocator, &given, memory_order_release);
    }
    return true;
}

void *gy_alloc(size_t bytes)
{
    gyre_allocator *user = user_allocator();

    if (gy_alloc_must_fail())
        return NULL;
    bytes = bytes ? bytes : 1;
    return counted(user ? user->allocate(user->user, bytes, _Alignof(max_align_t)) : malloc(bytes));
}

void *gy_alloc_zero(size_t count, size_t bytes)
{
    gyre_allocator *user = user_allocator();
    size_t total;

    if (gy_alloc_must_fail() || __builtin_mul_overflow(count, bytes, &total))
        return NULL;
    total = total ? total : 1;
    if (!user)
        return counted(calloc(1, total));
    void *memory = user->allocate(user->user, total, _Alignof(max_align_t));
    return counted(memory ? memset(memory, 0, total) : NULL);
}

void *gy_alloc_aligned(size_t align, size_t bytes)
{
    gyre_allocator *user = user_allocator();
    void *memory = NULL;

    if (gy_alloc_must_fail())
        return NULL;
    align = gy_max_size(align, sizeof(void *));
    bytes = bytes ? bytes : 1;
    if (user)
        return counted(user->allocate(user->user, bytes, align));
    return counted(posix_memalign(&memory, align, bytes) ? NULL : memory);
}

void *gy_realloc(void *old, size_t bytes)
{
    gyre_allocator *user = user_allocator();
    void *memory;

    if (gy_alloc_must_fail())
        return NULL;
    bytes = bytes ? bytes : 1;
    if (!old)
        return counted(user ? user->allocate(user->user, bytes, _Alignof(max_align_t)) : malloc(bytes));
    memory = user ? user->resize(user->user, old, bytes) : realloc(old, bytes);
    return memory;
}

char *gy_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = gy_alloc(bytes);

    return copy ? memcpy(copy, text, bytes) : NULL;
}

void gy_free(void *memory)
{
    gyre_allocator *user = user_allocator();

    if (!memory)
        return;
    atomic_fetch_sub_explicit(&outstanding, 1, memory_order_relaxed);
    if (user)
        user->release(user->user, memory);
    else
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

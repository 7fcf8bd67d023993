/* Counts the allocations of a whole program: its malloc family stands before the C library's, for libgyre too. To be
 * included by one file of a program, its own executable. Under a sanitizer, whose allocator cannot be counted,
 * `allocations` stays 0 and COUNTING is not defined. */
#ifndef GYRE_TESTS_ALLOCATIONS_H
#define GYRE_TESTS_ALLOCATIONS_H

#include <errno.h>
#include <stddef.h>

static volatile size_t allocations;

#ifndef GYRE_SANITIZED
#define COUNTING 1
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

#pragma GCC visibility push(default) /* libgyre must find these */

void *malloc(size_t bytes)
{
    allocations++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    allocations++;
    return __libc_calloc(count, bytes);
}

void *realloc(void *memory, size_t bytes)
{
    allocations++;
    return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    allocations++;
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **memory_p, size_t alignment, size_t bytes)
{
    allocations++;
    *memory_p = __libc_memalign(alignment, bytes);
    return *memory_p ? 0 : ENOMEM;
}

#pragma GCC visibility pop
#endif

#endif

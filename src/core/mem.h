/* Every allocation of the library goes through these, so that tests can make any one of them fail and count them. */
#ifndef GY_CORE_MEM_H
#define GY_CORE_MEM_H

#include "base.h"

void *gy_alloc(size_t bytes);                    /* uninitialised, NULL when out of memory; 0 bytes gives a pointer */
void *gy_alloc_zero(size_t count, size_t bytes); /* checked for overflow, zeroed */
void *gy_alloc_aligned(size_t align, size_t bytes); /* power-of-two align; freed with gy_free */
void *gy_realloc(void *old, size_t bytes);          /* NULL leaves `old` as it was */
char *gy_strdup(const char *text);
void gy_free(void *memory); /* NULL is allowed */

/* Memory from the user's functions from now on; NULL: from libc again. False: something is allocated still. */
bool gy_mem_set_allocator(const gyre_allocator *allocator);

/* Counts an allocation that is made elsewhere (secret_memory.c). True: it has to fail. */
bool gy_alloc_must_fail(void);

/* For tests (not exported from libgyre.so): allocations since start; make the n-th from now fail (0: never). Also read
 * once from GYRE_TEST_FAIL_ALLOC. Thread-safe. */
uint64_t gy_alloc_count(void);
void gy_alloc_fail_at(uint64_t nth);

#endif

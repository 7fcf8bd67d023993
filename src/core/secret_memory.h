/* Memory for keys and secrets. It is left out of core dumps, and overwritten when it is freed. As far as the limits
 * allow it is locked, so that it is not swapped out. It lies between pages that cannot be accessed.
 *
 * Pieces are packed: a key takes 64 bytes, not a page. Memory that was used once is kept for the next piece. It does
 * not come from the program's allocator, whose memory is in core dumps. */
#ifndef GY_CORE_SECRET_MEMORY_H
#define GY_CORE_SECRET_MEMORY_H

#include "base.h"

#define GY_SECRET_MOST 4096 /* bytes of a piece */

/* What a forked child has in its place. The child has no part in its parent's worlds: it needs none of their keys. But
 * it closes descriptors that are beside keys, and may make a world of its own with the same secret. */
enum gy_secret_fork { GY_SECRET_WIPED, GY_SECRET_COPIED };

/* Zeroed, aligned to 64 bytes. NULL: out of memory, or more than GY_SECRET_MOST. Thread-safe. */
void *gy_secret_alloc(size_t bytes, enum gy_secret_fork in_child);
void gy_secret_free(void *memory); /* NULL is allowed */

#endif

/* Memory that the user has announced: what a transport that needs registration would register once, and not at every
 * first use. Ranges count how often they were announced; a range is found by its beginning. */
#ifndef GY_COLLECTIVES_COMM_MEMORY_REGISTRY_H
#define GY_COLLECTIVES_COMM_MEMORY_REGISTRY_H

#include "core/base.h"

struct gy_registered {
    const void *memory;
    size_t bytes;
    unsigned times;
};

struct gy_registry {
    struct gy_registered *ranges; /* sorted by memory */
    size_t count, room;
};

/* False: no memory, or the range begins where another one does and has another length (*other_p is that length). */
bool gy_registry_add(struct gy_registry *registry, const void *memory, size_t bytes, size_t *other_p);
/* False: nothing that begins there has been announced. */
bool gy_registry_remove(struct gy_registry *registry, const void *memory);
void gy_registry_free(struct gy_registry *registry);

#endif

/* Memory announced by the user: a transport that needs registration can register it once instead of at every first
 * use. Ranges are counted by announcement and found by their start. */
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

/* Returns false if out of memory, or if a range with the same start and another length exists (*other_p is that
 * length). */
bool gy_registry_add(struct gy_registry *registry, const void *memory, size_t bytes, size_t *other_p);
/* Returns false if no announced range begins there. */
bool gy_registry_remove(struct gy_registry *registry, const void *memory);
void gy_registry_free(struct gy_registry *registry);

#endif

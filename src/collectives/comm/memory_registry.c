#include "collectives/comm/memory_registry.h"

#include <string.h>

#include "core/mem.h"

/* Returns the index of a range that begins at `memory`, or its insertion point. */
static size_t place_of(const struct gy_registry *registry, const void *memory)
{
    size_t low = 0, high = registry->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)registry->ranges[middle].memory < (uintptr_t)memory)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const struct gy_registry *registry, size_t place, const void *memory)
{
    return place < registry->count && registry->ranges[place].memory == memory;
}

bool gy_registry_add(struct gy_registry *registry, const void *memory, size_t bytes, size_t *other_p)
{
    size_t place = place_of(registry, memory);
    *other_p = bytes;
    if (is_at(registry, place, memory)) {
        *other_p = registry->ranges[place].bytes;
        if (*other_p == bytes)
            registry->ranges[place].times++;
        return *other_p == bytes;
    }
    if (registry->count == registry->room) {
        size_t room = registry->room ? 2 * registry->room : 16;
        struct gy_registered *ranges = gy_realloc(registry->ranges, room * sizeof(*ranges));
        if (!ranges)
            return false;
        registry->ranges = ranges;
        registry->room = room;
    }
    memmove(registry->ranges + place + 1, registry->ranges + place,
            (registry->count - place) * sizeof(*registry->ranges));
    registry->ranges[place] = (struct gy_registered){memory, bytes, 1};
    registry->count++;
    return true;
}

bool gy_registry_remove(struct gy_registry *registry, const void *memory)
{
    size_t place = place_of(registry, memory);
    if (!is_at(registry, place, memory))
        return false;
    if (--registry->ranges[place].times > 0)
        return true;
    memmove(registry->ranges + place, registry->ranges + place + 1,
            (registry->count - place - 1) * sizeof(*registry->ranges));
    registry->count--;
    return true;
}

void gy_registry_free(struct gy_registry *registry)
{
    gy_free(registry->ranges);
}

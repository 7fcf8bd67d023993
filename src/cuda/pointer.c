/* The kind of memory of an address: see pointer.h. Each thread caches the two ranges that it has looked up last. An
 * address may be freed and allocated again, so a cached range is used only if the driver still reports its buffer
 * id. */
#include "cuda/pointer.h"

enum { CACHED = 2 };
static _Thread_local struct gy_pointer cache[CACHED]; /* bytes 0: empty */
static _Thread_local unsigned oldest;

static bool covers(const struct gy_pointer *range, uintptr_t address)
{
    return address - range->base < range->bytes;
}

static unsigned long long buffer_id(const struct gy_driver *driver, uintptr_t address)
{
    unsigned long long id = 0;
    unsigned attribute = GY_CU_POINTER_BUFFER_ID;
    void *to = &id;

    return driver->pointer_attributes(1, &attribute, &to, address) == GY_CU_SUCCESS ? id : 0;
}

static const struct gy_pointer *find_cached(const struct gy_driver *driver, uintptr_t address)
{
    for (unsigned i = 0; i < CACHED; i++)
        if (covers(&cache[i], address))
            return buffer_id(driver, address) == cache[i].buffer ? &cache[i] : NULL;
    return NULL;
}

static enum gy_pointer_kind kind_of(unsigned type, unsigned managed)
{
    if (managed)
        return GY_POINTER_MANAGED;
    return type == GY_CU_MEMORY_DEVICE ? GY_POINTER_DEVICE : GY_POINTER_PINNED;
}

static struct gy_pointer query(const struct gy_driver *driver, uintptr_t address)
{
    const struct gy_pointer host = {.kind = GY_POINTER_HOST, .device = -1};
    struct gy_pointer found = host;
    unsigned type = 0, managed = 0; /* the driver writes one byte, a bool, into `managed`; the host is little-endian */
    unsigned long long base = 0;
    unsigned wanted[] = {GY_CU_POINTER_MEMORY_TYPE, GY_CU_POINTER_IS_MANAGED,  GY_CU_POINTER_DEVICE_ORDINAL,
                         GY_CU_POINTER_BUFFER_ID,   GY_CU_POINTER_RANGE_START, GY_CU_POINTER_RANGE_SIZE};
    void *into[] = {&type, &managed, &found.device, &found.buffer, &base, &found.bytes};

    if (driver->pointer_attributes(GY_ARRAY_LENGTH(wanted), wanted, into, address) != GY_CU_SUCCESS)
        return host;
    if (type != GY_CU_MEMORY_HOST && type != GY_CU_MEMORY_DEVICE)
        return host;
    found.base = (uintptr_t)base;
    found.kind = kind_of(type, managed);
    return found;
}

/* The new range replaces the cached ranges that it overlaps, and otherwise the older one of the two. */
static void keep(const struct gy_pointer *found)
{
    for (unsigned i = 0; i < CACHED; i++)
        if (cache[i].bytes && (covers(&cache[i], found->base) || covers(found, cache[i].base)))
            cache[i] = (struct gy_pointer){0};
    cache[oldest] = *found;
    oldest = (oldest + 1) % CACHED;
}

struct gy_pointer gy_pointer_look(const void *address)
{
    const struct gy_driver *driver = gy_driver_if_loaded();

    if (!driver)
        return (struct gy_pointer){.kind = GY_POINTER_HOST, .device = -1};
    const struct gy_pointer *cached = find_cached(driver, (uintptr_t)address);
    if (cached)
        return *cached;
    struct gy_pointer found = query(driver, (uintptr_t)address);
    if (found.kind != GY_POINTER_HOST && found.bytes)
        keep(&found);
    return found;
}

void gy_pointer_forget(void)
{
    memset(cache, 0, sizeof(cache));
}

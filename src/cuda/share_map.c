/* Mappings: see share_map.h. */
#include "cuda/share_map.h"

#include <stdio.h>
#include <unistd.h>

#include "core/mem.h"
#include "cuda/share_chunks.h"

struct gy_share_mapping {
    struct gy_share_mapping *next;
    struct gy_share_offer offer;
    gy_cu_address address;
    uint64_t *chunk_bytes; /* GY_SHARE_CHUNKS */
    unsigned chunks;
    unsigned uses;
    uint64_t used; /* when a use began last, in uses of all mappings */
    bool doomed;   /* closed when the last use ends, and found no more */
};

struct gy_share_mappings {
    struct gy_device device;
    unsigned most;
    pthread_mutex_t lock; /* of all below, and held in calls of the driver */
    struct gy_share_mapping *first;
    struct gy_share_counts counts;
    uint64_t uses;
};

struct gy_share_mappings *gy_share_mappings_new(const struct gy_device *device, unsigned most)
{
    struct gy_share_mappings *mappings = gy_alloc_zero(1, sizeof(*mappings));

    if (!mappings)
        return NULL;
    mappings->device = *device;
    mappings->most = most;
    pthread_mutex_init(&mappings->lock, NULL);
    return mappings;
}

static void free_mapping(struct gy_share_mapping *mapping)
{
    gy_free(mapping->chunk_bytes);
    gy_free(mapping);
}

/* A failure is not reported: it is one of the device, which every later call reports. */
static void close_memory(const struct gy_share_mappings *mappings, const struct gy_share_mapping *mapping)
{
    const struct gy_driver *cu = mappings->device.driver;

    if (mapping->offer.kind == GY_SHARE_CHUNKS)
        gy_chunks_unmap(cu, mapping->address, mapping->chunk_bytes, mapping->chunks);
    else
        (void)cu->ipc_close(mapping->address);
}

/* In the device's context. Unlinks and closes *link, which is not in use. */
static void close_at(struct gy_share_mappings *mappings, struct gy_share_mapping **link)
{
    struct gy_share_mapping *mapping = *link;

    close_memory(mappings, mapping);
    *link = mapping->next;
    mappings->counts.mapped--;
    mappings->counts.closed++;
    free_mapping(mapping);
}

/* In the device's context. */
static void close_doomed(struct gy_share_mappings *mappings)
{
    for (struct gy_share_mapping **link = &mappings->first; *link;)
        if ((*link)->doomed && !(*link)->uses)
            close_at(mappings, link);
        else
            link = &(*link)->next;
}

/* In the device's context. Returns false if all mappings are in use. */
static bool close_least_recent(struct gy_share_mappings *mappings)
{
    struct gy_share_mapping **oldest = NULL;

    for (struct gy_share_mapping **link = &mappings->first; *link; link = &(*link)->next)
        if (!(*link)->uses && (!oldest || (*link)->used < (*oldest)->used))
            oldest = link;
    if (oldest)
        close_at(mappings, oldest);
    return oldest != NULL;
}

static bool is_of(const struct gy_share_mapping *mapping, int32_t pid, uint64_t process)
{
    return mapping->offer.pid == pid && mapping->offer.process == process;
}

/* Mappings of the same addresses of the same process under another serial: that memory has been freed. */
static void doom_stale(struct gy_share_mappings *mappings, const struct gy_share_offer *offer)
{
    for (struct gy_share_mapping *mapping = mappings->first; mapping; mapping = mapping->next)
        if (is_of(mapping, offer->pid, offer->process) && mapping->offer.serial != offer->serial &&
            mapping->offer.base < offer->base + offer->bytes &&
            offer->base < mapping->offer.base + mapping->offer.bytes)
            mapping->doomed = true;
}

static struct gy_share_mapping *find_mapping(const struct gy_share_mappings *mappings,
                                             const struct gy_share_offer *offer)
{
    for (struct gy_share_mapping *mapping = mappings->first; mapping; mapping = mapping->next)
        if (!mapping->doomed && mapping->offer.serial == offer->serial && is_of(mapping, offer->pid, offer->process))
            return mapping;
    return NULL;
}

static gy_cu_result open_handle(const struct gy_share_mappings *mappings, struct gy_share_mapping *mapping)
{
    struct gy_cu_ipc_handle handle;

    memcpy(&handle, mapping->offer.handle, sizeof(handle));
    return mappings->device.driver->ipc_open(&mapping->address, handle, GY_CU_IPC_LAZY_PEER_ACCESS);
}

/* A driver that has no room, or holds older memory of the owner at the same place, is asked again without the mappings
 * that are not in use. */
static bool open_legacy(struct gy_share_mappings *mappings, struct gy_share_mapping *mapping, char *why,
                        size_t why_bytes)
{
    char what[80];
    gy_cu_result result = open_handle(mappings, mapping);

    if (result == GY_CU_ALREADY_MAPPED || result == GY_CU_OUT_OF_MEMORY) {
        while (close_least_recent(mappings))
            ;
        result = open_handle(mappings, mapping);
    }
    if (result == GY_CU_SUCCESS)
        return true;
    snprintf(what, sizeof(what), "cuIpcOpenMemHandle for memory of process %d", mapping->offer.pid);
    gy_driver_sentence(mappings->device.driver, result, what, why, why_bytes);
    return false;
}

static bool open_chunks(struct gy_share_mappings *mappings, struct gy_share_mapping *mapping, char *why,
                        size_t why_bytes)
{
    const struct gy_share_offer *offer = &mapping->offer;
    struct gy_descriptors descriptors;
    char name[GY_DESCRIPTORS_NAME];

    memcpy(name, offer->handle, sizeof(name));
    if (!gy_descriptors_take(name, offer->pid, offer->serial, &descriptors, why, why_bytes))
        return false;
    if (!gy_descriptors_have(&descriptors, offer->bytes)) {
        gy_descriptors_close(&descriptors);
        snprintf(why, why_bytes, "process %d gives other GPU memory than it has offered", offer->pid);
        return false;
    }
    mapping->chunks = descriptors.count;
    mapping->chunk_bytes = gy_alloc(descriptors.count * sizeof(descriptors.bytes[0]));
    if (mapping->chunk_bytes)
        memcpy(mapping->chunk_bytes, descriptors.bytes, descriptors.count * sizeof(descriptors.bytes[0]));
    else
        snprintf(why, why_bytes, "no memory for a mapping of GPU memory");
    bool mapped = mapping->chunk_bytes && gy_chunks_map(mappings->device.driver, mappings->device.number, &descriptors,
                                                        &mapping->address, why, why_bytes);
    gy_descriptors_close(&descriptors);
    return mapped;
}

/* In the device's context. */
static bool open_memory(struct gy_share_mappings *mappings, struct gy_share_mapping *mapping, char *why,
                        size_t why_bytes)
{
    const struct gy_driver *cu = mappings->device.driver;

    if (mapping->offer.kind == GY_SHARE_LEGACY && cu->ipc_open && cu->ipc_close)
        return open_legacy(mappings, mapping, why, why_bytes);
    if (mapping->offer.kind == GY_SHARE_CHUNKS && gy_chunks_are_supported(cu))
        return open_chunks(mappings, mapping, why, why_bytes);
    snprintf(why, why_bytes, "process %d offers GPU memory in a way that this process cannot take", mapping->offer.pid);
    return false;
}

/* In the device's context. */
static struct gy_share_mapping *add_mapping(struct gy_share_mappings *mappings, const struct gy_share_offer *offer,
                                            char *why, size_t why_bytes)
{
    doom_stale(mappings, offer);
    close_doomed(mappings);
    while (mappings->counts.mapped >= mappings->most)
        if (!close_least_recent(mappings)) {
            snprintf(why, why_bytes, "all %u mappings of GPU memory of other processes are in use", mappings->most);
            return NULL;
        }
    struct gy_share_mapping *made = gy_alloc_zero(1, sizeof(*made));
    if (!made) {
        snprintf(why, why_bytes, "no memory for a mapping of GPU memory");
        return NULL;
    }
    made->offer = *offer;
    if (!open_memory(mappings, made, why, why_bytes)) {
        free_mapping(made);
        return NULL;
    }
    made->next = mappings->first;
    mappings->first = made;
    mappings->counts.mapped++;
    mappings->counts.opened++;
    return made;
}

static bool enter(const struct gy_share_mappings *mappings, char *why, size_t why_bytes)
{
    gy_cu_result result = gy_device_enter(&mappings->device);

    if (result != GY_CU_SUCCESS)
        gy_driver_sentence(mappings->device.driver, result, "cuCtxPushCurrent", why, why_bytes);
    return result == GY_CU_SUCCESS;
}

/* The driver opens no handle in the process that has made it. */
static bool map_own(const struct gy_share_mappings *mappings, const struct gy_share_offer *offer,
                    gy_cu_address *address_p, char *why, size_t why_bytes)
{
    if (memcmp(&offer->device, &mappings->device.uuid, sizeof(offer->device)) != 0) {
        snprintf(why, why_bytes, "the memory is of another GPU of this process");
        return false;
    }
    *address_p = offer->base;
    return true;
}

bool gy_share_map(struct gy_share_mappings *mappings, const struct gy_share_offer *offer,
                  struct gy_share_mapping **mapping_p, gy_cu_address *address_p, char *why, size_t why_bytes)
{
    *mapping_p = NULL;
    if (offer->kind == GY_SHARE_NONE) {
        snprintf(why, why_bytes, "the memory is not offered to other processes");
        return false;
    }
    if (offer->pid == getpid() && offer->process == gy_share_process())
        return map_own(mappings, offer, address_p, why, why_bytes);
    pthread_mutex_lock(&mappings->lock);
    struct gy_share_mapping *mapping = find_mapping(mappings, offer);
    if (!mapping && enter(mappings, why, why_bytes)) {
        mapping = add_mapping(mappings, offer, why, why_bytes);
        gy_device_leave(&mappings->device);
    }
    if (mapping) {
        mappings->counts.in_use += mapping->uses++ == 0;
        mapping->used = ++mappings->uses;
        *mapping_p = mapping;
        *address_p = mapping->address;
    }
    pthread_mutex_unlock(&mappings->lock);
    return mapping != NULL;
}

/* Mappings that cannot be closed now, because the context is lost, are closed by the end of the process. */
static void close_doomed_outside(struct gy_share_mappings *mappings)
{
    char unused[1];

    if (!enter(mappings, unused, sizeof(unused)))
        return;
    close_doomed(mappings);
    gy_device_leave(&mappings->device);
}

void gy_share_release(struct gy_share_mappings *mappings, struct gy_share_mapping *mapping)
{
    if (!mapping)
        return;
    pthread_mutex_lock(&mappings->lock);
    if (--mapping->uses == 0) {
        mappings->counts.in_use--;
        if (mapping->doomed)
            close_doomed_outside(mappings);
    }
    pthread_mutex_unlock(&mappings->lock);
}

void gy_share_close(struct gy_share_mappings *mappings, int32_t pid, uint64_t process, uint64_t serial)
{
    bool any = false;

    pthread_mutex_lock(&mappings->lock);
    for (struct gy_share_mapping *mapping = mappings->first; mapping; mapping = mapping->next)
        if (is_of(mapping, pid, process) && (serial == 0 || mapping->offer.serial == serial)) {
            mapping->doomed = true;
            any |= mapping->uses == 0;
        }
    if (any)
        close_doomed_outside(mappings);
    pthread_mutex_unlock(&mappings->lock);
}

struct gy_share_counts gy_share_counts(struct gy_share_mappings *mappings)
{
    pthread_mutex_lock(&mappings->lock);
    struct gy_share_counts counts = mappings->counts;
    pthread_mutex_unlock(&mappings->lock);
    return counts;
}

void gy_share_mappings_free(struct gy_share_mappings *mappings)
{
    if (!mappings)
        return;
    for (struct gy_share_mapping *mapping = mappings->first; mapping; mapping = mapping->next)
        mapping->doomed = true;
    if (mappings->first)
        close_doomed_outside(mappings);
    while (mappings->first) { /* what the lost context holds */
        struct gy_share_mapping *mapping = mappings->first;
        mappings->first = mapping->next;
        free_mapping(mapping);
    }
    pthread_mutex_destroy(&mappings->lock);
    gy_free(mappings);
}

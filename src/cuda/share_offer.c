/* Offers: see share_offer.h. The cache is a table. A new export replaces the one that was used least recently, and
 * those that it overlaps: their memory has been freed, or has become part of it. */
#include "cuda/share_offer.h"

#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "core/mem.h"
#include "cuda/share_chunks.h"

enum { EXPORTS_MOST = 256, DESCRIPTORS_MOST = 256 }; /* of all exports */
enum { FORGOTTEN_MOST = 64 };                        /* whose serials are remembered */
struct export
{
    struct gy_share_offer offer; /* GY_SHARE_NONE: free */
    uint64_t used;               /* when it was used last, in uses of the cache */
    struct gy_chunks *chunks;    /* GY_SHARE_CHUNKS */
};
struct gy_share_exports {
    struct gy_device device;
    pthread_mutex_t lock; /* of all below */
    struct export exports[EXPORTS_MOST];
    uint64_t uses;
    unsigned exported;
    unsigned descriptors;                        /* open now */
    char name[GY_DESCRIPTORS_NAME];              /* under which they are taken; empty: not begun */
    uint64_t forgets, forgotten[FORGOTTEN_MOST]; /* serials, in turn */
};
_Static_assert(GY_DESCRIPTORS_NAME <= sizeof(((struct gy_share_offer *)0)->handle), "the name fits into an offer");

/* What the driver says about an address. */
struct seen {
    unsigned type, managed, legacy;
    int device;
    unsigned long long buffer;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t process;
static _Atomic(uint64_t) serials;

static void draw_process(void)
{
    randombytes_buf(&process, sizeof(process));
}

uint64_t gy_share_process(void)
{
    pthread_once(&once, draw_process);
    return process;
}

struct gy_share_exports *gy_share_exports_new(const struct gy_device *device)
{
    struct gy_share_exports *exports = gy_alloc_zero(1, sizeof(*exports));

    if (!exports)
        return NULL;
    exports->device = *device;
    pthread_mutex_init(&exports->lock, NULL);
    return exports;
}

static bool overlaps(const struct gy_share_offer *offer, gy_cu_address address, size_t bytes)
{
    return offer->kind != GY_SHARE_NONE && offer->base < address + bytes && address < offer->base + offer->bytes;
}

static bool covers(const struct gy_share_offer *offer, gy_cu_address address, size_t bytes)
{
    return offer->kind != GY_SHARE_NONE && address >= offer->base && address - offer->base <= offer->bytes &&
           bytes <= offer->bytes - (address - offer->base);
}

static void drop(struct gy_share_exports *exports, struct export *export)
{
    if (export->offer.kind != GY_SHARE_NONE)
        exports->forgotten[exports->forgets++ % FORGOTTEN_MOST] = export->offer.serial;
    if (export->chunks) {
        gy_descriptors_withdraw(export->offer.serial);
        exports->descriptors -= export->chunks->count;
        gy_free(export->chunks);
    }
    *export = (struct export){.offer.kind = GY_SHARE_NONE};
}

void gy_share_exports_free(struct gy_share_exports *exports)
{
    if (!exports)
        return;
    for (size_t i = 0; i < EXPORTS_MOST; i++)
        drop(exports, &exports->exports[i]);
    if (exports->name[0])
        gy_descriptors_end();
    pthread_mutex_destroy(&exports->lock);
    gy_free(exports);
}

static bool look(const struct gy_share_exports *exports, gy_cu_address address, struct seen *seen_p, char *why,
                 size_t why_bytes)
{
    const struct gy_driver *cu = exports->device.driver;
    unsigned wanted[] = {GY_CU_POINTER_MEMORY_TYPE, GY_CU_POINTER_IS_MANAGED, GY_CU_POINTER_LEGACY_IPC,
                         GY_CU_POINTER_DEVICE_ORDINAL, GY_CU_POINTER_BUFFER_ID};
    void *into[] = {&seen_p->type, &seen_p->managed, &seen_p->legacy, &seen_p->device, &seen_p->buffer};

    *seen_p = (struct seen){.device = -1};
    gy_cu_result result = cu->pointer_attributes(GY_ARRAY_LENGTH(wanted), wanted, into, address);
    if (result != GY_CU_SUCCESS)
        gy_driver_sentence(cu, result, "cuPointerGetAttributes", why, why_bytes);
    else if (seen_p->type != GY_CU_MEMORY_DEVICE)
        snprintf(why, why_bytes, "the memory is not of a GPU");
    else if (seen_p->managed)
        snprintf(why, why_bytes, "managed memory cannot be shared between processes");
    else if (seen_p->device != exports->device.number)
        snprintf(why, why_bytes, "the memory is of GPU %d, not of GPU %d", seen_p->device, exports->device.number);
    else
        return true;
    return false;
}

/* Whether the memory of an export is still what it was, as far as [address, address + bytes) goes. */
static bool is_there(const struct gy_share_exports *exports, const struct export *export, gy_cu_address address,
                     size_t bytes)
{
    const struct gy_driver *cu = exports->device.driver;
    unsigned attribute = GY_CU_POINTER_BUFFER_ID;
    unsigned long long buffer = 0;
    void *into = &buffer;

    if (export->chunks)
        return gy_chunks_are_there(cu, export->chunks, address, bytes);
    return cu->pointer_attributes(1, &attribute, &into, address) == GY_CU_SUCCESS && buffer == export->offer.buffer;
}

static struct export *find_export(struct gy_share_exports *exports, gy_cu_address address, size_t bytes)
{
    for (size_t i = 0; i < EXPORTS_MOST; i++)
        if (covers(&exports->exports[i].offer, address, bytes) &&
            is_there(exports, &exports->exports[i], address, bytes))
            return &exports->exports[i];
    return NULL;
}

static void sweep(struct gy_share_exports *exports)
{
    for (size_t i = 0; i < EXPORTS_MOST; i++) {
        struct export *export = &exports->exports[i];
        if (export->offer.kind != GY_SHARE_NONE && !is_there(exports, export, export->offer.base, export->offer.bytes))
            drop(exports, export);
    }
}

static struct export *least_recent(struct gy_share_exports *exports, bool with_chunks)
{
    struct export *oldest = NULL;

    for (size_t i = 0; i < EXPORTS_MOST; i++) {
        struct export *export = &exports->exports[i];
        if ((export->chunks || !with_chunks) && (!oldest || export->used < oldest->used))
            oldest = export;
    }
    return oldest;
}

/* A free place of the table for new memory. */
static struct export *make_place(struct gy_share_exports *exports, const struct gy_share_offer *offer)
{
    sweep(exports);
    for (size_t i = 0; i < EXPORTS_MOST; i++)
        if (overlaps(&exports->exports[i].offer, offer->base, offer->bytes))
            drop(exports, &exports->exports[i]);
    struct export *place = least_recent(exports, false);
    drop(exports, place);
    return place;
}

/* Finds the allocation. Returns false if it does not hold [address, address + bytes). */
static bool find_allocation(const struct gy_share_exports *exports, gy_cu_address address, size_t bytes,
                            struct gy_share_offer *offer, char *why, size_t why_bytes)
{
    const struct gy_driver *cu = exports->device.driver;
    gy_cu_address base = 0;
    size_t all = 0;
    gy_cu_result result = cu->mem_range(&base, &all, address);

    if (result != GY_CU_SUCCESS) {
        gy_driver_sentence(cu, result, "cuMemGetAddressRange", why, why_bytes);
        return false;
    }
    offer->base = base;
    offer->bytes = all;
    if (bytes > all || address - base > all - bytes) {
        snprintf(why, why_bytes, "the memory ends before its %zu bytes do: its allocation has %zu", bytes, all);
        return false;
    }
    return true;
}

static bool export_legacy(const struct gy_share_exports *exports, gy_cu_address address, size_t bytes,
                          struct gy_share_offer *offer, char *why, size_t why_bytes)
{
    const struct gy_driver *cu = exports->device.driver;
    struct gy_cu_ipc_handle handle;

    if (!cu->ipc_get || !cu->ipc_open || !cu->ipc_close) {
        snprintf(why, why_bytes, "the CUDA driver has no calls that share memory between processes");
        return false;
    }
    if (!find_allocation(exports, address, bytes, offer, why, why_bytes))
        return false;
    gy_cu_result result = cu->ipc_get(&handle, offer->base);
    if (result != GY_CU_SUCCESS) {
        gy_driver_sentence(cu, result, "cuIpcGetMemHandle", why, why_bytes);
        return false;
    }
    offer->kind = GY_SHARE_LEGACY;
    memcpy(offer->handle, &handle, sizeof(handle));
    return true;
}

/* Exports the chunks into `export`, which holds none. */
static bool export_chunks(struct gy_share_exports *exports, struct export *export, char *why, size_t why_bytes)
{
    struct gy_descriptors descriptors;

    if (!exports->name[0] && !gy_descriptors_begin(exports->name, why, why_bytes))
        return false;
    for (struct export *old; exports->descriptors + export->chunks->count > DESCRIPTORS_MOST;) {
        if (!(old = least_recent(exports, true)))
            break;
        drop(exports, old);
    }
    if (!gy_chunks_export(exports->device.driver, export->chunks, &descriptors, why, why_bytes))
        return false;
    if (!gy_descriptors_offer(export->offer.serial, &descriptors)) {
        gy_descriptors_close(&descriptors);
        snprintf(why, why_bytes, "no memory for an offer of GPU memory");
        return false;
    }
    memcpy(export->offer.handle, exports->name, sizeof(exports->name));
    return true;
}

static bool offer_chunks(struct gy_share_exports *exports, gy_cu_address address, size_t bytes, struct export *made,
                         char *why, size_t why_bytes)
{
    const struct gy_driver *cu = exports->device.driver;
    struct gy_chunks *chunks = gy_alloc(sizeof(*chunks));

    made->chunks = chunks;
    if (!chunks) {
        snprintf(why, why_bytes, "no memory for an offer of GPU memory");
        return false;
    }
    if (!gy_chunks_are_supported(cu)) {
        snprintf(why, why_bytes, "the CUDA driver has no calls that share this kind of memory between processes");
    } else if (gy_chunks_find(cu, address, bytes, chunks, why, why_bytes)) {
        const struct gy_chunk *last = &chunks->chunk[chunks->count - 1];
        made->offer.kind = GY_SHARE_CHUNKS;
        made->offer.buffer = chunks->chunk[0].buffer;
        made->offer.base = chunks->chunk[0].base;
        made->offer.bytes = last->base + last->bytes - made->offer.base;
        if (export_chunks(exports, made, why, why_bytes))
            return true;
    }
    gy_free(chunks);
    return false;
}

/* In the device's context. */
static struct export *export_memory(struct gy_share_exports *exports, gy_cu_address address, size_t bytes, char *why,
                                    size_t why_bytes)
{
    struct seen seen;

    if (!look(exports, address, &seen, why, why_bytes))
        return NULL;
    struct export *found = find_export(exports, address, bytes);
    if (found)
        return found;
    struct export made = {.offer = {.kind = GY_SHARE_NONE,
                                    .pid = getpid(),
                                    .process = gy_share_process(),
                                    .serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1,
                                    .buffer = seen.buffer,
                                    .device = exports->device.uuid}};
    if (seen.legacy ? !export_legacy(exports, address, bytes, &made.offer, why, why_bytes)
                    : !offer_chunks(exports, address, bytes, &made, why, why_bytes))
        return NULL;
    struct export *place = make_place(exports, &made.offer);
    *place = made;
    exports->exported++;
    exports->descriptors += made.chunks ? made.chunks->count : 0;
    return place;
}

bool gy_share_offer(struct gy_share_exports *exports, gy_cu_address address, size_t bytes,
                    struct gy_share_offer *offer_p, char *why, size_t why_bytes)
{
    gy_cu_result result = gy_device_enter(&exports->device);

    memset(offer_p, 0, sizeof(*offer_p));
    if (result != GY_CU_SUCCESS) {
        gy_driver_sentence(exports->device.driver, result, "cuCtxPushCurrent", why, why_bytes);
        return false;
    }
    pthread_mutex_lock(&exports->lock);
    struct export *export = export_memory(exports, address, bytes, why, why_bytes);
    if (export) {
        export->used = ++exports->uses;
        *offer_p = export->offer;
    }
    pthread_mutex_unlock(&exports->lock);
    gy_device_leave(&exports->device);
    return export != NULL;
}

void gy_share_withdraw(struct gy_share_exports *exports, gy_cu_address address, size_t bytes)
{
    pthread_mutex_lock(&exports->lock);
    for (size_t i = 0; i < EXPORTS_MOST; i++)
        if (overlaps(&exports->exports[i].offer, address, bytes))
            drop(exports, &exports->exports[i]);
    pthread_mutex_unlock(&exports->lock);
}

void gy_share_sweep(struct gy_share_exports *exports)
{
    if (gy_device_enter(&exports->device) != GY_CU_SUCCESS)
        return;
    pthread_mutex_lock(&exports->lock);
    sweep(exports);
    pthread_mutex_unlock(&exports->lock);
    gy_device_leave(&exports->device);
}

size_t gy_share_forgotten(struct gy_share_exports *exports, uint64_t *seen_p, uint64_t *which, size_t most)
{
    size_t count = 0;

    pthread_mutex_lock(&exports->lock);
    if (exports->forgets - *seen_p > FORGOTTEN_MOST) {
        which[count++] = 0;
        *seen_p = exports->forgets;
    }
    while (count < most && *seen_p < exports->forgets)
        which[count++] = exports->forgotten[(*seen_p)++ % FORGOTTEN_MOST];
    pthread_mutex_unlock(&exports->lock);
    return count;
}

unsigned gy_share_exported(struct gy_share_exports *exports)
{
    pthread_mutex_lock(&exports->lock);
    unsigned count = exports->exported;
    pthread_mutex_unlock(&exports->lock);
    return count;
}

/* Memory without an address, and addresses without memory: cuMemCreate, cuMemAddressReserve, cuMemMap. Memory is a
 * memfd whose name says which device it belongs to; its exported form is a descriptor of that memfd.
 *
 *   cuMemAddressReserve   base and secret, both without access
 *   cuMemMap              the memfd replaces a piece of secret; no device has access yet
 *   cuMemSetAccess        devices have access to it
 *
 * Handles are numbers of a table, which are used again. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define GRANULARITY ((size_t)2 << 20)
#define NAME "gpu-allocation-"
enum { MEMORIES_MOST = 1024, RANGES_MOST = 256 };

static struct memory {
    int fd;
    size_t bytes;
    int device;
    unsigned handle_types;
    unsigned references, mappings; /* both 0: free */
    unsigned long long block;
} memories[MEMORIES_MOST];

static struct range {
    unsigned char *base, *secret; /* NULL: free */
    size_t bytes;
} ranges[RANGES_MOST];

static bool is_whole(unsigned long long bytes)
{
    return bytes % GRANULARITY == 0;
}

static struct memory *find_memory(gy_cu_allocation handle)
{
    struct memory *found = handle && handle <= MEMORIES_MOST ? &memories[handle - 1] : NULL;

    return found && found->references ? found : NULL;
}

/* Takes the descriptor. Returns 0: the table is full. */
static gy_cu_allocation add_memory(int fd, size_t bytes, int device, unsigned handle_types)
{
    for (gy_cu_allocation i = 0; i < MEMORIES_MOST; i++)
        if (!memories[i].references && !memories[i].mappings) {
            memories[i] = (struct memory){fd, bytes, device, handle_types, 1, 0, gy_gpu_number()};
            return i + 1;
        }
    close(fd);
    return 0;
}

static void drop_if_unused(const struct memory *memory)
{
    if (!memory->references && !memory->mappings)
        close(memory->fd);
}

static struct range *find_range(gy_cu_address address)
{
    for (int i = 0; i < RANGES_MOST; i++)
        if (ranges[i].base && address - (uintptr_t)ranges[i].base < ranges[i].bytes)
            return &ranges[i];
    return NULL;
}

bool gy_gpu_reserved(gy_cu_address address, gy_cu_address *base_p, size_t *bytes_p)
{
    const struct range *range = find_range(address);

    if (range && base_p)
        *base_p = (uintptr_t)range->base;
    if (range && bytes_p)
        *bytes_p = range->bytes;
    return range != NULL;
}

static gy_cu_result check_kind(const struct gy_cu_allocation_kind *kind)
{
    if (!kind || kind->type != GY_CU_ALLOCATION_PINNED || kind->location_type != GY_CU_LOCATION_DEVICE)
        return GY_CU_INVALID_VALUE;
    return kind->device < 0 || kind->device >= gy_gpu_count ? GY_CU_INVALID_DEVICE : GY_CU_SUCCESS;
}

gy_cu_result cuMemGetAllocationGranularity(size_t *bytes_p, const struct gy_cu_allocation_kind *kind, unsigned option)
{
    gy_cu_result result = gy_gpu_enter();

    if (!result)
        result = option > GY_CU_GRANULARITY_RECOMMENDED ? GY_CU_INVALID_VALUE : check_kind(kind);
    if (!result)
        *bytes_p = GRANULARITY;
    return gy_gpu_leave(result);
}

/* A memfd of `bytes` bytes that are no zeros; −1: there is none. */
static int make_memory(size_t bytes, int device)
{
    char name[32];

    snprintf(name, sizeof(name), NAME "%d", gy_gpu_devices[device].physical);
    int fd = memfd_create(name, MFD_CLOEXEC);
    void *seen = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0)
        seen = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (seen != MAP_FAILED) {
        memset(seen, 0xa5, bytes);
        munmap(seen, bytes);
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

gy_cu_result cuMemCreate(gy_cu_allocation *handle_p, size_t bytes, const struct gy_cu_allocation_kind *kind,
                         unsigned long long flags)
{
    gy_cu_result result = gy_gpu_enter();

    if (!result)
        result = flags || !bytes || !is_whole(bytes) ? GY_CU_INVALID_VALUE : check_kind(kind);
    if (result)
        return gy_gpu_leave(result);
    int fd = make_memory(bytes, kind->device);
    gy_cu_allocation handle = fd < 0 ? 0 : add_memory(fd, bytes, kind->device, kind->handle_types);
    if (handle)
        *handle_p = handle;
    return gy_gpu_leave(handle ? GY_CU_SUCCESS : GY_CU_OUT_OF_MEMORY);
}

gy_cu_result cuMemRelease(gy_cu_allocation handle)
{
    gy_cu_result result = gy_gpu_enter();
    struct memory *found = find_memory(handle);

    if (result || !found)
        return gy_gpu_leave(result ? result : GY_CU_INVALID_VALUE);
    found->references--;
    drop_if_unused(found);
    return gy_gpu_leave(GY_CU_SUCCESS);
}

static struct memory *memory_of_block(unsigned long long block)
{
    for (int i = 0; i < MEMORIES_MOST; i++)
        if ((memories[i].references || memories[i].mappings) && memories[i].block == block)
            return &memories[i];
    abort();
}

gy_cu_result cuMemRetainAllocationHandle(gy_cu_allocation *handle_p, void *address)
{
    gy_cu_result result = gy_gpu_enter();
    const struct gy_gpu_allocation *found = gy_gpu_find((uintptr_t)address);

    if (result || !found || found->origin != GY_GPU_MAPPED)
        return gy_gpu_leave(result ? result : GY_CU_INVALID_VALUE);
    struct memory *memory = memory_of_block(found->block);
    memory->references++;
    *handle_p = (gy_cu_allocation)(memory - memories) + 1;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemExportToShareableHandle(void *descriptor_p, gy_cu_allocation handle, unsigned type,
                                          unsigned long long flags)
{
    gy_cu_result result = gy_gpu_enter();
    const struct memory *found = find_memory(handle);

    if (!result && (!found || flags || type != GY_CU_POSIX_DESCRIPTOR))
        result = GY_CU_INVALID_VALUE;
    if (!result && !(found->handle_types & GY_CU_POSIX_DESCRIPTOR))
        result = GY_CU_NOT_SUPPORTED;
    int fd = result ? -1 : fcntl(found->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return gy_gpu_leave(result ? result : GY_CU_OUT_OF_MEMORY);
    memcpy(descriptor_p, &fd, sizeof(fd));
    return gy_gpu_leave(GY_CU_SUCCESS);
}

/* Returns the device of exported memory by the name of its memfd; −1: it is something else, or not visible. */
static int device_of(int fd)
{
    static const char prefix[] = "/memfd:" NAME;
    char path[64], name[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, name, sizeof(name) - 1);
    name[length > 0 ? length : 0] = '\0';
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return -1;
    return gy_gpu_visible((int)strtol(name + sizeof(prefix) - 1, NULL, 10));
}

gy_cu_result cuMemImportFromShareableHandle(gy_cu_allocation *handle_p, void *descriptor, unsigned type)
{
    gy_cu_result result = gy_gpu_enter();
    int fd = (int)(intptr_t)descriptor, device = device_of(fd);
    struct stat file;

    if (!result && (type != GY_CU_POSIX_DESCRIPTOR || device < 0 || fstat(fd, &file)))
        result = GY_CU_INVALID_VALUE;
    int copy = result ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        return gy_gpu_leave(result ? result : GY_CU_OUT_OF_MEMORY);
    gy_cu_allocation handle = add_memory(copy, (size_t)file.st_size, device, 0);
    if (handle)
        *handle_p = handle;
    return gy_gpu_leave(handle ? GY_CU_SUCCESS : GY_CU_OUT_OF_MEMORY);
}

/* An aligned piece of address space without access; NULL: there is none. */
static unsigned char *reserve(size_t bytes)
{
    unsigned char *raw = mmap(NULL, bytes + GRANULARITY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (raw == MAP_FAILED)
        return NULL;
    size_t before = GRANULARITY - (uintptr_t)raw % GRANULARITY;
    munmap(raw, before);
    if (before < GRANULARITY)
        munmap(raw + before + bytes, GRANULARITY - before);
    return raw + before;
}

gy_cu_result cuMemAddressReserve(gy_cu_address *address_p, size_t bytes, size_t alignment, gy_cu_address wanted,
                                 unsigned long long flags)
{
    gy_cu_result result = gy_gpu_enter();
    struct range *free_one = NULL;

    (void)wanted; /* a hint */
    if (!result && (!bytes || !is_whole(bytes) || (alignment & (alignment - 1)) || alignment > GRANULARITY || flags))
        result = GY_CU_INVALID_VALUE;
    for (int i = 0; i < RANGES_MOST && !free_one; i++)
        if (!ranges[i].base)
            free_one = &ranges[i];
    if (result || !free_one)
        return gy_gpu_leave(result ? result : GY_CU_OUT_OF_MEMORY);
    struct range made = {.base = reserve(bytes), .secret = reserve(bytes), .bytes = bytes};
    if (made.base && made.secret) {
        *free_one = made;
        *address_p = (uintptr_t)made.base;
        return gy_gpu_leave(GY_CU_SUCCESS);
    }
    if (made.base)
        munmap(made.base, bytes);
    if (made.secret)
        munmap(made.secret, bytes);
    return gy_gpu_leave(GY_CU_OUT_OF_MEMORY);
}

/* How many bytes of [address, address + bytes) are mapped. `whole` becomes false if a mapping crosses an end. */
static size_t mapped_bytes(gy_cu_address address, size_t bytes, bool *whole)
{
    size_t found = 0;

    for (size_t at = 0; at < bytes; at += GRANULARITY) {
        const struct gy_gpu_allocation *chunk = gy_gpu_find(address + at);
        if (chunk && (chunk->base < address || chunk->base + chunk->bytes > address + bytes))
            *whole = false;
        found += chunk ? GRANULARITY : 0;
    }
    return found;
}

static bool is_in_one_range(gy_cu_address address, size_t bytes)
{
    const struct range *range = find_range(address);

    return range && bytes && is_whole(address) && is_whole(bytes) &&
           bytes <= range->bytes - (address - (uintptr_t)range->base);
}

gy_cu_result cuMemAddressFree(gy_cu_address address, size_t bytes)
{
    gy_cu_result result = gy_gpu_enter();
    struct range *range = find_range(address);
    bool whole = true;

    if (!result &&
        (!range || (uintptr_t)range->base != address || range->bytes != bytes || mapped_bytes(address, bytes, &whole)))
        result = GY_CU_INVALID_VALUE;
    if (result)
        return gy_gpu_leave(result);
    munmap(range->base, bytes);
    munmap(range->secret, bytes);
    range->base = NULL;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemMap(gy_cu_address address, size_t bytes, size_t offset, gy_cu_allocation handle,
                      unsigned long long flags)
{
    gy_cu_result result = gy_gpu_enter();
    struct memory *memory = find_memory(handle);
    bool whole = true;

    if (!result && (!memory || flags || offset || !is_in_one_range(address, bytes) || bytes > memory->bytes))
        result = GY_CU_INVALID_VALUE;
    if (!result && mapped_bytes(address, bytes, &whole))
        result = GY_CU_ALREADY_MAPPED;
    if (result)
        return gy_gpu_leave(result);
    const struct range *range = find_range(address);
    unsigned char *secret = range->secret + (address - (uintptr_t)range->base);
    const struct gy_gpu_allocation made = {.base = (uintptr_t)address,
                                           .bytes = bytes,
                                           .secret = secret,
                                           .device = memory->device,
                                           .type = GY_CU_MEMORY_DEVICE,
                                           .origin = GY_GPU_MAPPED,
                                           .fd = -1,
                                           .handle_types = memory->handle_types,
                                           .block = memory->block};
    if (mmap(secret, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->fd, 0) == MAP_FAILED ||
        !gy_gpu_add(&made))
        return gy_gpu_leave(GY_CU_OUT_OF_MEMORY);
    memory->mappings++;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemUnmap(gy_cu_address address, size_t bytes)
{
    gy_cu_result result = gy_gpu_enter();
    bool whole = true;

    if (!result && (!is_in_one_range(address, bytes) || mapped_bytes(address, bytes, &whole) != bytes || !whole))
        result = GY_CU_INVALID_VALUE;
    if (result)
        return gy_gpu_leave(result);
    gy_gpu_finish();
    for (gy_cu_address at = address; at < address + bytes;) {
        struct gy_gpu_allocation *chunk = gy_gpu_find(at);
        struct memory *memory = memory_of_block(chunk->block);
        if (mmap(chunk->secret, chunk->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
                 0) == MAP_FAILED)
            abort();
        at += chunk->bytes;
        chunk->type = 0;
        memory->mappings--;
        drop_if_unused(memory);
    }
    return gy_gpu_leave(GY_CU_SUCCESS);
}

static gy_cu_result check_access(const struct gy_cu_access *access, int owner)
{
    if (access->location_type != GY_CU_LOCATION_DEVICE || access->flags > GY_CU_ACCESS_READ_WRITE)
        return GY_CU_INVALID_VALUE;
    if (access->device < 0 || access->device >= gy_gpu_count)
        return GY_CU_INVALID_DEVICE;
    return gy_gpu_peers(access->device, owner) ? GY_CU_SUCCESS : GY_CU_INVALID_DEVICE;
}

gy_cu_result cuMemSetAccess(gy_cu_address address, size_t bytes, const struct gy_cu_access *access, size_t count)
{
    gy_cu_result result = gy_gpu_enter();
    bool whole = true;

    if (!result && (!is_in_one_range(address, bytes) || mapped_bytes(address, bytes, &whole) != bytes || !whole))
        result = GY_CU_INVALID_VALUE;
    for (size_t i = 0; i < count && !result; i++)
        for (gy_cu_address at = address; at < address + bytes && !result;) {
            struct gy_gpu_allocation *chunk = gy_gpu_find(at);
            result = check_access(&access[i], chunk->device);
            at += chunk->bytes;
            if (result)
                break;
            unsigned bit = 1u << access[i].device;
            chunk->allowed = access[i].flags ? chunk->allowed | bit : chunk->allowed & ~bit;
        }
    return gy_gpu_leave(result);
}

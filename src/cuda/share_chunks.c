/* Chunks: see share_chunks.h. */
#include "cuda/share_chunks.h"

#include <stdio.h>
#include <unistd.h>

bool gy_chunks_are_supported(const struct gy_driver *cu)
{
    return cu->allocation_retain && cu->allocation_release && cu->allocation_export && cu->allocation_import &&
           cu->address_reserve && cu->address_free && cu->mem_map && cu->mem_unmap && cu->mem_set_access;
}

static bool worked(const struct gy_driver *cu, gy_cu_result result, const char *what, char *why, size_t why_bytes)
{
    if (result != GY_CU_SUCCESS)
        gy_driver_sentence(cu, result, what, why, why_bytes);
    return result == GY_CU_SUCCESS;
}

static bool ask_number(const struct gy_driver *cu, unsigned attribute, gy_cu_address address, unsigned long long *to)
{
    void *into = to;

    return cu->pointer_attributes(1, &attribute, &into, address) == GY_CU_SUCCESS;
}

/* ---- Export ------------------------------------------------------------------------------------------------------ */

static gy_cu_result look(const struct gy_driver *cu, gy_cu_address address, struct gy_chunk *chunk_p)
{
    *chunk_p = (struct gy_chunk){0};
    gy_cu_result result = cu->mem_range(&chunk_p->base, &chunk_p->bytes, address);
    if (result != GY_CU_SUCCESS)
        return result;
    (void)ask_number(cu, GY_CU_POINTER_BUFFER_ID, address, &chunk_p->buffer);
    if (!ask_number(cu, GY_CU_POINTER_BLOCK_ID, address, &chunk_p->block))
        chunk_p->block = 0;
    return result;
}

/* The chunks from the one that holds `from` on that end before `end`, or that the first gap ends. False: too many. */
static bool collect(const struct gy_driver *cu, gy_cu_address from, gy_cu_address end, struct gy_chunks *chunks_p)
{
    struct gy_chunk chunk;

    for (chunks_p->count = 0; from < end && look(cu, from, &chunk) == GY_CU_SUCCESS; from = chunk.base + chunk.bytes) {
        if (chunks_p->count == GY_DESCRIPTORS_MOST)
            return false;
        chunks_p->chunk[chunks_p->count++] = chunk;
    }
    return true;
}

static gy_cu_address end_of(const struct gy_chunks *chunks)
{
    const struct gy_chunk *last = &chunks->chunk[chunks->count - 1];

    return last->base + last->bytes;
}

bool gy_chunks_find(const struct gy_driver *cu, gy_cu_address address, size_t bytes, struct gy_chunks *chunks_p,
                    char *why, size_t why_bytes)
{
    struct gy_chunk first, before;
    unsigned long long start = 0, size = 0;

    if (!worked(cu, look(cu, address, &first), "cuMemGetAddressRange", why, why_bytes))
        return false;
    if (!ask_number(cu, GY_CU_POINTER_RANGE_START, address, &start) ||
        !ask_number(cu, GY_CU_POINTER_RANGE_SIZE, address, &size)) {
        snprintf(why, why_bytes, "the CUDA driver does not tell the range of addresses of the memory");
        return false;
    }
    gy_cu_address lowest = first.base;
    for (unsigned i = 0; i < GY_DESCRIPTORS_MOST && lowest > start; i++) {
        if (look(cu, lowest - 1, &before) != GY_CU_SUCCESS)
            break;
        lowest = before.base;
    }
    if (!collect(cu, lowest, start + size, chunks_p) &&
        !collect(cu, address, bytes ? address + bytes : address + 1, chunks_p)) {
        snprintf(why, why_bytes, "the memory lies in more than %d pieces", (int)GY_DESCRIPTORS_MOST);
        return false;
    }
    if (chunks_p->count && bytes <= end_of(chunks_p) - address)
        return true;
    snprintf(why, why_bytes, "the memory ends before its %zu bytes do", bytes);
    return false;
}

bool gy_chunks_are_there(const struct gy_driver *cu, const struct gy_chunks *chunks, gy_cu_address address,
                         size_t bytes)
{
    struct gy_chunk now;

    for (unsigned i = 0; i < chunks->count; i++) {
        const struct gy_chunk *chunk = &chunks->chunk[i];
        if (chunk->base + chunk->bytes <= address || (chunk->base > address && chunk->base - address >= bytes))
            continue;
        if (look(cu, chunk->base, &now) != GY_CU_SUCCESS || now.base != chunk->base || now.bytes != chunk->bytes ||
            now.buffer != chunk->buffer || now.block != chunk->block)
            return false;
    }
    return true;
}

static bool export_one(const struct gy_driver *cu, const struct gy_chunk *chunk, int *fd_p, char *why, size_t why_bytes)
{
    gy_cu_allocation memory = 0;

    if (!worked(cu, cu->allocation_retain(&memory, (void *)(uintptr_t)chunk->base), "cuMemRetainAllocationHandle", why,
                why_bytes))
        return false;
    gy_cu_result result = cu->allocation_export(fd_p, memory, GY_CU_POSIX_DESCRIPTOR, 0);
    (void)cu->allocation_release(memory);
    return worked(cu, result, "cuMemExportToShareableHandle", why, why_bytes);
}

bool gy_chunks_export(const struct gy_driver *cu, const struct gy_chunks *chunks, struct gy_descriptors *descriptors_p,
                      char *why, size_t why_bytes)
{
    descriptors_p->count = 0;
    for (unsigned i = 0; i < chunks->count; i++) {
        if (!export_one(cu, &chunks->chunk[i], &descriptors_p->fd[i], why, why_bytes)) {
            gy_descriptors_close(descriptors_p);
            return false;
        }
        descriptors_p->bytes[i] = chunks->chunk[i].bytes;
        descriptors_p->count++;
    }
    return true;
}

/* ---- Import ------------------------------------------------------------------------------------------------------ */

static uint64_t sum(const uint64_t *bytes, unsigned count)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < count; i++)
        all += bytes[i];
    return all;
}

/* The mapping keeps the memory; the handle is not needed any more. */
static bool map_one(const struct gy_driver *cu, int fd, uint64_t bytes, gy_cu_address at, char *why, size_t why_bytes)
{
    gy_cu_allocation memory = 0;

    if (!worked(cu, cu->allocation_import(&memory, (void *)(intptr_t)fd, GY_CU_POSIX_DESCRIPTOR),
                "cuMemImportFromShareableHandle", why, why_bytes))
        return false;
    gy_cu_result result = cu->mem_map(at, bytes, 0, memory, 0);
    (void)cu->allocation_release(memory);
    return worked(cu, result, "cuMemMap", why, why_bytes);
}

static void unmap_each(const struct gy_driver *cu, gy_cu_address at, const uint64_t *bytes, unsigned count)
{
    for (unsigned i = 0; i < count; at += bytes[i++])
        (void)cu->mem_unmap(at, bytes[i]);
}

bool gy_chunks_map(const struct gy_driver *cu, int device, const struct gy_descriptors *descriptors,
                   gy_cu_address *address_p, char *why, size_t why_bytes)
{
    const struct gy_cu_access access = {GY_CU_LOCATION_DEVICE, device, GY_CU_ACCESS_READ_WRITE};
    const uint64_t all = sum(descriptors->bytes, descriptors->count);
    gy_cu_address start = 0, at;
    unsigned mapped = 0;

    if (!worked(cu, cu->address_reserve(&start, all, 0, 0, 0), "cuMemAddressReserve", why, why_bytes))
        return false;
    for (at = start; mapped < descriptors->count; at += descriptors->bytes[mapped++])
        if (!map_one(cu, descriptors->fd[mapped], descriptors->bytes[mapped], at, why, why_bytes))
            break;
    if (mapped == descriptors->count &&
        worked(cu, cu->mem_set_access(start, all, &access, 1), "cuMemSetAccess", why, why_bytes)) {
        *address_p = start;
        return true;
    }
    unmap_each(cu, start, descriptors->bytes, mapped);
    (void)cu->address_free(start, all);
    return false;
}

void gy_chunks_unmap(const struct gy_driver *cu, gy_cu_address address, const uint64_t *bytes, unsigned count)
{
    unmap_each(cu, address, bytes, count);
    (void)cu->address_free(address, sum(bytes, count));
}

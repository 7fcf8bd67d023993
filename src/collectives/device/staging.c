/* Pinned host memory: staging.h. */
#include "collectives/device/staging.h"

#include <time.h>

#include "core/clock.h"
#include "core/mem.h"

enum { HEADER_BYTES = 128, LEAST_BYTES = 4096 };
#define CLOSE_NS (200 * GY_MILLISECOND) /* how long a close waits for streams that use a block */
#define PAUSE_NS 50000
#define FAR_AHEAD 0x40000000u /* later than any use that a stream waits for, modulo 2^32 */

bool gy_staging_reached(const struct gy_staging_block *block, const _Atomic uint32_t *word)
{
    return (int32_t)(atomic_load_explicit(word, memory_order_acquire) - block->use) >= 0;
}

static size_t rounded(size_t bytes)
{
    size_t room = LEAST_BYTES;
    while (room < bytes)
        room *= 2;
    return room;
}

static gy_cu_result make(struct gy_staging *staging, size_t bytes, struct gy_staging_block **block_p)
{
    const struct gy_driver *driver = staging->device->driver;
    struct gy_staging_block *block = gy_alloc_zero(1, sizeof(*block));
    void *memory = NULL;
    if (!block)
        return GY_CU_OUT_OF_MEMORY;
    gy_cu_result result = driver->host_alloc(&memory, HEADER_BYTES + bytes, GY_CU_HOST_PORTABLE);
    if (result == GY_CU_SUCCESS)
        result = driver->host_device_pointer(&block->device, memory, 0);
    if (result != GY_CU_SUCCESS) {
        if (memory)
            (void)driver->host_free(memory);
        gy_free(block);
        return result;
    }
    block->words = memset(memory, 0, HEADER_BYTES);
    block->data = (unsigned char *)memory + HEADER_BYTES;
    block->bytes = bytes;
    block->next = staging->blocks;
    staging->blocks = block;
    *block_p = block;
    return GY_CU_SUCCESS;
}

gy_cu_result gy_staging_take(struct gy_staging *staging, size_t bytes, struct gy_staging_block **block_p)
{
    struct gy_staging_block *best = NULL;
    for (struct gy_staging_block *block = staging->blocks; block; block = block->next)
        if (block->bytes >= bytes && (!best || block->bytes < best->bytes) &&
            gy_staging_reached(block, &block->words->freed))
            best = block;
    gy_cu_result result = best ? GY_CU_SUCCESS : make(staging, rounded(bytes), &best);
    if (result != GY_CU_SUCCESS)
        return result;
    best->use++;
    *block_p = best;
    return GY_CU_SUCCESS;
}

void gy_staging_give(struct gy_staging_block *block)
{
    atomic_store_explicit(&block->words->ready, block->use, memory_order_relaxed);
    atomic_store_explicit(&block->words->done, block->use, memory_order_relaxed);
    atomic_store_explicit(&block->words->freed, block->use, memory_order_release);
}

void gy_staging_release(struct gy_staging_block *block)
{
    atomic_store_explicit(&block->words->done, block->use + FAR_AHEAD, memory_order_release);
}

gy_cu_result gy_staging_write(const struct gy_staging *staging, const struct gy_staging_block *block,
                              const _Atomic uint32_t *word, gy_cu_stream stream)
{
    gy_cu_address at = block->device + (gy_cu_address)((const char *)word - (const char *)block->words);
    return staging->device->driver->stream_write_value(stream, at, block->use, 0);
}

gy_cu_result gy_staging_wait_done(const struct gy_staging *staging, const struct gy_staging_block *block,
                                  gy_cu_stream stream)
{
    gy_cu_address at = block->device + offsetof(struct gy_staging_words, done);
    return staging->device->driver->stream_wait_value(stream, at, block->use, GY_CU_WAIT_GEQ);
}

/* Waits until the stream no longer uses the block. Returns false if it still does at `deadline`. */
static bool is_left(const struct gy_staging_block *block, int64_t deadline)
{
    while (!gy_staging_reached(block, &block->words->freed)) {
        if (gy_now() > deadline)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
    return true;
}

void gy_staging_close(struct gy_staging *staging)
{
    int64_t deadline = gy_now() + CLOSE_NS;
    for (struct gy_staging_block *block = staging->blocks; block; block = block->next)
        gy_staging_release(block);
    while (staging->blocks) {
        struct gy_staging_block *block = staging->blocks;
        staging->blocks = block->next;
        if (is_left(block, deadline))
            (void)staging->device->driver->host_free(block->words); /* a driver that is being unloaded has freed it */
        gy_free(block);
    }
}

/* The heap of gyre_mem_alloc: first fit over pages of this rank's part of the segment.
 *
 *   blocks sorted by offset:   [0, 8k) . . [16k, 20k) . . . .    a gap that is large enough is taken from its left
 *
 * Pages exist from alloc (fallocate) to free (hole punched). So memory is zero at every alloc, and a freed block
 * costs the host nothing. Memory that a peer may still access keeps its place and pages after free: memory exposed
 * in a window, or in a window or an exposed buffer when the world failed. Its place is not reused, and a load there
 * finds the old contents. It is released when no longer exposed; withdrawn memory goes with the world. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "core/mem.h"
#include "transport/shm/internal.h"

static uint64_t heap_start(const struct gy_segment *segment, int local)
{
    return segment->layout.heaps + (uint64_t)local * segment->layout.heap_stride;
}

/* Finds a gap of `bytes`: the index before which the block goes, and its offset. */
static bool find_gap(const struct gy_segment *segment, uint64_t bytes, size_t *index_p, uint64_t *offset_p)
{
    const struct gy_segment_heap *heap = &segment->heap;
    uint64_t end = 0;
    for (size_t i = 0; i <= heap->count; i++) {
        uint64_t next = i < heap->count ? heap->blocks[i].offset : segment->layout.heap_bytes;
        if (next - end >= bytes) {
            *index_p = i;
            *offset_p = end;
            return true;
        }
        if (i < heap->count)
            end = next + heap->blocks[i].bytes;
    }
    return false;
}

static bool grow(struct gy_segment_heap *heap)
{
    if (heap->count < heap->room)
        return true;
    size_t room = heap->room ? 2 * heap->room : 16;
    struct gy_heap_block *blocks = gy_realloc(heap->blocks, room * sizeof(*blocks));
    if (!blocks)
        return false;
    heap->blocks = blocks;
    heap->room = room;
    return true;
}

gyre_status gy_segment_heap_alloc(struct gy_segment *segment, size_t bytes, void **memory_p, struct gy_error *error)
{
    struct gy_segment_heap *heap = &segment->heap;
    uint64_t page = segment->layout.page, offset = 0;
    size_t index = 0;
    uint64_t want = bytes > segment->layout.heap_bytes ? UINT64_MAX : (gy_max_size(bytes, 1) + page - 1) / page * page;
    if (want == UINT64_MAX || !find_gap(segment, want, &index, &offset))
        return gy_error_set(
            error, GYRE_NO_MEMORY, -1,
            "rank %d: no gap of %zu bytes is left in the %llu MiB of address space for shared buffers; raise "
            "GYRE_SHM_RESERVE on all ranks",
            segment->world->rank, bytes, (unsigned long long)(segment->layout.heap_bytes >> 20));
    if (!grow(heap))
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the record of a shared buffer");
    uint64_t start = heap_start(segment, segment->world->local) + offset;
    gyre_status status = gy_segment_reserve(segment, start, want, "a buffer of gyre_mem_alloc", error);
    if (status != GYRE_SUCCESS)
        return status;
    memmove(heap->blocks + index + 1, heap->blocks + index, (heap->count - index) * sizeof(*heap->blocks));
    heap->blocks[index] = (struct gy_heap_block){.offset = offset, .bytes = want};
    heap->count++;
    *memory_p = segment->base + start;
    return GYRE_SUCCESS;
}

/* Returns the index of the block that begins at `memory`; the heap's count: none does. */
static size_t block_at(const struct gy_segment *segment, const void *memory)
{
    const unsigned char *heap = segment->base + heap_start(segment, segment->world->local);
    size_t i = 0;
    while (i < segment->heap.count &&
           (memory != heap + segment->heap.blocks[i].offset || segment->heap.blocks[i].freed))
        i++;
    return i;
}

bool gy_segment_heap_holds(const struct gy_segment *segment, const void *memory)
{
    return block_at(segment, memory) < segment->heap.count;
}

/* Releases the block's pages and its place. */
static void release(struct gy_segment *segment, size_t i)
{
    struct gy_segment_heap *heap = &segment->heap;
    struct gy_heap_block block = heap->blocks[i];
    uint64_t start = heap_start(segment, segment->world->local) + block.offset;
    int result;
    do {
        result = fallocate(segment->fds.memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)start,
                           (off_t)block.bytes);
    } while (result && errno == EINTR);
    if (result) /* the pages stay; the next owner must find zeros */
        memset(segment->base + start, 0, block.bytes);
    memmove(heap->blocks + i, heap->blocks + i + 1, (heap->count - i - 1) * sizeof(*heap->blocks));
    heap->count--;
}

bool gy_segment_heap_free(struct gy_segment *segment, void *memory)
{
    size_t i = block_at(segment, memory);
    if (i == segment->heap.count)
        return false;
    struct gy_heap_block *block = &segment->heap.blocks[i];
    if (block->withdrawn)
        madvise(memory, block->bytes, MADV_DONTNEED); /* this rank's own pages */
    if (block->withdrawn || block->exposed > 0)
        block->freed = true;
    else
        release(segment, i);
    return true;
}

bool gy_segment_heap_offset(const struct gy_segment *segment, const void *memory, size_t bytes, uint64_t *offset_p)
{
    uintptr_t start = (uintptr_t)segment->base + heap_start(segment, segment->world->local);
    uintptr_t address = (uintptr_t)memory;
    if (address < start || bytes > segment->layout.heap_bytes || address - start > segment->layout.heap_bytes - bytes)
        return false;
    *offset_p = address - start;
    return true;
}

bool gy_segment_heap_spans(const struct gy_segment *segment, uint64_t offset, uint64_t bytes)
{
    return offset <= segment->layout.heap_bytes && bytes <= segment->layout.heap_bytes - offset;
}

static bool touches(const struct gy_heap_block *block, uint64_t begin, uint64_t bytes)
{
    return bytes > 0 && block->offset < begin + bytes && block->offset + block->bytes > begin;
}

void gy_segment_heap_expose(struct gy_segment *segment, const void *memory, size_t bytes)
{
    uint64_t begin;
    if (!gy_segment_heap_offset(segment, memory, bytes, &begin))
        return;
    for (size_t i = 0; i < segment->heap.count; i++)
        if (touches(&segment->heap.blocks[i], begin, bytes))
            segment->heap.blocks[i].exposed++;
}

void gy_segment_heap_conceal(struct gy_segment *segment, const void *memory, size_t bytes)
{
    uint64_t begin;
    if (!gy_segment_heap_offset(segment, memory, bytes, &begin))
        return;
    for (size_t i = segment->heap.count; i-- > 0;) { /* a release moves the blocks behind it */
        struct gy_heap_block *block = &segment->heap.blocks[i];
        if (block->exposed == 0 || !touches(block, begin, bytes))
            continue;
        block->exposed--;
        if (block->exposed == 0 && block->freed && !block->withdrawn)
            release(segment, i);
    }
}

/* A private mapping of the same pages atomically replaces the shared one, so no store of another thread is lost; a
 * page is copied at this process's first write. Once and for the whole block: a second mapping would drop writes
 * since the first, and two buffers may share a page. */
static bool withdraw(struct gy_segment *segment, struct gy_heap_block *block)
{
    uint64_t start = heap_start(segment, segment->world->local) + block->offset;
    if (block->withdrawn)
        return true;
    block->withdrawn = true;
    return mmap(segment->base + start, block->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                segment->fds.memory, (off_t)start) != MAP_FAILED;
}

bool gy_segment_heap_withdraw(struct gy_segment *segment, const void *memory, size_t bytes)
{
    uint64_t begin;
    bool done = true;
    if (bytes == 0 || !gy_segment_heap_offset(segment, memory, bytes, &begin))
        return bytes == 0;
    for (size_t i = 0; i < segment->heap.count; i++)
        if (touches(&segment->heap.blocks[i], begin, bytes))
            done &= withdraw(segment, &segment->heap.blocks[i]);
    return done;
}

bool gy_segment_heap_withdraw_exposed(struct gy_segment *segment)
{
    bool done = true;
    for (size_t i = 0; i < segment->heap.count; i++)
        if (segment->heap.blocks[i].exposed > 0 && !segment->heap.blocks[i].freed)
            done &= withdraw(segment, &segment->heap.blocks[i]);
    return done;
}

void *gy_segment_heap_at(struct gy_segment *segment, int local, uint64_t offset)
{
    return segment->base + heap_start(segment, local) + offset;
}

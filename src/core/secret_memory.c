/* See secret_memory.h. A chunk is one mapping with cells of one size:
 *
 *   | header | no access | cells, not in core dumps | no access |
 *
 * The header is ordinary memory, since a forked child needs it where the cells were wiped. One bit per cell says that
 * it is in use; the thread that sets the bit owns the cell. Chunks are only added, so that no lock is needed and a
 * fork in another thread interrupts nothing. */
#include "secret_memory.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mem.h"

#define CELLS_MOST 64u /* bits of `used` */

/* Multiples of a cache line: a key and the one that follows it, texts, a handshake with its connection, the rest. */
static const size_t cell_sizes[] = {64, 256, 1344, GY_SECRET_MOST};

#define CELL_SIZES GY_ARRAY_LENGTH(cell_sizes)

struct chunk {
    struct chunk *next;
    unsigned char *cells;
    size_t cell; /* bytes */
    unsigned count;
    _Atomic uint64_t used;
};

static _Atomic(struct chunk *) chunks[GY_SECRET_COPIED + 1][CELL_SIZES];

static size_t page_bytes(void)
{
    return gy_max_size((size_t)sysconf(_SC_PAGESIZE), GY_SECRET_MOST);
}

/* All of it is best effort but MADV_DONTDUMP, which every kernel has. */
static bool protect(unsigned char *mapping, size_t page, enum gy_secret_fork in_child)
{
    unsigned char *cells = mapping + 2 * page;

    if (mprotect(mapping + page, page, PROT_NONE) != 0 || mprotect(cells + page, page, PROT_NONE) != 0 ||
        madvise(cells, page, MADV_DONTDUMP) != 0)
        return false;
    if (in_child == GY_SECRET_WIPED)
        (void)madvise(cells, page, MADV_WIPEONFORK);
    (void)mlock(cells, page);
    return true;
}

static struct chunk *make_chunk(size_t cell, enum gy_secret_fork in_child)
{
    size_t page = page_bytes();
    void *mapping = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct chunk *chunk = mapping;

    if (mapping == MAP_FAILED)
        return NULL;
    if (!protect(mapping, page, in_child)) {
        munmap(mapping, 4 * page);
        return NULL;
    }
    chunk->cells = (unsigned char *)mapping + 2 * page;
    chunk->cell = cell;
    chunk->count = (unsigned)gy_min_size(page / cell, CELLS_MOST);
    return chunk;
}

static void *take_cell(struct chunk *chunk)
{
    uint64_t all = chunk->count == CELLS_MOST ? UINT64_MAX : (UINT64_C(1) << chunk->count) - 1;
    uint64_t used = atomic_load_explicit(&chunk->used, memory_order_relaxed);

    while (used != all) {
        unsigned free_cell = (unsigned)__builtin_ctzll(~used);

        if (atomic_compare_exchange_weak_explicit(&chunk->used, &used, used | UINT64_C(1) << free_cell,
                                                  memory_order_acquire, memory_order_relaxed))
            return chunk->cells + free_cell * chunk->cell;
    }
    return NULL;
}

static void add_chunk(_Atomic(struct chunk *) *list, struct chunk *chunk)
{
    chunk->next = atomic_load_explicit(list, memory_order_relaxed);
    while (
        !atomic_compare_exchange_weak_explicit(list, &chunk->next, chunk, memory_order_release, memory_order_relaxed)) {
    }
}

void *gy_secret_alloc(size_t bytes, enum gy_secret_fork in_child)
{
    size_t size = 0;
    struct chunk *chunk;
    void *memory = NULL;

    if (gy_alloc_must_fail() || bytes > GY_SECRET_MOST)
        return NULL;
    while (cell_sizes[size] < bytes)
        size++;
    chunk = atomic_load_explicit(&chunks[in_child][size], memory_order_acquire);
    for (; chunk && !memory; chunk = chunk->next)
        memory = take_cell(chunk);
    if (memory)
        return memory;
    chunk = make_chunk(cell_sizes[size], in_child);
    if (!chunk)
        return NULL;
    memory = take_cell(chunk); /* before others see it */
    add_chunk(&chunks[in_child][size], chunk);
    return memory;
}

/* The chunk of a cell, and its number there. */
static struct chunk *find(const unsigned char *memory, size_t *number_p)
{
    for (int kind = 0; kind <= GY_SECRET_COPIED; kind++) {
        for (size_t size = 0; size < CELL_SIZES; size++) {
            struct chunk *chunk = atomic_load_explicit(&chunks[kind][size], memory_order_acquire);

            for (; chunk; chunk = chunk->next) {
                if (memory < chunk->cells || memory >= chunk->cells + chunk->count * chunk->cell)
                    continue;
                *number_p = (size_t)(memory - chunk->cells) / chunk->cell;
                return chunk;
            }
        }
    }
    return NULL;
}

void gy_secret_free(void *memory)
{
    size_t number = 0;
    struct chunk *chunk = memory ? find(memory, &number) : NULL;

    if (!chunk)
        return;
    explicit_bzero(memory, chunk->cell);
    atomic_fetch_and_explicit(&chunk->used, ~(UINT64_C(1) << number), memory_order_release);
}

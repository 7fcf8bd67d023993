/* Memory of cuMemCreate for tests, mapped chunk by chunk into a range of addresses. */
#ifndef GY_TESTS_CUDA_VIRTUAL_MEMORY_H
#define GY_TESTS_CUDA_VIRTUAL_MEMORY_H

#include "pair.h"

enum { CHUNK = 2 << 20 };

static inline struct gy_cu_allocation_kind kind_of_chunk(unsigned handle_types)
{
    return (struct gy_cu_allocation_kind){.type = GY_CU_ALLOCATION_PINNED,
                                          .handle_types = handle_types,
                                          .location_type = GY_CU_LOCATION_DEVICE,
                                          .device = 0};
}

static inline gy_cu_address reserve(unsigned chunks)
{
    gy_cu_address range = 0;

    CU(cu->address_reserve(&range, (size_t)chunks * CHUNK, 0, 0, 0));
    return range;
}

static inline void allow(gy_cu_address at)
{
    const struct gy_cu_access access = {GY_CU_LOCATION_DEVICE, 0, GY_CU_ACCESS_READ_WRITE};

    CU(cu->mem_set_access(at, CHUNK, &access, 1));
}

/* New memory at chunk `i` of a range, with access for device 0; only the mapping refers to it. */
static inline void map_chunk(gy_cu_address range, unsigned i, unsigned handle_types)
{
    const struct gy_cu_allocation_kind kind = kind_of_chunk(handle_types);
    gy_cu_address at = range + (gy_cu_address)i * CHUNK;
    gy_cu_allocation memory;

    CU(cu->allocation_create(&memory, CHUNK, &kind, 0));
    CU(cu->mem_map(at, CHUNK, 0, memory, 0));
    CU(cu->allocation_release(memory));
    allow(at);
}

#endif

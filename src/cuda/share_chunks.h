/* Memory of cuMemCreate, which is mapped into a range of addresses in one piece or in many: PyTorch's expandable
 * segments map chunks side by side as they grow. Every chunk is exported and imported for itself.
 *
 * All functions are called in the context of a device. */
#ifndef GY_CUDA_SHARE_CHUNKS_H
#define GY_CUDA_SHARE_CHUNKS_H

#include "cuda/driver.h"
#include "cuda/share_descriptors.h"

/* A chunk is known again by two numbers of the driver: of the mapping and, where it tells that, of the memory. */
struct gy_chunk {
    gy_cu_address base;
    size_t bytes;
    unsigned long long buffer, block;
};
struct gy_chunks {
    unsigned count; /* side by side */
    struct gy_chunk chunk[GY_DESCRIPTORS_MOST];
};

/* Returns false if the driver lacks the calls. */
bool gy_chunks_are_supported(const struct gy_driver *cu);
/* Finds the chunks that are mapped without a gap around [address, address + bytes); if they are too many, those that
 * hold it. Returns false with a sentence in `why`. */
bool gy_chunks_find(const struct gy_driver *cu, gy_cu_address address, size_t bytes, struct gy_chunks *chunks_p,
                    char *why, size_t why_bytes);
/* Returns true if the chunks that hold [address, address + bytes) are still mapped there. */
bool gy_chunks_are_there(const struct gy_driver *cu, const struct gy_chunks *chunks, gy_cu_address address,
                         size_t bytes);
/* Exports all chunks. Returns false with a sentence in `why` and no descriptor. */
bool gy_chunks_export(const struct gy_driver *cu, const struct gy_chunks *chunks, struct gy_descriptors *descriptors_p,
                      char *why, size_t why_bytes);
/* Maps the memory side by side at a new address, with access for a device. The descriptors stay open. Returns false
 * with a sentence in `why` and nothing mapped. */
bool gy_chunks_map(const struct gy_driver *cu, int device, const struct gy_descriptors *descriptors,
                   gy_cu_address *address_p, char *why, size_t why_bytes);
/* Unmaps `count` chunks of these sizes. */
void gy_chunks_unmap(const struct gy_driver *cu, gy_cu_address address, const uint64_t *bytes, unsigned count);

#endif

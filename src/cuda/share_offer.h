/* Offers of device memory to the other processes of a host. An offer is plain data: it may lie in shared host memory or
 * be sent. share_map.h makes an address of it.
 *
 * An allocation is exported once. It is found again by the driver's buffer id, never by its address alone, since a
 * freed address is allocated again.
 *
 * Memory of cuMemCreate is offered as all chunks that are mapped side by side. Its descriptors stay open until the
 * export is withdrawn or replaced, and keep the memory itself until then: gy_share_sweep. */
#ifndef GY_CUDA_SHARE_OFFER_H
#define GY_CUDA_SHARE_OFFER_H

#include <pthread.h>

#include "cuda/device.h"

enum gy_share_kind {
    GY_SHARE_NONE,   /* nothing is offered; the memory is staged */
    GY_SHARE_LEGACY, /* memory of cuMemAlloc: a handle of cuIpcGetMemHandle */
    GY_SHARE_CHUNKS, /* memory of cuMemCreate: the name under which its descriptors are taken */
};

/* What is offered is [base, base + bytes) of the owner's addresses: an allocation as a whole, or chunks. */
struct gy_share_offer {
    uint32_t kind; /* enum gy_share_kind */
    int32_t pid;
    uint64_t process; /* with pid: which process offers; gy_share_process */
    uint64_t serial;  /* never used twice by a process for different memory */
    uint64_t buffer;  /* the driver's id of the allocation, or of the first chunk */
    uint64_t base, bytes;
    struct gy_cu_uuid device;
    unsigned char handle[64]; /* what the kind needs */
};

struct gy_share_exports; /* the cache of one device */

/* A random number of this process. */
uint64_t gy_share_process(void);
/* NULL: no memory. The device is open until gy_share_exports_free. */
struct gy_share_exports *gy_share_exports_new(const struct gy_device *device);
/* Calls no driver. */
void gy_share_exports_free(struct gy_share_exports *exports);
/* Writes the offer of the allocation that holds [address, address + bytes); the byte at `address` lies at
 * address − offer_p->base of it. Returns false with a sentence in `why` and kind GY_SHARE_NONE if the memory cannot be
 * shared. The owner must not free it while another process uses it. Thread-safe. */
bool gy_share_offer(struct gy_share_exports *exports, gy_cu_address address, size_t bytes,
                    struct gy_share_offer *offer_p, char *why, size_t why_bytes);
/* Forgets the exports that overlap [address, address + bytes): before they are freed, for example. Another process that
 * has mapped them keeps its mapping. Thread-safe. */
void gy_share_withdraw(struct gy_share_exports *exports, gy_cu_address address, size_t bytes);
/* Forgets the exports whose memory has been freed. The next export of other memory does it, too. Thread-safe. */
void gy_share_sweep(struct gy_share_exports *exports);
/* Writes the serials of exports that were forgotten since *seen_p forgotten ones, at most `most`, and counts them in
 * *seen_p, which begins at 0. Serial 0 stands for all exports of this process: more were forgotten than are
 * remembered. Returns how many were written. Processes that have mapped such memory close it: it may have been freed,
 * and a mapping keeps it. Thread-safe. */
size_t gy_share_forgotten(struct gy_share_exports *exports, uint64_t *seen_p, uint64_t *which, size_t most);
/* How many times memory was exported. For tests. */
unsigned gy_share_exported(struct gy_share_exports *exports);

#endif

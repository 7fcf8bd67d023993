/* Device memory that processes of one host share, on one device of this process.
 *
 *   owner                                        another process
 *   gy_share_offer(address) ── struct offer ──►  gy_share_map(offer) ── an address of its own
 *                                                kernels, copies, memsets
 *                                                gy_share_release(mapping)
 *
 * One struct gy_share serves all users of a device in this process; users are counted. The driver allows that a process
 * opens a handle many times, but counts it: one cache for a process.
 *
 * An owner that ends leaves the mappings of others as they are: the driver keeps the memory until they are closed. */
#ifndef GY_CUDA_SHARE_H
#define GY_CUDA_SHARE_H

#include "cuda/share_map.h"
#include "cuda/share_offer.h"

struct gy_share {
    struct gy_share_exports *exports;
    struct gy_share_mappings *mappings;
};

/* Returns what this process shares on a device that is open. NULL with a sentence in `why`: no memory. Calls no driver.
 * Thread-safe. */
struct gy_share *gy_share_get(const struct gy_device *device, char *why, size_t why_bytes);
/* Ends a use; the last one closes all mappings and forgets all offers. No mapping of this user is in use, and the
 * device is still open. NULL is allowed. Thread-safe. */
void gy_share_put(struct gy_share *share);

#endif

/* Memory of other processes, mapped on a device of this one. A mapping is kept when its last use ends, and the next
 * offer of the same memory finds it. Their number is bounded: a new one replaces the unused one that was used least
 * recently. */
#ifndef GY_CUDA_SHARE_MAP_H
#define GY_CUDA_SHARE_MAP_H

#include "cuda/share_offer.h"

enum { GY_SHARE_MAPPINGS = 512 }; /* some tens of allocations of each rank of a host */

struct gy_share_mapping;  /* the memory of one offer, mapped */
struct gy_share_mappings; /* all of a device */

struct gy_share_counts {
    unsigned mapped;         /* now */
    unsigned in_use;         /* of these */
    unsigned opened, closed; /* since the start */
};

/* At most `most` mappings at a time. NULL: no memory. The device is open until gy_share_mappings_free. */
struct gy_share_mappings *gy_share_mappings_new(const struct gy_device *device, unsigned most);
/* Closes all mappings; none is in use. */
void gy_share_mappings_free(struct gy_share_mappings *mappings);
/* Begins a use of the memory of an offer: *address_p is where offer->base lies. *mapping_p is for gy_share_release;
 * NULL: memory of this process, which is not mapped again. Returns false with a sentence in `why` if the memory cannot
 * be mapped, or if all mappings are in use. May wait for the device. Thread-safe. */
bool gy_share_map(struct gy_share_mappings *mappings, const struct gy_share_offer *offer,
                  struct gy_share_mapping **mapping_p, gy_cu_address *address_p, char *why, size_t why_bytes);
/* Ends a use. What the device does with the memory has ended; so a callback or a thread that has seen the event calls
 * this, not the function that launches. Calls no driver but for a mapping that gy_share_close has named. NULL is
 * allowed. Thread-safe. */
void gy_share_release(struct gy_share_mappings *mappings, struct gy_share_mapping *mapping);
/* Closes the mappings of a process, or the one with this serial (0: all), each at the end of its last use. For memory
 * that its owner is about to free, and for processes that have ended. Thread-safe. */
void gy_share_close(struct gy_share_mappings *mappings, int32_t pid, uint64_t process, uint64_t serial);
struct gy_share_counts gy_share_counts(struct gy_share_mappings *mappings);

#endif

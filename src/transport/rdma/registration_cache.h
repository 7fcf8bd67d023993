/* Memory that a device may read: an explicit cache of registrations, sorted by address, counted by reference.
 *
 * Explicit: only ranges that the program has announced (gyre_mem_register, gyre_mem_alloc) are ever registered, and stay
 * so until they are withdrawn. Memory that nobody announced is copied to memory of the link's own; a cache that guessed
 * would send what a page held before the program gave it back to the system. A range is registered with the devices
 * when it is first sent from, and once. Remote ranks can never write into any of them.
 *
 * Memory of a GPU is announced with a descriptor of it (dmabuf) and registered at once, for its owner has to know whether
 * the devices take it: where they do not, there is nothing that a link could copy it with. */
#ifndef GY_TRANSPORT_RDMA_REGISTRATION_CACHE_H
#define GY_TRANSPORT_RDMA_REGISTRATION_CACHE_H

#include "transport/rdma/devices.h"

struct gy_rdma_range {
    uintptr_t start, end;
    bool device;     /* a GPU's, by its own address: the processor must not touch it */
    unsigned times;  /* announced */
    unsigned sends;  /* requests under way that read it */
    bool withdrawn;  /* unregistered when the last of them is over; found no more */
    bool registered; /* keys are valid */
    bool writable;   /* and our own device may write there, too: a get comes straight to its place */
    bool refused;    /* the devices would not: it is copied */
    struct ibv_mr *mr[GY_RDMA_RAILS];
};

struct gy_rdma_memory {
    struct gy_rdma_rail *rails;
    int rail_count;
    struct gy_rdma_range **ranges; /* sorted by start; those withdrawn among them until they are free */
    size_t count, room;
    size_t device_ranges; /* of them, those in a GPU; none: nobody need look */
    size_t locked;        /* bytes registered, once for each device */
};

/* False: out of memory; then the range is copied, which is slower and not wrong. */
bool gy_rdma_memory_add(struct gy_rdma_memory *memory, const void *start, size_t bytes);
/* False: the library, the kernel or a device would not, or out of memory; nothing is known of the range then. The descriptor
 * stays the caller's. */
bool gy_rdma_memory_add_device(struct gy_rdma_memory *memory, const void *start, size_t bytes, int dmabuf,
                               uint64_t offset);
void gy_rdma_memory_remove(struct gy_rdma_memory *memory, const void *start);
/* The range that [start, start + bytes) lies in, registered now if it was not; NULL: copy. */
struct gy_rdma_range *gy_rdma_memory_find(struct gy_rdma_memory *memory, const void *start, size_t bytes);
/* Does it lie in a GPU? */
bool gy_rdma_memory_is_device(const struct gy_rdma_memory *memory, const void *start);
/* A request that reads it begins, or is over. */
void gy_rdma_range_hold(struct gy_rdma_range *range);
void gy_rdma_range_drop(struct gy_rdma_memory *memory, struct gy_rdma_range *range);
/* Every queue pair is gone. `forked`: frees only what is this process's. */
void gy_rdma_memory_free(struct gy_rdma_memory *memory, bool forked);

/* How many bytes this process may lock: RLIMIT_MEMLOCK, from which CAP_IPC_LOCK frees; SIZE_MAX: any number. */
size_t gy_rdma_lockable(void);

/* Registers `bytes` with every rail, keys in `mr_p`; on failure the sentence says how much locked memory is needed.
 * NO_MEMORY, SYSTEM. */
gyre_status gy_rdma_register(struct gy_rdma_memory *memory, void *start, size_t bytes, int access,
                             struct ibv_mr *mr_p[GY_RDMA_RAILS], struct gy_error *error);
void gy_rdma_deregister(struct gy_rdma_memory *memory, struct ibv_mr *mr[GY_RDMA_RAILS], size_t bytes);

#endif

/* Memory that a device may read: an explicit cache of registrations, sorted by address, counted by reference.
 *
 * Explicit: only ranges that the program has announced (gyre_mem_register, gyre_mem_alloc) are registered, until
 * they are withdrawn. Other memory is copied to the link's own. A cache that guessed would send a page's contents
 * from before the program returned it to the system. A range is registered with the devices once, at the first send
 * from it. Remote ranks can never write into any of them.
 *
 * GPU memory is announced with a descriptor (dmabuf) and registered at once, as its owner has to know whether the
 * devices accept it. If they do not, the link cannot copy it. */
#ifndef GY_TRANSPORT_RDMA_REGISTRATION_CACHE_H
#define GY_TRANSPORT_RDMA_REGISTRATION_CACHE_H

#include "transport/rdma/devices.h"

struct gy_rdma_range {
    uintptr_t start, end;
    bool device;     /* GPU memory, by its GPU address: the processor must not touch it */
    unsigned times;  /* number of announcements */
    unsigned sends;  /* requests in flight that read it */
    bool withdrawn;  /* unregistered after the last of them; no longer found */
    bool registered; /* keys are valid */
    bool writable;   /* the own device may write there: a get stores in place */
    bool refused;    /* the devices refused it: it is copied */
    struct ibv_mr *mr[GY_RDMA_RAILS];
};

struct gy_rdma_memory {
    struct gy_rdma_rail *rails;
    int rail_count;
    struct gy_rdma_range **ranges; /* sorted by start; withdrawn ones stay until they are free */
    size_t count, room;
    size_t device_ranges; /* those in a GPU; 0: no lookup needed */
    size_t locked;        /* bytes registered, once for each device */
};

/* Returns false if out of memory; then the range is copied, which is slower but correct. */
bool gy_rdma_memory_add(struct gy_rdma_memory *memory, const void *start, size_t bytes);
/* Returns false if the library, the kernel or a device refused, or if out of memory; the range is then unknown. The
 * caller keeps the descriptor. */
bool gy_rdma_memory_add_device(struct gy_rdma_memory *memory, const void *start, size_t bytes, int dmabuf,
                               uint64_t offset);
void gy_rdma_memory_remove(struct gy_rdma_memory *memory, const void *start);
/* Returns the range that contains [start, start + bytes), registered now if it was not; NULL: copy. */
struct gy_rdma_range *gy_rdma_memory_find(struct gy_rdma_memory *memory, const void *start, size_t bytes);
/* True if it lies in a GPU. */
bool gy_rdma_memory_is_device(const struct gy_rdma_memory *memory, const void *start);
/* A request that reads the range begins; the other: it is complete. */
void gy_rdma_range_hold(struct gy_rdma_range *range);
void gy_rdma_range_drop(struct gy_rdma_memory *memory, struct gy_rdma_range *range);
/* Every queue pair is gone. `forked`: frees only this process's objects. */
void gy_rdma_memory_free(struct gy_rdma_memory *memory, bool forked);

/* Returns the bytes that this process may lock: RLIMIT_MEMLOCK; SIZE_MAX with CAP_IPC_LOCK or without a limit. */
size_t gy_rdma_lockable(void);

/* Registers `bytes` with every rail, keys in `mr_p`; on failure the message says how much locked memory is needed.
 * NO_MEMORY, SYSTEM. */
gyre_status gy_rdma_register(struct gy_rdma_memory *memory, void *start, size_t bytes, int access,
                             struct ibv_mr *mr_p[GY_RDMA_RAILS], struct gy_error *error);
void gy_rdma_deregister(struct gy_rdma_memory *memory, struct ibv_mr *mr[GY_RDMA_RAILS], size_t bytes);

#endif

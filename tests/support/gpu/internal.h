/* What the files of the stand-in share. All state is protected by one recursive lock. */
#ifndef GY_TEST_GPU_INTERNAL_H
#define GY_TEST_GPU_INTERNAL_H

#include "gpu.h"

#define GY_GPU_DECLARE(field, name, version, parameters) gy_cu_result name parameters;
GY_DRIVER_FUNCTIONS(GY_GPU_DECLARE)
GY_DRIVER_OPTIONAL_FUNCTIONS(GY_GPU_DECLARE)

enum { GY_GPU_MOST = 16, GY_GPU_MULTIPROCESSORS = 8, GY_GPU_THREADS_MOST = 512, GY_GPU_CODE_MOST = 512 };
struct CUctx_st {
    int device, group; /* devices of one group above 0 are peers */
    int physical;      /* its number without CUDA_VISIBLE_DEVICES */
    int retained;
    unsigned reaches;         /* a bit of each device whose memory kernels may access, beside their own */
    gy_cu_result sticky;      /* an asynchronous error: every later call returns it */
    struct CUstream_st *null; /* the legacy stream */
};
extern struct CUctx_st gy_gpu_devices[GY_GPU_MOST];
extern int gy_gpu_count;

enum gy_gpu_origin {
    GY_GPU_ALLOCATED,  /* cuMemAlloc */
    GY_GPU_OPENED,     /* cuIpcOpenMemHandle: the memory of another process */
    GY_GPU_MAPPED,     /* cuMemMap */
    GY_GPU_PINNED,     /* cuMemHostAlloc */
    GY_GPU_REGISTERED, /* cuMemHostRegister */
};
/* Memory that the driver knows. */
struct gy_gpu_allocation {
    uintptr_t base;
    size_t bytes;
    unsigned char *secret; /* where the bytes of device memory lie; NULL: host memory */
    int device;
    unsigned type; /* CUmemorytype; 0: free */
    enum gy_gpu_origin origin;
    int fd;                       /* GY_GPU_ALLOCATED: the memfd; −1: none */
    unsigned allowed;             /* GY_GPU_MAPPED: a bit of each device that has access */
    unsigned handle_types;        /* GY_GPU_MAPPED: how it may be exported */
    unsigned long long id, block; /* of the address, and of the memory behind it */
};

/* Every function of the driver begins with one of these and ends with gy_gpu_leave. They take the lock. */
gy_cu_result gy_gpu_enter(void);
gy_cu_result gy_gpu_enter_context(struct CUctx_st **context_p); /* the current one */
gy_cu_result gy_gpu_leave(gy_cu_result result);                 /* runs some operations, unlocks */
void gy_gpu_lock(void);
void gy_gpu_unlock(void);
bool gy_gpu_step(void); /* one operation of some stream; false: none is ready */
void gy_gpu_streams_open(unsigned seed);
void gy_gpu_run_some(void);
void gy_gpu_run_after_call(void);
void gy_gpu_memory_open(void);
/* The allocation of an address; NULL: the driver does not know it. */
struct gy_gpu_allocation *gy_gpu_find(gy_cu_address address);
/* A number that no allocation has had. */
unsigned long long gy_gpu_number(void);
/* NULL: the table is full. */
struct gy_gpu_allocation *gy_gpu_add(const struct gy_gpu_allocation *allocation);
/* Device memory that is the memfd `fd`, at a new address. NULL: there is no room. Keeps no descriptor. */
struct gy_gpu_allocation *gy_gpu_attach(int fd, size_t bytes, int device, enum gy_gpu_origin origin);
void gy_gpu_detach(struct gy_gpu_allocation *allocation);
/* Returns false if the address lies in no range of cuMemAddressReserve. */
bool gy_gpu_reserved(gy_cu_address address, gy_cu_address *base_p, size_t *bytes_p);
/* The visible device with this number among all; −1: it is not visible. */
int gy_gpu_visible(int physical);
/* Whether kernels of the first device could reach memory of the second one. */
bool gy_gpu_peers(int device, int other);
/* Runs all operations that can run, as the calls do that free or unmap memory. */
void gy_gpu_finish(void);
/* Where the bytes of an address that a kernel of `device` accesses lie; NULL: it may not. */
void *gy_gpu_reach(const void *address, size_t bytes, int device);
/* A launch on fibres: begun, moved on together with all others (whether anything has changed), and over. */
uint64_t gy_gpu_kernel_begin(int device, const struct gy_gpu_kernel *kernel, unsigned blocks, unsigned threads,
                             const void *arguments);
bool gy_gpu_kernels_run(unsigned random);
bool gy_gpu_kernel_over(uint64_t launch);
/* Ends all launches of a device that has failed. */
void gy_gpu_kernels_drop(int device);

#endif

/* What the files of the stand-in share. All state is protected by one recursive lock. */
#ifndef GY_TEST_GPU_INTERNAL_H
#define GY_TEST_GPU_INTERNAL_H

#include "gpu.h"

#define GY_GPU_DECLARE(field, name, version, parameters) gy_cu_result name parameters;
GY_DRIVER_FUNCTIONS(GY_GPU_DECLARE)

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

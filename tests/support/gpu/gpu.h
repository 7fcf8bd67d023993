/* A stand-in for the CUDA driver, for machines without a GPU. Device memory is a memfd: its device address is mapped
 * PROT_NONE, so that an access of the host faults and is named, and a second mapping holds the bytes. A stream is a
 * FIFO of operations. Each call of the driver runs some of them, of streams that a seed picks, and so does one thread.
 *
 * A library is loaded from an image of the stand-in's plug-in (image.h): its kernels run on fibres. They reach memory
 * of their device, of peers to which access was enabled, and pinned host memory; any other access is a sticky error.
 *
 * Processes share device memory by legacy handles (ipc.c) and by descriptors (virtual_memory.c). Streams of different
 * processes wait for each other by words in host memory that both have registered: the thread looks at them.
 * GYRE_TEST_GPU_IPC=off: the driver supports no legacy handles. GYRE_TEST_GPU_IPC=apart: it makes them, but no other
 * process can open them, as between containers.
 *
 * What it does not model: the memory order of a GPU, its scheduler, its speed, capture. */
#ifndef GY_TEST_GPU_H
#define GY_TEST_GPU_H

#include "cuda/driver.h"

/* "2:peer,1": two devices with access to each other, and one without a peer. NULL: the environment variable
 * GYRE_TEST_GPUS, or "1". CUDA_VISIBLE_DEVICES picks among them. Once per process; cuInit does it with NULL and
 * GYRE_TEST_SEED if a test has not. */
void gy_gpu_open(const char *devices, unsigned seed);
const struct gy_driver *gy_gpu_driver(void);
/* The call after `calls` more returns `result` and does nothing else. 0: no call. */
void gy_gpu_fail(unsigned calls, gy_cu_result result);
/* Where the bytes of a device address lie; other addresses are returned as they are. NULL: not `bytes` of one
 * allocation. */
void *gy_gpu_bytes(gy_cu_address address, size_t bytes);
/* No operation runs but in a call that waits: for tests of what is still to be done. */
void gy_gpu_hold(bool held);

/* How many libraries are loaded. */
unsigned gy_gpu_libraries(void);

/* A kernel, which library_kernel finds by name in any library that is not an image of the plug-in. */
struct gy_gpu_kernel {
    const char *name;
    unsigned parameters;
    size_t sizes[16]; /* of each parameter */
    gy_cu_result (*run)(int device, const unsigned grid[3], const unsigned block[3], unsigned shared,
                        void **parameters);
    void (*body)(const void *arguments); /* instead of `run`: on fibres, with one parameter */
};
void gy_gpu_kernel_add(const struct gy_gpu_kernel *kernel);

#endif

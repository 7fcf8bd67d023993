/* Adds up vectors in the memory of GPUs, ordered on a stream: gyre-run -n 2 ./cuda_all_reduce
 *
 * Each rank's stream copies its vector to the GPU, adds up the vectors of all ranks and copies the sum back. The host
 * only queues this work, and waits once at the end. A program of your own includes <cuda_runtime.h> and calls the
 * functions that the comments name. This one opens the CUDA driver at run time, as libgyre does, so that it compiles
 * without NVIDIA's toolkit. */
#include <dlfcn.h>
#include <gyre/cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 100000
#define BYTES (COUNT * sizeof(float))
#define SIGNATURES 12000 /* the functions as CUDA 12.0 declares them */

static struct { /* of cuda.h; a CUdeviceptr is an address, a CUstream and a CUcontext are pointers */
    int (*init)(unsigned flags);
    int (*context_retain)(void **context_p, int device);
    int (*context_push)(void *context);
    int (*stream_create)(void **stream_p, unsigned flags);
    int (*stream_synchronize)(void *stream);
    int (*stream_destroy)(void *stream);
    int (*mem_alloc)(uint64_t *address_p, size_t bytes);
    int (*mem_free)(uint64_t address);
    int (*copy)(uint64_t to, uint64_t from, size_t bytes, void *stream);
} cu;

static void check(gyre_status status, gyre_comm *comm, const char *what)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", what, gyre_last_error(comm));
    exit(1); /* the other ranks are told that this one is gone */
}

static void check_cuda(int result, const char *what)
{
    if (result == 0)
        return;
    fprintf(stderr, "%s: CUDA error %d\n", what, result);
    exit(1);
}

static void open_driver(void)
{
    const struct {
        const char *name;
        void *function_p;
    } wanted[] = {{"cuInit", &cu.init},
                  {"cuDevicePrimaryCtxRetain", &cu.context_retain},
                  {"cuCtxPushCurrent", &cu.context_push},
                  {"cuStreamCreate", &cu.stream_create},
                  {"cuStreamSynchronize", &cu.stream_synchronize},
                  {"cuStreamDestroy", &cu.stream_destroy},
                  {"cuMemAlloc", &cu.mem_alloc},
                  {"cuMemFree", &cu.mem_free},
                  {"cuMemcpyAsync", &cu.copy}};
    int (*find)(const char *name, void **function_p, int version, uint64_t flags, int *found_p);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *symbol = driver ? dlsym(driver, "cuGetProcAddress_v2") : NULL;
    int found;
    check_cuda(symbol == NULL, "libcuda.so.1");
    memcpy(&find, &symbol, sizeof symbol);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        check_cuda(find(wanted[i].name, &symbol, SIGNATURES, 0, &found), wanted[i].name);
        memcpy(wanted[i].function_p, &symbol, sizeof symbol);
    }
    check_cuda(cu.init(0), "cuInit");
}

/* Attaches the rank to its GPU, which becomes the current one of this thread: cudaSetDevice. */
static void attach(gyre_comm *comm)
{
    char device[16];
    void *context = NULL;
    check(gyre_cuda_attach(comm, GYRE_CUDA_DEFAULT), comm, "cuda_attach"); /* rank i of a host: its i-th GPU */
    check(gyre_comm_get(comm, "device", device, sizeof device), comm, "get");
    open_driver();
    check_cuda(cu.context_retain(&context, atoi(device)), "cuDevicePrimaryCtxRetain");
    check_cuda(cu.context_push(context), "cuCtxPushCurrent");
}

/* True if each element is the sum over all ranks of rank + i mod 7, which is exact. */
static int is_sum(const float *vector, int size)
{
    const int ranks = size * (size - 1) / 2;
    for (int i = 0; i < COUNT; i++)
        if (vector[i] != (float)(size * (i % 7) + ranks))
            return 0;
    return 1;
}

int main(void)
{
    static float vector[COUNT]; /* host memory; pinned memory (cudaMallocHost) would be copied faster */
    gyre_comm *comm = NULL;
    void *stream = NULL; /* a cudaStream_t */
    uint64_t memory = 0; /* a float * of the device */

    check(gyre_comm_create(NULL, &comm), NULL, "meeting");
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm);
    attach(comm);
    check_cuda(cu.stream_create(&stream, 1), "cuStreamCreate"); /* cudaStreamCreateWithFlags(cudaStreamNonBlocking) */
    check_cuda(cu.mem_alloc(&memory, BYTES), "cuMemAlloc");     /* cudaMalloc */
    for (int i = 0; i < COUNT; i++)
        vector[i] = (float)(rank + i % 7);

    /* cudaMemcpyAsync, in place of the kernels that compute the vector */
    check_cuda(cu.copy(memory, (uintptr_t)vector, BYTES, stream), "cuMemcpyAsync");
    check(gyre_all_reduce_on(comm, (void *)(uintptr_t)memory, (void *)(uintptr_t)memory, COUNT, GYRE_FLOAT32, GYRE_SUM,
                             stream),
          comm, "all_reduce_on"); /* returns at once */
    check_cuda(cu.copy((uintptr_t)vector, memory, BYTES, stream), "cuMemcpyAsync");
    check_cuda(cu.stream_synchronize(stream), "cuStreamSynchronize"); /* cudaStreamSynchronize */
    check(gyre_cuda_status(comm), comm, "cuda_status");               /* a failure would have left undefined bytes */

    printf("rank %d of %d: %s\n", rank, size, is_sum(vector, size) ? "the sum of all ranks" : "wrong");
    check_cuda(cu.mem_free(memory), "cuMemFree");
    check_cuda(cu.stream_destroy(stream), "cuStreamDestroy");
    return gyre_comm_destroy(comm) != GYRE_SUCCESS;
}

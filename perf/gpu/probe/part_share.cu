/* Kinds of sharing between two processes on one device: legacy IPC handles, the virtual-memory API with descriptors,
 * and events. Process 0 exports, process 1 imports. */
#include "probe.h"

#include <string.h>

#define BYTES ((size_t)32 << 20)

static void export_legacy(void)
{
    CUdeviceptr memory;
    CUipcMemHandle handle = {};
    int capable = -1;
    CU(cuMemAlloc(&memory, BYTES));
    CU(cuMemsetD32(memory, 0x12345678, BYTES / 4));
    CU(cuCtxSynchronize());
    cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, memory);
    sh->value[0] = cuIpcGetMemHandle(&handle, memory);
    sh->value[1] = capable;
    memcpy(sh->bytes, &handle, sizeof handle);
}

static void import_legacy(void)
{
    CUdeviceptr memory;
    CUipcMemHandle handle;
    memcpy(&handle, sh->bytes, sizeof handle);
    CUresult result = (CUresult)(int)sh->value[0];
    double begin = now_us();
    if (result == CUDA_SUCCESS)
        result = cuIpcOpenMemHandle(&memory, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    double opened = now_us() - begin;
    uint32_t value = 0;
    if (result == CUDA_SUCCESS)
        result = cuMemcpyDtoH(&value, memory, sizeof value);
    say("\"legacy_ipc\": \"%s\", \"right\": %d, \"capable_attribute\": %d, \"open_us\": %.0f", driver_error(result),
        value == 0x12345678, (int)sh->value[1], opened);
}

static void map(CUmemGenericAllocationHandle handle, CUdeviceptr *memory_p)
{
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CU(cuMemAddressReserve(memory_p, BYTES, 0, 0, 0));
    CU(cuMemMap(*memory_p, BYTES, 0, handle, 0));
    CU(cuMemSetAccess(*memory_p, BYTES, &access, 1));
}

static void export_virtual(void)
{
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr memory;
    size_t granularity = 0;
    int fd = -1;
    CU(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    CU(cuMemCreate(&handle, BYTES, &properties, 0));
    map(handle, &memory);
    CU(cuMemsetD32(memory, 0x0badcafe, BYTES / 4));
    CU(cuCtxSynchronize());
    CU(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    sh->value[2] = (double)granularity;
    send_fd(fd);
}

static void import_virtual(void)
{
    int fd = receive_fd();
    CUmemGenericAllocationHandle handle;
    CUdeviceptr memory;
    uint32_t value = 0;
    CU(cuMemImportFromShareableHandle(&handle, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    map(handle, &memory);
    CU(cuMemcpyDtoH(&value, memory, sizeof value));
    say("\"virtual_memory_posix_fd\": \"CUDA_SUCCESS\", \"right\": %d, \"granularity\": %.0f", value == 0x0badcafe,
        sh->value[2]);
}

static void export_event(void)
{
    cudaEvent_t event;
    cudaIpcEventHandle_t handle = {};
    RT(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    sh->value[3] = cudaIpcGetEventHandle(&handle, event);
    memcpy(sh->bytes, &handle, sizeof handle);
    busy_kernel<<<1, 1>>>(200000000LL, NULL);
    RT(cudaEventRecord(event, NULL));
}

static void import_event(void)
{
    if (sh->value[3] != 0)
        return say("\"ipc_event\": \"%s\"", cudaGetErrorName((cudaError_t)(int)sh->value[3]));
    cudaEvent_t event;
    cudaIpcEventHandle_t handle;
    memcpy(&handle, sh->bytes, sizeof handle);
    RT(cudaIpcOpenEventHandle(&event, handle));
    cudaStream_t stream = make_stream();
    double begin = now_us();
    RT(cudaStreamWaitEvent(stream, event, 0));
    RT(cudaStreamSynchronize(stream));
    say("\"ipc_event\": \"cudaSuccess\", \"waited_for_a_kernel_of_the_other_us\": %.0f", now_us() - begin);
}

void part_share(int me)
{
    begin_device();
    if (me == 0)
        export_legacy();
    meet(0);
    if (me == 1)
        import_legacy();
    meet(1);
    if (me == 0)
        export_virtual();
    else
        import_virtual();
    meet(2);
    if (me == 0)
        export_event();
    meet(3);
    if (me == 1) {
        import_event();
        size_t free_bytes, total_bytes;
        CU(cuMemGetInfo(&free_bytes, &total_bytes));
        say("\"used_by_two_contexts_mib\": %.0f",
            (double)(total_bytes - free_bytes) / 1048576.0 - 2 * (double)BYTES / 1048576.0);
    }
    meet(4);
}

/* Tests whether stream memory operations work on words in device memory of the other process (legacy IPC). */
void part_ipc_words(int me)
{
    begin_device();
    CUdeviceptr w;
    CUipcMemHandle handle = {};
    if (me == 0) {
        CU(cuMemAlloc(&w, 65536));
        CU(cuMemsetD32(w, 0, 65536 / 4));
        CU(cuCtxSynchronize());
        CU(cuIpcGetMemHandle(&handle, w));
        memcpy(sh->bytes, &handle, sizeof handle);
    }
    meet(0);
    if (me == 1) {
        memcpy(&handle, sh->bytes, sizeof handle);
        CU(cuIpcOpenMemHandle(&w, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    }
    CUstream stream = (CUstream)make_stream();
    CUdeviceptr mine = w + 64 * (unsigned)me, other = w + 64 * (unsigned)(1 - me);
    const uint32_t turns = 100;
    meet(1);
    double begin = now_us();
    for (uint32_t i = 1; i <= turns; i++) {
        if (me == 0)
            CU(cuStreamWriteValue32(stream, mine, i, 0));
        CU(cuStreamWaitValue32(stream, other, i, CU_STREAM_WAIT_VALUE_GEQ));
        if (me == 1)
            CU(cuStreamWriteValue32(stream, mine, i, 0));
    }
    CU(cuStreamSynchronize(stream));
    if (me == 0)
        say("\"value_operations_on_ipc_memory_round_trip_us\": %.1f", (now_us() - begin) / turns);
    meet(2);
}

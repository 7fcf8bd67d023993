/* The functions of the CUDA driver that gyre calls, as a table. It is filled from libcuda.so.1 when that can be opened
 * at run time, or by a test with a stand-in. No library of gyre links CUDA, and no CUDA header is used:
 * tests/cuda/declarations_test.c compares these declarations with cuda.h where that is installed.
 *
 * The functions keep the driver's contract. They return a CUresult, of which 0 is success. */
#ifndef GY_CUDA_DRIVER_H
#define GY_CUDA_DRIVER_H

#include "core/base.h"

typedef unsigned gy_cu_result;
typedef int gy_cu_device;
typedef unsigned long long gy_cu_address; /* CUdeviceptr */
typedef struct CUctx_st *gy_cu_context;
typedef struct CUstream_st *gy_cu_stream;
typedef struct CUevent_st *gy_cu_event;
typedef struct CUlib_st *gy_cu_library;
typedef struct CUkern_st *gy_cu_kernel;
typedef struct CUfunc_st *gy_cu_function;
typedef unsigned long long gy_cu_allocation; /* CUmemGenericAllocationHandle: memory without an address */
#ifndef gy_cu_uuid
struct gy_cu_uuid {
    char bytes[16];
};
#endif
#ifndef gy_cu_ipc_handle
struct gy_cu_ipc_handle { /* CUipcMemHandle */
    char bytes[64];
};
#endif
#ifndef gy_cu_allocation_kind
struct gy_cu_allocation_kind { /* CUmemAllocationProp */
    unsigned type, handle_types;
    unsigned location_type;
    int device;
    void *unused;
    unsigned char flags[8];
};
#endif
#ifndef gy_cu_access
struct gy_cu_access { /* CUmemAccessDesc */
    unsigned location_type;
    int device;
    unsigned flags;
};
#endif

enum {
    GY_CU_SUCCESS = 0,
    GY_CU_INVALID_VALUE = 1,
    GY_CU_OUT_OF_MEMORY = 2,
    GY_CU_NOT_INITIALIZED = 3,
    GY_CU_DEINITIALIZED = 4,
    GY_CU_NO_DEVICE = 100,
    GY_CU_INVALID_DEVICE = 101,
    GY_CU_INVALID_IMAGE = 200,
    GY_CU_INVALID_CONTEXT = 201,
    GY_CU_MAP_FAILED = 205,
    GY_CU_ALREADY_MAPPED = 208,
    GY_CU_PEER_ACCESS_UNSUPPORTED = 217,
    GY_CU_INVALID_HANDLE = 400,
    GY_CU_NOT_FOUND = 500,
    GY_CU_NOT_READY = 600,
    GY_CU_ILLEGAL_ADDRESS = 700,
    GY_CU_NOT_SUPPORTED = 801,
};

enum { /* CUpointer_attribute */
       GY_CU_POINTER_MEMORY_TYPE = 2,
       GY_CU_POINTER_BUFFER_ID = 7,
       GY_CU_POINTER_IS_MANAGED = 8,
       GY_CU_POINTER_DEVICE_ORDINAL = 9,
       GY_CU_POINTER_LEGACY_IPC = 10,
       GY_CU_POINTER_RANGE_START = 11,
       GY_CU_POINTER_RANGE_SIZE = 12,
       GY_CU_POINTER_HANDLE_TYPES = 14,
       GY_CU_POINTER_BLOCK_ID = 20, /* of the memory behind the address; older drivers do not know it */
};
enum { GY_CU_MEMORY_HOST = 1, GY_CU_MEMORY_DEVICE = 2 }; /* CUmemorytype */

enum { /* CUdevice_attribute */
       GY_CU_DEVICE_MULTIPROCESSORS = 16,
       GY_CU_DEVICE_COMPUTE_MAJOR = 75,
       GY_CU_DEVICE_COMPUTE_MINOR = 76,
       GY_CU_DEVICE_STREAM_MEM_OPS_64 = 122,
       GY_CU_DEVICE_COOPERATIVE_LAUNCH = 95,
       GY_CU_DEVICE_POSIX_DESCRIPTORS = 103,
};
enum { GY_CU_STREAM_NON_BLOCKING = 1, GY_CU_EVENT_DISABLE_TIMING = 2 };
enum { GY_CU_HOST_PORTABLE = 1, GY_CU_HOST_DEVICEMAP = 2 }; /* of cuMemHostAlloc and cuMemHostRegister */
enum { GY_CU_CAPTURE_NONE = 0 };                            /* CUstreamCaptureStatus */
enum { GY_CU_WAIT_GEQ = 0, GY_CU_WAIT_EQ = 1 };             /* CUstreamWaitValue_flags */
enum { GY_CU_IPC_LAZY_PEER_ACCESS = 1 };                    /* of cuIpcOpenMemHandle, which knows no other flag */
enum { GY_CU_ALLOCATION_PINNED = 1, GY_CU_LOCATION_DEVICE = 1, GY_CU_POSIX_DESCRIPTOR = 1 };
enum { GY_CU_GRANULARITY_MINIMUM = 0, GY_CU_GRANULARITY_RECOMMENDED = 1 };
enum { GY_CU_ACCESS_READ_WRITE = 3 }; /* CUmemAccess_flags */

/* CALL(field, name, version of the CUDA API whose signature is requested, (parameters)) */
#define GY_DRIVER_FUNCTIONS(CALL)                                                                                      \
    CALL(init, cuInit, 2000, (unsigned))                                                                               \
    CALL(driver_version, cuDriverGetVersion, 2020, (int *))                                                            \
    CALL(error_name, cuGetErrorName, 6000, (gy_cu_result, const char **))                                              \
    CALL(error_string, cuGetErrorString, 6000, (gy_cu_result, const char **))                                          \
    CALL(device_count, cuDeviceGetCount, 2000, (int *))                                                                \
    CALL(device_get, cuDeviceGet, 2000, (gy_cu_device *, int))                                                         \
    CALL(device_name, cuDeviceGetName, 2000, (char *, int, gy_cu_device))                                              \
    CALL(device_attribute, cuDeviceGetAttribute, 2000, (int *, unsigned, gy_cu_device))                                \
    CALL(device_uuid, cuDeviceGetUuid, 11040, (struct gy_cu_uuid *, gy_cu_device))                                     \
    CALL(device_pci, cuDeviceGetPCIBusId, 4010, (char *, int, gy_cu_device))                                           \
    CALL(device_memory, cuDeviceTotalMem, 3020, (size_t *, gy_cu_device))                                              \
    CALL(can_access_peer, cuDeviceCanAccessPeer, 4000, (int *, gy_cu_device, gy_cu_device))                            \
    CALL(context_retain, cuDevicePrimaryCtxRetain, 7000, (gy_cu_context *, gy_cu_device))                              \
    CALL(context_release, cuDevicePrimaryCtxRelease, 11000, (gy_cu_device))                                            \
    CALL(context_push, cuCtxPushCurrent, 4000, (gy_cu_context))                                                        \
    CALL(context_pop, cuCtxPopCurrent, 4000, (gy_cu_context *))                                                        \
    CALL(context_current, cuCtxGetCurrent, 4000, (gy_cu_context *))                                                    \
    CALL(context_device, cuCtxGetDevice, 2000, (gy_cu_device *))                                                       \
    CALL(enable_peer_access, cuCtxEnablePeerAccess, 4000, (gy_cu_context, unsigned))                                   \
    CALL(mem_alloc, cuMemAlloc, 3020, (gy_cu_address *, size_t))                                                       \
    CALL(mem_free, cuMemFree, 3020, (gy_cu_address))                                                                   \
    CALL(mem_range, cuMemGetAddressRange, 3020, (gy_cu_address *, size_t *, gy_cu_address))                            \
    CALL(host_alloc, cuMemHostAlloc, 2020, (void **, size_t, unsigned))                                                \
    CALL(host_free, cuMemFreeHost, 2000, (void *))                                                                     \
    CALL(host_register, cuMemHostRegister, 6050, (void *, size_t, unsigned))                                           \
    CALL(host_unregister, cuMemHostUnregister, 4000, (void *))                                                         \
    CALL(host_device_pointer, cuMemHostGetDevicePointer, 3020, (gy_cu_address *, void *, unsigned))                    \
    CALL(pointer_attributes, cuPointerGetAttributes, 7000, (unsigned, unsigned *, void **, gy_cu_address))             \
    CALL(copy_async, cuMemcpyAsync, 4000, (gy_cu_address, gy_cu_address, size_t, gy_cu_stream))                        \
    CALL(set8_async, cuMemsetD8Async, 3020, (gy_cu_address, unsigned char, size_t, gy_cu_stream))                      \
    CALL(set32_async, cuMemsetD32Async, 3020, (gy_cu_address, unsigned, size_t, gy_cu_stream))                         \
    CALL(stream_create, cuStreamCreate, 2000, (gy_cu_stream *, unsigned))                                              \
    CALL(stream_destroy, cuStreamDestroy, 4000, (gy_cu_stream))                                                        \
    CALL(stream_query, cuStreamQuery, 2000, (gy_cu_stream))                                                            \
    CALL(stream_synchronize, cuStreamSynchronize, 2000, (gy_cu_stream))                                                \
    CALL(stream_wait_event, cuStreamWaitEvent, 3020, (gy_cu_stream, gy_cu_event, unsigned))                            \
    CALL(stream_wait_value, cuStreamWaitValue32, 11070, (gy_cu_stream, gy_cu_address, uint32_t, unsigned))             \
    CALL(stream_write_value, cuStreamWriteValue32, 11070, (gy_cu_stream, gy_cu_address, uint32_t, unsigned))           \
    CALL(stream_is_capturing, cuStreamIsCapturing, 10000, (gy_cu_stream, unsigned *))                                  \
    CALL(event_create, cuEventCreate, 2000, (gy_cu_event *, unsigned))                                                 \
    CALL(event_destroy, cuEventDestroy, 4000, (gy_cu_event))                                                           \
    CALL(event_record, cuEventRecord, 2000, (gy_cu_event, gy_cu_stream))                                               \
    CALL(event_query, cuEventQuery, 2000, (gy_cu_event))                                                               \
    CALL(event_synchronize, cuEventSynchronize, 2000, (gy_cu_event))                                                   \
    CALL(launch_host, cuLaunchHostFunc, 10000, (gy_cu_stream, void (*)(void *), void *))                               \
    CALL(library_load, cuLibraryLoadData, 12000,                                                                       \
         (gy_cu_library *, const void *, unsigned *, void **, unsigned, unsigned *, void **, unsigned))                \
    CALL(library_unload, cuLibraryUnload, 12000, (gy_cu_library))                                                      \
    CALL(library_kernel, cuLibraryGetKernel, 12000, (gy_cu_kernel *, gy_cu_library, const char *))                     \
    CALL(kernel_function, cuKernelGetFunction, 12000, (gy_cu_function *, gy_cu_kernel))                                \
    CALL(blocks_per_multiprocessor, cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050,                                 \
         (int *, gy_cu_function, int, size_t))                                                                         \
    CALL(launch, cuLaunchKernel, 4000,                                                                                 \
         (gy_cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, gy_cu_stream, void **, \
          void **))

/* The functions that share memory with other processes. One that the driver lacks is NULL in the table. */
#define GY_DRIVER_OPTIONAL_FUNCTIONS(CALL)                                                                 \
    CALL(ipc_get, cuIpcGetMemHandle, 4010, (struct gy_cu_ipc_handle *, gy_cu_address))                     \
    CALL(ipc_open, cuIpcOpenMemHandle, 11000, (gy_cu_address *, struct gy_cu_ipc_handle, unsigned))        \
    CALL(ipc_close, cuIpcCloseMemHandle, 4010, (gy_cu_address))                                            \
    CALL(allocation_granularity, cuMemGetAllocationGranularity, 10020,                                     \
         (size_t *, const struct gy_cu_allocation_kind *, unsigned))                                       \
    CALL(allocation_create, cuMemCreate, 10020,                                                            \
         (gy_cu_allocation *, size_t, const struct gy_cu_allocation_kind *, unsigned long long))           \
    CALL(allocation_retain, cuMemRetainAllocationHandle, 11000, (gy_cu_allocation *, void *))              \
    CALL(allocation_release, cuMemRelease, 10020, (gy_cu_allocation))                                      \
    CALL(allocation_export, cuMemExportToShareableHandle, 10020,                                           \
         (void *, gy_cu_allocation, unsigned, unsigned long long))                                         \
    CALL(allocation_import, cuMemImportFromShareableHandle, 10020, (gy_cu_allocation *, void *, unsigned)) \
    CALL(address_reserve, cuMemAddressReserve, 10020,                                                      \
         (gy_cu_address *, size_t, size_t, gy_cu_address, unsigned long long))                             \
    CALL(address_free, cuMemAddressFree, 10020, (gy_cu_address, size_t))                                   \
    CALL(mem_map, cuMemMap, 10020, (gy_cu_address, size_t, size_t, gy_cu_allocation, unsigned long long))  \
    CALL(mem_unmap, cuMemUnmap, 10020, (gy_cu_address, size_t))                                            \
    CALL(mem_set_access, cuMemSetAccess, 10020, (gy_cu_address, size_t, const struct gy_cu_access *, size_t))

#define GY_DRIVER_FIELD(field, name, version, parameters) gy_cu_result(*field) parameters;
struct gy_driver {
    GY_DRIVER_FUNCTIONS(GY_DRIVER_FIELD)
    GY_DRIVER_OPTIONAL_FUNCTIONS(GY_DRIVER_FIELD)
};
#undef GY_DRIVER_FIELD

/* Returns the table, or NULL with the reason in `why` (which may have 0 bytes). Opens the library at the first call and
 * never closes it. Does not call cuInit. Thread-safe. */
const struct gy_driver *gy_driver_get(char *why, size_t why_bytes);
/* Returns the table if the process has already loaded the CUDA driver, otherwise NULL. Never loads it. Thread-safe. */
const struct gy_driver *gy_driver_if_loaded(void);
/* For tests: sets the table that the functions above return; NULL: that of libcuda.so.1 again. */
void gy_driver_use(const struct gy_driver *driver);
/* True if a release has succeeded, or if the driver is being unloaded, which releases everything. */
bool gy_driver_released(gy_cu_result result);
/* Writes "WHAT: CUDA_ERROR_NAME (description)". Returns `text`. */
const char *gy_driver_sentence(const struct gy_driver *driver, gy_cu_result result, const char *what, char *text,
                               size_t bytes);

#endif

/* Devices, contexts and errors of the stand-in, and its table. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

struct CUctx_st gy_gpu_devices[GY_GPU_MOST];
int gy_gpu_count;
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static bool opened, initialised;
static unsigned calls_until_failure;
static gy_cu_result failure;
static _Thread_local struct CUctx_st *stack[32];
static _Thread_local unsigned depth;

void gy_gpu_lock(void)
{
    pthread_mutex_lock(&lock);
}

void gy_gpu_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static void add_devices(const char *text)
{
    for (int group = 1; *text; group++) {
        char *end;
        long count = strtol(text, &end, 10);
        bool peers = strncmp(end, ":peer", 5) == 0;
        for (; count > 0 && gy_gpu_count < GY_GPU_MOST; count--, gy_gpu_count++)
            gy_gpu_devices[gy_gpu_count] = (struct CUctx_st){
                .device = gy_gpu_count, .physical = gy_gpu_count, .group = peers ? group : 0};
        text = end + (peers ? 5 : 0);
        if (*text && *text++ != ',')
            abort(); /* a mistake in the test */
    }
}

/* As the driver: only the devices that the list names, in its order, up to the first that is not there. */
static void show_listed(const char *list)
{
    struct CUctx_st all[GY_GPU_MOST];
    int count = gy_gpu_count;

    memcpy(all, gy_gpu_devices, sizeof(all));
    for (gy_gpu_count = 0; *list >= '0' && *list <= '9';) {
        char *end;
        long number = strtol(list, &end, 10);
        if (number >= count || gy_gpu_count == GY_GPU_MOST)
            break;
        gy_gpu_devices[gy_gpu_count] = all[number];
        gy_gpu_devices[gy_gpu_count].physical = (int)number;
        gy_gpu_devices[gy_gpu_count].device = gy_gpu_count;
        gy_gpu_count++;
        list = *end == ',' ? end + 1 : end;
    }
}

void gy_gpu_open(const char *devices, unsigned seed)
{
    gy_gpu_lock();
    if (!opened) {
        opened = true;
        if (!devices)
            devices = getenv("GYRE_TEST_GPUS");
        add_devices(devices ? devices : "1");
        if (getenv("CUDA_VISIBLE_DEVICES"))
            show_listed(getenv("CUDA_VISIBLE_DEVICES"));
        gy_gpu_memory_open();
        gy_gpu_streams_open(seed);
    }
    gy_gpu_unlock();
}

void gy_gpu_fail(unsigned calls, gy_cu_result result)
{
    gy_gpu_lock();
    calls_until_failure = calls;
    failure = result;
    gy_gpu_unlock();
}

static gy_cu_result enter_uninitialised(void)
{
    gy_gpu_lock();
    return calls_until_failure && --calls_until_failure == 0 ? failure : GY_CU_SUCCESS;
}

gy_cu_result gy_gpu_enter(void)
{
    gy_cu_result result = enter_uninitialised();

    return result || initialised ? result : GY_CU_NOT_INITIALIZED;
}

gy_cu_result gy_gpu_enter_context(struct CUctx_st **context_p)
{
    gy_cu_result result = gy_gpu_enter();

    if (result)
        return result;
    if (!depth || !stack[depth - 1] || !stack[depth - 1]->retained)
        return GY_CU_INVALID_CONTEXT;
    *context_p = stack[depth - 1];
    return (*context_p)->sticky;
}

gy_cu_result gy_gpu_leave(gy_cu_result result)
{
    gy_gpu_run_after_call();
    gy_gpu_unlock();
    return result;
}

gy_cu_result cuInit(unsigned flags)
{
    const char *seed = getenv("GYRE_TEST_SEED");
    gy_cu_result result = enter_uninitialised();

    gy_gpu_open(NULL, seed ? (unsigned)strtoul(seed, NULL, 10) : 1);
    if (result == GY_CU_SUCCESS)
        result = flags ? GY_CU_INVALID_VALUE : !gy_gpu_count ? GY_CU_NO_DEVICE : GY_CU_SUCCESS;
    initialised |= result == GY_CU_SUCCESS;
    return gy_gpu_leave(result);
}

gy_cu_result cuDriverGetVersion(int *version_p)
{
    *version_p = 13000;
    return GY_CU_SUCCESS;
}

static const struct {
    gy_cu_result result;
    const char *name, *text;
} errors[] = {
    {GY_CU_SUCCESS, "CUDA_SUCCESS", "no error"},
    {GY_CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {GY_CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {GY_CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {GY_CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {GY_CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {GY_CU_MAP_FAILED, "CUDA_ERROR_MAP_FAILED", "mapping of buffer object failed"},
    {GY_CU_ALREADY_MAPPED, "CUDA_ERROR_ALREADY_MAPPED", "resource already mapped"},
    {GY_CU_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {GY_CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {GY_CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {GY_CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {GY_CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
};

gy_cu_result cuGetErrorName(gy_cu_result result, const char **name_p)
{
    for (size_t i = 0; i < GY_ARRAY_LENGTH(errors); i++)
        if (errors[i].result == result)
            return *name_p = errors[i].name, GY_CU_SUCCESS;
    return GY_CU_INVALID_VALUE;
}

gy_cu_result cuGetErrorString(gy_cu_result result, const char **text_p)
{
    for (size_t i = 0; i < GY_ARRAY_LENGTH(errors); i++)
        if (errors[i].result == result)
            return *text_p = errors[i].text, GY_CU_SUCCESS;
    return GY_CU_INVALID_VALUE;
}

static gy_cu_result enter_device(gy_cu_device device)
{
    gy_cu_result result = gy_gpu_enter();

    return result ? result : device < 0 || device >= gy_gpu_count ? GY_CU_INVALID_DEVICE : GY_CU_SUCCESS;
}

gy_cu_result cuDeviceGetCount(int *count_p)
{
    gy_cu_result result = gy_gpu_enter();

    *count_p = gy_gpu_count;
    return gy_gpu_leave(result);
}

gy_cu_result cuDeviceGet(gy_cu_device *device_p, int number)
{
    gy_cu_result result = enter_device(number);

    *device_p = number;
    return gy_gpu_leave(result);
}

gy_cu_result cuDeviceGetName(char *text, int bytes, gy_cu_device device)
{
    gy_cu_result result = enter_device(device);

    if (result == GY_CU_SUCCESS)
        snprintf(text, (size_t)bytes, "stand-in %d", gy_gpu_devices[device].physical);
    return gy_gpu_leave(result);
}

gy_cu_result cuDeviceGetPCIBusId(char *text, int bytes, gy_cu_device device)
{
    gy_cu_result result = enter_device(device);

    if (result == GY_CU_SUCCESS)
        snprintf(text, (size_t)bytes, "0000:%02x:00.0", (unsigned)gy_gpu_devices[device].physical + 1);
    return gy_gpu_leave(result);
}

gy_cu_result cuDeviceGetUuid(struct gy_cu_uuid *uuid_p, gy_cu_device device)
{
    gy_cu_result result = enter_device(device);

    if (result == GY_CU_SUCCESS)
        memset(uuid_p, gy_gpu_devices[device].physical + 1, sizeof(*uuid_p));
    return gy_gpu_leave(result);
}

gy_cu_result cuDeviceTotalMem(size_t *bytes_p, gy_cu_device device)
{
    *bytes_p = (size_t)1 << 30;
    return gy_gpu_leave(enter_device(device));
}

gy_cu_result cuDeviceGetAttribute(int *value_p, unsigned attribute, gy_cu_device device)
{
    *value_p = attribute == GY_CU_DEVICE_MULTIPROCESSORS ? GY_GPU_MULTIPROCESSORS
               : attribute == GY_CU_DEVICE_COMPUTE_MAJOR ? 9
                                                         : 1;
    if (attribute == GY_CU_DEVICE_COMPUTE_MINOR)
        *value_p = 0;
    return gy_gpu_leave(enter_device(device));
}

int gy_gpu_visible(int physical)
{
    for (int d = 0; d < gy_gpu_count; d++)
        if (gy_gpu_devices[d].physical == physical)
            return d;
    return -1;
}

bool gy_gpu_peers(int device, int other)
{
    return device == other ||
           (gy_gpu_devices[device].group && gy_gpu_devices[device].group == gy_gpu_devices[other].group);
}

gy_cu_result cuDeviceCanAccessPeer(int *can_p, gy_cu_device device, gy_cu_device peer)
{
    gy_cu_result result = enter_device(device);

    if (result == GY_CU_SUCCESS && (peer < 0 || peer >= gy_gpu_count))
        result = GY_CU_INVALID_DEVICE;
    if (result == GY_CU_SUCCESS)
        *can_p = device != peer && gy_gpu_peers(device, peer);
    return gy_gpu_leave(result);
}

gy_cu_result cuCtxEnablePeerAccess(gy_cu_context peer, unsigned flags)
{
    struct CUctx_st *own;
    gy_cu_result result = gy_gpu_enter_context(&own);

    if (result == GY_CU_SUCCESS && (flags || peer == own || !own->group || own->group != peer->group))
        result = GY_CU_INVALID_DEVICE;
    if (result == GY_CU_SUCCESS)
        own->reaches |= 1u << peer->device;
    return gy_gpu_leave(result);
}

gy_cu_result cuDevicePrimaryCtxRetain(gy_cu_context *context_p, gy_cu_device device)
{
    gy_cu_result result = enter_device(device);

    if (result == GY_CU_SUCCESS) {
        gy_gpu_devices[device].retained++;
        *context_p = &gy_gpu_devices[device];
    }
    return gy_gpu_leave(result);
}

gy_cu_result cuDevicePrimaryCtxRelease(gy_cu_device device)
{
    gy_cu_result result = enter_device(device);

    if (result == GY_CU_SUCCESS && gy_gpu_devices[device].retained-- == 0) {
        gy_gpu_devices[device].retained = 0;
        result = GY_CU_INVALID_CONTEXT;
    }
    return gy_gpu_leave(result);
}

gy_cu_result cuCtxPushCurrent(gy_cu_context context)
{
    gy_cu_result result = gy_gpu_enter();

    if (result == GY_CU_SUCCESS && (!context || depth == GY_ARRAY_LENGTH(stack)))
        result = GY_CU_INVALID_CONTEXT;
    if (result == GY_CU_SUCCESS)
        stack[depth++] = context;
    return gy_gpu_leave(result);
}

gy_cu_result cuCtxPopCurrent(gy_cu_context *context_p)
{
    gy_cu_result result = gy_gpu_enter();

    if (result == GY_CU_SUCCESS && !depth)
        result = GY_CU_INVALID_CONTEXT;
    if (result == GY_CU_SUCCESS)
        *context_p = stack[--depth];
    return gy_gpu_leave(result);
}

gy_cu_result cuCtxGetCurrent(gy_cu_context *context_p)
{
    gy_cu_result result = gy_gpu_enter();

    *context_p = depth ? stack[depth - 1] : NULL;
    return gy_gpu_leave(result);
}

gy_cu_result cuCtxGetDevice(gy_cu_device *device_p)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);

    if (result == GY_CU_SUCCESS)
        *device_p = context->device;
    return gy_gpu_leave(result);
}

const struct gy_driver *gy_gpu_driver(void)
{
    static const struct gy_driver table = {
#define ENTRY(field, name, version, parameters) .field = name,
        GY_DRIVER_FUNCTIONS(ENTRY) GY_DRIVER_OPTIONAL_FUNCTIONS(ENTRY)
#undef ENTRY
    };
    return &table;
}

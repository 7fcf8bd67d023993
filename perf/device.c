#include "device.h"

#include <stdio.h>
#include <stdlib.h>

#include "cuda/driver.h"

struct gy_perf_device {
    const struct gy_driver *driver;
    int number;
    gy_cu_context context;
    gy_cu_stream stream;
    gy_cu_address input, output;
};

static bool worked(const struct gy_perf_device *device, gy_cu_result result, const char *what)
{
    char text[300];
    if (result == GY_CU_SUCCESS)
        return true;
    fprintf(stderr, "gyre-perf: GPU %d: %s\n", device->number,
            gy_driver_sentence(device->driver, result, what, text, sizeof text));
    return false;
}

static bool attach(gyre_comm *comm, int number)
{
    gyre_status status = gyre_cuda_attach(comm, number);
    if (status != GYRE_SUCCESS)
        fprintf(stderr, "gyre-perf: %s: %s\n", gyre_status_name(status), gyre_last_error(comm));
    return status == GYRE_SUCCESS;
}

/* -1: there is none, and a line says why. */
static int choose(gyre_comm *comm, int ranks_per_gpu)
{
    gyre_rank_place place = {.size = sizeof place};
    int devices = 0;
    if (gyre_cuda_available(&devices) != GYRE_SUCCESS ||
        gyre_comm_topology(comm, gyre_comm_rank(comm), &place) != GYRE_SUCCESS) {
        fprintf(stderr, "gyre-perf: --device cuda: %s\n", gyre_last_error(devices ? comm : NULL));
        return -1;
    }
    int number = ranks_per_gpu > 0 ? place.local / ranks_per_gpu : place.local % devices;
    if (number < devices)
        return number;
    fprintf(stderr, "gyre-perf: --ranks-per-gpu %d: rank %d of this host needs GPU %d, and there are %d\n",
            ranks_per_gpu, place.local, number, devices);
    return -1;
}

static bool make(struct gy_perf_device *device, size_t bytes)
{
    const struct gy_driver *cu = device->driver;
    gy_cu_device handle;
    return worked(device, cu->device_get(&handle, device->number), "cuDeviceGet") &&
           worked(device, cu->context_retain(&device->context, handle), "cuDevicePrimaryCtxRetain") &&
           worked(device, cu->context_push(device->context), "cuCtxPushCurrent") &&
           worked(device, cu->stream_create(&device->stream, GY_CU_STREAM_NON_BLOCKING), "cuStreamCreate") &&
           worked(device, cu->mem_alloc(&device->input, bytes), "cuMemAlloc") &&
           worked(device, cu->mem_alloc(&device->output, bytes), "cuMemAlloc");
}

struct gy_perf_device *gy_perf_device_open(gyre_comm *comm, int ranks_per_gpu, size_t bytes)
{
    char why[300];
    struct gy_perf_device *device = calloc(1, sizeof *device);
    int number = choose(comm, ranks_per_gpu);
    if (!device || number < 0 || !attach(comm, number)) {
        free(device);
        return NULL;
    }
    device->number = number;
    device->driver = gy_driver_get(why, sizeof why); /* is there, since the communicator is attached */
    if (make(device, bytes))
        return device;
    free(device); /* the program ends, and with it what has been made */
    return NULL;
}

void gy_perf_device_close(struct gy_perf_device *device)
{
    if (!device)
        return;
    (void)device->driver->mem_free(device->input);
    (void)device->driver->mem_free(device->output);
    (void)device->driver->stream_destroy(device->stream);
    free(device);
}

struct gy_case gy_perf_device_case(const struct gy_perf_device *device, const struct gy_case *it)
{
    struct gy_case placed = *it;
    placed.input = (unsigned char *)(uintptr_t)device->input;
    placed.output = (unsigned char *)(uintptr_t)device->output;
    placed.stream = device->stream;
    return placed;
}

bool gy_perf_device_wait(const struct gy_perf_device *device)
{
    return worked(device, device->driver->stream_synchronize(device->stream), "cuStreamSynchronize");
}

bool gy_perf_device_put(const struct gy_perf_device *device, const struct gy_case *it)
{
    const struct gy_driver *cu = device->driver;
    return worked(device, cu->copy_async(device->input, (uintptr_t)it->input, it->bytes, device->stream),
                  "cuMemcpyAsync") &&
           worked(device, cu->copy_async(device->output, (uintptr_t)it->output, it->bytes, device->stream),
                  "cuMemcpyAsync") &&
           gy_perf_device_wait(device);
}

bool gy_perf_device_get(const struct gy_perf_device *device, const struct gy_case *it)
{
    const struct gy_driver *cu = device->driver;
    return worked(device, cu->copy_async((uintptr_t)it->output, device->output, it->bytes, device->stream),
                  "cuMemcpyAsync") &&
           gy_perf_device_wait(device);
}

/* Devices: see device.h. */
#include "cuda/device.h"

#include <stdio.h>
#include <stdlib.h>

static bool worked(const struct gy_driver *driver, gy_cu_result result, const char *what, char *why, size_t why_bytes)
{
    if (result != GY_CU_SUCCESS)
        gy_driver_sentence(driver, result, what, why, why_bytes);
    return result == GY_CU_SUCCESS;
}

int gy_device_count(char *why, size_t why_bytes)
{
    const struct gy_driver *driver = gy_driver_get(why, why_bytes);
    int count = 0;

    if (!driver)
        return 0;
    gy_cu_result result = driver->init(0);
    if (result == GY_CU_SUCCESS)
        result = driver->device_count(&count);
    if (result == GY_CU_SUCCESS && count > 0)
        return count;
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (result != GY_CU_SUCCESS && result != GY_CU_NO_DEVICE)
        gy_driver_sentence(driver, result, "cuInit", why, why_bytes);
    else if (visible)
        snprintf(why, why_bytes, "the CUDA driver finds no device; CUDA_VISIBLE_DEVICES is \"%.100s\"", visible);
    else
        snprintf(why, why_bytes, "the CUDA driver finds no device");
    return 0;
}

static bool describe(struct gy_device *device, gy_cu_device handle, char *why, size_t why_bytes)
{
    const struct gy_driver *cu = device->driver;
    const struct {
        unsigned attribute;
        int *value_p;
    } wanted[] = {{GY_CU_DEVICE_MULTIPROCESSORS, &device->multiprocessors},
                  {GY_CU_DEVICE_COMPUTE_MAJOR, &device->compute_major},
                  {GY_CU_DEVICE_COMPUTE_MINOR, &device->compute_minor}};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(wanted); i++)
        if (!worked(cu, cu->device_attribute(wanted[i].value_p, wanted[i].attribute, handle), "cuDeviceGetAttribute",
                    why, why_bytes))
            return false;
    return worked(cu, cu->device_name(device->name, sizeof(device->name), handle), "cuDeviceGetName", why, why_bytes) &&
           worked(cu, cu->device_pci(device->pci, sizeof(device->pci), handle), "cuDeviceGetPCIBusId", why,
                  why_bytes) &&
           worked(cu, cu->device_uuid(&device->uuid, handle), "cuDeviceGetUuid", why, why_bytes) &&
           worked(cu, cu->device_memory(&device->bytes, handle), "cuDeviceTotalMem", why, why_bytes);
}

static void print_device(const struct gy_driver *driver, int number, gyre_print_func print, void *user)
{
    struct gy_device device = {.driver = driver, .number = number};
    gy_cu_device handle;
    char line[320], why[200] = "cuDeviceGet";

    if (driver->device_get(&handle, number) != GY_CU_SUCCESS || !describe(&device, handle, why, sizeof(why)))
        snprintf(line, sizeof(line), "GPU %d: %s", number, why);
    else
        snprintf(line, sizeof(line), "GPU %d: %s, %zu MiB, compute capability %d.%d, PCI %s", number, device.name,
                 device.bytes >> 20, device.compute_major, device.compute_minor, device.pci);
    print(user, line);
}

/* Prints the launcher's variables, which decide to which device a rank is attached by default. */
static void print_choice(int count, gyre_print_func print, void *user)
{
    char line[320];
    const char *visible = getenv("CUDA_VISIBLE_DEVICES"), *local = getenv("LOCAL_RANK");

    if (visible) {
        snprintf(line, sizeof(line), "CUDA_VISIBLE_DEVICES is \"%.200s\"", visible);
        print(user, line);
    }
    if (local && *local >= '0' && *local <= '9') {
        snprintf(line, sizeof(line), "a rank with LOCAL_RANK %.10s is attached to GPU %ld by default", local,
                 strtol(local, NULL, 10) % count);
        print(user, line);
    }
}

void gy_devices_describe(gyre_print_func print, void *user)
{
    char line[320], why[300];
    int count = gy_device_count(why, sizeof(why)), version = 0;

    if (count == 0) {
        snprintf(line, sizeof(line), "no GPU: %s", why);
        print(user, line);
        return;
    }
    const struct gy_driver *driver = gy_driver_get(why, sizeof(why));
    if (driver->driver_version(&version) == GY_CU_SUCCESS) {
        snprintf(line, sizeof(line), "CUDA driver %d.%d", version / 1000, version % 1000 / 10);
        print(user, line);
    }
    for (int d = 0; d < count; d++)
        print_device(driver, d, print, user);
    print_choice(count, print, user);
}

bool gy_device_open(struct gy_device *device, const struct gy_driver *driver, int number, char *why, size_t why_bytes)
{
    gy_cu_device handle;

    *device = (struct gy_device){.driver = driver, .number = number};
    return worked(driver, driver->init(0), "cuInit", why, why_bytes) &&
           worked(driver, driver->device_get(&handle, number), "cuDeviceGet", why, why_bytes) &&
           describe(device, handle, why, why_bytes) &&
           worked(driver, driver->context_retain(&device->context, handle), "cuDevicePrimaryCtxRetain", why, why_bytes);
}

void gy_device_close(struct gy_device *device)
{
    gy_cu_device handle;

    if (device->context && device->driver->device_get(&handle, device->number) == GY_CU_SUCCESS)
        (void)device->driver->context_release(handle); /* a driver that is being unloaded has released it */
    device->context = NULL;
}

gy_cu_result gy_device_enter(const struct gy_device *device)
{
    return device->driver->context_push(device->context);
}

void gy_device_leave(const struct gy_device *device)
{
    gy_cu_context popped;

    (void)device->driver->context_pop(&popped);
}

/* Devices and their primary contexts. A piece of work pushes the device's context and pops it at its end, so the
 * caller's current context never changes. */
#ifndef GY_CUDA_DEVICE_H
#define GY_CUDA_DEVICE_H

#include "cuda/driver.h"

struct gy_device {
    const struct gy_driver *driver;
    int number;
    gy_cu_context context;
    char name[64], pci[16];
    struct gy_cu_uuid uuid; /* of the MIG instance, where there is one; ranks with equal ones share a GPU */
    int multiprocessors, compute_major, compute_minor;
    size_t bytes;
};

/* Returns the number of devices; 0, with the reason in `why`: none can be used. Calls cuInit. */
int gy_device_count(char *why, size_t why_bytes);
/* Prints a line for each device, or the reason why there is none. Creates no context. */
void gy_devices_describe(gyre_print_func print, void *user);
/* Retains the primary context of device `number`. Returns false with the reason in `why`; then nothing is retained. */
bool gy_device_open(struct gy_device *device, const struct gy_driver *driver, int number, char *why, size_t why_bytes);
/* Idempotent. */
void gy_device_close(struct gy_device *device);
/* enter pushes the device's context on this thread's stack of contexts; leave pops it. */
gy_cu_result gy_device_enter(const struct gy_device *device);
void gy_device_leave(const struct gy_device *device);

#endif

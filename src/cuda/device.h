/* Devices and their primary contexts. A context is retained, pushed for a piece of work and popped after it: what the
 * caller has as its current context never changes. */
#ifndef GY_CUDA_DEVICE_H
#define GY_CUDA_DEVICE_H

#include "cuda/driver.h"

struct gy_device {
    const struct gy_driver *driver;
    int number;
    gy_cu_context context;
    char name[64], pci[16];
    struct gy_cu_uuid uuid; /* of the MIG instance, where there is one: two ranks with equal ones share a GPU */
    int multiprocessors, compute_major, compute_minor;
    size_t bytes;
};

/* Returns the number of devices; 0 with a sentence in `why`: there is none to use. Initialises the driver. */
int gy_device_count(char *why, size_t why_bytes);
/* Prints a line for each device, or why there is none. Makes no context. */
void gy_devices_describe(gyre_print_func print, void *user);
/* Retains the primary context of device `number`. Returns false with a sentence in `why`; then nothing is retained. */
bool gy_device_open(struct gy_device *device, const struct gy_driver *driver, int number, char *why, size_t why_bytes);
/* Idempotent. */
void gy_device_close(struct gy_device *device);
/* Between these two, the device's context is the current one of this thread. */
gy_cu_result gy_device_enter(const struct gy_device *device);
void gy_device_leave(const struct gy_device *device);

#endif

/* Memory of a GPU for gyre-perf: the operands of a case, and a stream that orders its calls. */
#ifndef GYRE_PERF_DEVICE_H
#define GYRE_PERF_DEVICE_H

#include "collective.h"

struct gy_perf_device;

/* Attaches the communicator to a GPU of this host, by the rank's number on the host: `ranks_per_gpu` ranks share one;
 * 0: the ranks take turns. Two buffers of `bytes` bytes. NULL, with a line on standard error: it cannot be had. */
struct gy_perf_device *gy_perf_device_open(gyre_comm *comm, int ranks_per_gpu, size_t bytes);
void gy_perf_device_close(struct gy_perf_device *device);
/* The case on the device's buffers. */
struct gy_case gy_perf_device_case(const struct gy_perf_device *device, const struct gy_case *it);
/* Copy both buffers of the case to the device and back; wait for the stream. False, with a line: that failed. */
bool gy_perf_device_put(const struct gy_perf_device *device, const struct gy_case *it);
bool gy_perf_device_get(const struct gy_perf_device *device, const struct gy_case *it);
bool gy_perf_device_wait(const struct gy_perf_device *device);

#endif

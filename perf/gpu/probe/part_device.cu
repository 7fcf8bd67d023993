/* What the device and the driver say of themselves. */
#include "probe.h"

#include <unistd.h>

void part_device(int)
{
    begin_device();
    char name[128];
    int driver;
    size_t free_bytes, total_bytes;
    CU(cuDeviceGetName(name, sizeof name, device));
    CU(cuDriverGetVersion(&driver));
    CU(cuMemGetInfo(&free_bytes, &total_bytes));
    say("\"name\": \"%s\", \"driver\": %d, \"compute_capability\": \"%d.%d\", \"multiprocessors\": %d, \"l2_mib\": %d, "
        "\"memory_gib\": %.1f, \"used_by_one_context_mib\": %.0f, \"cores\": %ld",
        name, driver, attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) >> 20, (double)total_bytes / 1073741824.0,
        (double)(total_bytes - free_bytes) / 1048576.0, sysconf(_SC_NPROCESSORS_ONLN));
    static const struct {
        const char *name;
        CUdevice_attribute attribute;
    } features[] = {
        {"stream_memory_operations_64_bit", CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS},
        {"stream_wait_value_nor", CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR},
        {"handle_posix_fd", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED},
        {"handle_fabric", CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED},
        {"virtual_memory_management", CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
        {"gpudirect_rdma", CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED},
        {"dmabuf", CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED},
        {"host_register", CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED},
        {"cooperative_launch", CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
        {"compute_preemption", CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED},
        {"host_native_atomics", CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED},
        {"multicast", CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED},
        {"async_engines", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    };
    for (const auto &feature : features)
        say("\"feature\": \"%s\", \"value\": %d", feature.name, attribute(feature.attribute));
}

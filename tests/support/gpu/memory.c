/* Memory of the stand-in: allocations, and the names of those that the host touches. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

enum { MOST = 4096 };
static struct allocation {
    uintptr_t base;
    size_t bytes, mapped;
    unsigned char *secret;
    int device;
    unsigned type; /* 0: free */
    bool registered;
    unsigned long long id;
} allocations[MOST];
static unsigned long long ids;
static int used; /* allocations behind these have never been made */

static struct allocation *find(uintptr_t address)
{
    for (int i = 0; i < used; i++)
        if (allocations[i].type && address - allocations[i].base < allocations[i].bytes)
            return &allocations[i];
    return NULL;
}

static struct allocation *add(void *base, size_t bytes, int device, unsigned type)
{
    for (int i = 0; i < MOST; i++)
        if (!allocations[i].type) {
            allocations[i] = (struct allocation){
                .base = (uintptr_t)base, .bytes = bytes, .device = device, .type = type, .id = ++ids};
            used = i < used ? used : i + 1;
            return &allocations[i];
        }
    return NULL;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    char text[160];
    uintptr_t address = (uintptr_t)info->si_addr;
    const struct allocation *touched = find(address);

    (void)context;
    if (touched) {
        int length = snprintf(text, sizeof(text),
                              "the host touched byte %zu of allocation %llu, %zu bytes of device %d\n",
                              (size_t)(address - touched->base), touched->id, touched->bytes, touched->device);
        if (write(2, text, (size_t)length) < 0)
            _exit(1);
    }
    signal(number, SIG_DFL); /* the access is repeated, and ends the process */
}

void gy_gpu_memory_open(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};

    sigaction(SIGSEGV, &action, NULL);
}

void *gy_gpu_bytes(gy_cu_address address, size_t bytes)
{
    const struct allocation *found = find((uintptr_t)address);

    if (!found)
        return (void *)(uintptr_t)address;
    size_t at = (size_t)(address - found->base);
    if (bytes > found->bytes - at)
        return NULL;
    return found->secret ? found->secret + at : (unsigned char *)found->base + at;
}

void *gy_gpu_reach(const void *address, size_t bytes, int device)
{
    const struct allocation *found = find((uintptr_t)address);

    if (!found || bytes > found->bytes - ((uintptr_t)address - found->base))
        return NULL;
    if (!found->secret)
        return (void *)(uintptr_t)address;
    if (found->device != device && !(gy_gpu_devices[device].reaches >> found->device & 1))
        return NULL;
    return found->secret + ((uintptr_t)address - found->base);
}

gy_cu_result cuMemAlloc(gy_cu_address *address_p, size_t bytes)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);
    size_t mapped = (bytes + 4095) / 4096 * 4096;

    if (result || !bytes)
        return gy_gpu_leave(result ? result : GY_CU_INVALID_VALUE);
    int fd = memfd_create("gpu", MFD_CLOEXEC);
    unsigned char *base = mmap(NULL, mapped + 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* a guard page */
    void *secret = MAP_FAILED;
    if (fd >= 0 && base != MAP_FAILED && ftruncate(fd, (off_t)mapped) == 0)
        secret = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct allocation *made = secret == MAP_FAILED ? NULL : add(base, bytes, context->device, GY_CU_MEMORY_DEVICE);
    if (fd >= 0)
        close(fd);
    if (!made) {
        if (base != MAP_FAILED)
            munmap(base, mapped + 4096);
        return gy_gpu_leave(GY_CU_OUT_OF_MEMORY);
    }
    made->secret = memset(secret, 0xa5, mapped);
    made->mapped = mapped + 4096;
    *address_p = made->base;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemFree(gy_cu_address address)
{
    gy_cu_result result = gy_gpu_enter();
    struct allocation *found = find((uintptr_t)address);

    if (result || !address)
        return gy_gpu_leave(result);
    if (!found || found->base != address || !found->secret)
        return gy_gpu_leave(GY_CU_INVALID_VALUE);
    while (gy_gpu_step()) /* freeing waits for what is running */
        ;
    munmap(found->secret, found->mapped - 4096);
    munmap((void *)found->base, found->mapped);
    found->type = 0;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemGetAddressRange(gy_cu_address *base_p, size_t *bytes_p, gy_cu_address address)
{
    gy_cu_result result = gy_gpu_enter();
    const struct allocation *found = find((uintptr_t)address);

    if (result || !found)
        return gy_gpu_leave(result ? result : GY_CU_NOT_FOUND);
    if (base_p)
        *base_p = found->base;
    if (bytes_p)
        *bytes_p = found->bytes;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemHostRegister(void *memory, size_t bytes, unsigned flags)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);

    (void)flags;
    if (result || !memory || !bytes || find((uintptr_t)memory))
        return gy_gpu_leave(result ? result : GY_CU_INVALID_VALUE);
    struct allocation *made = add(memory, bytes, context->device, GY_CU_MEMORY_HOST);
    if (!made)
        return gy_gpu_leave(GY_CU_OUT_OF_MEMORY);
    made->registered = true;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

static gy_cu_result forget_host(void *memory, bool registered)
{
    gy_cu_result result = gy_gpu_enter();
    struct allocation *found = find((uintptr_t)memory);

    if (result || !found || found->base != (uintptr_t)memory || found->secret || found->registered != registered)
        return gy_gpu_leave(result ? result : GY_CU_INVALID_VALUE);
    found->type = 0;
    if (!registered)
        free(memory);
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemHostUnregister(void *memory)
{
    return forget_host(memory, true);
}

gy_cu_result cuMemFreeHost(void *memory)
{
    return forget_host(memory, false);
}

gy_cu_result cuMemHostAlloc(void **memory_p, size_t bytes, unsigned flags)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);
    void *memory = result || !bytes ? NULL : aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

    (void)flags;
    if (!memory)
        return gy_gpu_leave(result ? result : GY_CU_OUT_OF_MEMORY);
    if (!add(memory, bytes, context->device, GY_CU_MEMORY_HOST)) {
        free(memory);
        return gy_gpu_leave(GY_CU_OUT_OF_MEMORY);
    }
    *memory_p = memory;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemHostGetDevicePointer(gy_cu_address *address_p, void *memory, unsigned flags)
{
    gy_cu_result result = gy_gpu_enter();
    const struct allocation *found = find((uintptr_t)memory);

    (void)flags;
    if (result || !found || found->secret)
        return gy_gpu_leave(result ? result : GY_CU_INVALID_VALUE);
    *address_p = (uintptr_t)memory;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuPointerGetAttributes(unsigned count, unsigned *wanted, void **into, gy_cu_address address)
{
    static const struct allocation none = {.device = -2};
    gy_cu_result result = gy_gpu_enter();
    const struct allocation *found = find((uintptr_t)address);

    if (result)
        return gy_gpu_leave(result);
    if (!found)
        found = &none;
    gy_cu_address base = found->base;
    for (unsigned i = 0; i < count; i++)
        switch (wanted[i]) {
        case GY_CU_POINTER_MEMORY_TYPE: memcpy(into[i], &found->type, sizeof(found->type)); break;
        case GY_CU_POINTER_IS_MANAGED: memset(into[i], 0, 1); break;
        case GY_CU_POINTER_DEVICE_ORDINAL: memcpy(into[i], &found->device, sizeof(found->device)); break;
        case GY_CU_POINTER_BUFFER_ID: memcpy(into[i], &found->id, sizeof(found->id)); break;
        case GY_CU_POINTER_RANGE_START: memcpy(into[i], &base, sizeof(base)); break;
        case GY_CU_POINTER_RANGE_SIZE: memcpy(into[i], &found->bytes, sizeof(found->bytes)); break;
        default: result = GY_CU_INVALID_VALUE;
        }
    return gy_gpu_leave(result);
}

/* Memory of the stand-in: allocations, and the names of those that the host touches. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

enum { MOST = 4096, PAGE = 4096 };
static struct gy_gpu_allocation allocations[MOST];
static unsigned long long numbers;
static int used; /* allocations behind these have never been made */

struct gy_gpu_allocation *gy_gpu_find(gy_cu_address address)
{
    for (int i = 0; i < used; i++)
        if (allocations[i].type && address - allocations[i].base < allocations[i].bytes)
            return &allocations[i];
    return NULL;
}

unsigned long long gy_gpu_number(void)
{
    return ++numbers;
}

struct gy_gpu_allocation *gy_gpu_add(const struct gy_gpu_allocation *allocation)
{
    for (int i = 0; i < MOST; i++)
        if (!allocations[i].type) {
            allocations[i] = *allocation;
            allocations[i].id = gy_gpu_number();
            if (!allocation->block)
                allocations[i].block = allocations[i].id;
            used = i < used ? used : i + 1;
            return &allocations[i];
        }
    return NULL;
}

static struct gy_gpu_allocation *add_host(void *base, size_t bytes, int device, enum gy_gpu_origin origin)
{
    const struct gy_gpu_allocation made = {.base = (uintptr_t)base,
                                           .bytes = bytes,
                                           .device = device,
                                           .type = GY_CU_MEMORY_HOST,
                                           .origin = origin,
                                           .fd = -1};

    return gy_gpu_add(&made);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    char text[160];
    uintptr_t address = (uintptr_t)info->si_addr;
    const struct gy_gpu_allocation *touched = gy_gpu_find(address);

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

/* Where [address, address + bytes) lies, if it begins in `first` and a device of the mask may access all of it. Memory
 * that is mapped side by side into one range of addresses is one piece. */
static void *place(const struct gy_gpu_allocation *first, uintptr_t address, size_t bytes, unsigned devices)
{
    const struct gy_gpu_allocation *last = first;

    while (last->origin != GY_GPU_MAPPED || (last->allowed & devices)) {
        if (bytes <= last->base + last->bytes - address)
            return first->secret ? first->secret + (address - first->base) : (unsigned char *)address;
        const struct gy_gpu_allocation *next = gy_gpu_find(last->base + last->bytes);
        if (last->origin != GY_GPU_MAPPED || !next || next->secret != last->secret + last->bytes)
            return NULL;
        last = next;
    }
    return NULL;
}

void *gy_gpu_bytes(gy_cu_address address, size_t bytes)
{
    const struct gy_gpu_allocation *found = gy_gpu_find(address);

    if (found)
        return place(found, (uintptr_t)address, bytes, ~0u);
    return gy_gpu_reserved(address, NULL, NULL) ? NULL : (void *)(uintptr_t)address;
}

void *gy_gpu_reach(const void *address, size_t bytes, int device)
{
    const struct gy_gpu_allocation *found = gy_gpu_find((uintptr_t)address);

    if (!found)
        return NULL;
    if (found->secret && found->origin != GY_GPU_MAPPED && found->device != device &&
        !(gy_gpu_devices[device].reaches >> found->device & 1))
        return NULL;
    return place(found, (uintptr_t)address, bytes, 1u << device);
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

struct gy_gpu_allocation *gy_gpu_attach(int fd, size_t bytes, int device, enum gy_gpu_origin origin)
{
    size_t mapped = whole_pages(bytes);
    unsigned char *base = mmap(NULL, mapped + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* a guard page */
    void *secret = MAP_FAILED;
    struct gy_gpu_allocation *made = NULL;

    if (base != MAP_FAILED)
        secret = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (secret != MAP_FAILED) {
        const struct gy_gpu_allocation wanted = {.base = (uintptr_t)base,
                                                 .bytes = bytes,
                                                 .secret = secret,
                                                 .device = device,
                                                 .type = GY_CU_MEMORY_DEVICE,
                                                 .origin = origin,
                                                 .fd = -1};
        made = gy_gpu_add(&wanted);
    }
    if (made)
        return made;
    if (secret != MAP_FAILED)
        munmap(secret, mapped);
    if (base != MAP_FAILED)
        munmap(base, mapped + PAGE);
    return NULL;
}

void gy_gpu_detach(struct gy_gpu_allocation *allocation)
{
    munmap(allocation->secret, whole_pages(allocation->bytes));
    munmap((void *)allocation->base, whole_pages(allocation->bytes) + PAGE);
    if (allocation->fd >= 0)
        close(allocation->fd);
    allocation->type = 0;
}

void gy_gpu_finish(void)
{
    while (gy_gpu_step())
        ;
}

gy_cu_result cuMemAlloc(gy_cu_address *address_p, size_t bytes)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);

    if (result || !bytes)
        return gy_gpu_leave(result ? result : GY_CU_INVALID_VALUE);
    int fd = memfd_create("gpu", MFD_CLOEXEC);
    struct gy_gpu_allocation *made = NULL;
    if (fd >= 0 && ftruncate(fd, (off_t)whole_pages(bytes)) == 0)
        made = gy_gpu_attach(fd, bytes, context->device, GY_GPU_ALLOCATED);
    if (!made) {
        if (fd >= 0)
            close(fd);
        return gy_gpu_leave(GY_CU_OUT_OF_MEMORY);
    }
    made->fd = fd;
    memset(made->secret, 0xa5, whole_pages(bytes));
    *address_p = made->base;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemFree(gy_cu_address address)
{
    gy_cu_result result = gy_gpu_enter();
    struct gy_gpu_allocation *found = gy_gpu_find(address);

    if (result || !address)
        return gy_gpu_leave(result);
    if (!found || found->base != address || !found->secret || found->origin != GY_GPU_ALLOCATED)
        return gy_gpu_leave(GY_CU_INVALID_VALUE);
    gy_gpu_finish();
    gy_gpu_detach(found);
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemGetAddressRange(gy_cu_address *base_p, size_t *bytes_p, gy_cu_address address)
{
    gy_cu_result result = gy_gpu_enter();
    const struct gy_gpu_allocation *found = gy_gpu_find(address);

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
    if (result || !memory || !bytes || gy_gpu_find((uintptr_t)memory))
        return gy_gpu_leave(result ? result : GY_CU_INVALID_VALUE);
    const struct gy_gpu_allocation *made = add_host(memory, bytes, context->device, GY_GPU_REGISTERED);
    return gy_gpu_leave(made ? GY_CU_SUCCESS : GY_CU_OUT_OF_MEMORY);
}

static gy_cu_result forget_host(void *memory, enum gy_gpu_origin origin)
{
    gy_cu_result result = gy_gpu_enter();
    struct gy_gpu_allocation *found = gy_gpu_find((uintptr_t)memory);

    if (result || !found || found->base != (uintptr_t)memory || found->origin != origin)
        return gy_gpu_leave(result ? result : GY_CU_INVALID_VALUE);
    found->type = 0;
    if (origin == GY_GPU_PINNED)
        free(memory);
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemHostUnregister(void *memory)
{
    return forget_host(memory, GY_GPU_REGISTERED);
}

gy_cu_result cuMemFreeHost(void *memory)
{
    return forget_host(memory, GY_GPU_PINNED);
}

gy_cu_result cuMemHostAlloc(void **memory_p, size_t bytes, unsigned flags)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);
    void *memory = result || !bytes ? NULL : aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

    (void)flags;
    if (!memory)
        return gy_gpu_leave(result ? result : GY_CU_OUT_OF_MEMORY);
    if (!add_host(memory, bytes, context->device, GY_GPU_PINNED)) {
        free(memory);
        return gy_gpu_leave(GY_CU_OUT_OF_MEMORY);
    }
    *memory_p = memory;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuMemHostGetDevicePointer(gy_cu_address *address_p, void *memory, unsigned flags)
{
    gy_cu_result result = gy_gpu_enter();
    const struct gy_gpu_allocation *found = gy_gpu_find((uintptr_t)memory);

    (void)flags;
    if (result || !found || found->secret)
        return gy_gpu_leave(result ? result : GY_CU_INVALID_VALUE);
    *address_p = (uintptr_t)memory;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

/* Writes one attribute. Returns false if the driver does not know it. */
static bool tell(const struct gy_gpu_allocation *found, unsigned attribute, void *into)
{
    gy_cu_address base = found->base;
    size_t bytes = found->bytes;
    int legacy = found->secret && found->origin == GY_GPU_ALLOCATED;
    unsigned long long handle_types = found->handle_types;

    (void)gy_gpu_reserved(found->base, &base, &bytes);
    switch (attribute) {
    case GY_CU_POINTER_MEMORY_TYPE: memcpy(into, &found->type, sizeof(found->type)); break;
    case GY_CU_POINTER_IS_MANAGED: memset(into, 0, 1); break;
    case GY_CU_POINTER_DEVICE_ORDINAL: memcpy(into, &found->device, sizeof(found->device)); break;
    case GY_CU_POINTER_BUFFER_ID: memcpy(into, &found->id, sizeof(found->id)); break;
    case GY_CU_POINTER_BLOCK_ID: memcpy(into, &found->block, sizeof(found->block)); break;
    case GY_CU_POINTER_LEGACY_IPC: memcpy(into, &legacy, sizeof(legacy)); break;
    case GY_CU_POINTER_HANDLE_TYPES: memcpy(into, &handle_types, sizeof(handle_types)); break;
    case GY_CU_POINTER_RANGE_START: memcpy(into, &base, sizeof(base)); break;
    case GY_CU_POINTER_RANGE_SIZE: memcpy(into, &bytes, sizeof(bytes)); break;
    default: return false;
    }
    return true;
}

gy_cu_result cuPointerGetAttributes(unsigned count, unsigned *wanted, void **into, gy_cu_address address)
{
    static const struct gy_gpu_allocation none = {.device = -2};
    gy_cu_result result = gy_gpu_enter();
    const struct gy_gpu_allocation *found = gy_gpu_find(address);

    for (unsigned i = 0; i < count && !result; i++)
        if (!tell(found ? found : &none, wanted[i], into[i]))
            result = GY_CU_INVALID_VALUE;
    return gy_gpu_leave(result);
}

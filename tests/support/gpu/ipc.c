/* Legacy handles of the stand-in. A handle names the memfd of an allocation by its process and descriptor, under which
 * /proc opens it once more, and by its inode. The inode differs when the descriptor has come to mean something else.
 *
 * The rules are the driver's. A handle stands for the whole allocation, whatever address it was asked for. The process
 * that made it cannot open it. A context that opens one twice gets the same address and has to close it twice. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "internal.h"

#define MAGIC 0x67797069u
enum { OPENED_MOST = 1024 };
struct name {
    uint32_t magic;
    int32_t pid, fd, physical;
    uint64_t inode, bytes, number;
};
_Static_assert(sizeof(struct name) <= sizeof(struct gy_cu_ipc_handle), "a handle has 64 bytes");

static struct opened {
    struct name name;
    const struct CUctx_st *context;
    gy_cu_address base;
    unsigned count; /* 0: free */
} opened[OPENED_MOST];

static bool is_set_to(const char *value)
{
    const char *setting = getenv("GYRE_TEST_GPU_IPC");

    return setting && strcmp(setting, value) == 0;
}

gy_cu_result cuIpcGetMemHandle(struct gy_cu_ipc_handle *handle_p, gy_cu_address address)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);
    const struct gy_gpu_allocation *found = gy_gpu_find(address);
    struct stat file;

    if (!result && is_set_to("off"))
        result = GY_CU_NOT_SUPPORTED;
    if (!result && (!found || !found->secret || found->origin != GY_GPU_ALLOCATED || fstat(found->fd, &file)))
        result = GY_CU_INVALID_VALUE;
    if (result)
        return gy_gpu_leave(result);
    const struct name name = {.magic = MAGIC,
                              .pid = getpid(),
                              .fd = found->fd,
                              .physical = gy_gpu_devices[found->device].physical,
                              .inode = file.st_ino,
                              .bytes = found->bytes,
                              .number = found->id};
    memset(handle_p, 0, sizeof(*handle_p));
    memcpy(handle_p, &name, sizeof(name));
    return gy_gpu_leave(GY_CU_SUCCESS);
}

/* Opens the memfd once more; −1: it is gone. */
static int open_memory(const struct name *name)
{
    char path[64];
    struct stat file;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", name->pid, name->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &file) || file.st_ino != name->inode || (uint64_t)file.st_size < name->bytes)) {
        close(fd);
        return -1;
    }
    return fd;
}

static gy_cu_result check_name(const struct CUctx_st *context, const struct name *name, unsigned flags)
{
    if (is_set_to("off"))
        return GY_CU_NOT_SUPPORTED;
    if (name->magic != MAGIC || flags != GY_CU_IPC_LAZY_PEER_ACCESS || is_set_to("apart"))
        return GY_CU_INVALID_VALUE;
    if (name->pid == getpid())
        return GY_CU_INVALID_CONTEXT;
    int owner = gy_gpu_visible(name->physical);
    return owner >= 0 && gy_gpu_peers(context->device, owner) ? GY_CU_SUCCESS : GY_CU_PEER_ACCESS_UNSUPPORTED;
}

static gy_cu_result open_name(struct CUctx_st *context, const struct name *name, struct opened *place)
{
    int owner = gy_gpu_visible(name->physical), fd = open_memory(name);

    if (fd < 0)
        return GY_CU_MAP_FAILED;
    const struct gy_gpu_allocation *made = gy_gpu_attach(fd, name->bytes, owner, GY_GPU_OPENED);
    close(fd);
    if (!made)
        return GY_CU_OUT_OF_MEMORY;
    if (owner != context->device)
        context->reaches |= 1u << owner;
    *place = (struct opened){.name = *name, .context = context, .base = made->base};
    return GY_CU_SUCCESS;
}

gy_cu_result cuIpcOpenMemHandle(gy_cu_address *address_p, struct gy_cu_ipc_handle handle, unsigned flags)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);
    struct opened *place = NULL;
    struct name name;

    memcpy(&name, &handle, sizeof(name));
    if (!result)
        result = check_name(context, &name, flags);
    if (result)
        return gy_gpu_leave(result);
    for (int i = OPENED_MOST - 1; i >= 0 && !(place && place->count); i--)
        if (!opened[i].count || (opened[i].context == context && memcmp(&opened[i].name, &name, sizeof(name)) == 0))
            place = &opened[i];
    result = !place ? GY_CU_OUT_OF_MEMORY : place->count ? GY_CU_SUCCESS : open_name(context, &name, place);
    if (result)
        return gy_gpu_leave(result);
    place->count++;
    *address_p = place->base;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuIpcCloseMemHandle(gy_cu_address address)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);
    struct opened *place = NULL;

    for (int i = 0; i < OPENED_MOST; i++)
        if (opened[i].count && opened[i].base == address && opened[i].context == context)
            place = &opened[i];
    if (result || !place)
        return gy_gpu_leave(result ? result : GY_CU_INVALID_VALUE);
    gy_gpu_finish();
    if (--place->count == 0)
        gy_gpu_detach(gy_gpu_find(address));
    return gy_gpu_leave(GY_CU_SUCCESS);
}

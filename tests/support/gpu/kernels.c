/* Libraries and kernels of the stand-in. A kernel is a function that a test has added, and runs at once; or it is code
 * of an image, and runs on fibres, a few steps at a time, together with those of all other streams. */
#include <stdlib.h>

#include "image.h"
#include "internal.h"

enum { MULTIPROCESSOR_BLOCKS = 2, STEPS_MOST = 8192 };
struct CUlib_st {
    struct CUlib_st *next;
    const struct gy_gpu_image *image; /* NULL: the kernels that the test has added */
    bool unloaded;
};

static const struct gy_gpu_kernel *added[16];
static unsigned added_count;
static struct gy_gpu_kernel
    *code_kernels[GY_GPU_CODE_MOST]; /* made at the first look-up, freed by the end of the process */
static unsigned code_count;
static const struct gy_gpu_executor *executor;
static struct CUlib_st *libraries; /* freed by the end of the process */
static unsigned loaded;

void gy_gpu_kernel_add(const struct gy_gpu_kernel *kernel)
{
    gy_gpu_lock();
    if (added_count == GY_ARRAY_LENGTH(added))
        abort();
    added[added_count++] = kernel;
    gy_gpu_unlock();
}

unsigned gy_gpu_libraries(void)
{
    gy_gpu_lock();
    unsigned count = loaded;
    gy_gpu_unlock();
    return count;
}

static void use_executor(const struct gy_gpu_executor *given)
{
    if (executor || !given)
        return;
    executor = given;
    executor->memory(gy_gpu_reach);
    for (int d = 0; d < gy_gpu_count; d++)
        executor->room(d, GY_GPU_MULTIPROCESSORS * MULTIPROCESSOR_BLOCKS);
}

gy_cu_result cuLibraryLoadData(gy_cu_library *library_p, const void *image, unsigned *jit, void **jit_values,
                               unsigned jit_count, unsigned *options, void **option_values, unsigned option_count)
{
    gy_cu_result result = gy_gpu_enter();
    bool has_magic = image && strncmp(image, GY_GPU_IMAGE_MAGIC, sizeof(GY_GPU_IMAGE_MAGIC)) == 0;

    (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)option_values, (void)option_count;
    if (!result && !has_magic && !added_count)
        result = image ? GY_CU_INVALID_IMAGE : GY_CU_INVALID_VALUE;
    struct CUlib_st *library = result ? NULL : calloc(1, sizeof(*library));
    if (!library)
        return gy_gpu_leave(result ? result : GY_CU_OUT_OF_MEMORY);
    if (has_magic) {
        library->image = image;
        use_executor(library->image->executor);
    }
    library->next = libraries;
    libraries = library;
    loaded++;
    *library_p = library;
    return gy_gpu_leave(GY_CU_SUCCESS);
}

gy_cu_result cuLibraryUnload(gy_cu_library library)
{
    gy_cu_result result = gy_gpu_enter();

    if (!result && (!library || library->unloaded))
        result = GY_CU_INVALID_HANDLE;
    if (!result) {
        library->unloaded = true;
        loaded--;
    }
    return gy_gpu_leave(result);
}

static const struct gy_gpu_code *find_code(const struct gy_gpu_image *image, const char *name)
{
    for (unsigned t = 0; t < image->tables; t++)
        for (unsigned i = 0; i < image->table[t].count; i++)
            if (strcmp(image->table[t].code[i].name, name) == 0)
                return &image->table[t].code[i];
    return NULL;
}

static const struct gy_gpu_kernel *kernel_of(const struct gy_gpu_code *code)
{
    for (unsigned i = 0; i < code_count; i++)
        if (code_kernels[i]->body == code->body)
            return code_kernels[i];
    struct gy_gpu_kernel *made = calloc(1, sizeof(*made));
    if (!made || code_count == GY_ARRAY_LENGTH(code_kernels))
        abort();
    *made = (struct gy_gpu_kernel){code->name, 1, {code->argument_bytes}, NULL, code->body};
    code_kernels[code_count++] = made;
    return made;
}

static const struct gy_gpu_kernel *find_kernel(const struct CUlib_st *library, const char *name)
{
    if (library->image) {
        const struct gy_gpu_code *code = find_code(library->image, name);
        return code && code->body ? kernel_of(code) : NULL;
    }
    for (unsigned i = 0; i < added_count; i++)
        if (strcmp(added[i]->name, name) == 0)
            return added[i];
    return NULL;
}

gy_cu_result cuLibraryGetKernel(gy_cu_kernel *kernel_p, gy_cu_library library, const char *name)
{
    gy_cu_result result = gy_gpu_enter();

    if (!result && (!library || library->unloaded))
        result = GY_CU_INVALID_HANDLE;
    const struct gy_gpu_kernel *found = result ? NULL : find_kernel(library, name);
    if (found)
        memcpy(kernel_p, &found, sizeof(found));
    return gy_gpu_leave(result || found ? result : GY_CU_NOT_FOUND);
}

gy_cu_result cuKernelGetFunction(gy_cu_function *function_p, gy_cu_kernel kernel)
{
    struct CUctx_st *context;
    gy_cu_result result = gy_gpu_enter_context(&context);

    if (!result)
        memcpy(function_p, &kernel, sizeof(kernel));
    return gy_gpu_leave(result);
}

gy_cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks_p, gy_cu_function function, int threads,
                                                         size_t shared)
{
    gy_cu_result result = gy_gpu_enter();

    (void)shared;
    if (!result && (!function || threads <= 0))
        result = GY_CU_INVALID_VALUE;
    if (!result)
        *blocks_p = threads <= GY_GPU_THREADS_MOST ? MULTIPROCESSOR_BLOCKS : 0;
    return gy_gpu_leave(result);
}

uint64_t gy_gpu_kernel_begin(int device, const struct gy_gpu_kernel *kernel, unsigned blocks, unsigned threads,
                             const void *arguments)
{
    const struct emu_launch launch = {kernel->name, kernel->body, arguments, kernel->sizes[0],
                                      device,       blocks,       threads,   0};

    return executor->submit(&launch);
}

bool gy_gpu_kernel_over(uint64_t launch)
{
    return executor->over(launch);
}

bool gy_gpu_kernels_run(unsigned random)
{
    uint64_t before = executor->changes();
    enum emu_outcome outcome = executor->run(1 + random % STEPS_MOST);

    for (int d; (d = executor->fault()) >= 0;)
        if (!gy_gpu_devices[d].sticky)
            gy_gpu_devices[d].sticky = GY_CU_ILLEGAL_ADDRESS;
    return outcome == EMU_IDLE || executor->changes() != before;
}

void gy_gpu_kernels_drop(int device)
{
    if (executor)
        executor->drop_device(device);
}

/* The image that the stand-in's plug-in gives to cuLibraryLoadData in place of code for a GPU: kernels as C++, and the
 * functions of emu.h that run them on fibres. */
#ifndef GY_TEST_GPU_IMAGE_H
#define GY_TEST_GPU_IMAGE_H

#include "emu.h"

#define GY_GPU_IMAGE_MAGIC "gyre stand-in"

struct gy_gpu_code {
    const char *name;
    size_t argument_bytes;               /* of the one argument */
    void (*body)(const void *arguments); /* NULL: left out of this build */
};

/* One of a process runs the kernels of all images. */
struct gy_gpu_executor {
    void (*memory)(void *(*at)(const void *address, size_t bytes, int device));
    void (*room)(int device, unsigned blocks);
    uint64_t (*submit)(const struct emu_launch *launch);
    bool (*over)(uint64_t launch);
    enum emu_outcome (*run)(uint64_t steps);
    void (*drop_device)(int device);
    int (*fault)(void);
    uint64_t (*changes)(void);
};

struct gy_gpu_image {
    char magic[16];
    const struct gy_gpu_executor *executor;
    unsigned tables;
    struct {
        const struct gy_gpu_code *code;
        unsigned count;
    } table[4];
};

#endif

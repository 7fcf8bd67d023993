/* The one symbol that the plug-in libgyre-cuda.so.N exports: a description of the image of all kernels. The plug-in
 * contains data only and links no library. */
#ifndef GY_CUDA_KERNELS_PLUGIN_H
#define GY_CUDA_KERNELS_PLUGIN_H

#include "cuda/kernels/arguments.h"
#include "cuda/kernels/table.h"

#define GY_KERNELS_SYMBOL "gy_cuda_kernels"
#define GY_KERNELS_MAGIC UINT64_C(0x6c656e72656b7967) /* "gykernel" */
/* Changes when the meaning of a kernel or an argument changes. */
#define GY_KERNELS_VERSION 1
/* Changes when the size of an argument or the number of kernels changes. */
#define GY_KERNELS_LAYOUT                                                                                \
    (((uint64_t)GY_KERNEL_COUNT << 48) +                                                                 \
     (uint64_t)(sizeof(struct gy_fused) + 3 * sizeof(struct gy_moves) + 5 * sizeof(struct gy_two_shot) + \
                7 * sizeof(struct gy_two_shot_moves) + 11 * sizeof(struct gy_one_shot)))

struct gy_cuda_kernels {
    uint64_t magic, version, layout;
    const void *image; /* for cuLibraryLoadData; NULL: the plug-in was built without kernels */
    uint64_t bytes;
};

#endif

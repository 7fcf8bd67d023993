/* Plug-ins for image_test.c that contain no code: a correct one, and one for each fault. */
#include "cuda/kernels/plugin.h"
#include "image.h"

#if defined(PLUGIN_foreign_image)
static const char image[] = "\177ELF and code for another machine";
#elif !defined(PLUGIN_no_symbol) && !defined(PLUGIN_no_image)
static const struct gy_gpu_code code[] = {{"gy_move", sizeof(struct gy_moves), NULL}};
static const struct gy_gpu_image image = {.magic = GY_GPU_IMAGE_MAGIC, .tables = 1, .table = {{code, 1}}};
#endif

#if !defined(PLUGIN_no_symbol)
__attribute__((visibility("default"))) extern const struct gy_cuda_kernels gy_cuda_kernels;
const struct gy_cuda_kernels gy_cuda_kernels = {
#if !defined(PLUGIN_no_magic)
    .magic = GY_KERNELS_MAGIC,
#endif
#if defined(PLUGIN_other_version)
    .version = GY_KERNELS_VERSION + 1,
#else
    .version = GY_KERNELS_VERSION,
#endif
#if defined(PLUGIN_other_layout)
    .layout = GY_KERNELS_LAYOUT + 8,
#else
    .layout = GY_KERNELS_LAYOUT,
#endif
#if !defined(PLUGIN_no_image)
    .image = &image,
    .bytes = sizeof(image),
#endif
};
#endif

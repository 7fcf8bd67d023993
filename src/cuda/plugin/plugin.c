/* The plug-in libgyre-cuda.so.N: the image of all kernels and its description (cuda/kernels/plugin.h). It contains data
 * only. GY_IMAGE is the file of the image; the header made with it defines GY_IMAGE_BYTES. */
#include "cuda/kernels/plugin.h"
#include "image_bytes.h"

__asm__(".pushsection .rodata.gy_image, \"a\"\n"
        ".balign 4096\n"
        "gy_image_begin: .incbin \"" GY_IMAGE "\"\n"
        ".popsection\n");
extern const char gy_image_begin[] __attribute__((visibility("hidden")));

const struct gy_cuda_kernels gy_cuda_kernels = {GY_KERNELS_MAGIC, GY_KERNELS_VERSION, GY_KERNELS_LAYOUT, gy_image_begin,
                                                GY_IMAGE_BYTES};

/* Opens the plug-in that nvcc has compiled, as the library does it. The driver is the stand-in, with functions that
 * accept any image. Prints the names of the table, one a line.
 *
 *   nvcc_test PLUGIN */
#include <stdio.h>
#include <string.h>

#include "cuda/image.h"
#include "support/gpu/gpu.h"

static const uint32_t fatbin_magic = 0xba55ed50;
static uint32_t first_word;

static gy_cu_result load_any_image(gy_cu_library *library_p, const void *code, unsigned *options, void **values,
                                   unsigned count, unsigned *library_options, void **library_values,
                                   unsigned library_count)
{
    (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
    memcpy(&first_word, code, sizeof(first_word));
    *library_p = (gy_cu_library)&first_word;
    return GY_CU_SUCCESS;
}

static gy_cu_result unload_image(gy_cu_library library)
{
    (void)library;
    return GY_CU_SUCCESS;
}

int main(int argc, char **argv)
{
    char why[300] = "";
    struct gy_driver driver;
    struct gy_device device;

    if (argc != 2)
        return 2;
    gy_gpu_open("1", 1);
    driver = *gy_gpu_driver();
    driver.library_load = load_any_image;
    driver.library_unload = unload_image;
    if (!gy_device_open(&device, &driver, 0, why, sizeof(why))) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    struct gy_image *image = gy_image_get(&device, argv[1], why, sizeof(why));
    if (!image || first_word != fatbin_magic) {
        fprintf(stderr, "%s\n", image ? "the image is no fatbin" : why);
        return 1;
    }
    for (int kernel = 0; kernel < GY_KERNEL_COUNT; kernel++)
        printf("%s\n", gy_kernel_name(kernel));
    gy_image_put(image);
    gy_device_close(&device);
    return 0;
}

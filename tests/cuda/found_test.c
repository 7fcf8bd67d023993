/* Prints the file of the GPU kernels that is found without a setting. */
#include <stdio.h>

#include "cuda/image.h"
#include "support/gpu/gpu.h"

int main(void)
{
    char why[300] = "";
    struct gy_device device;

    gy_gpu_open("1", 1);
    if (!gy_device_open(&device, gy_gpu_driver(), 0, why, sizeof(why)))
        return 1;
    struct gy_image *image = gy_image_get(&device, "", why, sizeof(why));
    printf("%s\n", image ? gy_image_file(image) : why);
    gy_image_put(image);
    gy_device_close(&device);
    return 0;
}

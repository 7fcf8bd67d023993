/* The image of all kernels on a device: taken from the plug-in libgyre-cuda.so.N, which is opened at run time, and
 * given to the driver. Without the plug-in there is no image, and device memory is staged.
 *
 * One image serves all users of a device in this process; users are counted. */
#ifndef GY_CUDA_IMAGE_H
#define GY_CUDA_IMAGE_H

#include "cuda/device.h"
#include "cuda/kernels/table.h"

struct gy_image;

/* Returns the image of a device that is open. `setting` is GYRE_CUDA_KERNELS: a file, "off", or empty: the file beside
 * libgyre.so, then the one that the loader finds. NULL with a sentence in `why`: there is none. Thread-safe. */
struct gy_image *gy_image_get(const struct gy_device *device, const char *setting, char *why, size_t why_bytes);
/* Ends a use; the last one unloads the image. All launches of this user have ended and the device is still open. NULL
 * is allowed. Thread-safe. */
void gy_image_put(struct gy_image *image);
/* Returns the function of a kernel (gy_kernel_find) for cuLaunchKernel. The driver loads a kernel at its first look-up,
 * which may wait for the device; later calls only read a word. NULL with a sentence in `why`; −1 is no kernel.
 * Thread-safe. */
gy_cu_function gy_image_function(struct gy_image *image, int kernel, char *why, size_t why_bytes);
/* Prints a line: which plug-in the setting finds, or why none. It is given to no driver. */
void gy_image_describe(const char *setting, gyre_print_func print, void *user);
/* The name of the plug-in's file, as it was opened. */
const char *gy_image_file(const struct gy_image *image);

#endif

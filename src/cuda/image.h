/* The image of all kernels on a device. It lies in the plug-in libgyre-cuda.so.N, which is opened at run time, and is
 * loaded by cuLibraryLoadData. Without the plug-in there is no image, and calls on device memory are staged through
 * host memory.
 *
 * All users of a device in this process share one image, which counts its users. */
#ifndef GY_CUDA_IMAGE_H
#define GY_CUDA_IMAGE_H

#include "cuda/device.h"
#include "cuda/kernels/table.h"

struct gy_image;

/* Returns the image of a device that is open, and adds a user. `setting` is GYRE_CUDA_KERNELS: a file, "off", or empty.
 * Empty means the file beside libgyre.so, and otherwise the file that the loader finds. NULL, with the reason in `why`:
 * there is none. Thread-safe. */
struct gy_image *gy_image_get(const struct gy_device *device, const char *setting, char *why, size_t why_bytes);
/* Removes a user; the last one unloads the image. All launches of this user must have ended, and the device must still
 * be open. NULL is allowed. Thread-safe. */
void gy_image_put(struct gy_image *image);
/* Returns the function of a kernel (gy_kernel_find) for cuLaunchKernel. The driver loads a kernel at its first look-up,
 * which may synchronise with the device; later calls only read a cached handle. NULL, with the reason in `why`, after
 * an error and for kernel −1. Thread-safe. */
gy_cu_function gy_image_function(struct gy_image *image, int kernel, char *why, size_t why_bytes);
/* Prints a line: the plug-in that the setting finds, or the reason why there is none. Does not load the image into the
 * driver. */
void gy_image_describe(const char *setting, gyre_print_func print, void *user);
/* Returns the name of the plug-in's file, as it was opened. */
const char *gy_image_file(const struct gy_image *image);

#endif

/* The image of all kernels: see image.h. */
#include "cuda/image.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "core/log.h"
#include "core/mem.h"
#include "cuda/kernels/plugin.h"

#define TEXT_OF(number) #number
#define FILE_OF(number) "libgyre-cuda.so." TEXT_OF(number)
#define PLUGIN FILE_OF(GYRE_SOVERSION)

enum { PATH_BYTES = 1024 };
struct gy_image {
    struct gy_image *next;
    struct gy_device device; /* of the first user; all users of the image share its context */
    char setting[PATH_BYTES], file[PATH_BYTES + sizeof(PLUGIN)];
    unsigned users;
    void *plugin; /* stays open while the driver may read the image in it */
    gy_cu_library library;
    _Atomic(gy_cu_function) functions[GY_KERNEL_COUNT]; /* NULL: has not been looked up yet */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list, its images and look-ups */
static struct gy_image *images;
static const char switched_off[] = "no GPU kernels: GYRE_CUDA_KERNELS=off";

/* Writes the folder of this library, with '/' at its end. Returns the length; 0: it is not known. */
static size_t own_folder(char *folder_p, size_t bytes)
{
    static const char here = 0;
    Dl_info info;

    if (!dladdr(&here, &info) || !info.dli_fname)
        return 0;
    const char *end = strrchr(info.dli_fname, '/');
    size_t length = end ? (size_t)(end - info.dli_fname) + 1 : 0;
    if (length >= bytes)
        return 0;
    memcpy(folder_p, info.dli_fname, length);
    folder_p[length] = '\0';
    return length;
}

static bool open_file(struct gy_image *image)
{
    return (image->plugin = dlopen(image->file, RTLD_NOW | RTLD_LOCAL)) != NULL;
}

static bool open_plugin(struct gy_image *image, char *why, size_t why_bytes)
{
    char folder[PATH_BYTES];

    if (image->setting[0]) {
        snprintf(image->file, sizeof(image->file), "%s", image->setting);
        if (open_file(image))
            return true;
    } else {
        if (own_folder(folder, sizeof(folder))) {
            snprintf(image->file, sizeof(image->file), "%s%s", folder, PLUGIN);
            if (open_file(image))
                return true;
        }
        snprintf(image->file, sizeof(image->file), "%s", PLUGIN);
        if (open_file(image))
            return true;
    }
    snprintf(why, why_bytes, "no GPU kernels: %s", dlerror());
    return false;
}

/* Returns the plug-in's description if it belongs to this version of the library. */
static const struct gy_cuda_kernels *find_kernels(const struct gy_image *image, char *why, size_t why_bytes)
{
    const struct gy_cuda_kernels *kernels = dlsym(image->plugin, GY_KERNELS_SYMBOL);

    if (!kernels || kernels->magic != GY_KERNELS_MAGIC) {
        snprintf(why, why_bytes, "no GPU kernels: %s is no plug-in of gyre", image->file);
        return NULL;
    }
    if (kernels->version != GY_KERNELS_VERSION || kernels->layout != GY_KERNELS_LAYOUT) {
        snprintf(why, why_bytes, "no GPU kernels: %s is of another version of gyre", image->file);
        return NULL;
    }
    if (!kernels->image || !kernels->bytes) {
        snprintf(why, why_bytes, "no GPU kernels: %s was built without any", image->file);
        return NULL;
    }
    return kernels;
}

static bool load(struct gy_image *image, char *why, size_t why_bytes)
{
    const struct gy_driver *cu = image->device.driver;
    const struct gy_cuda_kernels *kernels = find_kernels(image, why, why_bytes);

    if (!kernels)
        return false;
    const char *what = "cuCtxPushCurrent";
    gy_cu_result result = gy_device_enter(&image->device);
    if (result == GY_CU_SUCCESS) {
        what = "cuLibraryLoadData";
        result = cu->library_load(&image->library, kernels->image, NULL, NULL, 0, NULL, NULL, 0);
        gy_device_leave(&image->device);
    }
    if (result == GY_CU_SUCCESS)
        return true;
    gy_driver_sentence(cu, result, what, why, why_bytes);
    return false;
}

static struct gy_image *find(const struct gy_device *device, const char *setting)
{
    for (struct gy_image *image = images; image; image = image->next)
        if (image->device.driver == device->driver && image->device.context == device->context &&
            strcmp(image->setting, setting) == 0)
            return image;
    return NULL;
}

void gy_image_describe(const char *setting, gyre_print_func print, void *user)
{
    char why[PATH_BYTES + 200] = "no GPU kernels: out of memory", line[2 * PATH_BYTES];
    const struct gy_cuda_kernels *kernels = NULL;
    struct gy_image *image = strcmp(setting, "off") == 0 ? NULL : gy_alloc_zero(1, sizeof(*image));

    if (image) {
        snprintf(image->setting, sizeof(image->setting), "%s", setting);
        if (open_plugin(image, why, sizeof(why)))
            kernels = find_kernels(image, why, sizeof(why));
    }
    if (kernels)
        snprintf(line, sizeof(line), "GPU kernels: %s, version %d, %d kernels, %zu KiB", image->file,
                 (int)kernels->version, GY_KERNEL_COUNT, (size_t)kernels->bytes >> 10);
    else
        snprintf(line, sizeof(line), "%s", strcmp(setting, "off") == 0 ? switched_off : why);
    print(user, line);
    if (image && image->plugin)
        dlclose(image->plugin);
    gy_free(image);
}

static struct gy_image *make(const struct gy_device *device, const char *setting, char *why, size_t why_bytes)
{
    struct gy_image *image = gy_alloc_zero(1, sizeof(*image));

    if (!image) {
        snprintf(why, why_bytes, "no GPU kernels: out of memory");
        return NULL;
    }
    image->device = *device;
    snprintf(image->setting, sizeof(image->setting), "%s", setting);
    if (!open_plugin(image, why, why_bytes))
        goto free_image;
    if (!load(image, why, why_bytes))
        goto close_plugin;
    image->next = images;
    images = image;
    gy_log(GY_LOG_INFO, "GPU %d: kernels of %s, version %d", device->number, image->file, GY_KERNELS_VERSION);
    return image;
close_plugin:
    dlclose(image->plugin);
free_image:
    gy_free(image);
    return NULL;
}

struct gy_image *gy_image_get(const struct gy_device *device, const char *setting, char *why, size_t why_bytes)
{
    if (strcmp(setting, "off") == 0) {
        snprintf(why, why_bytes, "%s", switched_off);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct gy_image *image = find(device, setting);
    if (!image)
        image = make(device, setting, why, why_bytes);
    if (image)
        image->users++;
    pthread_mutex_unlock(&lock);
    return image;
}

static void unload(struct gy_image *image)
{
    struct gy_image **at = &images;

    while (*at != image)
        at = &(*at)->next;
    *at = image->next;
    if (gy_device_enter(&image->device) == GY_CU_SUCCESS) {
        (void)image->device.driver->library_unload(image->library); /* a failed device keeps the image */
        gy_device_leave(&image->device);
    }
    dlclose(image->plugin);
    gy_free(image);
}

void gy_image_put(struct gy_image *image)
{
    if (!image)
        return;
    pthread_mutex_lock(&lock);
    if (--image->users == 0)
        unload(image);
    pthread_mutex_unlock(&lock);
}

/* The caller holds the lock. */
static gy_cu_function look_up(struct gy_image *image, int kernel, char *why, size_t why_bytes)
{
    const struct gy_driver *cu = image->device.driver;
    const char *name = gy_kernel_name(kernel);
    gy_cu_kernel found;
    gy_cu_function function = NULL;
    gy_cu_result result = gy_device_enter(&image->device);

    if (result == GY_CU_SUCCESS) {
        result = cu->library_kernel(&found, image->library, name);
        if (result == GY_CU_SUCCESS)
            result = cu->kernel_function(&function, found);
        gy_device_leave(&image->device);
    }
    if (result == GY_CU_SUCCESS)
        return function;
    gy_driver_sentence(cu, result, name, why, why_bytes);
    return NULL;
}

gy_cu_function gy_image_function(struct gy_image *image, int kernel, char *why, size_t why_bytes)
{
    if (kernel < 0 || kernel >= GY_KERNEL_COUNT) {
        snprintf(why, why_bytes, "no GPU kernel does this operation");
        return NULL;
    }
    gy_cu_function function = atomic_load_explicit(&image->functions[kernel], memory_order_acquire);
    if (function)
        return function;
    pthread_mutex_lock(&lock);
    function = atomic_load_explicit(&image->functions[kernel], memory_order_relaxed);
    if (!function) {
        function = look_up(image, kernel, why, why_bytes);
        atomic_store_explicit(&image->functions[kernel], function, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return function;
}

const char *gy_image_file(const struct gy_image *image)
{
    return image->file;
}

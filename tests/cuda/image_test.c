/* The image of GPU kernels: plug-ins that are refused, sharing of an image, and a failure of every call of the
 * driver. */
#include "cuda/image.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>

#include "support/gpu/gpu.h"

#define RIGHT PLUGINS "libgyre-cuda.so.1" /* 1: GYRE_SOVERSION */

static char why[300];

static struct gy_device open_device(int number)
{
    struct gy_device device;

    gy_gpu_open("2", 1);
    cr_assert(gy_device_open(&device, gy_gpu_driver(), number, why, sizeof(why)), "%s", why);
    return device;
}

static void is_refused(const char *setting, const char *reason)
{
    struct gy_device device = open_device(0);

    cr_assert_null(gy_image_get(&device, setting, why, sizeof(why)), "%s", setting);
    cr_assert(strstr(why, reason), "%s: %s", setting, why);
    cr_assert_eq(gy_gpu_libraries(), 0);
    gy_device_close(&device);
}

Test(plugin, is_refused_with_a_reason)
{
    is_refused("off", "GYRE_CUDA_KERNELS=off");
    is_refused(PLUGINS "absent.so", "absent.so");
    is_refused(PLUGINS "no_symbol.so", "no plug-in of gyre");
    is_refused(PLUGINS "no_magic.so", "no plug-in of gyre");
    is_refused(PLUGINS "other_version.so", "another version");
    is_refused(PLUGINS "other_layout.so", "another version");
    is_refused(PLUGINS "no_image.so", "built without any");
    is_refused(PLUGINS "foreign_image.so", "CUDA_ERROR_INVALID_IMAGE");
}

Test(image, is_shared_per_device_until_its_last_user_ends)
{
    struct gy_device first = open_device(0), again = open_device(0), other = open_device(1);
    struct gy_image *one = gy_image_get(&first, RIGHT, why, sizeof(why));

    cr_assert(one, "%s", why);
    cr_assert_eq(gy_image_get(&again, RIGHT, why, sizeof(why)), one);
    struct gy_image *two = gy_image_get(&other, RIGHT, why, sizeof(why));
    cr_assert_neq(two, one);
    cr_assert_eq(gy_gpu_libraries(), 2);
    gy_image_put(one);
    cr_assert_eq(gy_gpu_libraries(), 2);
    gy_image_put(one);
    cr_assert_eq(gy_gpu_libraries(), 1);
    gy_image_put(two);
    gy_image_put(NULL);
    cr_assert_eq(gy_gpu_libraries(), 0);
}

static void keep_line(void *line, const char *text)
{
    snprintf(line, 1024, "%s", text);
}

static void is_described(const char *setting, const char *wanted)
{
    char line[1024] = "";

    gy_image_describe(setting, keep_line, line);
    cr_assert(strstr(line, wanted), "%s: %s", setting, line);
}

Test(plugin, is_described)
{
    is_described(RIGHT, "GPU kernels: " RIGHT ", version 1, ");
    is_described("off", "no GPU kernels: GYRE_CUDA_KERNELS=off");
    is_described(PLUGINS "absent.so", "absent.so");
    is_described(PLUGINS "other_version.so", "another version");
    is_described(PLUGINS "no_image.so", "built without any");
}

static gy_cu_result run_nothing(int device, const unsigned grid[3], const unsigned block[3], unsigned shared,
                                void **parameters)
{
    (void)device, (void)grid, (void)block, (void)shared, (void)parameters;
    return GY_CU_SUCCESS;
}

/* An image that the stand-in does not know; the test registers its only kernel. */
static struct gy_image *image_with_one_kernel(const struct gy_device *device)
{
    static const struct gy_gpu_kernel kernel = {"gy_move", 0, {0}, run_nothing, NULL};
    static bool has_one;

    if (!has_one)
        gy_gpu_kernel_add(&kernel);
    has_one = true;
    return gy_image_get(device, PLUGINS "foreign_image.so", why, sizeof(why));
}

Test(function, is_looked_up_once)
{
    struct gy_device device = open_device(0);
    struct gy_image *image = image_with_one_kernel(&device);

    cr_assert(image, "%s", why);
    gy_cu_function function = gy_image_function(image, GY_NUMBER_gy_move, why, sizeof(why));
    cr_assert(function, "%s", why);
    gy_gpu_fail(1, GY_CU_OUT_OF_MEMORY);
    cr_assert_eq(gy_image_function(image, GY_NUMBER_gy_move, why, sizeof(why)), function,
                 "the second look-up calls the driver");
}

Test(function, missing_is_reported_by_name)
{
    struct gy_device device = open_device(0);
    struct gy_image *image = image_with_one_kernel(&device);
    int sum = gy_kernel_find(GY_KERNEL_fused, GYRE_FLOAT32, GYRE_SUM, false);

    cr_assert_null(gy_image_function(image, sum, why, sizeof(why)));
    cr_assert_str_eq(why, "gy_fused_float32_sum: CUDA_ERROR_NOT_FOUND (named symbol not found)");
    cr_assert_null(gy_image_function(image, -1, why, sizeof(why)));
    cr_assert(strstr(why, "no GPU kernel"), "%s", why);
    cr_assert_null(gy_image_function(image, GY_KERNEL_COUNT, why, sizeof(why)));
}

Test(image, every_driver_failure_is_reported_and_leaves_nothing)
{
    struct gy_device device = open_device(0);
    struct gy_image *image;
    gy_cu_context current;
    unsigned call = 1;

    for (;; call++) {
        gy_gpu_fail(call, GY_CU_OUT_OF_MEMORY);
        image = image_with_one_kernel(&device);
        gy_cu_function function = image ? gy_image_function(image, GY_NUMBER_gy_move, why, sizeof(why)) : NULL;
        gy_gpu_fail(0, GY_CU_SUCCESS);
        cr_assert_eq(gy_gpu_driver()->context_current(&current), 0);
        if (!current && function)
            break;
        cr_assert(function || strstr(why, "CUDA_ERROR_OUT_OF_MEMORY"), "%s", why);
        while (current) { /* a failed pop leaves a context on the stack */
            cr_assert_eq(gy_gpu_driver()->context_pop(&current), 0);
            cr_assert_eq(gy_gpu_driver()->context_current(&current), 0);
        }
        gy_image_put(image);
        cr_assert_eq(gy_gpu_libraries(), 0);
    }
    cr_assert_gt(call, 6);
    gy_image_put(image);
}

static struct gy_device shared;
static struct gy_image *images[8];
static gy_cu_function functions[8];

static void *use_image(void *number)
{
    char reason[300];
    size_t i = (size_t)(uintptr_t)number;

    images[i] = gy_image_get(&shared, PLUGINS "foreign_image.so", reason, sizeof(reason));
    if (images[i])
        functions[i] = gy_image_function(images[i], GY_NUMBER_gy_move, reason, sizeof(reason));
    return NULL;
}

Test(image, is_shared_by_threads)
{
    pthread_t thread[8];

    shared = open_device(0);
    gy_image_put(image_with_one_kernel(&shared));
    for (size_t i = 0; i < 8; i++)
        cr_assert_eq(pthread_create(&thread[i], NULL, use_image, (void *)(uintptr_t)i), 0);
    for (size_t i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
    for (size_t i = 0; i < 8; i++) {
        cr_assert(images[i]);
        cr_assert_eq(images[i], images[0]);
        cr_assert(functions[i]);
        cr_assert_eq(functions[i], functions[0]);
    }
    cr_assert_eq(gy_gpu_libraries(), 1);
    for (size_t i = 0; i < 8; i++)
        gy_image_put(images[i]);
    cr_assert_eq(gy_gpu_libraries(), 0);
}

/* Checks the names: they all differ, and exist exactly for the operations that are defined. */
Test(kernels, have_names)
{
    for (int k = 0; k < GY_KERNEL_COUNT; k++)
        for (int other = 0; other < k; other++)
            cr_assert_neq(strcmp(gy_kernel_name(k), gy_kernel_name(other)), 0);
    cr_assert_null(gy_kernel_name(-1));
    cr_assert_null(gy_kernel_name(GY_KERNEL_COUNT));
    for (int kind = GY_KERNEL_fused; kind <= GY_KERNEL_two_shot; kind++)
        for (int type = 0; type <= GYRE_BOOL; type++)
            for (int op = 0; op <= GYRE_PREMUL_SUM; op++) {
                bool bits = op >= GYRE_BIT_AND && op <= GYRE_BIT_XOR,
                     is_float = type >= GYRE_FLOAT16 && type < GYRE_BOOL;
                bool defined = bits ? !is_float : !(type == GYRE_BOOL && op == GYRE_AVERAGE);
                for (int canonical = 0; canonical < 2; canonical++)
                    cr_assert_eq(gy_kernel_find((enum gy_kernel_kind)kind, (gyre_dtype)type, (gyre_op)op, canonical) >=
                                     0,
                                 defined, "%d %d %d", kind, type, op);
            }
    cr_assert_eq(gy_kernel_find(GY_KERNEL_fused, (gyre_dtype)13, GYRE_SUM, false), -1);
    cr_assert_eq(gy_kernel_find(GY_KERNEL_fused, GYRE_INT8, (gyre_op)9, false), -1);
    cr_assert_str_eq(gy_kernel_name(gy_kernel_find(GY_KERNEL_one_shot, GYRE_BFLOAT16, GYRE_AVERAGE, true)),
                     "gy_one_shot_bfloat16_average_tree");
    cr_assert_str_eq(gy_kernel_name(gy_kernel_find(GY_KERNEL_fused, GYRE_INT32, GYRE_SUM, true)),
                     "gy_fused_uint32_sum");
    cr_assert_str_eq(gy_kernel_name(gy_kernel_find(GY_KERNEL_move, GYRE_INT32, GYRE_SUM, true)), "gy_move");
}

/* Devices: their properties, the caller's context, and a failure of every call of the driver. */
#include <criterion/criterion.h>

#include "cuda/device.h"
#include "support/gpu/gpu.h"

Test(device, keeps_the_callers_context)
{
    const struct gy_driver *cu = gy_gpu_driver();
    struct gy_device first, second;
    gy_cu_context current;
    char why[200] = "";

    gy_gpu_open("2", 1);
    cr_assert(gy_device_open(&first, cu, 0, why, sizeof(why)), "%s", why);
    cr_assert(gy_device_open(&second, cu, 1, why, sizeof(why)), "%s", why);
    cr_assert_neq(memcmp(&first.uuid, &second.uuid, sizeof(first.uuid)), 0);
    cr_assert_gt(first.multiprocessors, 0);
    cr_assert_eq(gy_device_enter(&first), 0);
    cr_assert_eq(gy_device_enter(&second), 0);
    gy_device_leave(&second);
    cr_assert_eq(cu->context_current(&current), 0);
    cr_assert_eq(current, first.context);
    gy_device_leave(&first);
    cr_assert_eq(cu->context_current(&current), 0);
    cr_assert_null(current);
    gy_device_close(&first);
    gy_device_close(&first);
    cr_assert_eq(cu->context_release(0), GY_CU_INVALID_CONTEXT, "the context is still retained");
}

Test(device, every_driver_failure_is_reported_and_retains_nothing)
{
    struct gy_device device;
    unsigned call = 1;

    gy_gpu_open("1", 1);
    for (char why[200] = "";; call++) {
        gy_gpu_fail(call, GY_CU_OUT_OF_MEMORY);
        if (gy_device_open(&device, gy_gpu_driver(), 0, why, sizeof(why)))
            break;
        cr_assert(strstr(why, "CUDA_ERROR_OUT_OF_MEMORY"), "%s", why);
        cr_assert_null(device.context);
    }
    cr_assert_gt(call, 5);
    gy_gpu_fail(0, GY_CU_SUCCESS);
    gy_device_close(&device);
    cr_assert_eq(gy_gpu_driver()->context_release(0), GY_CU_INVALID_CONTEXT);
}

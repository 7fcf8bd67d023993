/* The stand-in driver as a file libcuda.so.1 that the loader finds: the table is filled, and its functions work. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdlib.h>

#include "cuda/pointer.h"

Test(library, is_opened_on_demand)
{
    char why[200] = "";
    int devices = 0, byte = 0;

    cr_assert_eq(gy_pointer_look(&byte).kind, GY_POINTER_HOST);
    cr_assert_null(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "a look-up of a pointer has loaded CUDA");
    const struct gy_driver *cu = gy_driver_get(why, sizeof(why));
    cr_assert(cu, "%s", why);
    cr_assert_eq(cu->device_count(&devices), GY_CU_NOT_INITIALIZED, "gy_driver_get has called cuInit");
    cr_assert_eq(gy_pointer_look(&byte).kind, GY_POINTER_HOST);
    cr_assert_eq(cu->init(0), 0);
    cr_assert_eq(cu->device_count(&devices), 0);
    cr_assert_eq(devices, 3);
    cr_assert_eq(gy_driver_if_loaded(), cu);
}

Test(library, may_lack_what_shares_memory)
{
    char why[200] = "";

    setenv("GYRE_TEST_GPU_LACKS", "cuIpcOpenMemHandle", 1);
    const struct gy_driver *cu = gy_driver_get(why, sizeof(why));
    cr_assert(cu, "%s", why);
    cr_assert_null(cu->ipc_open);
    cr_assert(cu->ipc_get && cu->ipc_close && cu->mem_set_access);
}

Test(library, may_lack_nothing_else)
{
    char why[200] = "";

    setenv("GYRE_TEST_GPU_LACKS", "cuMemAlloc", 1);
    cr_assert_null(gy_driver_get(why, sizeof(why)));
    cr_assert(strstr(why, "no cuMemAlloc of CUDA 3.2"), "%s", why);
}

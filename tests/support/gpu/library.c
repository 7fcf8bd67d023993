/* What the stand-in has as a file libcuda.so.1 beside the functions of the table: their names, looked up.
 * GYRE_TEST_GPU_LACKS names a function that is not found. */
#include <stdlib.h>

#include "internal.h"

gy_cu_result cuGetProcAddress_v2(const char *name, void **function_p, int version, uint64_t flags, unsigned *status_p);

gy_cu_result cuGetProcAddress_v2(const char *name, void **function_p, int version, uint64_t flags, unsigned *status_p)
{
#define FIND(field, function, since, parameters)            \
    if (strcmp(name, #function) == 0 && version >= since) { \
        gy_cu_result(*found) parameters = function;         \
        memcpy(function_p, &found, sizeof(found));          \
        *status_p = 0;                                      \
        return GY_CU_SUCCESS;                               \
    }
    const char *lacked = getenv("GYRE_TEST_GPU_LACKS");

    (void)flags;
    *status_p = 1;
    if (lacked && strcmp(name, lacked) == 0)
        return GY_CU_NOT_FOUND;
    GY_DRIVER_FUNCTIONS(FIND)
    GY_DRIVER_OPTIONAL_FUNCTIONS(FIND)
    return GY_CU_NOT_FOUND;
}

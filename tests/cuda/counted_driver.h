/* A table of the driver that counts launches and copies of the library, and lets one launch fail. */
#ifndef GY_TESTS_COUNTED_DRIVER_H
#define GY_TESTS_COUNTED_DRIVER_H

#include <stdatomic.h>

#include "cuda/driver.h"
#include "support/rank.h"

static const struct gy_driver *cu;   /* the driver: for the test */
static struct gy_driver counted;     /* the table that the library calls */
static atomic_uint launches, copies; /* so far */
static atomic_uint fail_launch;      /* the number of the launch that fails, from 1 on; 0: none */

static gy_cu_result count_launch(gy_cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y,
                                 unsigned z, unsigned shared, gy_cu_stream stream, void **parameters, void **extra)
{
    const unsigned number = atomic_fetch_add(&launches, 1) + 1;
    if (number == atomic_load(&fail_launch))
        return GY_CU_ILLEGAL_ADDRESS;
    return cu->launch(function, gx, gy, gz, x, y, z, shared, stream, parameters, extra);
}

static gy_cu_result count_copy(gy_cu_address to, gy_cu_address from, size_t bytes, gy_cu_stream stream)
{
    atomic_fetch_add(&copies, 1);
    return cu->copy_async(to, from, bytes, stream);
}

static void count_driver(void)
{
    char why[300] = "";
    cu = gy_driver_get(why, sizeof(why));
    if (!cu)
        rank_fail("no driver: %s", why);
    counted = *cu;
    counted.launch = count_launch;
    counted.copy_async = count_copy;
    gy_driver_use(&counted);
}

#endif

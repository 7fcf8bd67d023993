/* The driver table and the look-up of pointers, with a driver of a few functions. */
#include <criterion/criterion.h>
#include <dlfcn.h>

#include "cuda/driver.h"
#include "cuda/pointer.h"

static struct gy_pointer memory; /* the only allocation of the driver below */
static int queries;

static gy_cu_result error_name(gy_cu_result result, const char **name_p)
{
    *name_p = result == GY_CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : NULL;
    return *name_p ? GY_CU_SUCCESS : GY_CU_INVALID_VALUE;
}

static gy_cu_result error_string(gy_cu_result result, const char **string_p)
{
    (void)result;
    *string_p = "out of memory";
    return GY_CU_SUCCESS;
}

static void answer(unsigned attribute, void *to, bool known)
{
    unsigned type = memory.kind == GY_POINTER_PINNED ? GY_CU_MEMORY_HOST : GY_CU_MEMORY_DEVICE;
    bool managed = memory.kind == GY_POINTER_MANAGED;
    unsigned long long base = memory.base;

    if (!known)
        return;
    switch (attribute) {
    case GY_CU_POINTER_MEMORY_TYPE: memcpy(to, &type, sizeof(type)); break;
    case GY_CU_POINTER_IS_MANAGED: memcpy(to, &managed, sizeof(managed)); break;
    case GY_CU_POINTER_DEVICE_ORDINAL: memcpy(to, &memory.device, sizeof(memory.device)); break;
    case GY_CU_POINTER_BUFFER_ID: memcpy(to, &memory.buffer, sizeof(memory.buffer)); break;
    case GY_CU_POINTER_RANGE_START: memcpy(to, &base, sizeof(base)); break;
    default: memcpy(to, &memory.bytes, sizeof(memory.bytes));
    }
}

static gy_cu_result pointer_attributes(unsigned count, unsigned *attributes, void **into, gy_cu_address address)
{
    queries += (int)count;
    for (unsigned i = 0; i < count; i++)
        answer(attributes[i], into[i], address - memory.base < memory.bytes);
    return GY_CU_SUCCESS;
}

static const struct gy_driver small = {
    .error_name = error_name, .error_string = error_string, .pointer_attributes = pointer_attributes};

Test(driver, is_not_loaded_by_a_look_up)
{
    char byte = 0;

    cr_assert_null(gy_driver_if_loaded());
    cr_assert_eq(gy_pointer_look(&byte).kind, GY_POINTER_HOST);
    cr_assert_eq(gy_pointer_look(&byte).device, -1);
    cr_assert_null(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "a look-up of a pointer has loaded CUDA");
}

Test(driver, reports_why_it_is_unavailable)
{
    char why[200] = "";

    cr_assert(gy_driver_get(why, sizeof(why)) || strstr(why, "libcuda.so.1"), "%s", why);
}

Test(driver, errors_have_messages)
{
    char text[100];

    cr_assert_str_eq(gy_driver_sentence(&small, GY_CU_OUT_OF_MEMORY, "cuMemAlloc", text, sizeof(text)),
                     "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
    cr_assert_str_eq(gy_driver_sentence(&small, 12345, "cuMemAlloc", text, sizeof(text)),
                     "cuMemAlloc: CUDA error 12345");
    cr_assert(gy_driver_released(GY_CU_SUCCESS));
    cr_assert(gy_driver_released(GY_CU_DEINITIALIZED));
    cr_assert_not(gy_driver_released(GY_CU_INVALID_VALUE));
}

static void check_kind(enum gy_pointer_kind kind)
{
    memory = (struct gy_pointer){kind, 1, 7, 0x10000, 0x1000};
    gy_pointer_forget();
    struct gy_pointer found = gy_pointer_look((const void *)0x10fff);
    cr_assert_eq(found.kind, kind);
    cr_assert_eq(found.device, 1);
    cr_assert_eq(found.buffer, 7);
    cr_assert_eq(found.base, 0x10000);
    cr_assert_eq(found.bytes, 0x1000);
    cr_assert_eq(gy_pointer_look((const void *)0x11000).kind, GY_POINTER_HOST, "one past the end");
    cr_assert_eq(gy_pointer_look((const void *)0xffff).kind, GY_POINTER_HOST, "one before");
    cr_assert_eq(gy_pointer_look(NULL).kind, GY_POINTER_HOST);
}

Test(pointer, kinds)
{
    gy_driver_use(&small);
    check_kind(GY_POINTER_PINNED);
    check_kind(GY_POINTER_MANAGED);
    check_kind(GY_POINTER_DEVICE);
}

Test(pointer, cached_until_the_buffer_id_changes)
{
    gy_driver_use(&small);
    memory = (struct gy_pointer){GY_POINTER_DEVICE, 0, 1, 0x10000, 0x1000};
    gy_pointer_look((const void *)0x10000);
    queries = 0;
    cr_assert_eq(gy_pointer_look((const void *)0x10800).buffer, 1);
    cr_assert_eq(queries, 1, "only the buffer id is queried");
    memory = (struct gy_pointer){GY_POINTER_DEVICE, 1, 2, 0x10000, 0x2000}; /* another allocation at the same address */
    cr_assert_eq(gy_pointer_look((const void *)0x10800).buffer, 2);
    cr_assert_eq(gy_pointer_look((const void *)0x10800).device, 1);
    memory.bytes = 0;
    cr_assert_eq(gy_pointer_look((const void *)0x10800).kind, GY_POINTER_HOST, "freed");
}

/* The CUDA driver, opened at run time: see driver.h. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define LIBRARY "libcuda.so.1"

/* The layout of cuda.h on 64-bit machines; tests/cuda/declarations_test.c has the same numbers. */
_Static_assert(sizeof(struct gy_cu_allocation_kind) == 32 &&
                   offsetof(struct gy_cu_allocation_kind, handle_types) == 4 &&
                   offsetof(struct gy_cu_allocation_kind, device) == 12 &&
                   offsetof(struct gy_cu_allocation_kind, flags) == 24,
               "CUmemAllocationProp");
_Static_assert(sizeof(struct gy_cu_access) == 12 && offsetof(struct gy_cu_access, flags) == 8, "CUmemAccessDesc");

typedef gy_cu_result (*get_proc_address)(const char *name, void **function_p, int version, uint64_t flags,
                                         unsigned *status_p);

static _Atomic(const struct gy_driver *) stand_in;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct gy_driver library;
static _Atomic(const struct gy_driver *) filled; /* &library when it is complete */
static char reason[200];

/* A function of the table. */
struct wanted {
    const char *name;
    int version;
    void *function_p;
};

/* dlsym returns an object pointer for a function; POSIX permits this use of its bytes. */
static bool find(get_proc_address get, const struct wanted *wanted)
{
    void *symbol = NULL;
    unsigned status = 0;
    gy_cu_result result = get(wanted->name, &symbol, wanted->version, 0, &status);

    if (result != GY_CU_SUCCESS || !symbol) {
        snprintf(reason, sizeof(reason), "%s has no %s of CUDA %d.%d: it is too old", LIBRARY, wanted->name,
                 wanted->version / 1000, wanted->version % 1000 / 10);
        return false;
    }
    memcpy(wanted->function_p, &symbol, sizeof(symbol));
    return true;
}

static bool find_all(void *handle)
{
#define WANTED(field, name, version, parameters) {#name, version, &library.field},
    static const struct wanted wanted[] = {GY_DRIVER_FUNCTIONS(WANTED)};
    static const struct wanted optional[] = {GY_DRIVER_OPTIONAL_FUNCTIONS(WANTED)};
#undef WANTED
    get_proc_address get;
    void *symbol = dlsym(handle, "cuGetProcAddress_v2");

    if (!symbol) {
        snprintf(reason, sizeof(reason), "%s has no cuGetProcAddress_v2: it is older than CUDA 12", LIBRARY);
        return false;
    }
    memcpy(&get, &symbol, sizeof(symbol));
    for (size_t i = 0; i < GY_ARRAY_LENGTH(wanted); i++)
        if (!find(get, &wanted[i]))
            return false;
    for (size_t i = 0; i < GY_ARRAY_LENGTH(optional); i++)
        (void)find(get, &optional[i]);
    return true;
}

static void load(void)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

    if (!handle)
        snprintf(reason, sizeof(reason), "%s", dlerror());
    else if (find_all(handle))
        atomic_store_explicit(&filled, &library, memory_order_release);
    else
        dlclose(handle);
}

const struct gy_driver *gy_driver_get(char *why, size_t why_bytes)
{
    const struct gy_driver *driver = atomic_load_explicit(&stand_in, memory_order_acquire);

    if (driver)
        return driver;
    pthread_once(&once, load);
    driver = atomic_load_explicit(&filled, memory_order_acquire);
    if (!driver)
        snprintf(why, why_bytes, "%s", reason);
    return driver;
}

const struct gy_driver *gy_driver_if_loaded(void)
{
    const struct gy_driver *driver = atomic_load_explicit(&stand_in, memory_order_acquire);

    if (!driver)
        driver = atomic_load_explicit(&filled, memory_order_acquire);
    if (driver)
        return driver;
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!handle)
        return NULL;
    driver = gy_driver_get(NULL, 0);
    dlclose(handle);
    return driver;
}

void gy_driver_use(const struct gy_driver *driver)
{
    atomic_store_explicit(&stand_in, driver, memory_order_release);
}

bool gy_driver_released(gy_cu_result result)
{
    return result == GY_CU_SUCCESS || result == GY_CU_DEINITIALIZED;
}

const char *gy_driver_sentence(const struct gy_driver *driver, gy_cu_result result, const char *what, char *text,
                               size_t bytes)
{
    const char *name = NULL, *string = NULL;

    if (driver->error_name(result, &name) != GY_CU_SUCCESS || !name)
        snprintf(text, bytes, "%s: CUDA error %u", what, result);
    else if (driver->error_string(result, &string) != GY_CU_SUCCESS || !string)
        snprintf(text, bytes, "%s: %s", what, name);
    else
        snprintf(text, bytes, "%s: %s (%s)", what, name, string);
    return text;
}

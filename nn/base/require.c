#include "base/require.h"

#include <string.h>

#include "base/error.h"

bool gy_nn_require(const char *function, const char *names, size_t count, const void *const *pointers)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(names, ",");
        if (!pointers[i]) {
            (void)gy_nn_fail(GYRE_INVALID_ARGUMENT, "%s: %.*s is NULL", function, (int)length, names);
            return false;
        }
        names += length;
        names += strspn(names, ", ");
    }
    return true;
}

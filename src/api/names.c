/* Element types and operations by their names. */
#include "check.h"
#include "core/dtype.h"

#define LONGEST_SHOWN 40

gyre_status gyre_dtype_from_name(const char *name, gyre_dtype *dtype_p)
{
    int found = gy_dtype_find(name);

    if (found < 0 || !dtype_p)
        return gy_check_none("gyre_dtype_from_name: %s%.*s",
                             dtype_p ? "no element type has the name " : "dtype_p is NULL", LONGEST_SHOWN,
                             dtype_p ? name ? name : "NULL" : "");
    *dtype_p = (gyre_dtype)found;
    return GYRE_SUCCESS;
}

gyre_status gyre_op_from_name(const char *name, gyre_op *op_p)
{
    int found = gy_op_find(name);

    if (found < 0 || !op_p)
        return gy_check_none("gyre_op_from_name: %s%.*s", op_p ? "no operation has the name " : "op_p is NULL",
                             LONGEST_SHOWN, op_p ? name ? name : "NULL" : "");
    *op_p = (gyre_op)found;
    return GYRE_SUCCESS;
}

/* Element types and operations: which values exist, their sizes and their names. */
#include "dtype.h"

bool gy_dtype_valid(int dtype)
{
    return gyre_dtype_size((gyre_dtype)dtype) > 0;
}

bool gy_op_valid(int op)
{
    return gyre_op_name((gyre_op)op) != NULL;
}

size_t gyre_dtype_size(gyre_dtype dtype)
{
    switch (dtype) {
    case GYRE_INT32:
    case GYRE_FLOAT32: return 4;
    case GYRE_FLOAT64: return 8;
    }
    return 0;
}

const char *gyre_dtype_name(gyre_dtype dtype)
{
    switch (dtype) {
    case GYRE_INT32: return "int32";
    case GYRE_FLOAT32: return "float32";
    case GYRE_FLOAT64: return "float64";
    }
    return NULL;
}

const char *gyre_op_name(gyre_op op)
{
    switch (op) {
    case GYRE_SUM: return "sum";
    case GYRE_MIN: return "min";
    case GYRE_MAX: return "max";
    }
    return NULL;
}

/* Element types and operations: which values exist, their sizes and their names, and which pairs have a meaning. */
#include "dtype.h"

bool gy_dtype_valid(int dtype)
{
    return gyre_dtype_size((gyre_dtype)dtype) > 0;
}

bool gy_dtype_narrow(gyre_dtype dtype)
{
    return dtype == GYRE_FLOAT16 || dtype == GYRE_BFLOAT16 || dtype == GYRE_FLOAT8_E4M3 || dtype == GYRE_FLOAT8_E5M2;
}

bool gy_op_known(int op)
{
    return gyre_op_name((gyre_op)op) != NULL;
}

static bool is_integer(gyre_dtype dtype)
{
    return dtype != GYRE_FLOAT32 && dtype != GYRE_FLOAT64 && !gy_dtype_narrow(dtype);
}

bool gy_op_valid(int op, gyre_dtype dtype)
{
    bool bitwise = op == GYRE_BIT_AND || op == GYRE_BIT_OR || op == GYRE_BIT_XOR;

    return gy_op_known(op) && (!bitwise || is_integer(dtype));
}

size_t gyre_dtype_size(gyre_dtype dtype)
{
    switch (dtype) {
#define DTYPE_SIZE(code, name, text, bytes) \
    case GYRE_##name: return bytes;
        GYRE_DTYPE_MAP(DTYPE_SIZE) /* NOLINT(bugprone-branch-clone): types of one size */
#undef DTYPE_SIZE
    }
    return 0;
}

const char *gyre_dtype_name(gyre_dtype dtype)
{
    switch (dtype) {
#define DTYPE_NAME(code, name, text, bytes) \
    case GYRE_##name: return text;
        GYRE_DTYPE_MAP(DTYPE_NAME)
#undef DTYPE_NAME
    }
    return NULL;
}

const char *gyre_op_name(gyre_op op)
{
    switch (op) {
#define OP_NAME(code, name, text) \
    case GYRE_##name: return text;
        GYRE_OP_MAP(OP_NAME)
#undef OP_NAME
    }
    return NULL;
}

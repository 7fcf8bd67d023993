/* Element types and operations: which values exist, their sizes and their names, and which pairs have a meaning. */
#include <stdio.h>

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

    if (op == GYRE_AVERAGE && dtype == GYRE_BOOL)
        return false;
    return gy_op_known(op) && (!bitwise || is_integer(dtype));
}

void gy_op_explain(int op, gyre_dtype dtype, char *text_p, size_t size)
{
    const char *name = gyre_op_name((gyre_op)op);

    if (dtype == GYRE_BOOL)
        snprintf(text_p, size,
                 "%s has no meaning for booleans: there are sum (or), product (and), min, max, bit_and, bit_or and "
                 "bit_xor; to average them, convert them to a type of numbers",
                 name);
    else
        snprintf(text_p, size, "%s is for integers and booleans, not for %s", name, gyre_dtype_name(dtype));
}

void gy_bool_normalize(void *elements, size_t count)
{
    unsigned char *element = elements;

    for (size_t i = 0; i < count; i++)
        element[i] = element[i] != 0;
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

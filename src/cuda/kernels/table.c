/* Look-up of kernels by kind, type and operation: see table.h. */
#include "cuda/kernels/table.h"

#include <stdint.h>

enum { TYPES = GYRE_BOOL + 1, OPERATIONS = GYRE_PREMUL_SUM + 1 };

static const char *const names[GY_KERNEL_COUNT] = {
#define NAME(name, ...) #name,
    GY_KERNELS(NAME, NAME)
#undef NAME
};

/* The kernel's number plus 1; 0: there is none. */
static const uint16_t reductions[GY_KERNEL_move][TYPES][OPERATIONS][2] = {
#define PLACE(name, kind, type, operation, tree) [GY_KERNEL_##kind][type][operation][tree] = GY_NUMBER_##name + 1,
#define NO_PLACE(name, kind, arguments)
    GY_KERNELS(PLACE, NO_PLACE)
#undef PLACE
#undef NO_PLACE
};

static bool is_signed(gyre_dtype dtype)
{
    return dtype == GYRE_INT8 || dtype == GYRE_INT32 || dtype == GYRE_INT64;
}

/* The result has the same bits for signed and unsigned integers. */
static bool ignores_sign(gyre_op op)
{
    return op != GYRE_MIN && op != GYRE_MAX && op != GYRE_AVERAGE;
}

static gyre_op boolean_operation(gyre_op op)
{
    if (op == GYRE_SUM || op == GYRE_MAX)
        return GYRE_BIT_OR;
    return op == GYRE_PRODUCT || op == GYRE_MIN ? GYRE_BIT_AND : op;
}

static bool rounds(gyre_dtype dtype, gyre_op op)
{
    return dtype >= GYRE_FLOAT16 && dtype <= GYRE_FLOAT8_E5M2 && op != GYRE_MIN && op != GYRE_MAX;
}

int gy_kernel_find(enum gy_kernel_kind kind, gyre_dtype dtype, gyre_op op, bool canonical)
{
    if (kind == GY_KERNEL_move)
        return GY_NUMBER_gy_move;
    if (kind == GY_KERNEL_two_shot_move)
        return GY_NUMBER_gy_two_shot_move;
    if ((unsigned)dtype >= TYPES || (unsigned)op >= OPERATIONS)
        return -1;
    if (is_signed(dtype) && ignores_sign(op))
        dtype = (gyre_dtype)(dtype + 1); /* the unsigned type of the same size */
    if (dtype == GYRE_BOOL)
        op = boolean_operation(op);
    return reductions[kind][dtype][op][canonical && rounds(dtype, op)] - 1;
}

const char *gy_kernel_name(int number)
{
    return number < 0 || number >= GY_KERNEL_COUNT ? NULL : names[number];
}

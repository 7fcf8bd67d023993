/* Which types and operations exist. The list of valid values is written out here, since they are frozen. */
#include <criterion/criterion.h>

#include "core/dtype.h"

Test(dtype, only_the_frozen_values_are_valid)
{
    for (int value = -3; value < 300; value++) {
        bool known = value == 2 || value == 8 || value == 9;

        cr_assert_eq(gy_dtype_valid(value), known, "dtype %d", value);
        cr_assert_eq(gyre_dtype_name((gyre_dtype)value) != NULL, known);
    }
    for (int value = -3; value < 300; value++)
        cr_assert_eq(gy_op_valid(value), value == 0 || value == 2 || value == 3, "op %d", value);
}

Test(dtype, sizes_and_names)
{
    cr_assert_eq(gyre_dtype_size(GYRE_INT32), 4);
    cr_assert_eq(gyre_dtype_size(GYRE_FLOAT32), 4);
    cr_assert_eq(gyre_dtype_size(GYRE_FLOAT64), 8);
    cr_assert_eq(gyre_dtype_size((gyre_dtype)77), 0);
    cr_assert_str_eq(gyre_dtype_name(GYRE_INT32), "int32");
    cr_assert_str_eq(gyre_dtype_name(GYRE_FLOAT32), "float32");
    cr_assert_str_eq(gyre_dtype_name(GYRE_FLOAT64), "float64");
    cr_assert_str_eq(gyre_op_name(GYRE_SUM), "sum");
    cr_assert_str_eq(gyre_op_name(GYRE_MIN), "min");
    cr_assert_str_eq(gyre_op_name(GYRE_MAX), "max");
}

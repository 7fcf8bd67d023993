/* Which types and operations exist. The values are written out here, since they are frozen. */
#include <criterion/criterion.h>

#include "core/dtype.h"

static const struct {
    int value;
    const char *name;
    size_t size;
    bool is_integer, is_narrow;
} types[] = {
    {0, "int8", 1, true, false},     {1, "uint8", 1, true, false},        {2, "int32", 4, true, false},
    {3, "uint32", 4, true, false},   {4, "int64", 8, true, false},        {5, "uint64", 8, true, false},
    {6, "float16", 2, false, true},  {7, "bfloat16", 2, false, true},     {8, "float32", 4, false, false},
    {9, "float64", 8, false, false}, {10, "float8_e4m3", 1, false, true}, {11, "float8_e5m2", 1, false, true},
    {12, "bool", 1, true, false},
};
static const char *const ops[] = {"sum",     "product", "min",     "max",       "average",
                                  "bit_and", "bit_or",  "bit_xor", "premul_sum"};

Test(dtype, only_the_frozen_values_are_valid)
{
    for (int value = -3; value < 300; value++) {
        bool type = value >= 0 && value < 13, op = value >= 0 && value < 9;

        cr_assert_eq(gy_dtype_valid(value), type, "dtype %d", value);
        cr_assert_eq(gyre_dtype_name((gyre_dtype)value) != NULL, type);
        cr_assert_eq(gy_op_known(value), op, "op %d", value);
        cr_assert_eq(gyre_op_name((gyre_op)value) != NULL, op);
    }
    cr_assert_eq(gyre_dtype_size((gyre_dtype)77), 0);
}

Test(dtype, sizes_and_names)
{
    for (size_t i = 0; i < GY_ARRAY_LENGTH(types); i++) {
        cr_assert_str_eq(gyre_dtype_name((gyre_dtype)types[i].value), types[i].name);
        cr_assert_eq(gyre_dtype_size((gyre_dtype)types[i].value), types[i].size, "%s", types[i].name);
        cr_assert_eq(gy_dtype_narrow((gyre_dtype)types[i].value), types[i].is_narrow, "%s", types[i].name);
    }
    for (size_t i = 0; i < GY_ARRAY_LENGTH(ops); i++)
        cr_assert_str_eq(gyre_op_name((gyre_op)i), ops[i]);
}

Test(dtype, bit_operations_are_for_integers_and_averages_for_numbers)
{
    for (size_t i = 0; i < GY_ARRAY_LENGTH(types); i++) {
        for (int op = -1; op < 12; op++) {
            bool bitwise = op >= 5 && op <= 7, known = op >= 0 && op < 9;

            bool average_of_bool = op == 4 && types[i].value == 12;

            cr_assert_eq(gy_op_valid(op, (gyre_dtype)types[i].value),
                         known && (!bitwise || types[i].is_integer) && !average_of_bool, "%s, op %d", types[i].name,
                         op);
        }
    }
}

Test(dtype, names_of_other_libraries)
{
    static const struct {
        const char *name;
        int value;
    } more[] = {{"half", 6},      {"fp16", 6},      {"bf16", 7}, {"float", 8},   {"FLOAT", 8},    {"double", 9},
                {"fp8_e4m3", 10}, {"fp8_e5m2", 11}, {"int", 2},  {"char", 0},    {"float99", -1}, {"", -1},
                {"float32 ", -1}, {"fp32", 8},      {"fp64", 9}, {"Boolean", 12}},
      others[] = {{"avg", 4}, {"prod", 1}, {"Sum", 0}, {"band", 5}, {"bor", 6}, {"bxor", 7}, {"summe", -1}};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(types); i++)
        cr_assert_eq(gy_dtype_find(types[i].name), types[i].value);
    for (size_t i = 0; i < GY_ARRAY_LENGTH(ops); i++)
        cr_assert_eq(gy_op_find(ops[i]), (int)i);
    for (size_t i = 0; i < GY_ARRAY_LENGTH(more); i++)
        cr_assert_eq(gy_dtype_find(more[i].name), more[i].value, "%s", more[i].name);
    for (size_t i = 0; i < GY_ARRAY_LENGTH(others); i++)
        cr_assert_eq(gy_op_find(others[i].name), others[i].value, "%s", others[i].name);
    cr_assert_eq(gy_dtype_find(NULL), -1);
    cr_assert_eq(gy_op_find(NULL), -1);
}

/* The names of element types and operations as users type them: gyre's own, and those of NCCL, nccl-tests, MPI and
 * PyTorch. */
#include <strings.h>

#include "dtype.h"

struct alias {
    const char *name;
    int value;
};

static const struct alias dtypes[] = {
#define DTYPE_ROW(code, name, text, bytes) {text, code},
    GYRE_DTYPE_MAP(DTYPE_ROW)
#undef DTYPE_ROW
        {"half", GYRE_FLOAT16},
    {"fp16", GYRE_FLOAT16},
    {"bf16", GYRE_BFLOAT16},
    {"float", GYRE_FLOAT32},
    {"fp32", GYRE_FLOAT32},
    {"single", GYRE_FLOAT32},
    {"double", GYRE_FLOAT64},
    {"fp64", GYRE_FLOAT64},
    {"fp8_e4m3", GYRE_FLOAT8_E4M3},
    {"float8_e4m3fn", GYRE_FLOAT8_E4M3},
    {"f8e4m3", GYRE_FLOAT8_E4M3},
    {"fp8_e5m2", GYRE_FLOAT8_E5M2},
    {"f8e5m2", GYRE_FLOAT8_E5M2},
    {"char", GYRE_INT8},
    {"byte", GYRE_UINT8},
    {"int", GYRE_INT32},
    {"uint", GYRE_UINT32},
    {"boolean", GYRE_BOOL},
};

static const struct alias ops[] = {
#define OP_ROW(code, name, text) {text, code},
    GYRE_OP_MAP(OP_ROW)
#undef OP_ROW
        {"avg", GYRE_AVERAGE},
    {"mean", GYRE_AVERAGE},
    {"prod", GYRE_PRODUCT},
    {"band", GYRE_BIT_AND},
    {"bor", GYRE_BIT_OR},
    {"bxor", GYRE_BIT_XOR},
};

static int find(const struct alias *aliases, size_t count, const char *name)
{
    for (size_t i = 0; name && i < count; i++) {
        if (strcasecmp(name, aliases[i].name) == 0)
            return aliases[i].value;
    }
    return -1;
}

int gy_dtype_find(const char *name)
{
    return find(dtypes, GY_ARRAY_LENGTH(dtypes), name);
}

int gy_op_find(const char *name)
{
    return find(ops, GY_ARRAY_LENGTH(ops), name);
}

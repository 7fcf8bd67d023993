#include "reduction.h"

#include "datatype.h"

#define KIND(kind) (1u << (kind))
#define INTEGERS (KIND(GM_SIGNED) | KIND(GM_UNSIGNED))

struct operation {
    gyre_op op;
    unsigned kinds; /* kinds of datatypes to which the operation applies */
};

/* Complex products are left to the MPI library: gyre treats a complex number as two floats. */
static struct operation operation_of(MPI_Op op)
{
    if (op == MPI_SUM)
        return (struct operation){GYRE_SUM, INTEGERS | KIND(GM_FLOAT) | KIND(GM_COMPLEX)};
    if (op == MPI_MAX)
        return (struct operation){GYRE_MAX, INTEGERS | KIND(GM_FLOAT)};
    if (op == MPI_MIN)
        return (struct operation){GYRE_MIN, INTEGERS | KIND(GM_FLOAT)};
    if (op == MPI_PROD)
        return (struct operation){GYRE_PRODUCT, INTEGERS | KIND(GM_FLOAT)};
    if (op == MPI_BAND)
        return (struct operation){GYRE_BIT_AND, INTEGERS | KIND(GM_BYTE)};
    if (op == MPI_BOR)
        return (struct operation){GYRE_BIT_OR, INTEGERS | KIND(GM_BYTE)};
    if (op == MPI_BXOR)
        return (struct operation){GYRE_BIT_XOR, INTEGERS | KIND(GM_BYTE)};
    if (op == MPI_LAND)
        return (struct operation){GYRE_BIT_AND, KIND(GM_BOOLEAN)};
    if (op == MPI_LOR)
        return (struct operation){GYRE_BIT_OR, KIND(GM_BOOLEAN)};
    if (op == MPI_LXOR)
        return (struct operation){GYRE_BIT_XOR, KIND(GM_BOOLEAN)};
    return (struct operation){GYRE_SUM, 0};
}

static bool integer(bool is_signed, size_t bytes, gyre_dtype *dtype_p)
{
    switch (bytes) {
    case 1: *dtype_p = is_signed ? GYRE_INT8 : GYRE_UINT8; return true;
    case 4: *dtype_p = is_signed ? GYRE_INT32 : GYRE_UINT32; return true;
    case 8: *dtype_p = is_signed ? GYRE_INT64 : GYRE_UINT64; return true;
    default: return false; /* gyre has no integers of 16 bits */
    }
}

static bool floating(size_t bytes, gyre_dtype *dtype_p)
{
    *dtype_p = bytes == 4 ? GYRE_FLOAT32 : GYRE_FLOAT64;
    return bytes == 4 || bytes == 8;
}

/* The gyre type of one MPI element, or of the real part of a complex number. */
static bool dtype_of(const struct gm_datatype *type, gyre_dtype *dtype_p)
{
    switch (type->kind) {
    case GM_SIGNED: return integer(true, type->bytes, dtype_p);
    case GM_UNSIGNED:
    case GM_BYTE: return integer(false, type->bytes, dtype_p);
    case GM_FLOAT: return floating(type->bytes, dtype_p);
    case GM_COMPLEX: return floating(type->bytes / 2, dtype_p);
    case GM_BOOLEAN: *dtype_p = GYRE_BOOL; return type->bytes == 1;
    case GM_MOVED: break;
    }
    return false;
}

/* An integer of 16 bits is two of 8 bits for these operations. */
static bool is_bitwise(gyre_op op)
{
    return op == GYRE_BIT_AND || op == GYRE_BIT_OR || op == GYRE_BIT_XOR;
}

bool gm_reduction_find(MPI_Datatype type, MPI_Op op, struct gm_reduction *reduction_p)
{
    const struct gm_datatype *row = gm_datatype_find(type);
    const struct operation operation = operation_of(op);
    gyre_dtype dtype;

    if (!row || !(operation.kinds & KIND(row->kind)))
        return false;
    if (dtype_of(row, &dtype))
        *reduction_p = (struct gm_reduction){dtype, operation.op, row->kind == GM_COMPLEX ? 2 : 1, row->bytes};
    else if (is_bitwise(operation.op) && row->bytes == 2)
        *reduction_p = (struct gm_reduction){GYRE_UINT8, operation.op, 2, row->bytes};
    else
        return false;
    return true;
}

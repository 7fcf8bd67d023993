#include "datatype.h"

#include <pthread.h>
#include <stdlib.h>

/* The table is searched from its beginning; the types that programs use most come first. The kind GM_MOVED has no
 * operations here: Fortran's logicals have several values for true, and characters have no arithmetic. */
static struct gm_datatype table[] = {
    {MPI_DOUBLE, GM_FLOAT, 0},
    {MPI_FLOAT, GM_FLOAT, 0},
    {MPI_INT, GM_SIGNED, 0},
    {MPI_BYTE, GM_BYTE, 0},
    {MPI_CHAR, GM_MOVED, 0},
    {MPI_LONG, GM_SIGNED, 0},
    {MPI_DOUBLE_PRECISION, GM_FLOAT, 0},
    {MPI_INTEGER, GM_SIGNED, 0},
    {MPI_REAL, GM_FLOAT, 0},
    {MPI_UNSIGNED, GM_UNSIGNED, 0},
    {MPI_UNSIGNED_LONG, GM_UNSIGNED, 0},
    {MPI_LONG_LONG_INT, GM_SIGNED, 0},
    {MPI_UNSIGNED_LONG_LONG, GM_UNSIGNED, 0},
    {MPI_INT64_T, GM_SIGNED, 0},
    {MPI_UINT64_T, GM_UNSIGNED, 0},
    {MPI_INT32_T, GM_SIGNED, 0},
    {MPI_UINT32_T, GM_UNSIGNED, 0},
    {MPI_INT16_T, GM_SIGNED, 0},
    {MPI_UINT16_T, GM_UNSIGNED, 0},
    {MPI_INT8_T, GM_SIGNED, 0},
    {MPI_UINT8_T, GM_UNSIGNED, 0},
    {MPI_SHORT, GM_SIGNED, 0},
    {MPI_UNSIGNED_SHORT, GM_UNSIGNED, 0},
    {MPI_SIGNED_CHAR, GM_SIGNED, 0},
    {MPI_UNSIGNED_CHAR, GM_UNSIGNED, 0},
    {MPI_AINT, GM_SIGNED, 0},
    {MPI_OFFSET, GM_SIGNED, 0},
    {MPI_COUNT, GM_SIGNED, 0},
    {MPI_C_BOOL, GM_BOOLEAN, 0},
    {MPI_CXX_BOOL, GM_BOOLEAN, 0},
    {MPI_C_FLOAT_COMPLEX, GM_COMPLEX, 0},
    {MPI_C_DOUBLE_COMPLEX, GM_COMPLEX, 0},
    {MPI_CXX_FLOAT_COMPLEX, GM_COMPLEX, 0},
    {MPI_CXX_DOUBLE_COMPLEX, GM_COMPLEX, 0},
    {MPI_COMPLEX, GM_COMPLEX, 0},
    {MPI_DOUBLE_COMPLEX, GM_COMPLEX, 0},
    {MPI_COMPLEX8, GM_COMPLEX, 0},
    {MPI_COMPLEX16, GM_COMPLEX, 0},
    {MPI_INTEGER1, GM_SIGNED, 0},
    {MPI_INTEGER2, GM_SIGNED, 0},
    {MPI_INTEGER4, GM_SIGNED, 0},
    {MPI_INTEGER8, GM_SIGNED, 0},
    {MPI_REAL4, GM_FLOAT, 0},
    {MPI_REAL8, GM_FLOAT, 0},
    {MPI_CHARACTER, GM_MOVED, 0},
    {MPI_LOGICAL, GM_MOVED, 0},
    {MPI_PACKED, GM_MOVED, 0},
    {MPI_WCHAR, GM_MOVED, 0},
};
enum { ROWS = sizeof(table) / sizeof(*table) };

/* An MPI library built without Fortran has MPI_DATATYPE_NULL, or a type of size 0, for Fortran's types. */
static void measure(void)
{
    for (int row = 0; row < ROWS; row++) {
        int bytes = 0;
        if (table[row].handle != MPI_DATATYPE_NULL)
            PMPI_Type_size(table[row].handle, &bytes);
        table[row].bytes = bytes > 0 ? (size_t)bytes : 0;
    }
}

static pthread_once_t measured = PTHREAD_ONCE_INIT;

const struct gm_datatype *gm_datatype_find(MPI_Datatype type)
{
    pthread_once(&measured, measure);
    for (int row = 0; row < ROWS; row++)
        if (table[row].handle == type)
            return table[row].bytes > 0 ? &table[row] : NULL;
    return NULL;
}

/* The numbers of arguments from which a datatype was constructed. */
struct parts {
    int integers, addresses, types, combiner;
};

static struct parts parts_of(MPI_Datatype type)
{
    struct parts it = {0, 0, 0, MPI_COMBINER_NAMED};
    PMPI_Type_get_envelope(type, &it.integers, &it.addresses, &it.types, &it.combiner);
    return it;
}

static bool is_in_order(MPI_Datatype type);

/* Duplicates and contiguous types have one component type and at most one integer argument. */
static bool part_is_in_order(MPI_Datatype type, const struct parts *parts)
{
    int integers[1];
    MPI_Aint addresses[1];
    MPI_Datatype part;
    if (parts->types != 1 || parts->integers > 1 || parts->addresses > 0)
        return false;
    PMPI_Type_get_contents(type, parts->integers, 0, 1, integers, addresses, &part);
    bool in_order = is_in_order(part);
    if (parts_of(part).combiner != MPI_COMBINER_NAMED)
        PMPI_Type_free(&part);
    return in_order;
}

/* True if components that come later in the signature lie at higher addresses. False also if that is not known. */
static bool is_in_order(MPI_Datatype type)
{
    const struct parts parts = parts_of(type);
    if (parts.combiner == MPI_COMBINER_NAMED)
        return true;
    if (parts.combiner == MPI_COMBINER_CONTIGUOUS || parts.combiner == MPI_COMBINER_DUP)
        return part_is_in_order(type, &parts);
    return false;
}

static bool measure_layout(MPI_Datatype type, struct gm_layout *layout_p)
{
    MPI_Count bytes;
    MPI_Aint low, extent, true_low, true_extent;
    if (PMPI_Type_size_x(type, &bytes) != MPI_SUCCESS || bytes < 0 ||
        PMPI_Type_get_extent(type, &low, &extent) != MPI_SUCCESS ||
        PMPI_Type_get_true_extent(type, &true_low, &true_extent) != MPI_SUCCESS)
        return false;
    bool dense = low == 0 && true_low == 0 && extent == bytes && true_extent == bytes;
    *layout_p = (struct gm_layout){(size_t)bytes, extent, dense && is_in_order(type)};
    return true;
}

bool gm_datatype_layout(MPI_Datatype type, struct gm_layout *layout_p)
{
    const struct gm_datatype *row = gm_datatype_find(type);
    if (!row)
        return type != MPI_DATATYPE_NULL && measure_layout(type, layout_p);
    *layout_p = (struct gm_layout){row->bytes, (MPI_Aint)row->bytes, true};
    return true;
}

#include "types.h"

#include <stdint.h>
#include <string.h>

struct type types[] = {
    {"int", MPI_INT, SIGNED, 0, 0},
    {"float", MPI_FLOAT, FLOAT, 0, 0},
    {"double", MPI_DOUBLE, FLOAT, 0, 0},
    {"long double", MPI_LONG_DOUBLE, FLOAT, 10, 0},
    {"unsigned", MPI_UNSIGNED, UNSIGNED, 0, 0},
    {"short", MPI_SHORT, SIGNED, 0, 0},
    {"unsigned short", MPI_UNSIGNED_SHORT, UNSIGNED, 0, 0},
    {"long", MPI_LONG, SIGNED, 0, 0},
    {"unsigned long long", MPI_UNSIGNED_LONG_LONG, UNSIGNED, 0, 0},
    {"signed char", MPI_SIGNED_CHAR, SIGNED, 0, 0},
    {"unsigned char", MPI_UNSIGNED_CHAR, UNSIGNED, 0, 0},
    {"int64_t", MPI_INT64_T, SIGNED, 0, 0},
    {"MPI_Aint", MPI_AINT, SIGNED, 0, 0},
    {"MPI_Offset", MPI_OFFSET, SIGNED, 0, 0},
    {"bool", MPI_C_BOOL, BOOLEAN, 0, 0},
    {"byte", MPI_BYTE, BYTES, 0, 0},
    {"float complex", MPI_C_FLOAT_COMPLEX, COMPLEX, 0, 0},
    {"double complex", MPI_C_DOUBLE_COMPLEX, COMPLEX, 0, 0},
    {"INTEGER", MPI_INTEGER, FORTRAN_INTEGER, 0, 0},
    {"REAL", MPI_REAL, FLOAT, 0, 0},
    {"DOUBLE PRECISION", MPI_DOUBLE_PRECISION, FLOAT, 0, 0},
    {"COMPLEX", MPI_COMPLEX, COMPLEX, 0, 0},
    {"DOUBLE COMPLEX", MPI_DOUBLE_COMPLEX, COMPLEX, 0, 0},
    {"MPI_2INT", MPI_2INT, PAIR, 0, 0},
    {"MPI_FLOAT_INT", MPI_FLOAT_INT, PAIR, 0, 0},
};
const int type_count = sizeof(types) / sizeof(*types);

#define INTEGERS (1u << SIGNED | 1u << UNSIGNED | 1u << FORTRAN_INTEGER)
#define NUMBERS (INTEGERS | 1u << FLOAT)
#define BITS (INTEGERS | 1u << BYTES)

struct operation operations[] = {
    {SUM, MPI_SUM, NUMBERS | 1u << COMPLEX},
    {PROD, MPI_PROD, NUMBERS | 1u << COMPLEX},
    {MAX, MPI_MAX, NUMBERS},
    {MIN, MPI_MIN, NUMBERS},
    {BAND, MPI_BAND, BITS},
    {BOR, MPI_BOR, BITS},
    {BXOR, MPI_BXOR, BITS},
    {LAND, MPI_LAND, 1u << BOOLEAN},
    {LOR, MPI_LOR, 1u << BOOLEAN},
    {LXOR, MPI_LXOR, 1u << BOOLEAN},
    {MINLOC, MPI_MINLOC, 1u << PAIR},
    {MAXLOC, MPI_MAXLOC, 1u << PAIR},
    {USERS_XOR, MPI_OP_NULL, 1u << BYTES},
    {USERS_FIRST, MPI_OP_NULL, 1u << BYTES},
};
const int operation_count = sizeof(operations) / sizeof(*operations);

static void users_xor(void *in, void *inout, int *count, MPI_Datatype *type)
{
    const unsigned char *from = in;
    unsigned char *to = inout;
    (void)type;
    for (int i = 0; i < *count; i++)
        to[i] ^= from[i];
}

/* Does not commute: the result is the value of the lowest rank. */
static void users_first(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    memcpy(inout, in, (size_t)*count);
}

void types_begin(void)
{
    MPI_Aint low, extent;
    for (int i = 0; i < type_count; i++) {
        MPI_Type_get_extent(types[i].type, &low, &extent);
        types[i].extent = (size_t)extent;
    }
    MPI_Op_create(users_xor, 1, &operations[operation_count - 2].op);
    MPI_Op_create(users_first, 0, &operations[operation_count - 1].op);
}

void types_end(void)
{
    MPI_Op_free(&operations[operation_count - 2].op);
    MPI_Op_free(&operations[operation_count - 1].op);
}

/* MPI libraries take MPI_MAX of unsigned types for one of signed types, or the other way round: those have no negative
 * values. */
struct number type_number(const struct type *type, size_t index, int rank, bool factors)
{
    static const int table[] = {1, -1, 2, 1, 1};
    const int spread = (int)((index * 3 + (size_t)rank * 7) % 23);
    const bool negative = type->kind == SIGNED || type->kind == FLOAT || type->kind == COMPLEX;
    int value = factors ? table[(index + (size_t)rank * 2) % 5] : spread - (negative ? 11 : 0);
    if (type->kind == BOOLEAN)
        value &= 1;
    return (struct number){value, type->kind == COMPLEX ? 1 : 0, rank};
}

static struct number product(struct number a, struct number b)
{
    return (struct number){a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real, 0};
}

static int apply_to_ints(enum rule rule, int a, int b)
{
    switch (rule) {
    case MAX: return a > b ? a : b;
    case MIN: return a < b ? a : b;
    case BAND: return a & b;
    case BOR: return a | b;
    case BXOR:
    case USERS_XOR: return a ^ b;
    case LAND: return a && b;
    case LOR: return a || b;
    case LXOR: return !a != !b;
    default: return a;
    }
}

struct number operation_apply(enum rule rule, struct number a, struct number b)
{
    const bool a_wins = a.real == b.real ? a.index < b.index : (a.real < b.real) == (rule == MINLOC);
    if (rule == SUM)
        return (struct number){a.real + b.real, a.imaginary + b.imaginary, 0};
    if (rule == PROD)
        return product(a, b);
    if (rule == MINLOC || rule == MAXLOC)
        return a_wins ? a : b;
    return (struct number){apply_to_ints(rule, (int)a.real, (int)b.real), 0, 0};
}

static void put_float(const struct type *type, char *place, double value)
{
    const float narrow = (float)value;
    const long double wide = value;
    if (type->extent == sizeof(narrow))
        memcpy(place, &narrow, sizeof(narrow));
    else if (type->extent == sizeof(value))
        memcpy(place, &value, sizeof(value));
    else
        memcpy(place, &wide, type->significant);
}

static void put_complex(const struct type *type, char *place, struct number number)
{
    const float narrow[2] = {(float)number.real, (float)number.imaginary};
    const double wide[2] = {number.real, number.imaginary};
    memcpy(place, type->extent == sizeof(narrow) ? (const void *)narrow : (const void *)wide, type->extent);
}

static void put_pair(const struct type *type, char *place, struct number number)
{
    const int whole = (int)number.real;
    const float narrow = (float)number.real;
    memcpy(place, type->type == MPI_FLOAT_INT ? (const void *)&narrow : (const void *)&whole, sizeof(whole));
    memcpy(place + sizeof(whole), &number.index, sizeof(number.index));
}

void type_put(const struct type *type, char *place, struct number number)
{
    const int64_t whole = (int64_t)number.real;
    switch (type->kind) {
    case FLOAT: put_float(type, place, number.real); break;
    case COMPLEX: put_complex(type, place, number); break;
    case PAIR: put_pair(type, place, number); break;
    case SIGNED:
    case UNSIGNED:
    case FORTRAN_INTEGER:
    case BOOLEAN:
    case BYTES: memcpy(place, &whole, type->extent); break; /* little-endian */
    }
}

void type_fill(const struct type *type, char *buffer, size_t first, size_t count, int rank, bool factors)
{
    for (size_t i = 0; i < count; i++)
        type_put(type, buffer + i * type->extent, type_number(type, first + i, rank, factors));
}

void type_clean(const struct type *type, char *buffer, size_t bytes)
{
    for (size_t at = 0; type->significant > 0 && at + type->extent <= bytes; at += type->extent)
        memset(buffer + at + type->significant, 0, type->extent - type->significant);
}

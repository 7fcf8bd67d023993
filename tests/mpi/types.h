/* Datatypes and operations of the tests, the values of their data, and what the operations give for them. */
#ifndef GYRE_TESTS_MPI_TYPES_H
#define GYRE_TESTS_MPI_TYPES_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

enum kind { SIGNED, UNSIGNED, FORTRAN_INTEGER, FLOAT, COMPLEX, BOOLEAN, BYTES, PAIR };

struct type {
    const char *name;
    MPI_Datatype type;
    enum kind kind;
    size_t significant; /* bytes of an element that have a meaning; 0: all of them */
    size_t extent;
};

enum rule { SUM, PROD, MAX, MIN, BAND, BOR, BXOR, LAND, LOR, LXOR, MINLOC, MAXLOC, USERS_XOR, USERS_FIRST };

struct operation {
    enum rule rule;
    MPI_Op op;
    unsigned kinds; /* 1 << kind of those that it is for */
};

/* A value of any kind; `index` is the second member of a pair. */
struct number {
    double real, imaginary;
    int index;
};

extern struct type types[];
extern struct operation operations[];
extern const int type_count, operation_count;
#define TYPE_INT (&types[0])

/* Looks up extents, and makes the operations of the user. */
void types_begin(void);
void types_end(void);

/* The value of element `index` of a rank: a small whole number, so that every order of operands gives the same bits.
 * `factors`: for products. */
struct number type_number(const struct type *type, size_t index, int rank, bool factors);
struct number operation_apply(enum rule rule, struct number a, struct number b);
void type_put(const struct type *type, char *place, struct number number);

/* `count` elements of a rank from number `first` on. */
void type_fill(const struct type *type, char *buffer, size_t first, size_t count, int rank, bool factors);
/* Clears the bytes without a meaning. */
void type_clean(const struct type *type, char *buffer, size_t bytes);

#endif

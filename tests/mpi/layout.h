/* Datatypes that a program makes: the same INTS ints per element, in different places. */
#ifndef GYRE_TESTS_MPI_LAYOUT_H
#define GYRE_TESTS_MPI_LAYOUT_H

#include <mpi.h>
#include <stddef.h>

enum { LAYOUT_INTS = 12, LAYOUT_MOST_EXTENT = 20 /* ints */ };

enum layout { PLAIN, CONTIGUOUS, VECTOR, REVERSED, RESIZED, NESTED, LAYOUTS };

/* A buffer argument: `count` elements of `type` hold as many ints as `elements` elements of any other layout. */
struct side {
    enum layout layout;
    MPI_Datatype type;
    int count;
};

struct side side_begin(int layout, int elements);
void side_end(struct side *side);

/* The place of int `i` of the signature, in ints from the beginning of the buffer. */
size_t side_place(const struct side *side, size_t i);

#endif

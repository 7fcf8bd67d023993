/* The calls that the interposer takes over, in all forms, on one communicator; each compares the results with what they
 * should be. */
#ifndef GYRE_TESTS_MPI_FORMS_H
#define GYRE_TESTS_MPI_FORMS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

/* Predefined types and operations. `all`: every pair of them, and else one type. */
void forms_reduce(MPI_Comm comm, size_t count, bool all);
/* What only moves, with one count: `all` types, or one. */
void forms_move(MPI_Comm comm, size_t count, bool all);
/* What only moves, with one count per rank. */
void forms_lists(MPI_Comm comm, size_t count);
/* Datatypes that a program makes. */
void forms_layouts(MPI_Comm comm, int count);
/* Counts of type MPI_Count. */
void forms_large(MPI_Comm comm, size_t count);

#endif

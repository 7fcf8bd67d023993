/* The buffers of one call, and the comparison of what it left in the output with what it should have. */
#ifndef GYRE_TESTS_MPI_CHECK_H
#define GYRE_TESTS_MPI_CHECK_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "types.h"

/* Each buffer has room for size + 1 blocks of `count + 1` elements of 16 bytes. Output and expected output begin with
 * the same pattern: what no call may write must keep it. */
struct check {
    MPI_Comm comm;
    int rank, size;
    size_t count; /* elements of a block */
    const struct type *type;
    const char *words; /* printed with a failure */
    size_t bytes;      /* of each buffer */
    char *in, *out, *expected;
};

/* The buffers are valid until the next call. The input is filled with `size` blocks. */
struct check check_begin(MPI_Comm comm, const struct type *type, size_t count, bool factors);

/* Gives output and expected output the pattern again. */
void check_again(struct check *check);

/* Expects at element `at` the `count` elements of `rank` from its element `first` on. */
void check_expect(struct check *check, size_t at, size_t count, int rank, size_t first);

/* Expects at element `at` the reduction of `count` elements, from element `first` on, over all ranks. */
void check_expect_reduced(struct check *check, size_t at, size_t count, size_t first, enum rule rule, bool factors);

/* Compares; a difference is reported on standard error. */
void check_end(struct check *check, const char *call);
/* The same of the first `bytes` bytes alone, where MPI does not say what stands behind them. */
void check_end_of(struct check *check, const char *call, size_t bytes);

/* Reports a failure of the test on standard error. */
void check_fail(const char *sentence);
/* Failures so far. */
int check_failures(void);

#endif

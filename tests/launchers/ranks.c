/* A rank that knows nothing but its environment. It makes two worlds, one after the other, since a process may: each
 * adds up the ranks, and the second adds a megabyte. An argument is the number of ranks that there must be. */
#include "support/rank.h"

#define ELEMENTS ((size_t)1 << 18)

static gyre_comm *meet(long wanted)
{
    gyre_comm *comm = NULL;
    if (gyre_comm_create(NULL, &comm) != GYRE_SUCCESS) {
        fprintf(stderr, "meeting: %s\n", gyre_last_error(NULL));
        exit(1);
    }
    if (wanted && gyre_comm_size(comm) != wanted)
        rank_fail("there are %d ranks instead of %ld", gyre_comm_size(comm), wanted);
    return comm;
}

int main(int argc, char **argv)
{
    long wanted = argc > 1 ? atol(argv[1]) : 0;
    gyre_comm *comm = meet(wanted);
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm);
    int64_t sum = rank, want = (int64_t)size * (size - 1) / 2;
    OK(comm, gyre_all_reduce(comm, &sum, &sum, 1, GYRE_INT64, GYRE_SUM));
    CHECK(sum == want);
    OK(comm, gyre_comm_destroy(comm));

    comm = meet(wanted);
    CHECK(gyre_comm_rank(comm) == rank && gyre_comm_size(comm) == size);
    int32_t *many = malloc(ELEMENTS * sizeof *many);
    CHECK(many);
    for (size_t i = 0; i < ELEMENTS; i++)
        many[i] = rank;
    OK(comm, gyre_all_reduce(comm, many, many, ELEMENTS, GYRE_INT32, GYRE_SUM));
    CHECK(many[0] == want && many[ELEMENTS - 1] == want);
    free(many);
    OK(comm, gyre_comm_destroy(comm));
    printf("rank %d of %d: two worlds\n", rank, size);
    return 0; /* and not _exit: a launcher may want to hear that the process ends in order */
}

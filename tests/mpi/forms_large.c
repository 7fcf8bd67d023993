/* The functions with counts of type MPI_Count, where the library has them. */
#include "check.h"
#include "forms.h"

#if MPI_VERSION >= 4

static void expect_all(struct check *it, size_t first)
{
    for (int r = 0; r < it->size; r++)
        check_expect(it, it->count * (size_t)r, it->count, r, first);
}

static void expect_reduced(struct check *it, size_t count, size_t first, enum rule rule)
{
    check_expect_reduced(it, 0, count, first, rule, false);
}

static void reduce_scatter(struct check *it)
{
    MPI_Count counts[8];
    size_t first = 0;
    for (int r = 0; r < it->size; r++) {
        counts[r] = (MPI_Count)(r % 2 ? it->count / 2 : it->count);
        first += r < it->rank ? (size_t)counts[r] : 0;
    }
    expect_reduced(it, (size_t)counts[it->rank], first, BXOR);
    MPI_Reduce_scatter_c(it->in, it->out, counts, MPI_INT, MPI_BXOR, it->comm);
    check_end(it, "Reduce_scatter_c");
}

static void reductions(struct check *it)
{
    const MPI_Count count = (MPI_Count)it->count;
    expect_reduced(it, it->count, 0, SUM);
    MPI_Allreduce_c(it->in, it->out, count, MPI_INT, MPI_SUM, it->comm);
    check_end(it, "Allreduce_c");
    if (it->rank == 0)
        expect_reduced(it, it->count, 0, MAX);
    MPI_Reduce_c(it->in, it->out, count, MPI_INT, MPI_MAX, 0, it->comm);
    check_end(it, "Reduce_c");
    expect_reduced(it, it->count, it->count * (size_t)it->rank, MIN);
    MPI_Reduce_scatter_block_c(it->in, it->out, count, MPI_INT, MPI_MIN, it->comm);
    check_end(it, "Reduce_scatter_block_c");
    reduce_scatter(it);
}

static void moves(struct check *it)
{
    const MPI_Count count = (MPI_Count)it->count;
    check_expect(it, 0, it->count, 0, 0);
    MPI_Bcast_c(it->rank == 0 ? it->in : it->out, count, MPI_INT, 0, it->comm);
    if (it->rank == 0)
        check_again(it);
    check_end(it, "Bcast_c");
    if (it->rank == 0)
        expect_all(it, 0);
    MPI_Gather_c(it->in, count, MPI_INT, it->out, count, MPI_INT, 0, it->comm);
    check_end(it, "Gather_c");
    check_expect(it, 0, it->count, 0, it->count * (size_t)it->rank);
    MPI_Scatter_c(it->in, count, MPI_INT, it->out, count, MPI_INT, 0, it->comm);
    check_end(it, "Scatter_c");
    expect_all(it, 0);
    MPI_Allgather_c(it->in, count, MPI_INT, it->out, count, MPI_INT, it->comm);
    check_end(it, "Allgather_c");
    expect_all(it, it->count * (size_t)it->rank);
    MPI_Alltoall_c(it->in, count, MPI_INT, it->out, count, MPI_INT, it->comm);
    check_end(it, "Alltoall_c");
}

static void lists(struct check *it)
{
    MPI_Count counts[8];
    MPI_Aint places[8];
    for (int r = 0; r < it->size; r++) {
        counts[r] = (MPI_Count)it->count;
        places[r] = (MPI_Aint)(it->count * (size_t)r);
    }
    if (it->rank == 0)
        expect_all(it, 0);
    MPI_Gatherv_c(it->in, counts[0], MPI_INT, it->out, counts, places, MPI_INT, 0, it->comm);
    check_end(it, "Gatherv_c");
    check_expect(it, 0, it->count, 0, it->count * (size_t)it->rank);
    MPI_Scatterv_c(it->in, counts, places, MPI_INT, it->out, counts[0], MPI_INT, 0, it->comm);
    check_end(it, "Scatterv_c");
    expect_all(it, 0);
    MPI_Allgatherv_c(it->in, counts[0], MPI_INT, it->out, counts, places, MPI_INT, it->comm);
    check_end(it, "Allgatherv_c");
    expect_all(it, it->count * (size_t)it->rank);
    MPI_Alltoallv_c(it->in, counts, places, MPI_INT, it->out, counts, places, MPI_INT, it->comm);
    check_end(it, "Alltoallv_c");
}

void forms_large(MPI_Comm comm, size_t count)
{
    struct check it = check_begin(comm, TYPE_INT, count, false);
    it.words = "counts of type MPI_Count";
    reductions(&it);
    moves(&it);
    lists(&it);
}

#else

void forms_large(MPI_Comm comm, size_t count)
{
    (void)comm, (void)count;
}

#endif

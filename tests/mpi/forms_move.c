/* What only moves, with one count: every root, several datatypes. */
#include <string.h>

#include "check.h"
#include "forms.h"

static void expect_all(struct check *it, size_t first)
{
    for (int r = 0; r < it->size; r++)
        check_expect(it, it->count * (size_t)r, it->count, r, first);
}

static size_t block_of(const struct check *it, int rank)
{
    return it->count * (size_t)rank * it->type->extent;
}

static void bcast(struct check *it, int root)
{
    check_expect(it, 0, it->count, root, 0);
    if (it->rank == root)
        memcpy(it->out, it->in, block_of(it, 1));
    MPI_Bcast(it->out, (int)it->count, it->type->type, root, it->comm);
    check_end(it, "Bcast");
}

static void gather(struct check *it, int root)
{
    const MPI_Datatype type = it->type->type;
    const int count = (int)it->count;
    if (it->rank == root)
        expect_all(it, 0);
    MPI_Gather(it->in, count, type, it->out, count, type, root, it->comm);
    check_end(it, "Gather");
    if (it->rank == root) {
        expect_all(it, 0);
        memcpy(it->out + block_of(it, root), it->in, block_of(it, 1));
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, it->out, count, type, root, it->comm);
    } else
        MPI_Gather(it->in, count, type, NULL, 0, MPI_DATATYPE_NULL, root, it->comm);
    check_end(it, "Gather, in place");
}

static void scatter(struct check *it, int root)
{
    const MPI_Datatype type = it->type->type;
    const int count = (int)it->count;
    check_expect(it, 0, it->count, root, it->count * (size_t)it->rank);
    MPI_Scatter(it->in, count, type, it->out, count, type, root, it->comm);
    check_end(it, "Scatter");
    if (it->rank == root)
        MPI_Scatter(it->in, count, type, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, root, it->comm);
    else {
        check_expect(it, 0, it->count, root, it->count * (size_t)it->rank);
        MPI_Scatter(NULL, 0, MPI_DATATYPE_NULL, it->out, count, type, root, it->comm);
    }
    check_end(it, "Scatter, in place");
}

static void allgather(struct check *it)
{
    const MPI_Datatype type = it->type->type;
    const int count = (int)it->count;
    expect_all(it, 0);
    MPI_Allgather(it->in, count, type, it->out, count, type, it->comm);
    check_end(it, "Allgather");
    expect_all(it, 0);
    memcpy(it->out + block_of(it, it->rank), it->in, block_of(it, 1));
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, it->out, count, type, it->comm);
    check_end(it, "Allgather, in place");
}

static void alltoall(struct check *it)
{
    const MPI_Datatype type = it->type->type;
    const int count = (int)it->count;
    expect_all(it, it->count * (size_t)it->rank);
    MPI_Alltoall(it->in, count, type, it->out, count, type, it->comm);
    check_end(it, "Alltoall");
    expect_all(it, it->count * (size_t)it->rank);
    memcpy(it->out, it->in, block_of(it, it->size));
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, it->out, count, type, it->comm);
    check_end(it, "Alltoall, in place");
}

void forms_move(MPI_Comm comm, size_t count, bool all)
{
    for (int t = 0; t < (all ? type_count : 1); t++) {
        struct check it = check_begin(comm, &types[t], count, false);
        for (int root = 0; root < it.size; root++) {
            it.words = root == 0 ? "root 0" : "another root";
            bcast(&it, root);
            gather(&it, root);
            scatter(&it, root);
        }
        it.words = "no root";
        allgather(&it);
        alltoall(&it);
    }
}

/* Reductions: every datatype with every operation that is for it. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "forms.h"

struct what {
    MPI_Comm comm;
    size_t count;
    const struct type *type;
    const struct operation *operation;
    char words[32];
};

static bool factors_of(const struct what *what)
{
    return what->operation->rule == PROD;
}

static struct check begin(const struct what *what)
{
    struct check it = check_begin(what->comm, what->type, what->count, factors_of(what));
    it.words = what->words;
    return it;
}

static void expect(struct check *it, const struct what *what, size_t count, size_t first)
{
    check_expect_reduced(it, 0, count, first, what->operation->rule, factors_of(what));
}

static void all_reduce(const struct what *what)
{
    struct check it = begin(what);
    expect(&it, what, it.count, 0);
    MPI_Allreduce(it.in, it.out, (int)it.count, it.type->type, what->operation->op, it.comm);
    check_end(&it, "Allreduce");
}

static void all_reduce_in_place(const struct what *what)
{
    struct check it = begin(what);
    expect(&it, what, it.count, 0);
    memcpy(it.out, it.in, it.count * it.type->extent);
    MPI_Allreduce(MPI_IN_PLACE, it.out, (int)it.count, it.type->type, what->operation->op, it.comm);
    check_end(&it, "Allreduce, in place");
}

static void reduce(const struct what *what, int root)
{
    struct check it = begin(what);
    const bool is_root = it.rank == root;
    if (is_root)
        expect(&it, what, it.count, 0);
    MPI_Reduce(it.in, is_root ? it.out : NULL, (int)it.count, it.type->type, what->operation->op, root, it.comm);
    check_end(&it, "Reduce");
    if (is_root) {
        expect(&it, what, it.count, 0);
        memcpy(it.out, it.in, it.count * it.type->extent);
    }
    MPI_Reduce(is_root ? MPI_IN_PLACE : it.in, is_root ? it.out : NULL, (int)it.count, it.type->type,
               what->operation->op, root, it.comm);
    check_end(&it, "Reduce, in place");
}

static void reduce_scatter_block(const struct what *what)
{
    struct check it = begin(what);
    const size_t block = it.count * it.type->extent;
    expect(&it, what, it.count, it.count * (size_t)it.rank);
    MPI_Reduce_scatter_block(it.in, it.out, (int)it.count, it.type->type, what->operation->op, it.comm);
    check_end(&it, "Reduce_scatter_block");
    expect(&it, what, it.count, it.count * (size_t)it.rank);
    memcpy(it.out, it.in, block * (size_t)it.size);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, it.out, (int)it.count, it.type->type, what->operation->op, it.comm);
    check_end_of(&it, "Reduce_scatter_block, in place", block);
}

/* Counts that differ, one of them 0; or that are all the same. */
static void reduce_scatter(const struct what *what, bool equal)
{
    struct check it = begin(what);
    int counts[8];
    size_t first = 0;
    for (int r = 0; r < it.size; r++) {
        counts[r] = (int)(equal || r % 3 == 0 ? it.count : r % 3 == 1 ? 0 : it.count / 2);
        first += r < it.rank ? (size_t)counts[r] : 0;
    }
    const size_t mine = (size_t)counts[it.rank];
    expect(&it, what, mine, first);
    MPI_Reduce_scatter(it.in, it.out, counts, it.type->type, what->operation->op, it.comm);
    check_end(&it, "Reduce_scatter");
    expect(&it, what, mine, first);
    memcpy(it.out, it.in, it.count * it.type->extent * (size_t)it.size);
    MPI_Reduce_scatter(MPI_IN_PLACE, it.out, counts, it.type->type, what->operation->op, it.comm);
    check_end_of(&it, "Reduce_scatter, in place", mine * it.type->extent);
}

static void every_call(const struct what *what)
{
    int size;
    MPI_Comm_size(what->comm, &size);
    all_reduce_in_place(what);
    reduce(what, (int)(what->count % (size_t)size));
    reduce_scatter_block(what);
    reduce_scatter(what, false);
    reduce_scatter(what, true);
}

/* Of every pair one call, for the calls share how a pair is looked up; of a type that is summed, every call. */
void forms_reduce(MPI_Comm comm, size_t count, bool all)
{
    struct what what = {.comm = comm, .count = count};
    for (int t = 0; t < type_count; t++) {
        for (int o = 0; o < operation_count; o++) {
            what.type = &types[t];
            what.operation = &operations[o];
            if (!(what.operation->kinds >> what.type->kind & 1) || (!all && (t > 2 || what.operation->rule != SUM)))
                continue;
            snprintf(what.words, sizeof(what.words), "operation %d", o);
            all_reduce(&what);
            if (what.operation->rule == SUM && (t < 3 || what.type->kind == COMPLEX))
                every_call(&what);
        }
    }
}

/* What only moves, with one count per rank: equal and unequal counts, gaps, blocks in reverse, negative places, in
 * place. */
#include <string.h>

#include "check.h"
#include "forms.h"

enum { MOST = 8 };

/* How counts and places are made. */
enum shape { EQUAL, UNEQUAL, GAPS, REVERSE, NEGATIVE, EMPTY, SHAPES };
static const char *const shapes[] = {"equal", "unequal", "gaps", "reverse", "negative", "empty"};

struct lists {
    int counts[MOST], places[MOST];
    int base; /* elements from the beginning of memory to the buffer that is given */
};

static int count_of(enum shape shape, int count, int number)
{
    if (shape == EMPTY)
        return 0;
    return shape == EQUAL || shape == REVERSE ? count : number % 3 == 1 ? 0 : count - number % 2 * (count / 2);
}

/* Block r has as many elements as the shape says for `numbers[r]`. MPICH 4.0's own MPI_Allgatherv of one rank does not
 * look at places: there they are not negative. */
static struct lists lists_of(enum shape shape, int count, int size, const int *numbers)
{
    struct lists it = {.base = shape == NEGATIVE && size > 1 ? count : 0};
    int at = -it.base;
    for (int i = 0; i < size; i++) {
        int rank = shape == REVERSE ? size - 1 - i : i;
        it.counts[rank] = count_of(shape, count, numbers[rank]);
        it.places[rank] = at;
        at += shape == GAPS ? count : it.counts[rank];
    }
    return it;
}

/* What every rank knows: a block for each rank. */
static struct lists common_lists(const struct check *it, enum shape shape)
{
    static const int numbers[MOST] = {0, 1, 2, 3, 4, 5, 6, 7};
    return lists_of(shape, (int)it->count, it->size, numbers);
}

static size_t at(const struct lists *lists, int rank)
{
    return (size_t)(lists->base + lists->places[rank]);
}

static void expect_all(struct check *it, const struct lists *lists)
{
    for (int r = 0; r < it->size; r++)
        check_expect(it, at(lists, r), (size_t)lists->counts[r], r, 0);
}

/* The rank's own block, where it belongs in the output. */
static void put_mine(struct check *it, const struct lists *lists)
{
    memcpy(it->out + at(lists, it->rank) * sizeof(int), it->in, (size_t)lists->counts[it->rank] * sizeof(int));
}

static void gatherv(struct check *it, enum shape shape, int root)
{
    const struct lists lists = common_lists(it, shape);
    const bool is_root = it->rank == root;
    int mine = lists.counts[it->rank], *out = (int *)it->out + lists.base;
    if (is_root)
        expect_all(it, &lists);
    MPI_Gatherv(it->in, mine, MPI_INT, is_root ? out : NULL, is_root ? lists.counts : NULL,
                is_root ? lists.places : NULL, MPI_INT, root, it->comm);
    check_end(it, "Gatherv");
    if (is_root) {
        expect_all(it, &lists);
        put_mine(it, &lists);
    }
    MPI_Gatherv(is_root ? MPI_IN_PLACE : it->in, mine, MPI_INT, out, lists.counts, lists.places, MPI_INT, root,
                it->comm);
    check_end(it, "Gatherv, in place");
}

static void scatterv(struct check *it, enum shape shape, int root)
{
    const struct lists lists = common_lists(it, shape);
    const bool is_root = it->rank == root;
    const size_t mine = (size_t)lists.counts[it->rank];
    int *in = (int *)it->in + lists.base;
    check_expect(it, 0, mine, root, at(&lists, it->rank));
    MPI_Scatterv(is_root ? in : NULL, is_root ? lists.counts : NULL, is_root ? lists.places : NULL, MPI_INT, it->out,
                 (int)mine, MPI_INT, root, it->comm);
    check_end(it, "Scatterv");
    if (!is_root)
        check_expect(it, 0, mine, root, at(&lists, it->rank));
    MPI_Scatterv(in, lists.counts, lists.places, MPI_INT, is_root ? MPI_IN_PLACE : it->out, (int)mine, MPI_INT, root,
                 it->comm);
    check_end(it, "Scatterv, in place");
}

static void allgatherv(struct check *it, enum shape shape)
{
    const struct lists lists = common_lists(it, shape);
    int *out = (int *)it->out + lists.base;
    expect_all(it, &lists);
    MPI_Allgatherv(it->in, lists.counts[it->rank], MPI_INT, out, lists.counts, lists.places, MPI_INT, it->comm);
    check_end(it, "Allgatherv");
    expect_all(it, &lists);
    put_mine(it, &lists);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, lists.counts, lists.places, MPI_INT, it->comm);
    check_end(it, "Allgatherv, in place");
}

/* What a rank sends; what it gets from rank r is what r sends to it. */
static struct lists sent_by(const struct check *it, enum shape shape, int rank)
{
    int numbers[MOST];
    for (int r = 0; r < it->size; r++)
        numbers[r] = rank + 2 * r;
    return lists_of(shape, (int)it->count, it->size, numbers);
}

static struct lists got_by(const struct check *it, enum shape shape, int rank)
{
    int numbers[MOST];
    for (int r = 0; r < it->size; r++)
        numbers[r] = r + 2 * rank;
    return lists_of(shape, (int)it->count, it->size, numbers);
}

static void alltoallv(struct check *it, enum shape shape)
{
    const struct lists sent = sent_by(it, shape, it->rank), got = got_by(it, shape, it->rank);
    for (int r = 0; r < it->size; r++) {
        const struct lists theirs = sent_by(it, shape, r);
        check_expect(it, at(&got, r), (size_t)got.counts[r], r, at(&theirs, it->rank));
    }
    MPI_Alltoallv((int *)it->in + sent.base, sent.counts, sent.places, MPI_INT, (int *)it->out + got.base, got.counts,
                  got.places, MPI_INT, it->comm);
    check_end(it, "Alltoallv");
}

/* In place the counts of a pair are the same in both directions. */
static struct lists symmetric(const struct check *it, enum shape shape, int rank)
{
    int numbers[MOST];
    for (int r = 0; r < it->size; r++)
        numbers[r] = rank + r;
    return lists_of(shape, (int)it->count, it->size, numbers);
}

static void alltoallv_in_place(struct check *it, enum shape shape)
{
    const struct lists mine = symmetric(it, shape, it->rank);
    for (int r = 0; r < it->size; r++) {
        const struct lists theirs = symmetric(it, shape, r);
        check_expect(it, at(&mine, r), (size_t)mine.counts[r], r, at(&theirs, it->rank));
        type_fill(it->type, it->out + at(&mine, r) * sizeof(int), at(&mine, r), (size_t)mine.counts[r], it->rank,
                  false);
    }
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, (int *)it->out + mine.base, mine.counts, mine.places,
                  MPI_INT, it->comm);
    check_end(it, "Alltoallv, in place");
}

/* The same memory goes to every rank, which gyre's lists of blocks do not allow. */
static void alltoallv_overlapping(struct check *it)
{
    const struct lists got = common_lists(it, EQUAL);
    const int places[MOST] = {0};
    expect_all(it, &got);
    MPI_Alltoallv(it->in, got.counts, places, MPI_INT, it->out, got.counts, got.places, MPI_INT, it->comm);
    check_end(it, "Alltoallv, overlapping");
}

void forms_lists(MPI_Comm comm, size_t count)
{
    struct check it = check_begin(comm, TYPE_INT, count, false);
    for (int number = 0; number < SHAPES; number++) {
        const enum shape shape = (enum shape)number;
        it.words = shapes[shape];
        for (int root = 0; root < it.size; root++) {
            gatherv(&it, shape, root);
            scatterv(&it, shape, root);
        }
        allgatherv(&it, shape);
        alltoallv(&it, shape);
        alltoallv_in_place(&it, shape);
    }
    it.words = "equal";
    alltoallv_overlapping(&it);
}

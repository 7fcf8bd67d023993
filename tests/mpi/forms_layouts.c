/* The ranks of one call describe the same data by different datatypes, as MPI allows. */
#include <string.h>

#include "check.h"
#include "forms.h"
#include "layout.h"

/* A rank's two arguments. Every rank knows those of all. */
struct sides {
    struct side in, out;
};

struct what {
    struct check check;
    int count, shift, root;
    struct sides sides[8];
};

static void begin(struct what *what, MPI_Comm comm)
{
    what->check = check_begin(comm, TYPE_INT, (size_t)what->count * 8, false);
    type_fill(TYPE_INT, what->check.in, 0, what->check.bytes / sizeof(int), what->check.rank, false);
    what->root = what->shift % what->check.size;
    what->check.words = "datatypes that differ";
    for (int r = 0; r < what->check.size; r++)
        what->sides[r] = (struct sides){side_begin(r + what->shift, what->count),
                                        side_begin(2 * r + 1 + what->shift, what->count)};
}

static void end(struct what *what)
{
    for (int r = 0; r < what->check.size; r++) {
        side_end(&what->sides[r].in);
        side_end(&what->sides[r].out);
    }
}

/* Block `to` of this rank's output, in layout `out`, is block `from` of the input of `rank`, in layout `in`. */
static void expect(struct what *what, const struct side *out, int to, int rank, const struct side *in, int from)
{
    const size_t ints = (size_t)what->count * LAYOUT_INTS;
    for (size_t i = 0; i < ints; i++)
        check_expect(&what->check, side_place(out, ints * (size_t)to + i), 1, rank,
                     side_place(in, ints * (size_t)from + i));
}

static const struct sides *mine_of(const struct what *what)
{
    return &what->sides[what->check.rank];
}

static void rooted(struct what *what)
{
    struct check *it = &what->check;
    const struct side in = mine_of(what)->in, out = mine_of(what)->out;
    const struct side *root_in = &what->sides[what->root].in, *root_out = &what->sides[what->root].out;
    const bool is_root = it->rank == what->root;
    if (!is_root)
        expect(what, &out, 0, what->root, root_in, 0);
    MPI_Bcast(is_root ? it->in : it->out, is_root ? in.count : out.count, is_root ? in.type : out.type, what->root,
              it->comm);
    check_end(it, "Bcast");
    for (int r = 0; r < it->size && is_root; r++)
        expect(what, &out, r, r, &what->sides[r].in, 0);
    MPI_Gather(it->in, in.count, in.type, it->out, out.count, out.type, what->root, it->comm);
    check_end(it, "Gather");
    expect(what, &in, 0, what->root, root_out, it->rank);
    MPI_Scatter(it->in, out.count, out.type, it->out, in.count, in.type, what->root, it->comm);
    check_end(it, "Scatter");
}

static void unrooted(struct what *what)
{
    struct check *it = &what->check;
    const struct side in = mine_of(what)->in, out = mine_of(what)->out;
    for (int r = 0; r < it->size; r++)
        expect(what, &out, r, r, &what->sides[r].in, 0);
    MPI_Allgather(it->in, in.count, in.type, it->out, out.count, out.type, it->comm);
    check_end(it, "Allgather");
    for (int r = 0; r < it->size; r++)
        expect(what, &out, r, r, &what->sides[r].in, it->rank);
    MPI_Alltoall(it->in, in.count, in.type, it->out, out.count, out.type, it->comm);
    check_end(it, "Alltoall");
}

/* Output and expected output begin as copies of the input, of which the call replaces what the datatype describes. */
static void in_place(struct what *what)
{
    struct check *it = &what->check;
    const struct side out = mine_of(what)->out;
    memcpy(it->out, it->in, it->bytes);
    memcpy(it->expected, it->in, it->bytes);
    for (int r = 0; r < it->size; r++)
        expect(what, &out, r, r, &what->sides[r].out, r);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, it->out, out.count, out.type, it->comm);
    check_end(it, "Allgather, in place");
    memcpy(it->out, it->in, it->bytes);
    memcpy(it->expected, it->in, it->bytes);
    for (int r = 0; r < it->size; r++)
        expect(what, &out, r, r, &what->sides[r].out, it->rank);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, it->out, out.count, out.type, it->comm);
    check_end(it, "Alltoall, in place");
}

/* Blocks in reverse order at the receiver. */
static void lists(struct what *what)
{
    struct check *it = &what->check;
    const struct side in = mine_of(what)->in, out = mine_of(what)->out;
    int in_counts[8], in_places[8], out_counts[8], out_places[8];
    for (int r = 0; r < it->size; r++) {
        in_counts[r] = in.count;
        in_places[r] = r * in.count;
        out_counts[r] = out.count;
        out_places[r] = (it->size - 1 - r) * out.count;
        expect(what, &out, it->size - 1 - r, r, &what->sides[r].in, it->rank);
    }
    MPI_Alltoallv(it->in, in_counts, in_places, in.type, it->out, out_counts, out_places, out.type, it->comm);
    check_end(it, "Alltoallv");
    for (int r = 0; r < it->size; r++)
        expect(what, &out, it->size - 1 - r, r, &what->sides[r].in, 0);
    MPI_Allgatherv(it->in, in.count, in.type, it->out, out_counts, out_places, out.type, it->comm);
    check_end(it, "Allgatherv");
    for (int r = 0; r < it->size && it->rank == what->root; r++)
        expect(what, &out, it->size - 1 - r, r, &what->sides[r].in, 0);
    MPI_Gatherv(it->in, in.count, in.type, it->out, out_counts, out_places, out.type, what->root, it->comm);
    check_end(it, "Gatherv");
    expect(what, &out, 0, what->root, &what->sides[what->root].in, it->rank);
    MPI_Scatterv(it->in, in_counts, in_places, in.type, it->out, out.count, out.type, what->root, it->comm);
    check_end(it, "Scatterv");
}

/* An address that is in the datatype. */
static void bottom(MPI_Comm comm)
{
    struct check it = check_begin(comm, TYPE_INT, 5, false);
    MPI_Datatype type;
    MPI_Aint address;
    const int length = 5;
    it.words = "MPI_BOTTOM";
    check_expect(&it, 0, 5, 0, 0);
    if (it.rank == 0)
        memcpy(it.out, it.in, 5 * sizeof(int));
    MPI_Get_address(it.out, &address);
    MPI_Type_create_hindexed(1, &length, &address, MPI_INT, &type);
    MPI_Type_commit(&type);
    MPI_Bcast(MPI_BOTTOM, 1, type, 0, comm);
    check_end(&it, "Bcast");
    MPI_Type_free(&type);
}

void forms_layouts(MPI_Comm comm, int count)
{
    struct what what = {.count = count};
    for (what.shift = 0; what.shift < LAYOUTS; what.shift++) {
        begin(&what, comm);
        rooted(&what);
        unrooted(&what);
        lists(&what);
        in_place(&what);
        end(&what);
    }
    bottom(comm);
}

#include "layout.h"

static MPI_Datatype resized(void)
{
    MPI_Datatype inner, type;
    MPI_Type_contiguous(LAYOUT_INTS, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, LAYOUT_MOST_EXTENT * sizeof(int), &type);
    MPI_Type_free(&inner);
    return type;
}

static MPI_Datatype nested(void)
{
    MPI_Datatype inner, type;
    MPI_Type_contiguous(LAYOUT_INTS / 4, MPI_INT, &inner);
    MPI_Type_contiguous(4, inner, &type);
    MPI_Type_free(&inner);
    return type;
}

static MPI_Datatype reversed(void)
{
    int lengths[LAYOUT_INTS], places[LAYOUT_INTS];
    MPI_Datatype type;
    for (int i = 0; i < LAYOUT_INTS; i++) {
        lengths[i] = 1;
        places[i] = LAYOUT_INTS - 1 - i;
    }
    MPI_Type_indexed(LAYOUT_INTS, lengths, places, MPI_INT, &type);
    return type;
}

static MPI_Datatype type_of(enum layout layout)
{
    MPI_Datatype type = MPI_INT;
    switch (layout) {
    case CONTIGUOUS: MPI_Type_contiguous(LAYOUT_INTS, MPI_INT, &type); break;
    case VECTOR: MPI_Type_vector(LAYOUT_INTS / 2, 2, 3, MPI_INT, &type); break;
    case REVERSED: type = reversed(); break;
    case RESIZED: type = resized(); break;
    case NESTED: type = nested(); break;
    case PLAIN:
    case LAYOUTS: return MPI_INT;
    }
    MPI_Type_commit(&type);
    return type;
}

struct side side_begin(int layout, int elements)
{
    const enum layout it = (enum layout)(layout % LAYOUTS);
    return (struct side){it, type_of(it), it == PLAIN ? elements * LAYOUT_INTS : elements};
}

void side_end(struct side *side)
{
    if (side->layout != PLAIN)
        MPI_Type_free(&side->type);
}

size_t side_place(const struct side *side, size_t i)
{
    const size_t element = i / LAYOUT_INTS, part = i % LAYOUT_INTS;
    switch (side->layout) {
    case VECTOR: return element * (LAYOUT_INTS / 2 * 3 - 1) + part / 2 * 3 + part % 2;
    case REVERSED: return element * LAYOUT_INTS + LAYOUT_INTS - 1 - part;
    case RESIZED: return element * LAYOUT_MOST_EXTENT + part;
    default: return i;
    }
}

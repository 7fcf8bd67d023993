#include "failure.h"
#include "take.h"

static int all_to_all(struct gm_twin *twin, struct gm_view *in, struct gm_view *out, size_t bytes)
{
    bool in_place = in->data.buffer == MPI_IN_PLACE;
    if (!gm_view_open(out, twin->size, in_place) || (!in_place && !gm_view_open(in, twin->size, true)))
        return gm_failure_memory(twin, GM_ALLTOALL);
    const char *mine = in_place ? out->bytes : in->bytes;
    gm_take_begin(twin);
    return gm_take_end(twin, gyre_all_to_all(twin->comm, mine, out->bytes, bytes, GYRE_UINT8), GM_ALLTOALL);
}

int gm_alltoall(struct gm_data input, struct gm_data output, MPI_Comm comm)
{
    struct gm_view in = {.data = input}, out;
    struct gm_twin *twin = gm_twin_find(comm, GM_ALLTOALL);
    if (!twin || !gm_view_measure(&out, output) || (input.buffer != MPI_IN_PLACE && !gm_view_measure(&in, input)))
        return GM_PASS;
    if (out.length == 0)
        return MPI_SUCCESS;
    int code = all_to_all(twin, &in, &out, out.length);
    gm_view_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

static int all_to_all_blocks(struct gm_twin *twin, struct gm_blocks_view *in, struct gm_blocks_view *out)
{
    bool in_place = in->blocks.buffer == MPI_IN_PLACE;
    const struct gm_blocks_view *from = in_place ? out : in;
    if (!gm_blocks_open(out, in_place, false) || (!in_place && !gm_blocks_open(in, true, false)))
        return gm_failure_memory(twin, GM_ALLTOALLV);
    gm_take_begin(twin);
    return gm_take_end(twin,
                       gyre_all_to_allv(twin->comm, from->bytes, from->counts, from->places, out->bytes, out->counts,
                                        out->places, GYRE_UINT8),
                       GM_ALLTOALLV);
}

/* A rank without data cannot know whether the others have any: it takes part. */
int gm_alltoallv(struct gm_blocks input, struct gm_blocks output, MPI_Comm comm)
{
    struct gm_blocks_view in = {.blocks = input}, out;
    struct gm_twin *twin = gm_twin_find(comm, GM_ALLTOALLV);
    if (!twin || !gm_blocks_measure(&out, &output, twin, 0) ||
        (input.buffer != MPI_IN_PLACE && !gm_blocks_measure(&in, &input, twin, 2)))
        return GM_PASS;
    int code = all_to_all_blocks(twin, &in, &out);
    gm_blocks_close(&in, false);
    gm_blocks_close(&out, code == MPI_SUCCESS);
    return code;
}

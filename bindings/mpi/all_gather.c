#include "failure.h"
#include "take.h"

static int all_gather(struct gm_twin *twin, struct gm_view *in, struct gm_view *out, size_t bytes)
{
    bool in_place = in->data.buffer == MPI_IN_PLACE;
    if (!gm_view_open(out, twin->size, in_place) || (!in_place && !gm_view_open(in, 1, true)))
        return gm_failure_memory(twin, GM_ALLGATHER);
    const char *mine = in_place ? out->bytes + bytes * (size_t)twin->rank : in->bytes;
    gm_take_begin(twin);
    return gm_take_end(twin, gyre_all_gather(twin->comm, mine, out->bytes, bytes, GYRE_UINT8), GM_ALLGATHER);
}

int gm_allgather(struct gm_data input, struct gm_data output, MPI_Comm comm)
{
    struct gm_view in = {.data = input}, out;
    struct gm_twin *twin = gm_twin_find(comm, GM_ALLGATHER);
    if (!twin || !gm_view_measure(&out, output) || (input.buffer != MPI_IN_PLACE && !gm_view_measure(&in, input)))
        return GM_PASS;
    if (out.length == 0)
        return MPI_SUCCESS;
    int code = all_gather(twin, &in, &out, out.length);
    gm_view_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

static int all_gather_blocks(struct gm_twin *twin, struct gm_view *in, struct gm_blocks_view *out)
{
    bool in_place = in->data.buffer == MPI_IN_PLACE, equal = gm_are_equal(out->counts, twin->size);
    if (!gm_blocks_open(out, in_place, equal) || (!in_place && !gm_view_open(in, 1, true)))
        return gm_failure_memory(twin, GM_ALLGATHERV);
    const char *mine = in_place ? out->bytes + out->places[twin->rank] : in->bytes;
    gm_take_begin(twin);
    gyre_status status = equal ? gyre_all_gather(twin->comm, mine, out->bytes, out->counts[0], GYRE_UINT8)
                               : gyre_all_gatherv(twin->comm, mine, out->bytes, out->counts, out->places, GYRE_UINT8);
    return gm_take_end(twin, status, GM_ALLGATHERV);
}

int gm_allgatherv(struct gm_data input, struct gm_blocks output, MPI_Comm comm)
{
    struct gm_view in = {.data = input};
    struct gm_blocks_view out;
    struct gm_twin *twin = gm_twin_find(comm, GM_ALLGATHERV);
    if (!twin || !gm_blocks_measure(&out, &output, twin, 0) ||
        (input.buffer != MPI_IN_PLACE && !gm_view_measure(&in, input)))
        return GM_PASS;
    if (out.length == 0)
        return MPI_SUCCESS;
    int code = all_gather_blocks(twin, &in, &out);
    gm_view_close(&in, false);
    gm_blocks_close(&out, code == MPI_SUCCESS);
    return code;
}

#include "failure.h"
#include "take.h"

static int all_gather(struct gm_shadow *shadow, struct gm_view *in, struct gm_view *out, size_t bytes)
{
    bool in_place = in->data.buffer == MPI_IN_PLACE;
    if (!gm_view_open(out, shadow->size, in_place) || (!in_place && !gm_view_open(in, 1, true)))
        return gm_failure_no_memory(shadow, GM_ALLGATHER);
    const char *mine = in_place ? out->bytes + bytes * (size_t)shadow->rank : in->bytes;
    gm_take_begin(shadow);
    return gm_take_end(shadow, gyre_all_gather(shadow->comm, mine, out->bytes, bytes, GYRE_UINT8), GM_ALLGATHER);
}

int gm_allgather(struct gm_data input, struct gm_data output, MPI_Comm comm)
{
    struct gm_view in = {.data = input}, out;
    struct gm_shadow *shadow = gm_shadow_find(comm, GM_ALLGATHER);
    if (!shadow || !gm_view_measure(&out, output) || (input.buffer != MPI_IN_PLACE && !gm_view_measure(&in, input)))
        return GM_PASS;
    if (out.length == 0)
        return MPI_SUCCESS;
    int code = all_gather(shadow, &in, &out, out.length);
    gm_view_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

static int all_gather_blocks(struct gm_shadow *shadow, struct gm_view *in, struct gm_blocks_view *out)
{
    bool in_place = in->data.buffer == MPI_IN_PLACE, equal = gm_are_equal(out->counts, shadow->size);
    if (!gm_blocks_open(out, in_place, equal) || (!in_place && !gm_view_open(in, 1, true)))
        return gm_failure_no_memory(shadow, GM_ALLGATHERV);
    const char *mine = in_place ? out->bytes + out->displs[shadow->rank] : in->bytes;
    gm_take_begin(shadow);
    gyre_status status = equal ? gyre_all_gather(shadow->comm, mine, out->bytes, out->counts[0], GYRE_UINT8)
                               : gyre_all_gatherv(shadow->comm, mine, out->bytes, out->counts, out->displs, GYRE_UINT8);
    return gm_take_end(shadow, status, GM_ALLGATHERV);
}

int gm_allgatherv(struct gm_data input, struct gm_blocks output, MPI_Comm comm)
{
    struct gm_view in = {.data = input};
    struct gm_blocks_view out;
    struct gm_shadow *shadow = gm_shadow_find(comm, GM_ALLGATHERV);
    if (!shadow || !gm_blocks_measure(&out, &output, shadow, 0) ||
        (input.buffer != MPI_IN_PLACE && !gm_view_measure(&in, input)))
        return GM_PASS;
    if (out.length == 0)
        return MPI_SUCCESS;
    int code = all_gather_blocks(shadow, &in, &out);
    gm_view_close(&in, false);
    gm_blocks_close(&out, code == MPI_SUCCESS);
    return code;
}

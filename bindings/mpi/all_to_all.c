#include "failure.h"
#include "take.h"

static int all_to_all(struct gm_shadow *shadow, struct gm_view *in, struct gm_view *out, size_t bytes)
{
    bool in_place = in->data.buffer == MPI_IN_PLACE;
    if (!gm_view_open(out, shadow->size, in_place) || (!in_place && !gm_view_open(in, shadow->size, true)))
        return gm_failure_no_memory(shadow, GM_ALLTOALL);
    const char *mine = in_place ? out->bytes : in->bytes;
    gm_take_begin(shadow);
    return gm_take_end(shadow, gyre_all_to_all(shadow->comm, mine, out->bytes, bytes, GYRE_UINT8), GM_ALLTOALL);
}

int gm_alltoall(struct gm_data input, struct gm_data output, MPI_Comm comm)
{
    struct gm_view in = {.data = input}, out;
    struct gm_shadow *shadow = gm_shadow_find(comm, GM_ALLTOALL);
    if (!shadow || !gm_view_measure(&out, output) || (input.buffer != MPI_IN_PLACE && !gm_view_measure(&in, input)))
        return GM_PASS;
    if (out.length == 0)
        return MPI_SUCCESS;
    int code = all_to_all(shadow, &in, &out, out.length);
    gm_view_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

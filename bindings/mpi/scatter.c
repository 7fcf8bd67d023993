/* The root of MPI_Scatterv broadcasts the counts first, as that of MPI_Gatherv does: gather.c. */
#include "failure.h"
#include "take.h"

/* The root's views: `in`; and `out`, unless it is in place. The others' view: `out`. */
static int scatter(struct gm_twin *twin, struct gm_view *in, struct gm_view *out, size_t bytes, int root)
{
    bool is_root = twin->rank == root, in_place = is_root && out->data.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_view_open(in, twin->size, true)) || (!in_place && !gm_view_open(out, 1, false)))
        return gm_failure_memory(twin, GM_SCATTER);
    char *mine = in_place ? in->bytes + bytes * (size_t)twin->rank : out->bytes;
    gm_take_begin(twin);
    return gm_take_end(twin, gyre_scatter(twin->comm, is_root ? in->bytes : NULL, mine, bytes, GYRE_UINT8, root),
                       GM_SCATTER);
}

int gm_scatter(struct gm_data input, struct gm_data output, int root, MPI_Comm comm)
{
    struct gm_view in = {.data = input}, out = {.data = output};
    struct gm_twin *twin = gm_twin_find(comm, GM_SCATTER);
    if (!twin || !gm_is_rank(twin, root))
        return GM_PASS;
    bool is_root = twin->rank == root, in_place = is_root && output.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_view_measure(&in, input)) || (!in_place && !gm_view_measure(&out, output)))
        return GM_PASS;
    size_t bytes = is_root ? in.length : out.length;
    if (bytes == 0)
        return MPI_SUCCESS;
    int code = scatter(twin, &in, &out, bytes, root);
    gm_view_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

/* The root's views: `in`; and `out`, unless it is in place. The others' view: `out`. */
static int scatter_blocks(struct gm_twin *twin, struct gm_blocks_view *in, struct gm_view *out, int root)
{
    const size_t *counts = gm_twin_list(twin, 0);
    bool is_root = twin->rank == root, in_place = is_root && out->data.buffer == MPI_IN_PLACE;
    bool equal = gm_are_equal(counts, twin->size);
    if ((is_root && !gm_blocks_open(in, true, equal)) || (!in_place && !gm_view_open(out, 1, false)))
        return gm_failure_memory(twin, GM_SCATTERV);
    char *mine = in_place ? in->bytes + in->places[twin->rank] : out->bytes;
    gm_take_begin(twin);
    gyre_status status = equal ? gyre_scatter(twin->comm, in->bytes, mine, counts[0], GYRE_UINT8, root)
                               : gyre_scatterv(twin->comm, in->bytes, counts, in->places, mine, GYRE_UINT8, root);
    return gm_take_end(twin, status, GM_SCATTERV);
}

int gm_scatterv(struct gm_blocks input, struct gm_data output, int root, MPI_Comm comm)
{
    struct gm_view out = {.data = output};
    struct gm_blocks_view in = {.blocks = input};
    struct gm_twin *twin = gm_twin_find(comm, GM_SCATTERV);
    if (!twin || !gm_is_rank(twin, root))
        return GM_PASS;
    bool is_root = twin->rank == root, in_place = is_root && output.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_blocks_measure(&in, &input, twin, 0)) || (!in_place && !gm_view_measure(&out, output)))
        return GM_PASS;
    int code = gm_take_counts(twin, root, GM_SCATTERV);
    if (code != MPI_SUCCESS || gm_take_sum(twin) == 0)
        return code;
    code = scatter_blocks(twin, &in, &out, root);
    gm_blocks_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

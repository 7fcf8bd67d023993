/* The root of MPI_Scatterv broadcasts the counts first, as that of MPI_Gatherv does: gather.c. */
#include <string.h>

#include "failure.h"
#include "short.h"
#include "take.h"

/* The root's views: `in`; and `out`, unless it is in place. The others' view: `out`. */
static int scatter(struct gm_twin *twin, struct gm_view *in, struct gm_view *out, size_t bytes, int root)
{
    bool is_root = twin->rank == root, in_place = is_root && out->data.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_view_open(in, twin->size, true)) || (!in_place && !gm_view_open(out, 1, false)))
        return gm_failure_memory(twin, GM_SCATTER);
    char *mine = in_place ? in->bytes + bytes * (size_t)twin->rank : out->bytes;
    gm_take_begin(twin);
    return gm_take_end(twin, gm_short_scatter(twin, is_root ? in->bytes : NULL, mine, bytes, root), GM_SCATTER);
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
    gyre_status status = equal ? gm_short_scatter(twin, in->bytes, mine, counts[0], root)
                               : gyre_scatterv(twin->comm, in->bytes, counts, in->places, mine, GYRE_UINT8, root);
    return gm_take_end(twin, status, GM_SCATTERV);
}

static int scatter_little(struct gm_twin *twin, struct gm_blocks_view *in, struct gm_view *out, int root)
{
    bool is_root = twin->rank == root, in_place = is_root && out->data.buffer == MPI_IN_PLACE;
    size_t bytes = is_root ? in->counts[1 - root] : out->length;
    if ((is_root && !gm_blocks_open(in, true, false)) || (!in_place && !gm_view_open(out, 1, false)))
        return gm_failure_memory(twin, GM_SCATTERV);
    if (is_root && !in_place && in->counts[root] > 0)
        memcpy(out->bytes, in->bytes + in->places[root], in->counts[root]);
    char *passed = is_root ? in->bytes + in->places[1 - root] : out->bytes;
    gm_take_begin(twin);
    return gm_take_end(twin, bytes > 0 ? gm_short_broadcast(twin, passed, bytes, root) : GYRE_SUCCESS, GM_SCATTERV);
}

static int scatter_counted(struct gm_twin *twin, struct gm_blocks_view *in, struct gm_view *out, int root)
{
    int code = gm_take_counts(twin, root, GM_SCATTERV);
    return code != MPI_SUCCESS || gm_take_sum(twin) == 0 ? code : scatter_blocks(twin, in, out, root);
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
    int code = gm_passes_little(twin, is_root ? in.counts[root ^ 1] : out.length)
                   ? scatter_little(twin, &in, &out, root)
                   : scatter_counted(twin, &in, &out, root);
    gm_blocks_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

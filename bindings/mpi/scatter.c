/* As in gather.c, the root of MPI_Scatterv broadcasts the counts first. */
#include <string.h>

#include "failure.h"
#include "short.h"
#include "take.h"

/* The root uses the view `in`, and `out` unless it is in place. The other ranks use `out`. */
static int scatter(struct gm_shadow *shadow, struct gm_view *in, struct gm_view *out, size_t bytes, int root)
{
    bool is_root = shadow->rank == root, in_place = is_root && out->data.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_view_open(in, shadow->size, true)) || (!in_place && !gm_view_open(out, 1, false)))
        return gm_failure_no_memory(shadow, GM_SCATTER);
    char *mine = in_place ? in->bytes + bytes * (size_t)shadow->rank : out->bytes;
    gm_take_begin(shadow);
    return gm_take_end(shadow, gm_short_scatter(shadow, is_root ? in->bytes : NULL, mine, bytes, root), GM_SCATTER);
}

int gm_scatter(struct gm_data input, struct gm_data output, int root, MPI_Comm comm)
{
    struct gm_view in = {.data = input}, out = {.data = output};
    struct gm_shadow *shadow = gm_shadow_find(comm, GM_SCATTER);
    if (!shadow || !gm_is_rank(shadow, root))
        return GM_PASS;
    bool is_root = shadow->rank == root, in_place = is_root && output.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_view_measure(&in, input)) || (!in_place && !gm_view_measure(&out, output)))
        return GM_PASS;
    size_t bytes = is_root ? in.length : out.length;
    if (bytes == 0)
        return MPI_SUCCESS;
    int code = scatter(shadow, &in, &out, bytes, root);
    gm_view_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

/* The root uses the view `in`, and `out` unless it is in place. The other ranks use `out`. */
static int scatter_blocks(struct gm_shadow *shadow, struct gm_blocks_view *in, struct gm_view *out, int root)
{
    const size_t *counts = gm_shadow_list(shadow, 0);
    bool is_root = shadow->rank == root, in_place = is_root && out->data.buffer == MPI_IN_PLACE;
    bool equal = gm_are_equal(counts, shadow->size);
    if ((is_root && !gm_blocks_open(in, true, equal)) || (!in_place && !gm_view_open(out, 1, false)))
        return gm_failure_no_memory(shadow, GM_SCATTERV);
    char *mine = in_place ? in->bytes + in->displs[shadow->rank] : out->bytes;
    gm_take_begin(shadow);
    gyre_status status = equal ? gm_short_scatter(shadow, in->bytes, mine, counts[0], root)
                               : gyre_scatterv(shadow->comm, in->bytes, counts, in->displs, mine, GYRE_UINT8, root);
    return gm_take_end(shadow, status, GM_SCATTERV);
}

static int scatter_pair(struct gm_shadow *shadow, struct gm_blocks_view *in, struct gm_view *out, int root)
{
    bool is_root = shadow->rank == root, in_place = is_root && out->data.buffer == MPI_IN_PLACE;
    size_t bytes = is_root ? in->counts[1 - root] : out->length;
    if ((is_root && !gm_blocks_open(in, true, false)) || (!in_place && !gm_view_open(out, 1, false)))
        return gm_failure_no_memory(shadow, GM_SCATTERV);
    if (is_root && !in_place && in->counts[root] > 0)
        memcpy(out->bytes, in->bytes + in->displs[root], in->counts[root]);
    char *passed = is_root ? in->bytes + in->displs[1 - root] : out->bytes;
    gm_take_begin(shadow);
    return gm_take_end(shadow, bytes > 0 ? gm_short_broadcast(shadow, passed, bytes, root) : GYRE_SUCCESS, GM_SCATTERV);
}

static int scatter_counted(struct gm_shadow *shadow, struct gm_blocks_view *in, struct gm_view *out, int root)
{
    int code = gm_take_counts(shadow, root, GM_SCATTERV);
    return code != MPI_SUCCESS || gm_take_sum(shadow) == 0 ? code : scatter_blocks(shadow, in, out, root);
}

int gm_scatterv(struct gm_blocks input, struct gm_data output, int root, MPI_Comm comm)
{
    struct gm_view out = {.data = output};
    struct gm_blocks_view in = {.blocks = input};
    struct gm_shadow *shadow = gm_shadow_find(comm, GM_SCATTERV);
    if (!shadow || !gm_is_rank(shadow, root))
        return GM_PASS;
    bool is_root = shadow->rank == root, in_place = is_root && output.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_blocks_measure(&in, &input, shadow, 0)) || (!in_place && !gm_view_measure(&out, output)))
        return GM_PASS;
    int code = gm_is_short_pair(shadow, is_root ? in.counts[root ^ 1] : out.length)
                   ? scatter_pair(shadow, &in, &out, root)
                   : scatter_counted(shadow, &in, &out, root);
    gm_blocks_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

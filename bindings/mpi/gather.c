/* Only the root knows all counts of MPI_Gatherv, and gyre's gatherv wants them on every rank: the root broadcasts them
 * first. */
#include <string.h>

#include "failure.h"
#include "short.h"
#include "take.h"

/* The root's views: `out`; and `in`, unless it is in place. The others' view: `in`. */
static int gather(struct gm_twin *twin, struct gm_view *in, struct gm_view *out, size_t bytes, int root)
{
    bool is_root = twin->rank == root, in_place = is_root && in->data.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_view_open(out, twin->size, in_place)) || (!in_place && !gm_view_open(in, 1, true)))
        return gm_failure_memory(twin, GM_GATHER);
    const char *mine = in_place ? out->bytes + bytes * (size_t)twin->rank : in->bytes;
    gm_take_begin(twin);
    return gm_take_end(twin, gm_short_gather(twin, mine, is_root ? out->bytes : NULL, bytes, root), GM_GATHER);
}

int gm_gather(struct gm_data input, struct gm_data output, int root, MPI_Comm comm)
{
    struct gm_view in = {.data = input}, out = {.data = output};
    struct gm_twin *twin = gm_twin_find(comm, GM_GATHER);
    if (!twin || !gm_is_rank(twin, root))
        return GM_PASS;
    bool is_root = twin->rank == root, in_place = is_root && input.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_view_measure(&out, output)) || (!in_place && !gm_view_measure(&in, input)))
        return GM_PASS;
    size_t bytes = is_root ? out.length : in.length;
    if (bytes == 0)
        return MPI_SUCCESS;
    int code = gather(twin, &in, &out, bytes, root);
    gm_view_close(&in, false);
    gm_view_close(&out, code == MPI_SUCCESS);
    return code;
}

/* The root's views: `out`; and `in`, unless it is in place. The others' view: `in`. */
static int gather_blocks(struct gm_twin *twin, struct gm_view *in, struct gm_blocks_view *out, int root)
{
    const size_t *counts = gm_twin_list(twin, 0);
    bool is_root = twin->rank == root, in_place = is_root && in->data.buffer == MPI_IN_PLACE;
    bool equal = gm_are_equal(counts, twin->size);
    if ((is_root && !gm_blocks_open(out, in_place, equal)) || (!in_place && !gm_view_open(in, 1, true)))
        return gm_failure_memory(twin, GM_GATHERV);
    const char *mine = in_place ? out->bytes + out->places[twin->rank] : in->bytes;
    gm_take_begin(twin);
    gyre_status status = equal ? gm_short_gather(twin, mine, out->bytes, counts[0], root)
                               : gyre_gatherv(twin->comm, mine, out->bytes, counts, out->places, GYRE_UINT8, root);
    return gm_take_end(twin, status, GM_GATHERV);
}

static int gather_little(struct gm_twin *twin, struct gm_view *in, struct gm_blocks_view *out, int root)
{
    bool is_root = twin->rank == root, in_place = is_root && in->data.buffer == MPI_IN_PLACE;
    size_t bytes = is_root ? out->counts[1 - root] : in->length;
    if ((is_root && !gm_blocks_open(out, in_place, false)) || (!in_place && !gm_view_open(in, 1, true)))
        return gm_failure_memory(twin, GM_GATHERV);
    if (is_root && !in_place && out->counts[root] > 0)
        memcpy(out->bytes + out->places[root], in->bytes, out->counts[root]);
    char *passed = is_root ? out->bytes + out->places[1 - root] : in->bytes;
    gm_take_begin(twin);
    return gm_take_end(twin, bytes > 0 ? gm_short_broadcast(twin, passed, bytes, 1 - root) : GYRE_SUCCESS, GM_GATHERV);
}

static int gather_counted(struct gm_twin *twin, struct gm_view *in, struct gm_blocks_view *out, int root)
{
    int code = gm_take_counts(twin, root, GM_GATHERV);
    return code != MPI_SUCCESS || gm_take_sum(twin) == 0 ? code : gather_blocks(twin, in, out, root);
}

int gm_gatherv(struct gm_data input, struct gm_blocks output, int root, MPI_Comm comm)
{
    struct gm_view in = {.data = input};
    struct gm_blocks_view out = {.blocks = output};
    struct gm_twin *twin = gm_twin_find(comm, GM_GATHERV);
    if (!twin || !gm_is_rank(twin, root))
        return GM_PASS;
    bool is_root = twin->rank == root, in_place = is_root && input.buffer == MPI_IN_PLACE;
    if ((is_root && !gm_blocks_measure(&out, &output, twin, 0)) || (!in_place && !gm_view_measure(&in, input)))
        return GM_PASS;
    int code = gm_passes_little(twin, is_root ? out.counts[root ^ 1] : in.length)
                   ? gather_little(twin, &in, &out, root)
                   : gather_counted(twin, &in, &out, root);
    gm_view_close(&in, false);
    gm_blocks_close(&out, code == MPI_SUCCESS);
    return code;
}
